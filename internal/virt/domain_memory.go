package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// SetMemory sets the memory balloon, in KiB. Of a running guest (AffectLive)
// libvirt only asks: the guest follows in its own time, if it has the driver.
// More than the guest's maximum is refused (ErrInvalidArg).
func (d *Domain) SetMemory(ctx context.Context, kib int64, side Affect) error {
	return d.call(ctx, "set the memory of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetMemoryFlags(uint64(kib), libvirt.DomainMemoryModFlags(side))
	})
}
