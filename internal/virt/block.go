package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// BlockResize grows the disk of a running guest, which sees the new size at
// once. target is the disk's target (vda) or source, bytes the new size.
// libvirt would shrink a disk as readily: the caller must not ask for it.
func (d *Domain) BlockResize(ctx context.Context, target string, bytes uint64) error {
	return d.call(ctx, "resize disk "+target+" of domain", true, func(dom *libvirt.Domain) error {
		return dom.BlockResize(target, bytes, libvirt.DOMAIN_BLOCK_RESIZE_BYTES)
	})
}
