package domain

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// addressSources are the values of wait_for_ip.source.
var addressSources = map[string][]virt.AddressSource{
	"any":   {virt.AddressLease, virt.AddressAgent, virt.AddressARP},
	"lease": {virt.AddressLease},
	"agent": {virt.AddressAgent},
	"arp":   {virt.AddressARP},
}

// waitForAddresses waits for the interfaces that ask for it, all at once. A
// timeout is a warning: the machine is there and runs.
func waitForAddresses(ctx context.Context, dom *virt.Domain, planned tree.Value) []kind.Problem {
	var warnings []kind.Problem
	begin := time.Now()
	for i, nic := range planned.At("devices.interfaces").Elems() {
		want := nic.Attr("wait_for_ip")
		if want.IsNull() {
			continue
		}
		mac, err := nic.At("mac.address").Str(), error(nil)
		if mac == "" {
			mac, err = macOf(ctx, dom, i)
		}
		if err == nil {
			err = waitForAddress(ctx, dom, mac, want, begin.Add(seconds(want.Attr("timeout"), standardShutdown)))
		}
		if err != nil {
			warnings = append(warnings, kind.Problem{
				Path:    tree.Root.Attr("devices").Attr("interfaces").Elem(i, mac),
				Summary: fmt.Sprintf("Domain %q runs, but interface %d (%s) has no address yet", dom.Name(), i, mac),
				Detail:  err.Error() + ". Nothing was undone. Look at the guest's console, or raise wait_for_ip.timeout.",
			})
		}
	}
	return warnings
}

// addressesMissing makes an error of what is a warning at creation: a restart
// that was to end with an address has not done so.
func addressesMissing(missing []kind.Problem) error {
	if len(missing) == 0 {
		return nil
	}
	return &kind.ProblemError{Problems: missing}
}

// macOf asks libvirt for the MAC address of the interface at an index of the
// configuration: definition and configuration have the same order at creation.
func macOf(ctx context.Context, dom *virt.Domain, i int) (string, error) {
	xml, err := dom.XML(ctx, virt.XMLInactive)
	if err != nil {
		return "", err
	}
	def, err := spec.Domain().Decode(xml)
	if err != nil {
		return "", err
	}
	nics := def.At("devices.interfaces").Elems()
	if i >= len(nics) {
		return "", fmt.Errorf("the definition has only %d interfaces", len(nics))
	}
	return nics[i].At("mac.address").Str(), nil
}

func waitForAddress(ctx context.Context, dom *virt.Domain, mac string, want tree.Value, deadline time.Time) error {
	name := want.Attr("source").Str()
	if name == "" {
		name = "any"
	}
	for {
		seen, found, err := addressOf(ctx, dom, mac, addressSources[name])
		if err != nil || found {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no usable address within the timeout (source %s; seen: %s)", name, orNone(seen))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// addressOf asks each source. Loopback and link-local addresses do not count;
// they are in what was seen. An agent that does not answer yet is no error.
func addressOf(ctx context.Context, dom *virt.Domain, mac string, sources []virt.AddressSource) (seen []string, found bool, err error) {
	for _, source := range sources {
		nics, err := dom.InterfaceAddresses(ctx, source)
		if err != nil {
			if power, _, stateErr := dom.State(ctx); stateErr != nil || !power.Active() {
				return seen, false, errors.Join(fmt.Errorf("the guest does not run any more"), err)
			}
			continue
		}
		for _, nic := range nics {
			if !strings.EqualFold(nic.MAC, mac) {
				continue
			}
			for _, a := range nic.Addresses {
				seen = append(seen, a.Address)
				if ip, err := netip.ParseAddr(a.Address); err == nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
					return seen, true, nil
				}
			}
		}
	}
	return seen, false, nil
}

func orNone(seen []string) string {
	if len(seen) == 0 {
		return "none"
	}
	return strings.Join(seen, ", ")
}
