// Package virttest lets tests see and break the calls of a virt.Host.
//
// Install puts a hook into a host. Fail and FailAfter make hooks that break
// calls: Fail instead of the call, as when the request never arrives; FailAfter
// once libvirt has done it, as when the answer is lost. Which calls they break is
// a Match. What they answer is an Answer: ConnectionLost, PermissionDenied,
// NoSuchObject and others, which carry the codes and texts that libvirt itself
// gives. Instead answers OK without making the call, as libvirt does now and then.
//
//	defer virttest.Install(h, virttest.Fail(virttest.Op("set autostart of domain"), virttest.PermissionDenied))()
//
// Record writes down the calls, so that a test can show that a plan changed
// nothing:
//
//	rec := virttest.Record(h)
//	defer rec.Stop()
//	…
//	if w := rec.Writes(); len(w) > 0 { t.Errorf("the plan wrote: %v", w) }
package virttest

import (
	"errors"
	"strings"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Install puts a hook into a host; what it returns takes it out again.
func Install(h *virt.Host, hook virt.Hook) (remove func()) { return h.AddHook(hook) }

// Match chooses calls.
type Match func(virt.Call) bool

// Op matches the calls of an operation, on all objects: "define domain".
func Op(op string) Match { return func(c virt.Call) bool { return c.Op == op } }

// On matches the calls on an object, by what the call names it: its name, or in
// a look-up its UUID, key or path.
func On(object string) Match { return func(c virt.Call) bool { return c.Object == object } }

// Writes matches the calls that change something.
func Writes(c virt.Call) bool { return c.Write }

// Reads matches the others.
func Reads(c virt.Call) bool { return !c.Write }

// Lookups matches the look-ups of all kinds of objects.
func Lookups(c virt.Call) bool { return strings.HasPrefix(c.Op, "look up ") }

// And matches what all match.
func And(all ...Match) Match {
	return func(c virt.Call) bool {
		for _, m := range all {
			if !m(c) {
				return false
			}
		}
		return true
	}
}

// Nth matches only the nth call, counted from 1, of those that m matches. A
// test that fails the first write, then the second, until none is left, has
// tried every place where an apply can break.
func Nth(n int, m Match) Match {
	var mu sync.Mutex
	seen := 0
	return func(c virt.Call) bool {
		if !m(c) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		return seen == n
	}
}

// Fail answers the calls that m matches, without making them.
func Fail(m Match, answer Answer) virt.Hook {
	return virt.Hook{Before: func(c virt.Call) error {
		if m(c) {
			return answer(c)
		}
		return nil
	}}
}

// FailAfter lets the calls that m matches happen, and answers those that
// succeeded with an error all the same.
func FailAfter(m Match, answer Answer) virt.Hook {
	return virt.Hook{After: func(c virt.Call, err error) error {
		if err == nil && m(c) {
			return answer(c)
		}
		return err
	}}
}

// errInstead goes from a Before to the After of the same hook.
var errInstead = errors.New("virttest: something else was done instead of the call")

// Instead answers OK to the calls that m matches, without making them, and calls
// f instead: to do more than was asked for, or less. nil: nothing is done. It is
// for writes: what a call would have returned is not there.
func Instead(m Match, f func(virt.Call)) virt.Hook {
	return virt.Hook{
		Before: func(c virt.Call) error {
			if !m(c) {
				return nil
			}
			if f != nil {
				f(c)
			}
			return errInstead
		},
		After: func(_ virt.Call, err error) error {
			if errors.Is(err, errInstead) {
				return nil
			}
			return err
		},
	}
}

// Observe calls f before each call that m matches: to change the host behind the
// caller's back at exactly that moment, or to count.
func Observe(m Match, f func(virt.Call)) virt.Hook {
	return virt.Hook{Before: func(c virt.Call) error {
		if m(c) {
			f(c)
		}
		return nil
	}}
}
