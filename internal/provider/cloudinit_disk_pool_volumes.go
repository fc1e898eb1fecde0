package provider

import (
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// seedPools are the volumes of the host, the same for all of a run: the seeds that
// lie in pools tell them what they have and had, and so keep each other, and the
// domains, from removing what is in use.
type seedPools struct {
	once    sync.Once
	volumes *storage.Volume
}

// pools returns the seeds that lie in pools.
func (d *Data) pools() *seedPools { return &d.seedPools }

// of returns the volumes of the host.
func (p *seedPools) of(from interface{ Host() *virt.Host }) *storage.Volume {
	p.once.Do(func() { p.volumes = storage.NewVolume(from.Host) })
	return p.volumes
}
