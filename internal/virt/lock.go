package virt

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// keyedLock is a mutex per key that a context can be waited for with. Keys are
// names of pools; they are few and never forgotten.
type keyedLock struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
}

func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]chan struct{}{}
	}
	c, ok := k.locks[key]
	if !ok {
		c = make(chan struct{}, 1)
		k.locks[key] = c
	}
	k.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other changes of pool %q: %w", key, ctx.Err())
	}
}

// How long a busy pool is waited for, and how often it is asked. The jobs are
// those of other clients, such as a volume being allocated or cloned.
const busyLimit = 2 * time.Minute

var busyPauses = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}

// exclusively runs one change of a pool or its volumes at a time, and repeats
// it while libvirt refuses because of jobs of others. Such a refusal comes
// before anything was done.
func (h *Host) exclusively(ctx context.Context, pool string, f func() error) error {
	unlock, err := h.pools.lock(ctx, pool)
	if err != nil {
		return err
	}
	defer unlock()
	start := time.Now()
	for i := 0; ; i++ {
		err := f()
		if err == nil || !isBusy(err) {
			return err
		}
		pause := busyPauses[min(i, len(busyPauses)-1)]
		if time.Since(start)+pause > h.busyLimit {
			return fmt.Errorf("%w; it was asked again and again for %s: other clients change this pool, repeat when they are done", err, h.busyLimit)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("wait for the jobs of pool %q: %w (%w)", pool, ctx.Err(), err)
		}
	}
}

// isBusy recognises the refusals. They have only general codes, and so a daemon
// that speaks another language is not waited for.
func isBusy(err error) bool {
	if !HasCode(err, ErrInternal) && !HasCode(err, ErrOperationInvalid) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "has asynchronous jobs running") || strings.Contains(text, "is still being allocated") || strings.Contains(text, "is still in use")
}
