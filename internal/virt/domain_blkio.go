package virt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirt"
)

// Blkio is blkiotune: the weight of a guest's disk traffic among those of the
// host, and limits on single devices of the host.
type Blkio struct {
	Weight  int64                 // libvirt takes what it does not know to be wrong; 0 leaves it as it is
	Devices map[string]Parameters // by path on the host; weight, read_bytes_sec, write_bytes_sec, read_iops_sec, write_iops_sec; 0 takes one away
}

// deviceLimits pairs a limit with the string of the binding that holds it for
// all devices: path,value,path,value.
func deviceLimits(p *libvirt.DomainBlkioParameters) map[string]struct {
	set  *bool
	text *string
} {
	return map[string]struct {
		set  *bool
		text *string
	}{
		"weight":          {&p.DeviceWeightSet, &p.DeviceWeight},
		"read_bytes_sec":  {&p.DeviceReadBpsSet, &p.DeviceReadBps},
		"write_bytes_sec": {&p.DeviceWriteBpsSet, &p.DeviceWriteBps},
		"read_iops_sec":   {&p.DeviceReadIopsSet, &p.DeviceReadIops},
		"write_iops_sec":  {&p.DeviceWriteIopsSet, &p.DeviceWriteIops},
	}
}

// BlkioParameters returns blkiotune.
func (d *Domain) BlkioParameters(ctx context.Context, side Affect) (b Blkio, err error) {
	err = d.call(ctx, "read the disk weights of domain", false, func(dom *libvirt.Domain) error {
		p, err := dom.GetBlkioParameters(libvirt.DomainModificationImpact(side))
		if err != nil {
			return err
		}
		b, err = blkio(p)
		return err
	})
	return b, err
}

func blkio(p *libvirt.DomainBlkioParameters) (Blkio, error) {
	b := Blkio{Weight: int64(p.Weight), Devices: map[string]Parameters{}}
	for name, limit := range deviceLimits(p) {
		if *limit.text == "" {
			continue
		}
		parts := strings.Split(*limit.text, ",")
		for pair := range slices.Chunk(parts, 2) {
			if len(pair) != 2 {
				return Blkio{}, fmt.Errorf("libvirt's %s of devices are %q", name, *limit.text)
			}
			n, err := strconv.ParseInt(pair[1], 10, 64)
			if err != nil {
				return Blkio{}, fmt.Errorf("libvirt's %s of devices are %q", name, *limit.text)
			}
			if b.Devices[pair[0]] == nil {
				b.Devices[pair[0]] = Parameters{}
			}
			b.Devices[pair[0]][name] = n
		}
	}
	return b, nil
}

// SetBlkioParameters changes it. A device that the host does not have is
// ErrSystem live, and taken into a definition. A device's weight needs the
// scheduler CFQ on the host; else it is ErrOperationInvalid live.
func (d *Domain) SetBlkioParameters(ctx context.Context, b Blkio, side Affect) error {
	return d.call(ctx, "set the disk weights of domain", true, func(dom *libvirt.Domain) error {
		p, err := b.pack()
		if err != nil {
			return err
		}
		return dom.SetBlkioParameters(p, libvirt.DomainModificationImpact(side))
	})
}

func (b Blkio) pack() (*libvirt.DomainBlkioParameters, error) {
	p := &libvirt.DomainBlkioParameters{}
	if err := (fields{"weight": "Weight"}).pack(Parameters{"weight": b.Weight}, p); err != nil {
		return nil, err
	}
	p.WeightSet = b.Weight != 0
	limits := deviceLimits(p)
	for _, path := range slices.Sorted(maps.Keys(b.Devices)) {
		if strings.Contains(path, ",") || path == "" {
			return nil, fmt.Errorf("libvirt cannot take a device of the path %q", path)
		}
		for name, n := range b.Devices[path] {
			limit, known := limits[name]
			if !known {
				return nil, fmt.Errorf("no such parameter of a device: %s", name)
			}
			if *limit.set {
				*limit.text += ","
			}
			*limit.set = true
			*limit.text += path + "," + strconv.FormatInt(n, 10)
		}
	}
	return p, nil
}
