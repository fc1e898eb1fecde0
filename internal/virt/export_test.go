package virt

import (
	"context"
	"time"

	"libvirt.org/go/libvirt"
)

// SetPatience shortens what a test would have to wait for.
func (h *Host) SetPatience(keepalive, connect, busy time.Duration) {
	h.keepalive, h.connectLimit, h.busyLimit = keepalive, connect, busy
}

// Connections is how many are open.
func (h *Host) Connections() int {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	return len(h.sessions.all)
}

// Long is a call on a domain that lasts as long as it is told, between begin and end.
func Long(ctx context.Context, d *Domain, lasts time.Duration, begin, end func()) error {
	return d.call(ctx, "wait on domain", false, func(*libvirt.Domain) error {
		begin()
		defer end()
		time.Sleep(lasts)
		return nil
	})
}

// SetFilePatience shortens the time that a question about a file may take.
func (h *Host) SetFilePatience(d time.Duration) { h.view.patience = d }
