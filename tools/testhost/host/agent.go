package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// GuestExec runs a shell command in a guest, through its agent, and returns
// what it printed on stdout. The domain needs the agent's channel:
//
//	<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>
//
// It waits for the agent, and for the command, until the context ends, or four
// minutes: many emulated guests that boot at once take their time.
func (h *Host) GuestExec(ctx context.Context, name, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	out, err := h.guestExec(ctx, name, command)
	if err != nil {
		return out, fmt.Errorf("run %q in %s: %w", command, name, err)
	}
	return out, nil
}

func (h *Host) guestExec(ctx context.Context, name, command string) (string, error) {
	// A ping may be repeated, a command may not.
	for {
		if err := h.askAgent(ctx, name, "guest-ping", nil, nil); err == nil {
			break
		} else if sleep(ctx) != nil {
			return "", err
		}
	}
	var started struct {
		PID int `json:"pid"`
	}
	err := h.askAgent(ctx, name, "guest-exec", map[string]any{
		"path": "/bin/sh", "arg": []string{"-c", command}, "capture-output": true,
	}, &started)
	if err != nil {
		return "", err
	}
	var status struct {
		Exited   bool   `json:"exited"`
		ExitCode int    `json:"exitcode"`
		Signal   int    `json:"signal"`
		Out      string `json:"out-data"`
		Err      string `json:"err-data"`
	}
	for !status.Exited {
		if err := sleep(ctx); err != nil {
			return "", err
		}
		if err := h.askAgent(ctx, name, "guest-exec-status", map[string]any{"pid": started.PID}, &status); err != nil {
			return "", err
		}
	}
	out, err := base64.StdEncoding.DecodeString(status.Out)
	if err != nil {
		return "", err
	}
	if status.ExitCode != 0 || status.Signal != 0 {
		said, _ := base64.StdEncoding.DecodeString(status.Err)
		how := "status " + strconv.Itoa(status.ExitCode)
		if status.Signal != 0 {
			how = "signal " + strconv.Itoa(status.Signal)
		}
		return string(out), fmt.Errorf("%s: %s", how, strings.TrimSpace(string(said)))
	}
	return string(out), nil
}

// askAgent sends one command to the agent and decodes its answer.
func (h *Host) askAgent(ctx context.Context, name, command string, args map[string]any, answer any) error {
	request := map[string]any{"execute": command}
	if args != nil {
		request["arguments"] = args
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	out, err := h.Virsh(ctx, "qemu-agent-command", "--domain", name, "--cmd", string(text))
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal([]byte(out), &struct {
		Return any `json:"return"`
	}{answer})
}

// sleep pauses between two questions.
func sleep(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
