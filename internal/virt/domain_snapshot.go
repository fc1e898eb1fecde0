package virt

import (
	"context"
	"slices"
	"strings"

	"libvirt.org/go/libvirt"
)

// Snapshot is a state of a domain that libvirt can go back to. Its document says
// where that is kept: inside the disks' images, or in files of its own.
type Snapshot struct{ Name, XML string }

// Snapshots returns all snapshots, by name. A driver that has none answers ErrNoSupport.
func (d *Domain) Snapshots(ctx context.Context) (out []Snapshot, err error) {
	err = d.call(ctx, "list snapshots of domain", false, func(dom *libvirt.Domain) error {
		out = nil
		all, err := dom.ListAllSnapshots(0)
		if err != nil {
			return err
		}
		defer func() {
			for i := range all {
				_ = all[i].Free()
			}
		}()
		for i := range all {
			name, err := all[i].GetName()
			if err != nil {
				return err
			}
			xml, err := all[i].GetXMLDesc(0)
			if answered(err, libvirt.ERR_NO_DOMAIN_SNAPSHOT) {
				continue // deleted since the list was made
			}
			if err != nil {
				return err
			}
			out = append(out, Snapshot{name, xml})
		}
		slices.SortFunc(out, func(a, b Snapshot) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return out, err
}

// Checkpoints returns the names of all checkpoints, sorted. A driver that has none
// answers ErrNoSupport.
func (d *Domain) Checkpoints(ctx context.Context) (names []string, err error) {
	err = d.call(ctx, "list checkpoints of domain", false, func(dom *libvirt.Domain) error {
		names = nil
		all, err := dom.ListAllCheckpoints(0)
		if err != nil {
			return err
		}
		defer func() {
			for i := range all {
				_ = all[i].Free()
			}
		}()
		for i := range all {
			name, err := all[i].GetName()
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}
