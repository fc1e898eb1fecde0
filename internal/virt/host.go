// Package virt is the only place that speaks to libvirt. It gives the rest of
// the provider calls that take a context and may be made by many goroutines,
// and errors that keep libvirt's code to the top.
//
// A Host opens its connection at the first call. Calls that overlap get
// connections of their own, up to Options.MaxCalls: libvirt's client library
// does not bear several calls on one (session.go says why). When a connection
// is lost, the call under way fails with an error that says so (IsLost); the
// next one connects again. A write is never made twice.
//
// Objects (Domain, Network, Pool, Volume) are handles by identity: they outlive
// a lost connection, may be used by many goroutines, and need not be freed.
//
// What is the same for many objects (which networks and pools are there, is a
// file there, does QEMU know a machine type) is asked of a View, which asks the
// host once for all of them (view.go says how long an answer lasts, view_files.go
// when a file counts as gone).
//
// Every call passes one function (call.go), which honours the context, limits
// how many calls are under way, and shows the call to hooks; package virttest
// injects faults and records calls there.
package virt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"libvirt.org/go/libvirt"
)

// Options describe the way to one daemon.
type Options struct {
	URI      string // libvirt's connection URI
	MaxCalls int    // calls under way at once, and so connections; 0 means 8
}

// Host is one libvirt daemon, connected to at first use. It is safe for many
// goroutines.
type Host struct {
	options      Options
	keepalive    time.Duration // a peer silent for about keepaliveCount times as long is taken for dead
	connectLimit time.Duration
	busyLimit    time.Duration
	sessions     sessions
	streams      chan struct{} // uploads and downloads under way, which last
	pools        keyedLock     // changes of pools and their volumes
	view         View

	hookMu   sync.RWMutex
	hooks    []*Hook
	identity identity
}

// NewHost returns a host that is connected to at first use.
func NewHost(o Options) *Host {
	if o.MaxCalls <= 0 {
		o.MaxCalls = 8
	}
	if privateState(o.URI) {
		o.MaxCalls = 1
	}
	h := &Host{options: o, keepalive: keepaliveInterval, connectLimit: connectLimit, busyLimit: busyLimit}
	h.streams = make(chan struct{}, max(1, o.MaxCalls/2))
	h.sessions.most, h.sessions.limit = o.MaxCalls, o.MaxCalls
	h.sessions.changed = make(chan struct{})
	h.view.open(h)
	return h
}

// URI returns the connection URI, with whatever credentials it holds. Display
// is the one for messages.
func (h *Host) URI() string { return h.options.URI }

const opConnect = "connect to"

// Connect opens the connection if there is none.
func (h *Host) Connect(ctx context.Context) error {
	return h.call(ctx, Call{opConnect, h.Display(), false}, func(*session) error { return nil })
}

// Version is a version as libvirt counts: 1000000*major + 1000*minor + release.
type Version uint32

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v/1000000, v/1000%1000, v%1000) }

// TooOldError is the refusal of what the libvirt at one end does not have. It is
// told by version: an unknown flag would be refused with a number, an unknown
// function with ErrInternal.
type TooOldError struct {
	What       string  // is asked for: resetting the NVRAM file
	Since, Has Version // that would be needed, and that is there
	Library    bool    // the client library of this process, not the host's daemon
}

func (e *TooOldError) Error() string {
	where := "on the host, which has"
	if e.Library {
		where = "where the provider runs, and the library there is"
	}
	return fmt.Sprintf("%s needs libvirt %s %s %s", e.What, e.Since, where, e.Has)
}

func tooOld(daemon, since Version, what string) error {
	return &TooOldError{What: what, Since: since, Has: daemon}
}

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
		v = Versions{Library: Version(library)}
		if v.Daemon, err = s.version(); err != nil {
			return err
		}
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
