package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// SetVcpus sets how many virtual CPUs are plugged in, up to the maximum. Taking
// CPUs out of a running guest is the guest's decision: libvirt gives up after
// five seconds (ErrOperationTimeout), and the guest may follow after that.
func (d *Domain) SetVcpus(ctx context.Context, n uint, side Affect) error {
	return d.call(ctx, "set the vCPUs of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetVcpusFlags(n, libvirt.DomainVcpuFlags(side))
	})
}
