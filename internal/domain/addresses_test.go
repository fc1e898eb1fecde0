package domain

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// wait is a wait_for_ip of pairs of names and values.
func wait(pairs ...any) tree.Value {
	v := tree.ObjectValue(map[string]tree.Value{})
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch x := pairs[i+1].(type) {
		case string:
			v = v.With(name, tree.StringValue(x))
		case int:
			v = v.With(name, tree.IntValue(int64(x)))
		case []string:
			v = v.With(name, textList(x))
		case tree.Value:
			v = v.With(name, x)
		}
	}
	return v
}

func TestWhichAddressesCount(t *testing.T) {
	four, six := []string{"10.20.0.0/16", "192.168.150.9/24"}, []string{"2001:db8::/32"}
	for _, c := range []struct {
		want         tree.Value
		address, why string
	}{
		{wait(), "192.168.150.11", ""},
		{wait(), "fd00::1", ""},
		{wait(), "2001:db8::1", ""},
		{wait(), "127.0.0.1", "is loopback"},
		{wait(), "::1", "is loopback"},
		{wait(), "169.254.3.4", "is link-local"},
		{wait(), "fe80::5054:ff:fe4d:9195", "is link-local"},
		{wait(), "fe80::1%eth0", "is link-local"},
		{wait(), "::ffff:169.254.3.4", "is link-local"},
		{wait(), "0.0.0.0", "is unspecified"},
		{wait(), "::", "is unspecified"},
		{wait(), "224.0.0.251", "is multicast"},
		{wait(), "ff02::1", "is multicast"},
		{wait(), "fe80", "is no address"},
		{wait("family", "any"), "fd00::1", ""},
		{wait("family", "ipv4"), "10.0.0.1", ""},
		{wait("family", "ipv4"), "::ffff:10.0.0.1", ""},
		{wait("family", "ipv4"), "fd00::1", "is not ipv4"},
		{wait("family", "ipv6"), "10.0.0.1", "is not ipv6"},
		{wait("family", "ipv6"), "fe80::1", "is link-local"},
		{wait("cidr", four), "10.20.255.1", ""},
		{wait("cidr", four), "192.168.150.200", ""},
		{wait("cidr", four), "10.21.0.1", "is not in 10.20.0.0/16 or 192.168.150.0/24"},
		{wait("cidr", four), "2001:db8::1", "is not in 10.20.0.0/16 or 192.168.150.0/24"},
		{wait("cidr", six), "2001:db8:1::1", ""},
		{wait("cidr", six), "2001:db9::1", "is not in 2001:db8::/32"},
		{wait("cidr", append(six, four...), "family", "ipv6"), "10.20.0.1", "is not ipv6"},
	} {
		if why := filterOf(c.want).refuses(c.address); why != c.why {
			t.Errorf("%s, %s: %q, want %q", c.want, c.address, why, c.why)
		}
	}
}

func TestWhoIsAsked(t *testing.T) {
	for want, asked := range map[string][]virt.AddressSource{
		"": {virt.AddressLease, virt.AddressAgent, virt.AddressARP}, "any": {virt.AddressLease, virt.AddressAgent, virt.AddressARP},
		"lease": {virt.AddressLease}, "agent": {virt.AddressAgent}, "arp": {virt.AddressARP},
	} {
		v := wait()
		if want != "" {
			v = wait("source", want)
		}
		if f := filterOf(v); !slices.Equal(f.asked, asked) {
			t.Errorf("source %q: %v", want, f.asked)
		}
	}
	if f := filterOf(wait("interface", "eth0.20")); !slices.Equal(f.asked, []virt.AddressSource{virt.AddressAgent}) {
		t.Errorf("the guest's own name: %v", f.asked)
	}
}

