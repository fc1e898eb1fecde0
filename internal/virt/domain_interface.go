package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// Bandwidth limits the traffic of an interface, seen from the guest. nil leaves
// a direction as it is; a rate whose Average is 0 takes the limit away.
type Bandwidth struct {
	Inbound, Outbound *Rate
}

// Rate is one direction.
type Rate struct {
	Average uint // KiB in a second
	Peak    uint // KiB in a second; 0: none
	Burst   uint // KiB at the speed of Peak; 0: none
	Floor   uint // KiB in a second that are guaranteed; inbound only; 0: none
}

// InterfaceParameters returns the limits of an interface, by its MAC or, of a
// running guest, the name of its tap device.
func (d *Domain) InterfaceParameters(ctx context.Context, device string, side Affect) (b Bandwidth, err error) {
	err = d.call(ctx, "read the bandwidth of an interface of domain", false, func(dom *libvirt.Domain) error {
		p, err := dom.GetInterfaceParameters(device, libvirt.DomainModificationImpact(side))
		if err != nil {
			return err
		}
		b = Bandwidth{}
		if p.BandwidthInAverage+p.BandwidthInFloor > 0 {
			b.Inbound = &Rate{p.BandwidthInAverage, p.BandwidthInPeak, p.BandwidthInBurst, p.BandwidthInFloor}
		}
		if p.BandwidthOutAverage > 0 {
			b.Outbound = &Rate{p.BandwidthOutAverage, p.BandwidthOutPeak, p.BandwidthOutBurst, 0}
		}
		return nil
	})
	return b, err
}

// SetInterfaceParameters sets them, by MAC. An interface that is not there is
// ErrInvalidArg. A host whose kernel lacks the queueing it needs is ErrInternal
// live. Limits that are taken away leave an empty element.
func (d *Domain) SetInterfaceParameters(ctx context.Context, device string, b Bandwidth, side Affect) error {
	return d.call(ctx, "set the bandwidth of an interface of domain", true, func(dom *libvirt.Domain) error {
		var p libvirt.DomainInterfaceParameters
		if in := b.Inbound; in != nil {
			p.BandwidthInAverageSet, p.BandwidthInPeakSet, p.BandwidthInBurstSet = true, true, true
			p.BandwidthInAverage, p.BandwidthInPeak, p.BandwidthInBurst = in.Average, in.Peak, in.Burst
			p.BandwidthInFloorSet, p.BandwidthInFloor = in.Floor > 0, in.Floor
		}
		if out := b.Outbound; out != nil {
			p.BandwidthOutAverageSet, p.BandwidthOutPeakSet, p.BandwidthOutBurstSet = true, true, true
			p.BandwidthOutAverage, p.BandwidthOutPeak, p.BandwidthOutBurst = out.Average, out.Peak, out.Burst
		}
		return dom.SetInterfaceParameters(device, &p, libvirt.DomainModificationImpact(side))
	})
}
