package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// ioFields are the limits of a disk's iotune.
var ioFields = func() fields {
	f := fields{"size_iops_sec": "SizeIopsSec"}
	for name, field := range map[string]string{
		"total_bytes_sec": "TotalBytesSec", "read_bytes_sec": "ReadBytesSec", "write_bytes_sec": "WriteBytesSec",
		"total_iops_sec": "TotalIopsSec", "read_iops_sec": "ReadIopsSec", "write_iops_sec": "WriteIopsSec",
	} {
		f[name], f[name+"_max"], f[name+"_max_length"] = field, field+"Max", field+"MaxLength"
	}
	return f
}()

// IoTune are the limits of a disk: bytes or operations in a second, of reads,
// writes or both (total), at most in a burst (…_max) of so many seconds
// (…_max_length); 0 is no limit. Disks of one group share them.
type IoTune struct {
	Limits Parameters
	Group  string // "" leaves it as it is
}

// BlockIoTune returns the limits of a disk by its target. Of a disk without
// limits libvirt returns zeros.
func (d *Domain) BlockIoTune(ctx context.Context, target string, side Affect) (tune IoTune, err error) {
	tune.Limits, err = parameters(ctx, d, "read the limits of a disk of domain", ioFields, func(dom *libvirt.Domain) (*libvirt.DomainBlockIoTuneParameters, error) {
		p, err := dom.GetBlockIoTune(target, libvirt.DomainModificationImpact(side))
		if err == nil {
			tune.Group = p.GroupName
		}
		return p, err
	})
	return tune, err
}

// SetBlockIoTune sets limits of a disk by its target. Those of one kind (bytes,
// operations, and each for bursts) go together: a call that names one sets the
// others of that kind to 0; other kinds stay. So give all, from BlockIoTune.
// All at 0 take the element and the group away.
//
// A total together with one direction, or a disk that is not there, is
// ErrInvalidArg. A limit for bursts without its own is ErrConfigUnsupported
// live; a definition takes it, and the next start refuses.
func (d *Domain) SetBlockIoTune(ctx context.Context, target string, tune IoTune, side Affect) error {
	return setParameters(ctx, d, "set the limits of a disk of domain", ioFields, tune.Limits, func(dom *libvirt.Domain, p *libvirt.DomainBlockIoTuneParameters) error {
		p.GroupNameSet, p.GroupName = tune.Group != "", tune.Group
		return dom.SetBlockIoTune(target, p, libvirt.DomainModificationImpact(side))
	})
}

const throttleGroups = Version(11002000)

// SetThrottleGroup makes or changes a group of limits that disks refer to. It
// needs libvirt 11.2.
func (d *Domain) SetThrottleGroup(ctx context.Context, group string, limits Parameters, side Affect) error {
	return d.since(ctx, "set a throttle group of domain", true, throttleGroups, "a throttle group", func(dom *libvirt.Domain) error {
		var p libvirt.DomainBlockIoTuneParameters
		if err := ioFields.pack(limits, &p); err != nil {
			return err
		}
		return dom.SetThrottleGroup(group, &p, libvirt.DomainModificationImpact(side))
	})
}

// DelThrottleGroup removes one that no disk refers to. It needs libvirt 11.2.
func (d *Domain) DelThrottleGroup(ctx context.Context, group string, side Affect) error {
	return d.since(ctx, "delete a throttle group of domain", true, throttleGroups, "a throttle group", func(dom *libvirt.Domain) error {
		return dom.DelThrottleGroup(group, libvirt.DomainModificationImpact(side))
	})
}

// BlockInfo are the sizes of a disk, in bytes.
type BlockInfo struct {
	Capacity   uint64 // that the guest sees
	Allocation uint64 // that the image takes
	Physical   uint64 // the end of the image on the host
}

// BlockInfo asks for the sizes of a disk by its target.
func (d *Domain) BlockInfo(ctx context.Context, target string) (b BlockInfo, err error) {
	err = d.call(ctx, "read the size of a disk of domain", false, func(dom *libvirt.Domain) error {
		info, err := dom.GetBlockInfo(target, 0)
		if err == nil {
			b = BlockInfo{info.Capacity, info.Allocation, info.Physical}
		}
		return err
	})
	return b, err
}
