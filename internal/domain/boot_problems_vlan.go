package domain

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// libvirt takes a VLAN on whatever an interface is connected to into a
// definition, and refuses at the next start what it cannot tag.

// tagsOnBridges is the first libvirt that has the bridges of Linux tag, too. One
// before it leaves that to Open vSwitch and to cards with SR-IOV.
const tagsOnBridges = virt.Version(11000000)

// checkVLAN looks at an interface that is to have a VLAN of its own.
func (c *bootCheck) checkVLAN(ctx context.Context, place string, n interfaceNeed) {
	if len(n.untagged) == 0 {
		return
	}
	if n.network != "" {
		if links, err := c.host.NetworkLinks(ctx, n.network); err != nil || links.Tags(n.portGroup) {
			return
		}
	}
	daemon, err := c.host.Daemon(ctx)
	if err != nil || daemon >= tagsOnBridges {
		return
	}
	what := fmt.Sprintf("libvirt %s starts no guest with a VLAN (%s) on %s", daemon, strings.Join(n.untagged, ", "), n.on())
	c.say(finding{
		ref: n.at("vlan", ""), grade: missing, what: what,
		wayOut: fmt.Sprintf("connect the interface to a bridge of Open vSwitch (virtual_port) or to a card with SR-IOV, or let the host tag (a bridge on a link such as eth0.42) and remove vlan; since libvirt %s the bridges of Linux do it, too", tagsOnBridges),
	}, "%s: %s (remove the VLAN, or connect the interface to Open vSwitch or to a card with SR-IOV)", place, what)
}

// on says what the interface is connected to.
func (n interfaceNeed) on() string {
	switch {
	case n.network != "":
		return fmt.Sprintf("network %q", n.network)
	case n.link != "":
		return fmt.Sprintf("%s %q", n.linkNoun, n.link)
	}
	return fmt.Sprintf("an interface of the type %q", n.connection)
}

// untaggedTags are the numbers of the interface's own VLANs, if the interface is
// known to be none that can be tagged.
func (i interfaceDocument) untaggedTags() (tags []string) {
	switch i.Type {
	case "network", "bridge", "user", "ethernet":
	case "direct":
		if i.Source.Mode == "passthrough" {
			return nil
		}
	default:
		return nil
	}
	if i.VirtualPort.Type == virt.OpenVSwitch {
		return nil
	}
	for _, tag := range i.VLAN.Tags {
		tags = append(tags, tag.ID)
	}
	return tags
}
