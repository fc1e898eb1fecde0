package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is a process seen from outside the host. The start time, in clock
// ticks since boot, tells it from a later one with the same pid.
type process struct {
	pid   int
	start uint64
}

// errNoProcess is returned for a pid that is free or a zombie.
var errNoProcess = errors.New("no such process")

// lookUp reads a process from /proc.
func lookUp(pid int) (process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("look up process %d: %w", pid, errNoProcess)
	}
	state, start, err := parseStat(data)
	if err != nil {
		return process{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return process{}, fmt.Errorf("look up process %d: %w", pid, errNoProcess)
	}
	return process{pid: pid, start: start}, nil
}

// parseStat takes the third and the 22nd field of /proc/PID/stat. The second is
// a name in parentheses that may itself hold spaces and parentheses.
func parseStat(data []byte) (state byte, start uint64, err error) {
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("read stat: unexpected content %q", data)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}

// alive tells whether this very process still runs.
func (p process) alive() bool {
	if p.pid <= 0 {
		return false
	}
	now, err := lookUp(p.pid)
	return err == nil && now == p
}

func (p process) kill()      { p.signal(syscall.SIGKILL) }
func (p process) terminate() { p.signal(syscall.SIGTERM) }

func (p process) signal(s syscall.Signal) {
	if p.alive() {
		syscall.Kill(p.pid, s)
	}
}

// pidNamespace identifies the pid namespace of a process.
func pidNamespace(pid int) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return ""
	}
	return link
}

func readProcess(path string) (process, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return process{}, err
	}
	var p process
	if _, err := fmt.Sscan(string(data), &p.pid, &p.start); err != nil {
		return process{}, fmt.Errorf("read %s: %w", path, err)
	}
	return p, nil
}

// supervise starts the supervisor in a session of its own, where no terminal's
// ctrl-C reaches it. Its argv[0] names it for people and for List.
func (h *Host) supervise(detach bool) error {
	log, err := os.Create(filepath.Join(h.dir, "supervisor.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	owned := "owned"
	if detach {
		owned = "detached"
	}
	cmd := exec.Command("/bin/sh")
	cmd.Args = []string{supervisorName, filepath.Join(h.dir, supervisorFile), h.dir, owned}
	cmd.Dir = h.dir
	cmd.Env = supervisorEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !detach {
		// Not PR_SET_PDEATHSIG: that fires when the thread that forked ends, and
		// Go's threads come and go. A pipe closes with the process.
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		cmd.ExtraFiles = []*os.File{r}
		h.owner = w
	}
	if err := cmd.Start(); err != nil {
		if h.owner != nil {
			h.owner.Close()
		}
		return fmt.Errorf("start the supervisor: %w", err)
	}
	h.child = cmd.Process
	h.ended = make(chan struct{})
	go func() {
		cmd.Wait()
		close(h.ended)
	}()
	return nil
}

const supervisorName = "testhost-supervisor"

// supervisorEnv is a plain environment: nothing of the caller's session
// (sockets of its bus, libvirt's own variables) may reach the daemon.
func supervisorEnv(environ []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}
	for _, kv := range environ {
		if strings.HasPrefix(kv, "TMPDIR=") {
			env = append(env, kv)
		}
	}
	return env
}

// tail returns the end of a log for an error message.
func (h *Host) tail(name string) string {
	data, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(data))
	if len(text) > 1200 {
		text = "… " + text[len(text)-1200:]
	}
	return text
}

func procDir(p process) string { return "/proc/" + strconv.Itoa(p.pid) }
