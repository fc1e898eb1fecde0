package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func taggedNIC(typ, more string) string {
	return fmt.Sprintf("<interface type='%s'><mac address='52:54:00:00:00:0a'/>%s<vlan trunk='yes'><tag id='42'/><tag id='43'/></vlan></interface>", typ, more)
}

// What libvirt 9.0 starts was seen on a host (TestAccBootProblems_vlans): of what
// nobody has seen to fail, nothing is said.
func TestVLANs(t *testing.T) {
	const old, young = virt.Version(9000000), virt.Version(11000000)
	vport := func(typ string) string { return "<virtualport type='" + typ + "'/>" }
	for what, c := range map[string]struct {
		nic    string
		daemon virt.Version
		broken bool
		on     string // "" if nothing is said
	}{
		"a network that libvirt makes":          {taggedNIC("network", "<source network='lan'/>"), old, false, `network "lan"`},
		"the last that cannot":                  {taggedNIC("network", "<source network='lan'/>"), young - 1, false, `network "lan"`},
		"the first that can":                    {taggedNIC("network", "<source network='lan'/>"), young, false, ""},
		"no VLAN":                               {"<interface type='network'><source network='lan'/><vlan/></interface>", old, false, ""},
		"a network on Open vSwitch":             {taggedNIC("network", "<source network='switch'/>"), old, false, ""},
		"a port on Open vSwitch":                {taggedNIC("network", "<source network='lan'/>"+vport("openvswitch")), old, false, ""},
		"a portgroup on Open vSwitch":           {taggedNIC("network", "<source network='groups' portgroup='tagged'/>"), old, false, ""},
		"another portgroup":                     {taggedNIC("network", "<source network='groups' portgroup='plain'/>"), old, false, `network "groups"`},
		"the portgroup of those that name none": {taggedNIC("network", "<source network='groups'/>"), old, false, ""},
		"a network that nobody knows":           {taggedNIC("network", "<source network='x'/>"), old, true, ""},
		"a bridge":                              {taggedNIC("bridge", "<source bridge='br0'/>"), old, false, `bridge "br0"`},
		"a bridge with another port":            {taggedNIC("bridge", "<source bridge='br0'/>"+vport("midonet")), old, false, `an interface of the type "bridge"`},
		"a bridge of Open vSwitch":              {taggedNIC("bridge", "<source bridge='br0'/>"+vport("openvswitch")), old, false, ""},
		"a link":                                {taggedNIC("direct", "<source dev='eth0' mode='bridge'/>"), old, false, `network device "eth0"`},
		"a card":                                {taggedNIC("direct", "<source dev='eth0' mode='passthrough'/>"), old, false, ""},
		"QEMU's own network":                    {taggedNIC("user", ""), old, false, `an interface of the type "user"`},
		"a bare tap":                            {taggedNIC("ethernet", ""), old, false, `an interface of the type "ethernet"`},
		"a part of a card":                      {taggedNIC("hostdev", "<source><address type='pci' domain='0' bus='0' slot='3' function='0'/></source>"), old, false, ""},
		"what was not tried":                    {taggedNIC("vhostuser", "<source type='unix' path='/s' mode='client'/>"), old, false, ""},
	} {
		host := well()
		host.daemon = c.daemon
		host.links["switch"] = virt.NetworkLinks{Tagging: true}
		host.links["groups"] = virt.NetworkLinks{PortGroups: []string{"tagged", "plain"}, TagGroups: []string{"tagged", ""}}
		for name := range host.links {
			host.networks[name] = virt.NetworkStanding{Standing: settledStanding}
		}
		if c.broken {
			host.broken = errors.New("denied")
		}
		n, err := needsOf(domainWith("", c.nic))
		if err != nil {
			t.Fatal(err)
		}
		check := &bootCheck{host: host, domain: "d"}
		for _, nic := range n.interfaces {
			check.checkInterface(context.Background(), nic)
		}
		var want []string
		if c.on != "" {
			want = []string{fmt.Sprintf("interface 52:54:00:00:00:0a: libvirt %s starts no guest with a VLAN (42, 43) on %s "+
				"(remove the VLAN, or connect the interface to Open vSwitch or to a card with SR-IOV)", c.daemon, c.on)}
		}
		if got := check.problems(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
}

func TestRefusalOfAVLAN(t *testing.T) {
	host := barren()
	host.daemon = 9000000
	old := domainWith("", nicXML("01", "lan"))
	now := domainWith("", nicXML("01", "lan")+taggedNIC("network", "<source network='lan'/>"))
	found, err := refusedIn(context.Background(), host, flight{name: "d", old: old}, now)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if again, err := refusedIn(context.Background(), host, flight{name: "d", old: now}, now); err != nil || len(again) > 0 {
		t.Errorf("what was there already is refused: %v, %v", again, err)
	}
	if again, err := refusedIn(context.Background(), host, flight{name: "d", old: now, starts: true}, now); err != nil || len(again) != 1 {
		t.Errorf("a restart with it is not refused: %v, %v", again, err)
	}
	definition, err := spec.Domain().Decode(now)
	if err != nil {
		t.Fatal(err)
	}
	p := found[0].refusal(context.Background(), host, "d", definition)
	if got, want := p.Path.String(), "devices.interfaces[52:54:00:00:00:0a].vlan"; got != want {
		t.Errorf("it is about %s, not %s", got, want)
	}
	for _, part := range []string{"It is about devices.interfaces[52:54:00:00:00:0a].vlan.", "The way out: connect the interface to a bridge of Open vSwitch", "since libvirt 11.0.0", "Nothing was changed."} {
		if !strings.Contains(p.Detail, part) {
			t.Errorf("%q is not in %q", part, p.Detail)
		}
	}
	if want := `Domain "d" cannot start as configured: libvirt 9.0.0 starts no guest with a VLAN (42, 43) on network "lan"`; p.Summary != want {
		t.Errorf("got %q, want %q", p.Summary, want)
	}
}

// Where a VLAN is possible it waits for the next start, whatever of it changes.
func TestVLANsWait(t *testing.T) {
	definition, err := spec.Domain().Decode(domainWith("", taggedNIC("bridge", "<source bridge='ovs'/><virtualport type='openvswitch'/>")))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []string{"tags[0].id", "tags[0].native_mode", "trunk"} {
		c := change.Change{Path: tree.ParsePath("devices.interfaces[0].vlan." + leaf), Desired: tree.StringValue("x")}
		if class, reason := classify(c, newSituation(true, definition, definition)); class != change.ClassNextBoot || !strings.Contains(reason, "Open vSwitch") {
			t.Errorf("%s: %v, %q", leaf, class, reason)
		}
	}
}
