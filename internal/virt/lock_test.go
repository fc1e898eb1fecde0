package virt

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestKeyedLock(t *testing.T) {
	var k keyedLock
	ctx := context.Background()
	unlock, err := k.lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := k.lock(ctx, "b") // another key does not wait
	if err != nil {
		t.Fatal(err)
	}
	other()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := k.lock(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	unlock()
	inside := 0 // unguarded but for the lock: the race detector watches
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			unlock, err := k.lock(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			inside++
		})
	}
	all.Wait()
	if inside != 50 {
		t.Errorf("%d were inside, want 50", inside)
	}
}
