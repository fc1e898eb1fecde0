package provider

import (
	"errors"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// seedFiles keeps the stored objects of one run from removing each other's
// files. Two objects share a file, for a moment, when a block gets another label,
// and when a replacement is created before its predecessor is destroyed: name
// and content are the same, so the path is, and the core may destroy the old
// object last.
type seedFiles struct {
	mu    sync.Mutex
	fresh map[string]bool // paths of what this run created or changed
}

// keep says that an object of this run has its image there. It is called before
// the image is put: what is removed in between is then put again.
func (f *seedFiles) keep(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh == nil {
		f.fresh = map[string]bool{}
	}
	f.fresh[path] = true
}

// remove removes an image unless an object of this run keeps it. A file whose
// name is not that of an image of a store is not ours: it is left alone.
func (f *seedFiles) remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh[path] {
		return nil
	}
	if err := seed.Remove(path); !errors.Is(err, seed.ErrForeign) {
		return err
	}
	return nil
}

// forget begins another run.
func (f *seedFiles) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh = nil
}
