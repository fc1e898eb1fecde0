package domain

import (
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// interfacePlug are the network interfaces. They come and go, and change the
// network that they are connected to, at any time. What the guest sees of the
// card itself was told to QEMU when it was plugged in.
var interfacePlug = &plug{
	noun: "interface",
	list: "devices.interfaces",
	in: func(nic tree.Value, _ situation) string {
		if source := sourceOf(nic); !connectable[source] {
			return fmt.Sprintf("An interface with the source %q is connected when the guest starts.", source)
		}
		if model := nic.At("model.type").Str(); cards[model] == noSeat && model != "" {
			return fmt.Sprintf("An interface of the model %q is plugged in when the guest starts.", model)
		}
		return ""
	},
	seat:  func(nic tree.Value, _ situation) seat { return cards[nic.At("model.type").Str()] },
	field: interfaceField,
	fit:   withItsNetwork,
}

// cards are the models of interfaces that can be plugged into a running guest.
// The one without a name is libvirt's choice for a PC.
var cards = map[string]seat{
	"virtio": express, "virtio-transitional": express, "virtio-non-transitional": express, "e1000e": express, "igb": express,
	"": conventional, "e1000": conventional, "rtl8139": conventional, "pcnet": conventional, "ne2k_pci": conventional,
}

// withItsNetwork says which network an interface is connected to as the
// definition would. Of a running guest, libvirt shows the bridge behind the
// network instead, and told that, it would forget the network.
func withItsNetwork(d *device, nic tree.Value) tree.Value {
	moved := slices.ContainsFunc(d.changes, func(c change.Change) bool { return c.Path[3].Attr == "source" })
	if moved || d.form.IsNull() {
		return nic
	}
	return nic.With("source", d.form.Attr("source"))
}

var interfaceAspect = interfacePlug.aspect()

// connectable are the sources of interfaces that can be plugged in live.
var connectable = map[string]bool{"network": true, "bridge": true, "user": true, "": true}

// sourceOf names the kind of network that an interface is connected to.
func sourceOf(nic tree.Value) string {
	source := nic.Attr("source")
	for _, kind := range source.Names() {
		if !source.Attr(kind).IsNull() {
			return kind
		}
	}
	return ""
}

func interfaceField(path string, nic tree.Value, _ change.Change) string {
	switch {
	case within(path, "link"), within(path, "filter_ref"), within(path, "coalesce"), within(path, "port_options"), within(path, "bandwidth"):
		return ""
	case within(path, "source.network"), within(path, "source.bridge"):
		if from := sourceOf(nic); from != "network" && from != "bridge" {
			return fmt.Sprintf("libvirt cannot connect a running interface with the source %q to another network.", from)
		}
		return ""
	case within(path, "trust_guest_rx_filters"):
		return "libvirt accepts the change for a running guest and does nothing."
	case within(path, "vlan"):
		return "libvirt may be able to do it while the guest runs, on Open vSwitch. The provider waits for the next start all the same: nobody has tried it yet on a host that has that."
	case within(path, "source"):
		return "libvirt connects a running interface only to networks and bridges."
	}
	return "It is told to QEMU when the interface is plugged in."
}