func TestValidateWaits(t *testing.T) {
	const at = "devices.interfaces[1].wait_for_ip."
	for _, c := range []struct {
		want tree.Value
		path string   // "" if it is valid
		says []string // in the detail
	}{
		{wait(), "", nil},
		{tree.NullValue, "", nil},
		{wait("source", "any", "family", "any", "timeout", 0, "cidr", []string{"10.0.0.0/8", "::/0"}), "", nil},
		{wait("interface", "eth0"), "", nil},
		{wait("interface", "eth0", "source", "agent"), "", nil},
		{wait("source", tree.UnknownValue, "family", tree.UnknownValue, "cidr", tree.UnknownValue, "timeout", tree.UnknownValue, "interface", tree.UnknownValue), "", nil},
		{wait("family", "ipv4", "cidr", tree.ListValue([]tree.Value{tree.StringValue("fd00::/8"), tree.UnknownValue})), "", nil},
		{wait("cidr", []string{"0.0.0.0/0", "fe00::/8"}), "", nil},
		{wait("source", "dhcp"), "source", []string{`"dhcp"`, "any", "lease", "agent", "arp"}},
		{wait("family", "v6"), "family", []string{`"v6"`, "any", "ipv4", "ipv6"}},
		{wait("timeout", -1), "timeout", []string{"-1", "leave wait_for_ip out"}},
		{wait("interface", "eth0", "source", "lease"), "interface", []string{`"eth0"`, `"lease"`, `"agent"`}},
		{wait("interface", "eth0", "source", "arp"), "interface", []string{`"arp"`}},
		{wait("cidr", []string{}), "cidr", []string{"Leave it out"}},
		{wait("cidr", []string{"10.0.0.0/8", "10.0.0.1"}), "cidr[1]", []string{`"10.0.0.1"`, "/32"}},
		{wait("cidr", []string{"10.0.0.0/33"}), "cidr[0]", []string{`"10.0.0.0/33"`}},
		{wait("cidr", []string{"::ffff:10.0.0.0/104"}), "cidr[0]", []string{"10.20.0.0/16"}},
		{wait("cidr", []string{"169.254.0.0/17"}), "cidr[0]", []string{"link-local"}},
		{wait("cidr", []string{"fe80::/10"}), "cidr[0]", []string{"link-local"}},
		{wait("cidr", []string{"127.0.0.0/8"}), "cidr[0]", []string{"loopback"}},
		{wait("cidr", []string{"ff00::/8"}), "cidr[0]", []string{"multicast"}},
		{wait("family", "ipv6", "cidr", []string{"10.0.0.0/8"}), "cidr", []string{`"ipv6"`}},
		{wait("family", "ipv4", "cidr", []string{"fd00::/8", "2001:db8::/32"}), "cidr", []string{`"ipv4"`}},
	} {
		config := tree.NullValue.SetAt("devices.interfaces", tree.ListValue([]tree.Value{tree.ObjectValue(map[string]tree.Value{}), tree.NullValue.With("wait_for_ip", c.want)}))
		problems := validateWaits(config)
		switch {
		case c.path == "" && len(problems) == 0:
		case c.path == "" || len(problems) != 1 || problems[0].Path.String() != at+c.path:
			t.Errorf("%s: %v, want one at %q", c.want, problems, c.path)
		default:
			for _, part := range c.says {
				if !strings.Contains(problems[0].Detail, part) {
					t.Errorf("%s: no %q in %q", c.want, part, problems[0].Detail)
				}
			}
		}
	}
}

func TestLastOfANetwork(t *testing.T) {
	for network, last := range map[string]string{
		"10.0.0.0/8": "10.255.255.255", "10.1.2.3/31": "10.1.2.3", "10.1.2.2/32": "10.1.2.2", "0.0.0.0/0": "255.255.255.255", "fe80::/10": "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "10.1.0.0/19": "10.1.31.255",
	} {
		if got := lastOf(netip.MustParsePrefix(network)); got != netip.MustParseAddr(last) {
			t.Errorf("%s: %s, want %s", network, got, last)
		}
	}
}

// Interfaces without an address of their own are found by what else they say,
// wherever the definition has them.
func TestMACsOfInterfaces(t *testing.T) {
	nic := func(mac, model, network string) tree.Value {
		v := tree.NullValue.SetAt("source.network.network", tree.StringValue(network)).SetAt("model.type", tree.StringValue(model))
		if mac != "" {
			v = v.SetAt("mac.address", tree.StringValue(mac))
		}
		return v
	}
	list := func(nics ...tree.Value) tree.Value { return tree.ListValue(nics) }
	defined := list(nic("52:54:00:00:00:0a", "virtio", "lan"), nic("52:54:00:00:00:0b", "e1000e", "lan"), nic("52:54:00:00:00:0c", "virtio", "wan"))
	k := New(nil)
	for what, c := range map[string]struct {
		config tree.Value
		macs   string
	}{
		"in order":                {list(nic("", "virtio", "lan"), nic("", "e1000e", "lan"), nic("", "virtio", "wan")), "a b c"},
		"in another order":        {list(nic("", "virtio", "wan"), nic("", "e1000e", "lan"), nic("", "virtio", "lan")), "c b a"},
		"one named after another": {list(nic("", "virtio", "wan"), nic("52:54:00:00:00:0A", "virtio", "wan")), "c a"},
		"fewer than there are":    {list(nic("", "e1000e", "lan")), "b"},
		"one that is not there":   {list(nic("52:54:00:00:00:0d", "virtio", "lan"), nic("", "e1000e", "lan")), "- b"},
		"unknown is not named":    {list(nic("", "virtio", "wan").SetAt("mac.address", tree.UnknownValue)), "c"},
		"a hand of a named other": {list(nic("52:54:00:00:00:0c", "virtio", "wan"), nic("", "virtio", "lan")), "c a"},
	} {
		short := []string{}
		for _, mac := range k.macsIn(defined, c.config) {
			if mac == "" {
				mac = "-"
			}
			short = append(short, mac[max(0, len(mac)-1):])
		}
		if got := strings.Join(short, " "); got != c.macs {
			t.Errorf("%s: %s, want %s", what, got, c.macs)
		}
	}
}

