package virt

import (
	"runtime"
	"sync"
)

// handle keeps libvirt's objects behind one of ours, one per connection, for as
// long as the connection lasts; it saves a look-up before every call. libvirt
// frees them when the garbage collector finds them unused: nothing has to be
// freed explicitly.
type handle[T any] struct {
	mu      sync.Mutex
	objects map[*session]*T
}

func (h *handle[T]) keep(s *session, object *T, free func(T)) {
	runtime.AddCleanup(object, free, *object)
	h.mu.Lock()
	defer h.mu.Unlock()
	for other := range h.objects {
		if other.gone.Load() {
			delete(h.objects, other)
		}
	}
	if h.objects == nil {
		h.objects = map[*session]*T{}
	}
	h.objects[s] = object
}

// use calls f with the object of the session, looked up if there is none yet.
func (h *handle[T]) use(s *session, f func(*T) error, look func() (*T, error), free func(T)) error {
	h.mu.Lock()
	object := h.objects[s]
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
