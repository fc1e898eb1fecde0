package domain

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// waitType is wait_for_ip of an interface: who is asked, and which address
// counts.
func waitType() *tree.Attribute {
	return optional("wait_for_ip", tree.ObjectOf(
		optional("timeout", tree.NumberType, "Seconds, for this interface; all are waited for at once. Standard: 300."),
		optional("source", tree.StringType, "Who is asked: `lease` (the DHCP server of libvirt's networks), `agent` (the guest's agent, which needs a channel `org.qemu.guest_agent.0`), `arp` (the host's table of neighbours), or `any` of them, which is the standard. While an agent is asked, libvirt waits at most 20 seconds for an answer of it, whoever asks; afterwards without limit, which is its standard."),
		optional("family", tree.StringType, "`ipv4`, `ipv6`, or `any`, which is the standard."),
		optional("cidr", tree.ListOf(tree.StringType), "Networks, such as `10.20.0.0/16` or `2001:db8::/32`. Only an address in one of them counts. Unset, every address does, except that loopback, link-local (`169.254.0.0/16`, `fe80::/10`), unspecified and multicast addresses never count."),
		optional("interface", tree.StringType, "The guest's own name of the interface, such as `eth0.20`, where several have the same MAC address, as a VLAN or a bridge has. Only the agent knows it: the other sources do not count then."),
	), "Wait until the interface has an address: when the domain is created and started, and when an update starts or restarts it. At creation a timeout is a warning; after an update it is an error, of which nothing is undone: all of the update is in the state, and the next plan does not repeat it. A guest that goes down meanwhile is an error at once. One that is started paused is not waited for.")
}

// addressSources are the values of wait_for_ip.source.
var addressSources = map[string][]virt.AddressSource{
	"any":   {virt.AddressLease, virt.AddressAgent, virt.AddressARP},
	"lease": {virt.AddressLease},
	"agent": {virt.AddressAgent},
	"arp":   {virt.AddressARP},
}

const anyFamily = "any"

// families are the values of wait_for_ip.family.
var families = map[string]func(netip.Addr) bool{
	anyFamily: func(netip.Addr) bool { return true },
	"ipv4":    netip.Addr.Is4,
	"ipv6":    netip.Addr.Is6,
}

// filter says which addresses count.
type filter struct {
	source string // as configured
	asked  []virt.AddressSource
	card   string // the guest's own name of the interface, "" for any with the MAC
	family string
	within []netip.Prefix
}

// filterOf reads wait_for_ip, which was validated.
func filterOf(want tree.Value) filter {
	f := filter{source: want.Attr("source").Str(), card: want.Attr("interface").Str(), family: want.Attr("family").Str()}
	if f.source == "" {
		f.source = "any"
	}
	if f.family == "" {
		f.family = anyFamily
	}
	f.asked = addressSources[f.source]
	if f.card != "" {
		f.asked = addressSources["agent"]
	}
	for _, c := range want.Attr("cidr").Elems() {
		if p, err := netip.ParsePrefix(c.Str()); err == nil {
			f.within = append(f.within, p.Masked())
		}
	}
	return f
}

// refuses says why an address does not count, "" if it does.
func (f filter) refuses(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "is no address"
	}
	ip = ip.Unmap().WithZone("")
	if why := unusable(ip); why != "" {
		return "is " + why
	}
	if !families[f.family](ip) {
		return "is not " + f.family
	}
	for _, p := range f.within {
		if p.Contains(ip) {
			return ""
		}
	}
	if len(f.within) > 0 {
		return "is not in " + f.networks()
	}
	return ""
}

// unusable says why an address never counts, "" if it may.
func unusable(ip netip.Addr) string {
	switch {
	case ip.IsUnspecified():
		return "unspecified"
	case ip.IsLoopback():
		return "loopback"
	case ip.IsLinkLocalUnicast():
		return "link-local"
	case ip.IsMulticast():
		return "multicast"
	}
	return ""
}

func (f filter) networks() string {
	names := make([]string, len(f.within))
	for i, p := range f.within {
		names[i] = p.String()
	}
	return strings.Join(names, " or ")
}

