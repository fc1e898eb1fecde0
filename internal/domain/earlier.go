package domain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// ownAddress is an address of an interface, by its MAC address.
type ownAddress struct{ mac, ip string }

func addressAt(mac, ip string) ownAddress { return ownAddress{strings.ToLower(mac), ip} }

// earlier are the leases that the networks of a machine knew before it was
// started. The DHCP server keeps the lease of a guest that is off, and that of
// another machine that had the same MAC address: only a lease that is new, or was
// renewed since, says that the guest is up. One that never ends cannot be seen to
// be renewed: like a neighbour of before, it counts where nothing else is asked, or
// nothing better was told in time.
type earlier struct {
	networks []string
	ends     map[ownAddress]time.Time // zero: never
}

// leasesBefore notes the leases, if a start is to be followed by a wait. nics are
// the interfaces of the configuration, defined those of the definition. What
// cannot be read counts as not there.
func (k *Kind) leasesBefore(ctx context.Context, nics, defined tree.Value) (e earlier) {
	if !slices.ContainsFunc(nics.Elems(), func(nic tree.Value) bool { return !nic.Attr("wait_for_ip").IsNull() }) {
		return e
	}
	for _, nic := range defined.Elems() {
		if name := nic.At("source.network.network").Str(); name != "" && !slices.Contains(e.networks, name) {
			e.networks = append(e.networks, name)
		}
	}
	e.ends, _ = leasesOf(ctx, k.host(), e.networks)
	return e
}

// leasesOf reads when the leases of some networks end, zero for never. With an
// error it is what could be read.
func leasesOf(ctx context.Context, host *virt.Host, networks []string) (map[ownAddress]time.Time, error) {
	ends := map[ownAddress]time.Time{}
	var failed error
	for _, name := range networks {
		network, err := host.LookupNetworkByName(ctx, name)
		if err != nil {
			failed = err
			continue
		}
		all, err := network.Leases(ctx)
		if err != nil {
			failed = err
		}
		for _, l := range all {
			ends[addressAt(l.MAC, l.IP)] = l.Expires
		}
	}
	return ends, failed
}

// unrenewed says which of the leases are still as they were. While that cannot be
// read, all are.
func (e earlier) unrenewed(ctx context.Context, host *virt.Host) map[ownAddress]bool {
	if len(e.ends) == 0 {
		return nil
	}
	now, err := leasesOf(ctx, host, e.networks)
	same := map[ownAddress]bool{}
	for address, end := range e.ends {
		if is, there := now[address]; err != nil || there && is.Equal(end) {
			same[address] = true
		}
	}
	return same
}

// isEndless says whether a lease of before never ends.
func (e earlier) isEndless(address ownAddress) bool {
	end, known := e.ends[address]
	return known && end.IsZero()
}
