package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// Domains lists all domains of the host, running and defined.
func (h *Host) Domains(ctx context.Context) ([]*Domain, error) {
	var out []*Domain
	err := h.call(ctx, Call{"list domains", "", false}, func(c *libvirt.Connect) error {
		all, err := c.ListAllDomains(0)
		if err != nil {
			return err
		}
		defer func() {
			for i := range all {
				_ = all[i].Free()
			}
		}()
		for i := range all {
			d := &Domain{host: h}
			if d.uuid, err = all[i].GetUUIDString(); err != nil {
				return err
			}
			if d.name, err = all[i].GetName(); err != nil {
				return err
			}
			out = append(out, d)
		}
		return nil
	})
	return out, err
}