// String is what is waited for, in words.
func (f filter) String() string {
	var b strings.Builder
	b.WriteString("source " + f.source)
	if f.card != "" {
		fmt.Fprintf(&b, ", the guest's interface %s, of which the agent alone is asked", f.card)
	}
	if f.family != anyFamily {
		b.WriteString(", family " + f.family)
	}
	if len(f.within) > 0 {
		b.WriteString(", in " + f.networks())
	}
	return b.String()
}

// validateWaits finds waits that could never end, or that nobody can read.
func validateWaits(config tree.Value) []kind.Problem {
	var problems []kind.Problem
	for i, nic := range config.At("devices.interfaces").Elems() {
		want, here := nic.Attr("wait_for_ip"), tree.ParsePath("devices.interfaces").Elem(i, "").Attr("wait_for_ip")
		refuse := func(at tree.Path, summary, format string, args ...any) {
			problems = append(problems, kind.Problem{Path: at, Summary: summary, Detail: fmt.Sprintf(format, args...)})
		}
		source, family := want.Attr("source"), want.Attr("family")
		if source.IsKnown() && addressSources[source.Str()] == nil {
			refuse(here.Attr("source"), "Unknown source of addresses", "wait_for_ip.source is %q; it can be any, which is the standard, lease, agent or arp.", source.Str())
		}
		if family.IsKnown() && families[family.Str()] == nil {
			refuse(here.Attr("family"), "Unknown family of addresses", "wait_for_ip.family is %q; it can be any, which is the standard, ipv4 or ipv6.", family.Str())
		}
		if n := want.Attr("timeout").Num(); n != nil && n.Sign() < 0 {
			refuse(here.Attr("timeout"), "A timeout is not negative", "wait_for_ip.timeout is %s; it is a number of seconds. To wait for no address, leave wait_for_ip out.", want.Attr("timeout"))
		}
		if card := want.Attr("interface").Str(); card != "" && (source.Str() == "lease" || source.Str() == "arp") {
			refuse(here.Attr("interface"), "Only the agent knows the guest's interfaces by name",
				"wait_for_ip.interface is %q and wait_for_ip.source is %q, which knows interfaces by their MAC address alone. Set source to \"agent\", or leave interface out.", card, source.Str())
		}
		validateNetworks(want, here, refuse)
	}
	return problems
}

// validateNetworks checks the list of prefixes, by themselves and against the
// family.
func validateNetworks(want tree.Value, here tree.Path, refuse func(at tree.Path, summary, format string, args ...any)) {
	cidr, family := want.Attr("cidr"), want.Attr("family").Str()
	if !cidr.IsKnown() {
		return
	}
	list := here.Attr("cidr")
	if cidr.Len() == 0 {
		refuse(list, "An empty list admits no address", "wait_for_ip.cidr is empty, so that no address could count. Leave it out if all do.")
		return
	}
	fits := false
	for i, c := range cidr.Elems() {
		if !c.IsKnown() {
			fits = true
			continue
		}
		p, err := netip.ParsePrefix(c.Str())
		switch {
		case err != nil || p.Addr().Is4In6():
			refuse(list.Elem(i, ""), "Not a network", "%q is no network. Write the address and the length of its prefix: 10.20.0.0/16, 2001:db8::/32, or 10.20.0.7/32 for that address alone.", c.Str())
			fits = true
			continue
		case unusable(p.Masked().Addr()) != "" && unusable(lastOf(p)) == unusable(p.Masked().Addr()):
			refuse(list.Elem(i, ""), "Such addresses never count", "All addresses in %s are %s, and those never count. Name the network that the guest gets its address from.", c.Str(), unusable(p.Masked().Addr()))
		}
		fits = fits || families[family] == nil || families[family](p.Addr())
	}
	if !fits {
		refuse(list, "The networks hold no address of the family", "wait_for_ip.family is %q, and no network of wait_for_ip.cidr has such addresses. Add one that has, or change family.", family)
	}
}

// lastOf is the last address in a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		if host := 8*(i+1) - p.Bits(); host >= 8 {
			b[i] = 0xff
		} else if host > 0 {
			b[i] |= 1<<host - 1
		}
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}
