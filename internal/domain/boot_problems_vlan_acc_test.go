package domain

import (
	"context"
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccBootProblems_vlans(t *testing.T) {
	acctest.Case(t, "a VLAN that this libvirt cannot tag shows before the next start: on networks, bridges, links and QEMU's own network; where it may be possible, nothing is said")
	_, host := kindOf(t)
	daemon, err := host.View().Daemon(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if daemon >= tagsOnBridges {
		acctest.Unavailable(t, "this libvirt tags on the bridges of Linux")
	}
	const name, mac = "boottags", "52:54:00:b0:07:0a"
	onHost(t, "ip", "link", "add", "boottagbr", "type", "bridge")
	defer onHost(t, "ip", "link", "del", "boottagbr")
	for _, xml := range []string{
		`<network><name>boottagged</name><forward mode='bridge'/><bridge name='boottagbr'/><portgroup name='plain'/><portgroup name='switch'><virtualport type='openvswitch'/></portgroup></network>`,
		`<network><name>boottagtap</name><forward mode='bridge'><interface dev='boottagbr'/></forward></network>`,
		`<network><name>boottagcard</name><forward mode='passthrough'><interface dev='boottagbr'/></forward></network>`,
	} {
		defineXML(t, "net-define", xml)
	}
	for _, network := range []string{"boottagged", "boottagtap", "boottagcard"} {
		lab.Virsh(t, "net-start", network)
		defer lab.Virsh(t, "net-undefine", network)
		defer lab.Virsh(t, "net-destroy", network)
	}
	redefine := func(nic string) {
		lab.Virsh(t, "undefine", name)
		defineOff(t, name, "", nic)
	}
	defineOff(t, name, "", "")
	defer lab.Virsh(t, "undefine", name)
	nic := func(typ, more string) string {
		return fmt.Sprintf(`<interface type='%s'><mac address='%s'/>%s<vlan><tag id='42'/></vlan><model type='virtio'/></interface>`, typ, mac, more)
	}
	on := func(typ, more, what string) trouble {
		return trouble{
			name: typ + " " + more, cause: func() { redefine(nic(typ, more)) }, mend: func() { redefine("") },
			want: []string{fmt.Sprintf("interface %s: libvirt %s starts no guest with a VLAN (42) on %s (remove the VLAN, or connect the interface to Open vSwitch or to a card with SR-IOV)", mac, daemon, what)},
		}
	}
	tell(t, name, []trouble{
		on("network", "<source network='default'/>", `network "default"`),
		on("network", "<source network='boottagged'/>", `network "boottagged"`),
		on("network", "<source network='boottagged' portgroup='plain'/>", `network "boottagged"`),
		on("network", "<source network='boottagtap'/>", `network "boottagtap"`),
		on("bridge", "<source bridge='boottagbr'/>", `bridge "boottagbr"`),
		on("bridge", "<source bridge='boottagbr'/><virtualport type='midonet'><parameters interfaceid='0b1d2f3a-1111-4222-8333-444455556666'/></virtualport>", `an interface of the type "bridge"`),
		on("direct", "<source dev='boottagbr' mode='bridge'/>", `network device "boottagbr"`),
		on("user", "", `an interface of the type "user"`),
		on("ethernet", "", `an interface of the type "ethernet"`),
	})
	for _, possible := range []string{
		nic("network", "<source network='boottagged' portgroup='switch'/>"),
		nic("network", "<source network='boottagged'/><virtualport type='openvswitch'/>"),
		nic("network", "<source network='boottagcard'/>"),
		nic("bridge", "<source bridge='boottagbr'/><virtualport type='openvswitch'/>"),
		nic("direct", "<source dev='boottagbr' mode='passthrough'/>"),
	} {
		redefine(possible)
		if got := problemsOf(t, name); len(got) > 0 {
			t.Errorf("%s: %q", possible, got)
		}
	}
}
