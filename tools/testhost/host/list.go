package host

import (
	"os"
	"path/filepath"
	"strings"
)

// List returns the directories of the hosts that run on this machine, whoever
// started them.
func List() []string {
	var dirs []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		// The supervisor and what it forks share their arguments; only one of
		// them is in the pid file.
		args := strings.Split(string(data), "\x00")
		if len(args) < 4 || args[0] != supervisorName {
			continue
		}
		p, err := readProcess(filepath.Join(args[2], outerPidFile))
		if err == nil && p.alive() && filepath.Join("/proc", filepath.Base(filepath.Dir(f))) == procDir(p) {
			dirs = append(dirs, args[2])
		}
	}
	return dirs
}
