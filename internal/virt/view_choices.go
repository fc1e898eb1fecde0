package virt

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
)

// What could be named instead of what is not there. All this is asked only for
// the message of a refusal, and nothing of it is kept.

// Volumes lists the names of the volumes of an active pool.
func (v *View) Volumes(ctx context.Context, pool string) ([]string, error) {
	pools, err := v.Pools(ctx)
	if err != nil {
		return nil, err
	}
	if !pools[pool].Active {
		return nil, fmt.Errorf("pool %q is not active", pool)
	}
	volumes, err := v.volumes(ctx, pools[pool].pool)
	return slices.Collect(maps.Keys(volumes)), err
}

// Links lists the network interfaces of the host by name, each with its kind:
// ethernet, bridge, bond, vlan.
func (v *View) Links(ctx context.Context) (out map[string]string, err error) {
	err = v.host.call(ctx, Call{"list interfaces", "", false}, func(s *session) error {
		out = map[string]string{}
		all, err := s.conn.ListAllInterfaces(0)
		for i := range all {
			document, xmlErr := all[i].GetXMLDesc(0)
			_ = all[i].Free()
			if xmlErr != nil {
				continue // it went since the list was made
			}
			name, kind, xmlErr := linkIn(document)
			if xmlErr != nil {
				return xmlErr
			}
			out[name] = kind
		}
		return err
	})
	return out, err
}

func linkIn(document string) (name, kind string, err error) {
	var link struct {
		Name string `xml:"name,attr"`
		Type string `xml:"type,attr"`
	}
	if err := xml.Unmarshal([]byte(document), &link); err != nil {
		return "", "", fmt.Errorf("read an interface's XML: %w", err)
	}
	return link.Name, link.Type, nil
}

// Machines lists the machine types that the host's capabilities have for an
// emulator and an architecture; an empty one stands for all.
func (v *View) Machines(ctx context.Context, o Offer) ([]string, error) {
	document, err := v.host.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	return machinesIn(document, o)
}

func machinesIn(document string, o Offer) ([]string, error) {
	var host struct {
		Guests []struct {
			Arch struct {
				Name string `xml:"name,attr"`
				emulation
				Domains []emulation `xml:"domain"`
			} `xml:"arch"`
		} `xml:"guest"`
	}
	if err := xml.Unmarshal([]byte(document), &host); err != nil {
		return nil, fmt.Errorf("read the host's capabilities: %w", err)
	}
	var out []string
	for _, g := range host.Guests {
		if o.Arch != "" && g.Arch.Name != o.Arch {
			continue
		}
		for _, p := range append([]emulation{g.Arch.emulation}, g.Arch.Domains...) {
			if o.Emulator == "" || p.Emulator == o.Emulator {
				out = append(out, p.Machines...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
