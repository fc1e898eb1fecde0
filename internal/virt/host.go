// Package virt is the only place that speaks to libvirt. It gives the rest of
// the provider one connection for all goroutines, calls that take a context,
// and errors that keep libvirt's code to the top.
package virt

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"libvirt.org/go/libvirt"
)

// Options describe a connection.
type Options struct {
	URI      string // libvirt's connection URI
	MaxCalls int    // calls under way at once; 0 means 16
}

// Hook sees every call. Before may return an error instead of the call,
// After another result. Tests inject faults and record calls with it.
type Hook struct {
	Before func(Call) error
	After  func(Call, error) error
}

// Call is one call to libvirt.
type Call struct {
	Op     string // define domain, read XML, …
	Object string // its name or UUID, "" for the host itself
	Write  bool   // it changes something on the host
}

// Host is one connection to one daemon, opened at first use. It is safe for
// many goroutines.
type Host struct {
	options Options
	slots   chan struct{}
	mu      sync.Mutex
	conn    *libvirt.Connect
	hook    Hook
}

// NewHost returns a connection that opens at first use.
func NewHost(o Options) *Host {
	if o.MaxCalls <= 0 {
		o.MaxCalls = 16
	}
	return &Host{options: o, slots: make(chan struct{}, o.MaxCalls)}
}

// URI returns the connection URI, with whatever credentials it holds.
func (h *Host) URI() string { return h.options.URI }

// Display returns the URI for messages, without a password.
func (h *Host) Display() string {
	u, err := url.Parse(h.options.URI)
	if err != nil {
		return "the configured host"
	}
	return u.Redacted()
}

// SetHook installs a hook; the zero Hook removes it.
func (h *Host) SetHook(hook Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// Connect opens the connection if it is not open.
func (h *Host) Connect(ctx context.Context) error {
	return h.call(ctx, Call{Op: "connect"}, func(*libvirt.Connect) error { return nil })
}

// Close closes the connection. A later call opens it again.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		return nil
	}
	_, err := h.conn.Close()
	h.conn = nil
	if err != nil {
		return wrap("close the connection to", h.Display(), err)
	}
	return nil
}

var events sync.Once

// open returns the connection, a new one if the old one is lost.
func (h *Host) open() (*libvirt.Connect, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil {
		if alive, err := h.conn.IsAlive(); err == nil && alive {
			return h.conn, nil
		}
		_, _ = h.conn.Close()
		h.conn = nil
	}
	events.Do(startEvents)
	conn, err := libvirt.NewConnect(h.options.URI)
	if err != nil {
		return nil, h.connectError(err)
	}
	// Without keepalive a dead peer is noticed by nobody. Local drivers have none.
	_ = conn.SetKeepAlive(5, 6)
	h.conn = conn
	return conn, nil
}

// startEvents runs libvirt's event loop; it must be registered before the
// first connection, or keepalive stays silent.
func startEvents() {
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return
	}
	go func() {
		for {
			if err := libvirt.EventRunDefaultImpl(); err != nil {
				return
			}
		}
	}()
}

func (h *Host) connectError(err error) error {
	e := wrap("connect to", h.Display(), err)
	return fmt.Errorf("%w (is the daemon running there, and may this user use it? try: virsh -c '%s' version)", e, h.Display())
}
