package virt

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"
)

// session is one connection, used by one call at a time.
//
// libvirt allows many threads on one connection, but its client library before
// 10.3 does not bear it: the wake-up of the thread that polls for all can get
// lost, so that a call waits for the next keepalive message (seconds, as long
// as any other call lasts), and when the connection dies under several calls,
// some of them never return or crash the process. The daemon, for its part,
// stops reading from a client that has five calls under way, keepalive messages
// included. So concurrent calls take connections of their own, which are opened
// when they are needed, one after the other, and kept.
type session struct {
	conn   *libvirt.Connect
	daemon Version     // 0 until asked for; belongs to the call
	gone   atomic.Bool // closed, or to be closed when the call returns
}

// alive asks the library only, nothing is sent.
func (s *session) alive() bool {
	alive, err := s.conn.IsAlive()
	return err == nil && alive
}

// version is that of the libvirt that answers.
func (s *session) version() (Version, error) {
	if s.daemon == 0 {
		v, err := s.conn.GetLibVersion()
		if err != nil {
			return 0, err
		}
		s.daemon = Version(v)
	}
	return s.daemon, nil
}

// needs is the error of a call that is younger than the libvirt at one of the
// two ends.
func (s *session) needs(since Version, what string) error {
	library, err := libvirt.GetVersion()
	if err != nil {
		return err
	}
	if Version(library) < since {
		return &TooOldError{what, since, Version(library), true}
	}
	daemon, err := s.version()
	if err == nil && daemon < since {
		err = tooOld(daemon, since, what)
	}
	return err
}

// attempt is an attempt to open a connection. All callers wait for it together,
// so that a host that does not answer is asked once, not once per resource.
type attempt struct {
	deadline  time.Time
	done      chan struct{}
	err       error // set before done is closed
	abandoned bool  // nobody wants its connection any more; guarded by mu
}

// sessions are the connections of a Host. All fields are guarded by mu.
type sessions struct {
	mu      sync.Mutex
	most    int           // connections at once
	limit   int           // the same, or fewer if the host did not take that many
	all     []*session    // open ones, in use or not
	idle    []*session    // the last one was used last
	attempt *attempt      // under way, nil if none
	held    int           // by calls that wait for an agent
	changed chan struct{} // closed and replaced when a session becomes idle or goes
}

// patience is how long a call waits for a connection to become idle before it
// asks for one more. Most calls last less.
const patience = 20 * time.Millisecond

// connectLimit is how long an attempt to connect is waited for. libvirt has no
// limit of its own: a daemon that accepts and then says nothing holds it for ever.
const connectLimit = time.Minute

// acquire returns a connection for one call. Every acquire is followed by a
// release.
func (h *Host) acquire(ctx context.Context) (*session, error) {
	p := &h.sessions
	impatient := time.After(patience)
	grow := false
	p.mu.Lock()
	for {
		if s := p.takeIdle(); s != nil {
			p.mu.Unlock()
			return s, nil
		}
		a := p.attempt
		if a == nil && (len(p.all) == 0 || grow && len(p.all) < p.limit) {
			a = &attempt{done: make(chan struct{}), deadline: time.Now().Add(h.connectLimit)}
			p.attempt = a
			go h.connect(a)
		}
		var done chan struct{} // nil is never ready
		var late <-chan time.Time
		if a != nil {
			done, late = a.done, time.After(time.Until(a.deadline))
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-done:
		case <-impatient:
			grow = true
		case <-late:
			h.abandon(a)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a connection to %q: %w", h.Display(), ctx.Err())
		}
		p.mu.Lock()
		if a != nil && a.failed() && len(p.all) == 0 {
			p.mu.Unlock()
			return nil, a.err
		}
	}
}

// hold reserves one of the connections for a call that may last long, as it waits
// for something in a guest. Half of them stay for the others. false: there is none
// left. Whoever has one gives it back with letGo.
func (p *sessions) hold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.limit / 2
	if p.most == 1 { // a driver within this process, which has no agents
		most = 1
	}
	if p.held >= most {
		return false
	}
	p.held++
	return true
}

func (p *sessions) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
}

// takeIdle takes the connection that was used last, nil if all are in use.
func (p *sessions) takeIdle() *session {
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.alive() {
			return s
		}
		p.drop(s)
	}
	return nil
}

// abandon gives up an attempt that takes too long. The next call makes another.
func (h *Host) abandon(a *attempt) {
	p := &h.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attempt != a {
		return // it ended just now, or somebody else gave it up
	}
	p.finish(a, nil, fmt.Errorf("connect to %q: no answer for %s; check that the daemon there is not stuck and that the network to it holds", h.Display(), h.connectLimit))
	a.abandoned = true
}

// finish ends an attempt. mu is held.
func (p *sessions) finish(a *attempt, s *session, err error) {
	switch {
	case err == nil:
		p.all = append(p.all, s)
		p.idle = append(p.idle, s)
	case len(p.all) > 0: // the host takes no more, as an sshd may; those there are must do
		p.limit = len(p.all)
	}
	a.err = err
	p.attempt = nil
	close(a.done)
}

func (a *attempt) failed() bool {
	select {
	case <-a.done:
		return a.err != nil
	default:
		return false
	}
}

// release gives the connection back, or drops it if it was lost. Then the idle
// ones go too: they most likely met the same fate and do not know it yet.
func (h *Host) release(s *session) {
	p := &h.sessions
	alive := s.alive()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.gone.Load():
		s.close()
	case alive:
		p.idle = append(p.idle, s)
		p.notify()
	default:
		p.drop(s)
		p.dropIdle()
	}
}

func (p *sessions) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// drop forgets a connection that no call uses, and closes it.
func (p *sessions) drop(s *session) {
	p.all = slices.DeleteFunc(p.all, func(other *session) bool { return other == s })
	s.close()
	if len(p.all) == 0 {
		p.limit = p.most
	}
	p.notify()
}

func (p *sessions) dropIdle() {
	for _, s := range p.idle {
		p.drop(s)
	}
	p.idle = nil
}

// close says goodbye to the daemon, which may wait for it. Nobody has to wait
// with it, and an error says nothing about any object.
func (s *session) close() {
	s.gone.Store(true)
	go func() { _, _ = s.conn.Close() }()
}

// connect makes the attempt. libvirt's own waiting cannot be broken off, so it
// has a goroutine of its own; callers give up when their context ends.
func (h *Host) connect(a *attempt) {
	s, err := h.open()
	p := &h.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	if !a.abandoned {
		p.finish(a, s, err)
	} else if err == nil {
		s.close()
	}
}

// Close closes the connections; those that a call uses, when it returns. A
// later call opens a new one.
func (h *Host) Close() error {
	p := &h.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIdle()
	for _, s := range p.all {
		s.gone.Store(true)
	}
	p.all, p.limit = nil, p.most
	if a := p.attempt; a != nil {
		a.abandoned = true // those who wait for it make another
		p.attempt = nil
		close(a.done)
	}
	p.notify()
	return nil
}

var events sync.Once

// startEvents runs libvirt's event loop. It has to be registered before the
// first connection is made, or keepalive messages are neither sent nor answered.
func startEvents() {
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return // the library is missing; connecting will say so
	}
	go func() {
		for {
			if err := libvirt.EventRunDefaultImpl(); err != nil {
				time.Sleep(time.Second) // without the loop a dead peer is noticed by nobody
			}
		}
	}()
}
