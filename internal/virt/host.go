// Package virt is the only place that speaks to libvirt. It gives the rest of
// the provider one connection for all goroutines, calls that take a context,
// and errors that keep libvirt's code to the top.
//
// A Host opens its connection at the first call. When the connection is lost,
// the call under way fails with an error that says so (IsLost); the next one
// connects again. A write is never made twice. Objects (Domain, Network, Pool,
// Volume) are handles by identity: they outlive a lost connection, may be used
// by many goroutines, and need not be freed.
//
// Every call passes one function (call.go), which honours the context, limits
// how many calls are under way, and shows the call to hooks; package virttest
// injects faults and records calls there.
package virt

import (
	"context"
	"fmt"
	"sync"

	"libvirt.org/go/libvirt"
)

// Options describe a connection.
type Options struct {
	URI      string // libvirt's connection URI
	MaxCalls int    // calls under way at once; 0 means 16
}

// maxStreams limits uploads and downloads, which last and fill the connection.
const maxStreams = 4

// Host is one connection to one daemon, opened at first use. It is safe for
// many goroutines.
type Host struct {
	options Options
	slots   chan struct{} // calls under way
	streams chan struct{} // uploads and downloads under way
	pools   keyedLock     // changes of pools and their volumes

	mu      sync.Mutex // guards what follows
	session *session
	attempt *attempt

	hookMu sync.RWMutex
	hooks  []*Hook
}

// NewHost returns a connection that opens at first use.
func NewHost(o Options) *Host {
	if o.MaxCalls <= 0 {
		o.MaxCalls = 16
	}
	return &Host{options: o, slots: make(chan struct{}, o.MaxCalls), streams: make(chan struct{}, maxStreams)}
}

// URI returns the connection URI, with whatever credentials it holds. Display
// is the one for messages.
func (h *Host) URI() string { return h.options.URI }

// Connect opens the connection if it is not open.
func (h *Host) Connect(ctx context.Context) error {
	_, err := h.Versions(ctx)
	return err
}

// Close closes the connection once the calls under way have returned. A later
// call opens it again.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retire()
	if h.attempt != nil {
		h.attempt.abandoned = true
		h.attempt = nil
	}
	return nil
}

// Version is a version as libvirt counts: 1000000*major + 1000*minor + release.
type Version uint32

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v/1000000, v/1000%1000, v%1000) }

// Versions tell what is at both ends of the connection.
type Versions struct {
	Library    Version // the client library of this process
	Daemon     Version // the libvirt that answers
	Hypervisor Version // 0 if the driver has none
	Type       string  // of the hypervisor: QEMU, TEST, …
	HostName   string  // as the host calls itself
	URI        string  // as libvirt understood it
}

// Versions asks for the versions and the name of the host.
func (h *Host) Versions(ctx context.Context) (v Versions, err error) {
	err = h.call(ctx, Call{"ask for the versions of", h.Display(), false}, func(s *session) error {
		library, err := libvirt.GetVersion()
		if err != nil {
			return err
		}
		v = Versions{Library: Version(library), Daemon: s.daemon}
		// QEMU's driver has no version until it has found an emulator.
		if hypervisor, err := s.conn.GetVersion(); err == nil {
			v.Hypervisor = Version(hypervisor)
		}
		if v.Type, err = s.conn.GetType(); err != nil {
			return err
		}
		if v.URI, err = s.conn.GetURI(); err != nil {
			return err
		}
		v.URI = redact(v.URI)
		v.HostName, err = s.conn.GetHostname()
		return err
	})
	return v, err
}

// Capabilities returns the document of the host's capabilities.
func (h *Host) Capabilities(ctx context.Context) (xml string, err error) {
	err = h.call(ctx, Call{"read the capabilities of", h.Display(), false}, func(s *session) (err error) {
		xml, err = s.conn.GetCapabilities()
		return err
	})
	return xml, err
}

// DomainCapabilities returns the document of what domains of a kind can have.
// Empty parameters mean the host's standard.
func (h *Host) DomainCapabilities(ctx context.Context, emulator, arch, machine, virtType string) (xml string, err error) {
	err = h.call(ctx, Call{"read the domain capabilities of", h.Display(), false}, func(s *session) (err error) {
		xml, err = s.conn.GetDomainCapabilities(emulator, arch, machine, virtType, 0)
		return err
	})
	return xml, err
}
