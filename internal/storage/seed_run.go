package storage

import (
	"context"
	"errors"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
)

// Which volume is current and which is superseded is known by the seeds alone. A
// name and a content say neither: somebody may have pinned a machine to an older
// volume, or call a volume of his own so. So the seeds of a run say what they have
// and what they had, and nothing else of a pool is ever deleted beside a change.

// seedRun is what the seeds of one run have said of their volumes, by POOL/VOLUME.
type seedRun struct {
	mu         sync.Mutex
	current    map[string]SeedVolume
	superseded map[string]bool
}

// KeepSeed says that an object of this run has its volume there: no other object
// of the run deletes it. Two share one, for a moment, when a block gets another
// label, and when a replacement is created before its predecessor is destroyed.
// It is called before the volume is put: what is removed in between is then put
// again; and once more when its path is known.
func (k *Volume) KeepSeed(at SeedVolume) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if k.run.current == nil {
		k.run.current = map[string]SeedVolume{}
	}
	k.run.current[at.String()] = at
}

// KeepsSeed says whether an object of this run has its volume there.
func (k *Volume) KeepsSeed(at SeedVolume) bool {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	_, kept := k.run.current[at.String()]
	return kept
}

// SupersedeSeed says that an object of this run has another volume now, and that
// somebody needs this one still: the domain's update that takes it out of a drive
// may delete it.
func (k *Volume) SupersedeSeed(at SeedVolume) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if k.run.superseded == nil {
		k.run.superseded = map[string]bool{}
	}
	k.run.superseded[at.String()] = true
}

// ForgetSeeds begins another run.
func (k *Volume) ForgetSeeds() {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	k.run.current, k.run.superseded = nil, nil
}

// RemoveSeed deletes the volume unless an object of this run has it, or somebody
// needs it: then it says who. One that is gone already is success. beside is a
// volume that has to stay: a pool that was renamed shows the same one under two
// names.
func (k *Volume) RemoveSeed(ctx context.Context, at, beside SeedVolume) (needs []string, err error) {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if _, kept := k.run.current[at.String()]; kept {
		return nil, nil
	}
	s, err := k.find(ctx, at.state())
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if beside.Path != "" && identityOf(k.host(), s.vol).is(ctx, beside.Path) {
		return nil, nil
	}
	_, needs, err = k.deleteUnneeded(ctx, s)
	return needs, err
}

// mayRetire says whether a volume is one that a seed of this run had before, and
// no seed of this run has. is says whether a path leads to it: a pool that was
// renamed shows the same one under two names. The lock is the caller's.
func (r *seedRun) mayRetire(at SeedVolume, is func(path string) bool) bool {
	if _, kept := r.current[at.String()]; kept || !r.superseded[at.String()] {
		return false
	}
	for _, current := range r.current {
		if is(current.Path) {
			return false
		}
	}
	return true
}
