package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Command returns the argument vector and the environment that run a program
// inside the host, with LIBVIRT_DEFAULT_URI set. It is for callers that want a
// terminal; others use Exec.
func (h *Host) Command(name string, args ...string) (argv, env []string) {
	argv = []string{"nsenter", "--target", strconv.Itoa(h.pid.pid), "--mount", "--net", "--pid", "--ipc", "--root"}
	if dir, err := os.Getwd(); err == nil {
		argv = append(argv, "--wd="+dir) // entering a mount namespace goes to its root
	}
	argv = append(append(argv, "--", name), args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LIBVIRT_DEFAULT_URI=") && !strings.HasPrefix(kv, "PATH=") {
			env = append(env, kv)
		}
	}
	path := os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
	return argv, append(env, "PATH="+path, "LIBVIRT_DEFAULT_URI="+h.URI())
}

// Exec runs a program inside the host and returns what it printed on stdout. An
// error carries what it printed on stderr. The context's end kills it with all
// its children.
func (h *Host) Exec(ctx context.Context, name string, args ...string) (string, error) {
	argv, env := h.Command(name, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Virsh runs virsh inside the host and returns what it printed.
func (h *Host) Virsh(ctx context.Context, args ...string) (string, error) {
	return h.Exec(ctx, "virsh", append([]string{"--quiet", "--connect", h.URI()}, args...)...)
}
