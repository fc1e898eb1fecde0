package virttest

import (
	"slices"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Recorder writes down the calls of a host, also those that a fault prevents.
type Recorder struct {
	mu    sync.Mutex
	calls []virt.Call
	stop  func()
}

// Record begins to write down.
func Record(h *virt.Host) *Recorder {
	r := &Recorder{}
	r.stop = h.AddHook(virt.Hook{Before: func(c virt.Call) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, c)
		return nil
	}})
	return r
}

// Stop ends it. What was written down stays.
func (r *Recorder) Stop() { r.stop() }

// Reset forgets what was written down.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Calls returns the calls in the order in which they began.
func (r *Recorder) Calls() []virt.Call { return r.Matching(func(virt.Call) bool { return true }) }

// Writes returns those that change something.
func (r *Recorder) Writes() []virt.Call { return r.Matching(Writes) }

// Matching returns those that m matches.
func (r *Recorder) Matching(m Match) []virt.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c virt.Call) bool { return !m(c) })
}
