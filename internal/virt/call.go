package virt

import (
	"context"
	"fmt"
	"slices"
)

// Call is one call to libvirt.
type Call struct {
	Op     string // what it does, an infinitive with the kind of object: define domain, read the XML of pool, …
	Object string // its name, else its UUID, key or path; "" for the host itself
	Write  bool   // it changes something on the host
}

func (c Call) String() string {
	if c.Object == "" {
		return c.Op
	}
	return fmt.Sprintf("%s %q", c.Op, c.Object)
}

// Hook sees every call. Both functions are called from many goroutines; either
// may be nil.
type Hook struct {
	// Before is asked before the call. An error is returned instead of calling.
	Before func(Call) error
	// After gets the result, also that of a Before, and decides what the caller
	// gets. A failure that libvirt reports although the call took effect is
	// After returning an error where it got none.
	After func(Call, error) error
}

// AddHook installs a hook beside those that are there, and returns what removes
// it. Every Before sees every call; the first error counts. The Afters run in
// the opposite order.
func (h *Host) AddHook(hook Hook) (remove func()) {
	h.hookMu.Lock()
	defer h.hookMu.Unlock()
	p := &hook
	h.hooks = append(slices.Clip(h.hooks), p)
	return func() {
		h.hookMu.Lock()
		defer h.hookMu.Unlock()
		h.hooks = slices.DeleteFunc(slices.Clone(h.hooks), func(q *Hook) bool { return p == q })
	}
}

// call is the one way to libvirt. A call under way cannot be broken off: the
// context is looked at before it, and while a connection is waited for.
func (h *Host) call(ctx context.Context, c Call, f func(*session) error) error {
	return h.do(ctx, c, !c.Write, f)
}

// do is call; repeatable says that f may run twice.
func (h *Host) do(ctx context.Context, c Call, repeatable bool, f func(*session) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	h.hookMu.RLock()
	hooks := h.hooks
	h.hookMu.RUnlock()
	var err error
	for _, hook := range hooks {
		if hook.Before == nil {
			continue
		}
		if hookErr := hook.Before(c); err == nil {
			err = hookErr
		}
	}
	if err == nil {
		err = h.run(ctx, c, repeatable, f)
		h.view.wrote(c)
	}
	for _, hook := range slices.Backward(hooks) {
		if hook.After != nil {
			err = hook.After(c, err)
		}
	}
	return err
}

// run makes the call. A read that could not even be sent, because the
// connection had died unnoticed, is made once more on a new connection; a write
// never is.
func (h *Host) run(ctx context.Context, c Call, repeatable bool, f func(*session) error) error {
	for again := repeatable; ; again = false {
		s, err := h.acquire(ctx)
		if err != nil {
			if c.Op == opConnect {
				return err
			}
			return fmt.Errorf("%s: %w", c, err)
		}
		err = f(s)
		lost := err != nil && !s.alive()
		h.release(s)
		switch {
		case err == nil:
			return nil
		case lost && again && neverSent(err):
		case lost:
			return h.lostError(c, err)
		default:
			return h.wrap(c, err)
		}
	}
}
