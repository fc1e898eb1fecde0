package provider

import (
	"context"
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// seedPools are the seeds of one run that lie in pools. Like seedFiles it keeps
// them from removing each other's volumes: two objects share one, for a moment,
// when a block gets another label, and when a replacement is created before its
// predecessor is destroyed.
type seedPools struct {
	once    sync.Once
	volumes *storage.Volume

	mu    sync.Mutex
	fresh map[string]bool // POOL/VOLUME of what this run created or changed
}

// pools returns the seeds that lie in pools.
func (d *Data) pools() *seedPools { return &d.seedPools }

// of returns the volumes of the host, which are the same for all of a run.
func (p *seedPools) of(from interface{ Host() *virt.Host }) *storage.Volume {
	p.once.Do(func() { p.volumes = storage.NewVolume(from.Host) })
	return p.volumes
}

// keep says that an object of this run has its volume there. It is called before
// the volume is put: what is removed in between is then put again.
func (p *seedPools) keep(at storage.SeedVolume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fresh == nil {
		p.fresh = map[string]bool{}
	}
	p.fresh[at.String()] = true
}

// keeps says whether an object of this run has its volume there.
func (p *seedPools) keeps(at storage.SeedVolume) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fresh[at.String()]
}

// remove deletes a volume unless an object of this run keeps it, or somebody needs
// it: then it says who. beside is the volume of the object itself.
func (p *seedPools) remove(ctx context.Context, at, beside storage.SeedVolume) (needs []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fresh[at.String()] {
		return nil, nil
	}
	return p.volumes.RemoveSeed(ctx, at, beside)
}

// forget begins another run.
func (p *seedPools) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh = nil
}
