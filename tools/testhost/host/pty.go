package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// followPty listens on a guest's pty, which only exists inside the host. QEMU
// throws away what nobody hears, so whatever comes was printed after the call.
func (h *Host) followPty(ctx context.Context, path string) (read func() ([]byte, error), stop func(), err error) {
	argv, env := h.Command("cat", path)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var mu sync.Mutex
	var heard []byte
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, p...)
		return len(p), nil
	})
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return func() ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			fresh := heard
			heard = nil
			return fresh, nil
		}, func() {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		}, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
