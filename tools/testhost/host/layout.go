package host

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed supervisor.sh
var supervisorScript string

//go:embed inside.sh
var insideScript string

// Names below a host's directory.
const (
	supervisorFile = "supervisor.sh" // also the mark of a directory that is ours
	insideFile     = "inside.sh"
	outerPidFile   = "supervisor.pid" // the supervisor, with its start time
	pidFile        = "pid"            // pid 1 inside, seen from outside
	groupsFile     = "cgroups"        // the host's control groups, one a line
	daemonPidFile  = "libvirtd.pid"   // seen from inside
	daemonLogFile  = "libvirtd.log"
	socketFile     = "sock/libvirt-sock"
	poolDir        = "pool"
	consoleDir     = "console"
)

// maxSocketPath is what fits into sockaddr_un.
const maxSocketPath = 107

// daemonConf is the libvirtd.conf. The socket lies outside the private
// directories, where it has the same path for everybody.
const daemonConf = `unix_sock_dir = "%s/sock"
unix_sock_group = "root"
unix_sock_ro_perms = "0777"
unix_sock_rw_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
max_clients = 5000
max_client_requests = 50
max_workers = 40
keepalive_interval = -1
log_filters = "3:event 3:object"
log_outputs = "3:stderr"
`

// qemuConf is the qemu.conf: QEMU as root without confinement, its output in
// files that it writes itself.
const qemuConf = `stdio_handler = "file"
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = [ "cpu", "cpuacct", "cpuset", "memory", "blkio" ]
swtpm_user = "root"
swtpm_group = "root"
vnc_listen = "127.0.0.1"
`

// prepare fills an empty directory with what the supervisor needs.
func prepare(dir string) error {
	if n := len(filepath.Join(dir, socketFile)); n > maxSocketPath {
		return fmt.Errorf("prepare %s: the path is %d characters too long for a socket in it", dir, n-maxSocketPath)
	}
	if strings.ContainsAny(dir, " \t\n\"'\\?&#%") {
		return fmt.Errorf("prepare %s: the path has characters that a libvirt URI or a configuration file would need escaped", dir)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("prepare %s: the directory is not empty, and stopping the host would remove it; name another or a new one", dir)
	}
	for _, sub := range []string{"etc/qemu", "etc/nwfilter", "sock", poolDir, consoleDir, "varlib", "varcache", "log", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("prepare %s: %w", dir, err)
		}
	}
	for name, content := range map[string]string{
		"libvirtd.conf":       fmt.Sprintf(daemonConf, dir),
		"etc/libvirt.conf":    "",
		"etc/qemu.conf":       qemuConf,
		"etc/virtlogd.conf":   "",
		"etc/virtlockd.conf":  "",
		"etc/qemu-lockd.conf": "",
		supervisorFile:        supervisorScript,
		insideFile:            insideScript,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("prepare %s: %w", dir, err)
		}
	}
	return copyFilters(filepath.Join(dir, "etc/nwfilter"))
}

// filterDirs are where the network filters that libvirt ships may lie.
var filterDirs = []string{"/usr/share/libvirt/nwfilter", "/etc/libvirt/nwfilter"}

// copyFilters brings the stock network filters, if the machine has them.
func copyFilters(to string) error {
	for _, dir := range filterDirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.xml"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(f)), data, fs.FileMode(0o600))
			}
			if err != nil {
				return fmt.Errorf("copy network filters: %w", err)
			}
		}
		if len(files) > 0 {
			return nil
		}
	}
	return nil
}
