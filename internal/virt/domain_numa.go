package virt

import (
	"context"
	"fmt"
	"slices"

	"libvirt.org/go/libvirt"
)

// Numa says from which of the host's NUMA nodes a guest gets its memory.
type Numa struct {
	Nodeset string // 0-1,3; "" leaves it as it is
	Mode    string // strict, preferred, interleave, restrictive; "" leaves it as it is
}

// numaModes are libvirt's numbers for the modes.
var numaModes = []string{
	libvirt.DOMAIN_NUMATUNE_MEM_STRICT: "strict", libvirt.DOMAIN_NUMATUNE_MEM_PREFERRED: "preferred",
	libvirt.DOMAIN_NUMATUNE_MEM_INTERLEAVE: "interleave", libvirt.DOMAIN_NUMATUNE_MEM_RESTRICTIVE: "restrictive",
}

// NumaParameters returns numatune's memory element.
func (d *Domain) NumaParameters(ctx context.Context, side Affect) (n Numa, err error) {
	err = d.call(ctx, "read the NUMA tuning of domain", false, func(dom *libvirt.Domain) error {
		p, err := dom.GetNumaParameters(libvirt.DomainModificationImpact(side))
		if err != nil {
			return err
		}
		n = Numa{Nodeset: p.Nodeset}
		if p.ModeSet && int(p.Mode) < len(numaModes) {
			n.Mode = numaModes[p.Mode]
		}
		return nil
	})
	return n, err
}

// SetNumaParameters changes it. Of a running guest the nodes change in mode
// restrictive only (in others where there were none, once), and the mode does
// not: ErrOperationInvalid. A node that the host does not have is
// ErrConfigUnsupported live, and taken into a definition.
func (d *Domain) SetNumaParameters(ctx context.Context, n Numa, side Affect) error {
	return d.call(ctx, "set the NUMA tuning of domain", true, func(dom *libvirt.Domain) error {
		p := libvirt.DomainNumaParameters{NodesetSet: n.Nodeset != "", Nodeset: n.Nodeset, ModeSet: n.Mode != ""}
		if p.ModeSet {
			mode := slices.Index(numaModes, n.Mode)
			if mode < 0 {
				return fmt.Errorf("no such mode: %s", n.Mode)
			}
			p.Mode = libvirt.DomainNumatuneMemMode(mode)
		}
		return dom.SetNumaParameters(&p, libvirt.DomainModificationImpact(side))
	})
}