// What was seen, and why it did not count, is in the message.
func TestWhatAWatchSays(t *testing.T) {
	const mac = "52:54:00:00:00:0a"
	addresses := func(name, mac string, all ...string) virt.InterfaceAddresses {
		nic := virt.InterfaceAddresses{Name: name, MAC: mac}
		for _, a := range all {
			nic.Addresses = append(nic.Addresses, virt.Address{Address: a, Prefix: 24})
		}
		return nic
	}
	at := func(ago time.Duration, err error, nics ...virt.InterfaceAddresses) heard {
		return heard{at: time.Now().Add(-ago), nics: nics, err: err}
	}
	absent := &virt.Error{Op: "read addresses of domain", Object: "x", Code: virt.ErrArgumentUnsupported, Message: "QEMU guest agent is not configured"}
	silent := &virt.Error{Op: "read addresses of domain", Object: "x", Code: virt.ErrAgentUnresponsive, Message: "QEMU guest agent is not connected"}
	for what, c := range map[string]struct {
		want     tree.Value
		heard    map[virt.AddressSource]heard
		found    bool
		hopeless bool
		says     []string
	}{
		"nobody has answered": {wait(), nil, false, false, []string{"lease has not answered; agent has not answered; arp has not answered", "source any"}},
		"an address":          {wait("source", "lease"), map[virt.AddressSource]heard{virt.AddressLease: at(0, nil, addresses("vnet0", strings.ToUpper(mac), "10.0.0.5"))}, true, false, nil},
		"that of another interface": {wait("source", "agent"), map[virt.AddressSource]heard{virt.AddressAgent: at(0, nil, addresses("lo", "00:00:00:00:00:00", "127.0.0.1"), addresses("eth1", "52:54:00:00:00:0b", "10.0.0.5"))}, false, false,
			[]string{"agent: no such interface, only lo (00:00:00:00:00:00), eth1 (52:54:00:00:00:0b)"}},
		"one that does not count": {wait("cidr", []string{"10.99.0.0/16"}), map[virt.AddressSource]heard{
			virt.AddressLease: at(0, nil, addresses("vnet0", mac, "10.0.0.5")), virt.AddressAgent: at(0, nil, addresses("eth0", mac, "10.0.0.5", "fe80::1")), virt.AddressARP: at(0, nil),
		}, false, false, []string{"in 10.99.0.0/16", "lease: 10.0.0.5 on vnet0 is not in 10.99.0.0/16", "agent: 10.0.0.5 on eth0 is not in 10.99.0.0/16, fe80::1 on eth0 is link-local", "arp: nothing"}},
		"the agent alone knows names": {wait("interface", "eth0.20"), map[virt.AddressSource]heard{
			virt.AddressLease: at(0, nil, addresses("eth0.20", mac, "10.0.0.5")), virt.AddressAgent: at(0, nil, addresses("eth0", mac, "10.0.0.5"), addresses("eth0.20", mac)),
		}, false, false, []string{"the agent alone is asked", "agent: nothing on eth0.20"}},
		"the one of that name":    {wait("interface", "eth0.20"), map[virt.AddressSource]heard{virt.AddressAgent: at(0, nil, addresses("eth0", mac), addresses("eth0.20", mac, "10.0.0.5"))}, true, false, nil},
		"an agent that is silent": {wait("source", "agent"), map[virt.AddressSource]heard{virt.AddressAgent: at(9*time.Second, nil, addresses("eth0", mac, "fe80::1"))}, false, false, []string{"fe80::1 on eth0 is link-local, and since then, for 9s, no answer"}},
		"one that may come":       {wait("source", "agent"), map[virt.AddressSource]heard{virt.AddressAgent: at(0, silent)}, false, false, []string{"agent: QEMU guest agent is not connected"}},
		"one that never comes":    {wait("source", "agent"), map[virt.AddressSource]heard{virt.AddressAgent: at(0, absent)}, false, true, []string{"agent: QEMU guest agent is not configured"}},
		"others may answer":       {wait(), map[virt.AddressSource]heard{virt.AddressAgent: at(0, absent)}, false, false, nil},
	} {
		a := &awaited{filter: filterOf(c.want), mac: mac, elsewhere: ""}
		w := &watch{dom: &virt.Domain{}, waiting: []*awaited{a}, heard: c.heard}
		if w.found(a) != c.found || w.hopeless(a) != c.hopeless {
			t.Errorf("%s: found %v, hopeless %v", what, w.found(a), w.hopeless(a))
		}
		p := w.problem(a, "No address", "")
		for _, part := range append(c.says, "No address (source ") {
			if !strings.Contains(p.Detail, part) {
				t.Errorf("%s: no %q in %q", what, part, p.Detail)
			}
		}
	}
	bridged := &awaited{filter: filterOf(wait("source", "lease")), mac: mac, elsewhere: "bridge"}
	if said := (&watch{}).said(bridged, virt.AddressLease, at(0, nil)); !strings.Contains(said, "on its own networks alone, and this interface is on a bridge") {
		t.Errorf("a lease that never comes: %q", said)
	}
}

