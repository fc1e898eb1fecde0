// Package host runs a throwaway libvirt host: a private libvirtd with a
// directory pool and a NAT network, both called "default", in namespaces of its
// own. It is ready within a second, several run side by side, it never touches
// the machine's own libvirt, and it leaves nothing behind.
//
// The daemon, its networks and its guests live in private mount, network and
// pid namespaces under one supervisor. Ending the supervisor ends everything:
// the kernel kills all processes of its pid namespace. A host that Start made
// dies with the process that started it, however that ends; Options.Detach is
// for one that must stay. Files outside the host's directory have the same
// paths inside, so a provider that runs outside can name images and pools.
// Guests cannot be reached over the network from outside: use Exec.
//
// # Asking a guest
//
// Guest returns the tiny guest of package guest, which reports its state on its
// first serial port every second. GuestReport and Console read what QEMU
// logged, and so never disturb the guest. A domain needs a serial port that
// writes into a file: either of
//
//	<serial type="file"><source path="PATH" append="on"/></serial>
//	<serial type="pty"><log file="PATH" append="on"/></serial>
//
// in both of which PATH is best what ConsoleLog returns. For a domain whose
// serial port is a bare pty, GuestReport opens the pty for as long as it takes
// to hear one report, which works as long as nobody else reads there.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/guest"
)

// Options of a new host. The zero value is a host in a temporary directory that
// says nothing.
type Options struct {
	// Dir is an empty or absent directory, which the host owns from then on: it
	// is removed with it. Empty means a new one below the directory for
	// temporary files. At most about 85 characters, because of the socket.
	Dir string
	// Log gets a line for each step that takes time.
	Log io.Writer
	// Detach lets the host outlive this process.
	Detach bool
	// NoGuest leaves the tiny guest unbuilt; Guest then returns nothing.
	NoGuest bool
	// NoDefaults leaves out the pool and the network.
	NoDefaults bool
}

// Host is a running host.
type Host struct {
	dir   string
	outer process // the supervisor
	pid   process // pid 1 inside, seen from outside
	image guest.Image
	owner *os.File      // writing end of the pipe that the supervisor watches
	child *os.Process   // the supervisor, if it is our child
	ended chan struct{} // closed once the supervisor was waited for; nil if attached
}

// geteuid is what tests replace to be somebody else.
var geteuid = os.Geteuid

// Start starts a host and returns once it answers and has its pool and network.
func Start(ctx context.Context, o Options) (*Host, error) {
	if geteuid() != 0 {
		return nil, fmt.Errorf("start a host: namespaces, networks and mounts need root")
	}
	archive := &debian.Archive{Log: o.Log}
	if err := archive.Ensure(ctx, Requirements); err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	var image guest.Image
	if !o.NoGuest {
		var err error
		if image, err = guest.Ensure(ctx, o.Log); err != nil {
			return nil, fmt.Errorf("start a host: %w", err)
		}
	}
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	if err := prepare(dir); err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	h := &Host{dir: dir, image: image}
	if err := h.supervise(o.Detach); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start a host: %w", err)
	}
	if err := h.waitForInside(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a host: %w", err), h.Stop())
	}
	if err := h.waitForDaemon(ctx, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("start a host: %w", err), h.Stop())
	}
	if o.NoDefaults {
		return h, nil
	}
	if err := h.defineDefaults(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a host: %w", err), h.Stop())
	}
	return h, nil
}

// Attach finds a host that runs in dir.
func Attach(dir string) (*Host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("attach to the host in %s: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, supervisorFile)); err != nil {
		return nil, fmt.Errorf("attach to the host in %s: not the directory of a host", dir)
	}
	h := &Host{dir: dir}
	if h.outer, err = readProcess(filepath.Join(dir, outerPidFile)); err != nil {
		return nil, fmt.Errorf("attach to the host in %s: %w", dir, err)
	}
	if h.pid, err = readProcess(filepath.Join(dir, pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("attach to the host in %s: %w", dir, err)
	}
	if cache, err := guest.CacheDir(); err == nil {
		h.image = guest.Cached(cache)
	}
	if !h.pid.alive() {
		return h, fmt.Errorf("attach to the host in %s: %w", dir, ErrNotRunning)
	}
	return h, nil
}

// ErrNotRunning is returned by Attach for a directory whose host has ended. The
// host that comes with it can only be stopped, which removes the directory.
var ErrNotRunning = errors.New("the host is not running")

func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "testhost-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir == "/run" || strings.HasPrefix(dir, "/run/") {
		return "", fmt.Errorf("directory %s: /run is private inside the host; name another", dir)
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// URI is what to connect to, from inside and outside, as root.
func (h *Host) URI() string { return "qemu+unix:///system?socket=" + h.Socket() }

// Socket is where the daemon listens. It is another file after a restart of the
// daemon.
func (h *Host) Socket() string { return h.dir + "/" + socketFile }

// Dir is the host's directory.
func (h *Host) Dir() string { return h.dir }

// PoolDir is the directory behind the pool "default".
func (h *Host) PoolDir() string { return filepath.Join(h.dir, poolDir) }

// Guest is the tiny guest.
func (h *Host) Guest() guest.Image { return h.image }
