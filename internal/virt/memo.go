package virt

import (
	"errors"
	"sync"
	"time"
)

// momentary is how long an answer is kept: shorter than a person needs to look
// at a plan, longer than some hundred objects need to be read. Where asking
// takes long, the answer lasts longer too.
const momentary = 2 * time.Second

// memo keeps the answer to one question for a moment. Those who ask while it is
// being asked wait for the same answer.
type memo[T any] struct {
	lasting bool // for as long as the process lives
	mu      sync.Mutex
	until   time.Time
	epoch   uint64
	value   T
	err     error
}

// get returns the answer that is kept, or asks. epoch counts what may have
// changed the answer: one that was asked for in an earlier epoch is not used.
func (m *memo[T]) get(epoch uint64, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := time.Now()
	if m.epoch == epoch && start.Before(m.until) {
		return m.value, m.err
	}
	m.value, m.err = ask()
	m.epoch, m.until = epoch, time.Time{}
	if m.err == nil || answeredBy(m.err) {
		now := time.Now()
		m.until = now.Add(max(momentary, 5*now.Sub(start)))
		if m.lasting && m.err == nil {
			m.until = now.AddDate(100, 0, 0)
		}
	}
	return m.value, m.err
}

// answeredBy says that an error is libvirt's own answer, which the same question
// would get again; not a lost connection, and not a caller who gave up.
func answeredBy(err error) bool {
	var e *Error
	return errors.As(err, &e) && !IsLost(err)
}

// memos are memos by key.
type memos[K comparable, T any] struct {
	mu  sync.Mutex
	all map[K]*memo[T]
}

func (m *memos[K, T]) get(key K, epoch uint64, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	if m.all == nil {
		m.all = map[K]*memo[T]{}
	}
	one := m.all[key]
	if one == nil {
		one = &memo[T]{}
		m.all[key] = one
	}
	m.mu.Unlock()
	return one.get(epoch, ask)
}
