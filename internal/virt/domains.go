package virt

import "context"

// Domains lists all domains of the host, running and defined.
func (h *Host) Domains(ctx context.Context) (out []*Domain, err error) {
	err = h.call(ctx, Call{"list domains", "", false}, func(s *session) error {
		out = nil
		all, err := s.conn.ListAllDomains(0)
		for i := range all {
			dom := all[i]
			d, err := h.newDomain(s, &dom)
			if err != nil {
				return err
			}
			out = append(out, d)
		}
		return err
	})
	return out, err
}
