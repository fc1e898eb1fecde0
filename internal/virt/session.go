package virt

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"libvirt.org/go/libvirt"
)

// session is one connection from opening to loss. users and retired are guarded
// by the Host's mu; a retired session is closed when its last call returns, since
// closing it under a call would pull libvirt's object away from it.
type session struct {
	conn    *libvirt.Connect
	daemon  Version
	users   int
	retired bool
}

// alive asks the library only, nothing is sent.
func (s *session) alive() bool {
	alive, err := s.conn.IsAlive()
	return err == nil && alive
}

// attempt is an attempt to connect that all callers wait for together, so that a
// host that does not answer is asked once, not once per resource.
type attempt struct {
	done      chan struct{}
	err       error
	abandoned bool // by Close
}

// acquire returns the session, a new one if the old one is lost. Every acquire
// is followed by a release.
func (h *Host) acquire(ctx context.Context) (*session, error) {
	for {
		h.mu.Lock()
		if s := h.session; s != nil && s.alive() {
			s.users++
			h.mu.Unlock()
			return s, nil
		}
		h.retire()
		a := h.attempt
		if a == nil {
			a = &attempt{done: make(chan struct{})}
			h.attempt = a
			go h.connect(a)
		}
		h.mu.Unlock()
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to %s: %w", h.Display(), ctx.Err())
		}
	}
}

func (h *Host) release(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.users--
	s.closeIfUnused()
}

// retire takes the session out of use. h.mu is held.
func (h *Host) retire() {
	if s := h.session; s != nil {
		h.session = nil
		s.retired = true
		s.closeIfUnused()
	}
}

func (s *session) closeIfUnused() {
	if s.retired && s.users == 0 {
		// Saying goodbye may wait for the peer. Nobody has to wait with it, and
		// an error says nothing about any object.
		go func() { _, _ = s.conn.Close() }()
	}
}

// connect makes the attempt. libvirt's own waiting cannot be broken off, so it
// has a goroutine of its own; callers give up when their context ends.
func (h *Host) connect(a *attempt) {
	s, err := h.open()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		a.err = err
	case a.abandoned:
		s.retired = true
		s.closeIfUnused()
		a.err = fmt.Errorf("connect to %s: the connection was closed", h.Display())
	default:
		h.session = s
	}
	if h.attempt == a {
		h.attempt = nil
	}
	close(a.done)
}

// A peer that says nothing for keepaliveInterval × keepaliveCount seconds is
// taken for dead, and every call under way fails.
const (
	keepaliveInterval = 5
	keepaliveCount    = 6
)

func (h *Host) open() (*session, error) {
	events.Do(startEvents)
	conn, err := libvirt.NewConnect(h.options.URI)
	if err != nil {
		return nil, h.connectError(err)
	}
	// Drivers within the library have no peer, and refuse.
	_ = conn.SetKeepAlive(keepaliveInterval, keepaliveCount)
	s := &session{conn: conn}
	v, err := conn.GetLibVersion()
	if err != nil {
		_, _ = conn.Close()
		return nil, h.connectError(err)
	}
	s.daemon = Version(v)
	return s, nil
}

var events sync.Once

// startEvents runs libvirt's event loop. It has to be registered before the
// first connection is made, or keepalive is never answered for.
func startEvents() {
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return // the library is missing; connecting will say so
	}
	go func() {
		for {
			if err := libvirt.EventRunDefaultImpl(); err != nil {
				time.Sleep(time.Second) // without a loop a dead peer is noticed by nobody
			}
		}
	}()
}

// handle keeps libvirt's object behind one of ours for as long as the session
// lasts, which saves a look-up before every call. libvirt frees it when the
// garbage collector finds it unused: nothing has to be freed explicitly.
type handle[T any] struct {
	mu      sync.Mutex
	session *session
	object  *T
}

func (h *handle[T]) keep(s *session, object *T, free func(T)) {
	runtime.AddCleanup(object, free, *object)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.object = s, object
}

// use calls f with the object, looked up if it is of another session.
func (h *handle[T]) use(s *session, f func(*T) error, look func() (*T, error), free func(T)) error {
	h.mu.Lock()
	object := h.object
	if h.session != s {
		object = nil
	}
	h.mu.Unlock()
	if object == nil {
		var err error
		if object, err = look(); err != nil {
			return err
		}
		h.keep(s, object, free)
	}
	err := f(object)
	runtime.KeepAlive(object) // the binding has passed on the C pointer only
	return err
}
