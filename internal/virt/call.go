package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// call is the one way to libvirt. A call under way cannot be broken off: the
// context is looked at before it.
func (h *Host) call(ctx context.Context, c Call, f func(*libvirt.Connect) error) error {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	hook := h.hook
	h.mu.Unlock()
	if hook.Before != nil {
		if err := hook.Before(c); err != nil {
			return err
		}
	}
	conn, err := h.open()
	if err == nil {
		err = wrap(c.Op, c.Object, f(conn))
	}
	if hook.After != nil {
		return hook.After(c, err)
	}
	return err
}
