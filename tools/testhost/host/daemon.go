package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startTimeout is how long libvirtd may take to answer. It takes well under a
// second; a busy machine gets more.
const startTimeout = 60 * time.Second

const poolXML = `<pool type="dir">
  <name>default</name>
  <target><path>%s</path></target>
</pool>`

// networkXML tells dnsmasq not to ping an address before it offers it, which
// would take three seconds of every guest's first boot.
const networkXML = `<network xmlns:dnsmasq="http://libvirt.org/schemas/network/dnsmasq/1.0">
  <name>default</name>
  <forward mode="nat"/>
  <bridge name="virbr0" stp="off" delay="0"/>
  <ip address="192.168.150.1" netmask="255.255.255.0">
    <dhcp><range start="192.168.150.2" end="192.168.150.254"/></dhcp>
  </ip>
  <dnsmasq:options><dnsmasq:option value="no-ping"/></dnsmasq:options>
</network>`

// waitForInside returns once the supervisor and pid 1 have written who they are.
func (h *Host) waitForInside(ctx context.Context) error {
	for {
		var err error
		if h.outer.pid == 0 {
			h.outer, err = readProcess(filepath.Join(h.dir, outerPidFile))
		}
		if err == nil {
			if h.pid, err = readProcess(filepath.Join(h.dir, pidFile)); err == nil {
				return nil
			}
		}
		select {
		case <-h.ended:
			return fmt.Errorf("start the supervisor: it ended at once: %s", h.tail("supervisor.log"))
		case <-ctx.Done():
			return fmt.Errorf("start the supervisor: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// waitForDaemon returns once a libvirtd other than the process other (0: any)
// answers.
func (h *Host) waitForDaemon(ctx context.Context, other int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	ends := h.daemonEnds()
	for {
		if !h.pid.alive() {
			return fmt.Errorf("wait for libvirtd: the supervisor ended: %s", h.tail("supervisor.log"))
		}
		if h.daemonEnds()-ends >= 3 {
			return fmt.Errorf("wait for libvirtd: it ends again and again: %s", h.tail(daemonLogFile))
		}
		// The socket exists before the pid file of a new daemon is written, so
		// the pid decides.
		if pid := h.daemonPid(); pid != 0 && pid != other {
			if _, err := os.Stat(filepath.Join(h.dir, socketFile)); err == nil {
				_, err := h.Virsh(ctx, "uri")
				if err == nil {
					return nil
				}
				if ctx.Err() == nil {
					last = err
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for libvirtd: %w: %s", errors.Join(ctx.Err(), last), h.tail(daemonLogFile))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// daemonEnds is how often libvirtd has ended so far.
func (h *Host) daemonEnds() int {
	data, err := os.ReadFile(filepath.Join(h.dir, daemonLogFile))
	if err != nil {
		return 0
	}
	return bytes.Count(data, []byte("\nlibvirtd ended with status"))
}

// daemonPid is libvirtd's pid inside, 0 if there is none.
func (h *Host) daemonPid() int {
	data, err := os.ReadFile(filepath.Join(h.dir, daemonPidFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// RestartDaemon ends libvirtd as a service manager would and returns once the
// new one answers. Guests and networks keep running.
func (h *Host) RestartDaemon(ctx context.Context) error {
	pid := h.daemonPid()
	if pid == 0 {
		return fmt.Errorf("restart libvirtd in %s: it is not running", h.dir)
	}
	// The shell's own kill: the program is in a package that a machine may lack.
	if _, err := h.Exec(ctx, "sh", "-c", "kill -TERM "+strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("restart libvirtd in %s: %w", h.dir, err)
	}
	if err := h.waitForDaemon(ctx, pid); err != nil {
		return fmt.Errorf("restart libvirtd in %s: %w", h.dir, err)
	}
	return nil
}

// defineDefaults makes the pool and the network that every libvirt host has.
func (h *Host) defineDefaults(ctx context.Context) error {
	for kind, xml := range map[string]string{"pool": fmt.Sprintf(poolXML, h.PoolDir()), "net": networkXML} {
		file := filepath.Join(h.dir, "default-"+kind+".xml")
		if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
			return fmt.Errorf("define %s default: %w", kind, err)
		}
		defer os.Remove(file)
		// One by one: virsh answers for the last of several commands only.
		for _, args := range [][]string{{"-define", file}, {"-start", "default"}, {"-autostart", "default"}} {
			if _, err := h.Virsh(ctx, kind+args[0], args[1]); err != nil {
				return fmt.Errorf("define %s default: %w", kind, err)
			}
		}
	}
	return nil
}
