package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine identifies one run of a domain's guest. Two that are equal are the
// same QEMU process; after a power cycle, by anybody, they differ.
type Machine struct {
	Name string
	// PID is QEMU's pid as seen from outside the host.
	PID int
	// Start is when QEMU started, in clock ticks since the machine booted; with
	// PID it is unique.
	Start uint64
	// ID is libvirt's domain id. It is no evidence by itself: a restarted daemon
	// may hand it out again.
	ID int
}

// ErrShutOff is returned by Domain for a domain that has no QEMU process.
var ErrShutOff = fmt.Errorf("the domain is not running")

// Domain returns the running guest of a domain. The process is found by itself,
// not by libvirt's word.
func (h *Host) Domain(ctx context.Context, name string) (Machine, error) {
	fail := func(err error) (Machine, error) {
		return Machine{}, fmt.Errorf("find the guest of domain %s: %w", name, err)
	}
	out, err := h.Virsh(ctx, "domid", "--domain", name)
	if err != nil {
		return fail(err)
	}
	found, err := h.guestProcesses()
	if err != nil {
		return fail(err)
	}
	var m Machine
	for _, f := range found {
		if f.Name != name {
			continue
		}
		if m.PID != 0 {
			return fail(fmt.Errorf("two QEMU processes, %d and %d", m.PID, f.PID))
		}
		m = f
	}
	id, err := strconv.Atoi(strings.TrimSpace(out))
	switch {
	case m.PID == 0:
		return fail(ErrShutOff)
	case err != nil:
		return fail(fmt.Errorf("libvirt has no id for it (%q), but QEMU runs as process %d", strings.TrimSpace(out), m.PID))
	}
	m.ID = id
	return m, nil
}

// Machines returns every guest that runs, also those that libvirt may have
// forgotten. Their ID is zero.
func (h *Host) Machines() ([]Machine, error) { return h.guestProcesses() }

// guestProcesses scans /proc for QEMUs in the host's pid namespace: several
// hosts may run guests of the same name.
func (h *Host) guestProcesses() ([]Machine, error) {
	ours := pidNamespace(h.pid.pid)
	if ours == "" {
		return nil, ErrNotRunning
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []Machine
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // it ended meanwhile
		}
		name, ok := guestName(strings.Split(string(data), "\x00"))
		if !ok {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pidNamespace(pid) != ours {
			continue
		}
		p, err := lookUp(pid)
		if err != nil {
			continue
		}
		out = append(out, Machine{Name: name, PID: p.pid, Start: p.start})
	}
	return out, nil
}

// guestName finds "-name guest=NAME,debug-threads=on" in QEMU's arguments. A
// comma in the name is doubled.
func guestName(args []string) (string, bool) {
	for i, arg := range args {
		rest, ok := strings.CutPrefix(arg, "guest=")
		if !ok || i == 0 || args[i-1] != "-name" {
			continue
		}
		var name strings.Builder
		for j := 0; j < len(rest); j++ {
			if rest[j] == ',' {
				if j+1 == len(rest) || rest[j+1] != ',' {
					break
				}
				j++
			}
			name.WriteByte(rest[j])
		}
		return name.String(), true
	}
	return "", false
}