// What was known before the start does not say that the guest is up.
func TestWhatWasKnownBefore(t *testing.T) {
	const mac, ip = "52:54:00:00:00:0a", "10.0.0.5"
	told := []virt.InterfaceAddresses{{Name: "vnet0", MAC: strings.ToUpper(mac), Addresses: []virt.Address{{Address: ip}}}}
	old := map[ownAddress]bool{addressAt(mac, ip): true}
	ever := map[ownAddress]time.Time{addressAt(mac, ip): {}}
	for what, c := range map[string]struct {
		source string
		heard  map[virt.AddressSource]heard
		knew   map[ownAddress]bool // the table of neighbours
		ends   map[ownAddress]time.Time
		late   bool
		found  bool
		says   string
	}{
		"a new lease":                   {"lease", map[virt.AddressSource]heard{virt.AddressLease: {nics: told}}, nil, nil, false, true, ""},
		"an old lease":                  {"lease", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}}, nil, nil, false, false, "10.0.0.5 on vnet0 is leased from before the start, and not renewed since"},
		"an old lease, at last":         {"lease", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}}, nil, nil, true, false, "not renewed"},
		"an old lease, a new agent":     {"any", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}, virt.AddressAgent: {nics: told}}, nil, nil, false, true, ""},
		"a new neighbour":               {"any", map[virt.AddressSource]heard{virt.AddressARP: {nics: told}}, map[ownAddress]bool{}, nil, false, true, ""},
		"an old neighbour":              {"any", map[virt.AddressSource]heard{virt.AddressARP: {nics: told}}, old, nil, false, false, "was known before the start"},
		"an old one, at last":           {"any", map[virt.AddressSource]heard{virt.AddressARP: {nics: told}}, old, nil, true, true, ""},
		"an old one, asked alone":       {"arp", map[virt.AddressSource]heard{virt.AddressARP: {nics: told}}, old, nil, false, true, ""},
		"an endless lease":              {"any", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}}, nil, ever, false, false, "is leased for ever, and was before the start"},
		"an endless lease, a new agent": {"any", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}, virt.AddressAgent: {nics: told}}, nil, ever, false, true, ""},
		"an endless lease, at last":     {"any", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}}, nil, ever, true, true, ""},
		"an endless lease, asked alone": {"lease", map[virt.AddressSource]heard{virt.AddressLease: {nics: told, old: old}}, nil, ever, false, true, ""},
		"an endless one that ends now":  {"any", map[virt.AddressSource]heard{virt.AddressLease: {nics: told}}, nil, ever, false, true, ""},
	} {
		a := &awaited{filter: filterOf(wait("source", c.source)), mac: mac, deadline: time.Now().Add(time.Hour)}
		if c.late {
			a.deadline = time.Now()
		}
		w := &watch{dom: &virt.Domain{}, heard: c.heard, neighbours: c.knew, before: earlier{ends: c.ends}}
		if got := w.found(a); got != c.found {
			t.Errorf("%s: found %v", what, got)
		}
		if p := w.problem(a, "No address", ""); !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: no %q in %q", what, c.says, p.Detail)
		}
	}
}
