package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long the end of a host may take. It takes some hundredths
// of a second; the memory of many guests takes longer to free.
const stopTimeout = 30 * time.Second

// Stop ends the host with all its guests and removes its directory. It may be
// called again, and for a host that has ended by itself.
func (h *Host) Stop() error {
	if h.owner != nil {
		defer h.owner.Close()
	}
	groups := h.controlGroups()
	// Killing pid 1 kills all that is inside; the supervisor then cleans up. One
	// that never got as far as a pid 1 is told itself.
	h.pid.kill()
	if h.pid.pid == 0 {
		if h.child != nil {
			_ = h.child.Signal(syscall.SIGTERM) // it may have ended by itself
		}
		h.outer.terminate()
	}
	deadline := time.Now().Add(stopTimeout)
	for h.pid.alive() || h.outer.alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("stop the host in %s: processes %d (supervisor) and %d (pid 1 inside) do not end",
				h.dir, h.outer.pid, h.pid.pid)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if h.ended != nil {
		<-h.ended
	}
	// Normally nothing is left to do. A supervisor that was killed leaves both.
	err := errors.Join(removeGroups(groups, deadline), os.RemoveAll(h.dir))
	if err != nil {
		return fmt.Errorf("stop the host in %s: %w", h.dir, err)
	}
	return nil
}

// controlGroups are the directories of the host's control groups on the
// machine; none where the machine allows none.
func (h *Host) controlGroups() []string {
	data, err := os.ReadFile(filepath.Join(h.dir, groupsFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// removeGroups removes control groups with all below them. A group is busy for
// a moment after its last process has ended.
func removeGroups(groups []string, deadline time.Time) error {
	for _, group := range groups {
		var dirs []string
		err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		slices.Reverse(dirs) // children before parents
		for _, dir := range dirs {
			err := os.Remove(dir)
			for err != nil && !errors.Is(err, fs.ErrNotExist) && time.Now().Before(deadline) {
				time.Sleep(10 * time.Millisecond)
				err = os.Remove(dir)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
