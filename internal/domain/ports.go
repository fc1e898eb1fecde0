package domain

import (
	"maps"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// seat is the kind of place on the PCI bus that a device needs.
type seat int

const (
	noSeat       seat = iota // it sits on another bus
	express                  // a port of PCI Express, or a slot
	conventional             // a slot
)

// place is a place on the PCI bus of a guest.
type place struct{ domain, bus, slot int64 }

// ports are the places at which a device can be plugged into a running guest:
// free there and in the definition, so that the device has one address for both.
//
// A guest of the chipset q35 has as many ports as it was started with. libvirt
// gives it one or a few to spare; more of them come only with
// devices.controllers, and with the next start.
type ports struct {
	guest, definition tree.Value
	counted           bool           // what follows is known
	open, occupied    map[place]bool // of the guest; of a bus only its number is told
	express, slots    []place
	shared            bool // both kinds of device sit in the slots
}

// slotsOf are the controllers with slots for devices that can be plugged in.
var slotsOf = map[string]bool{"pci-root": true, "pci-bridge": true, "pcie-to-pci-bridge": true, "dmi-to-pci-bridge": false}

// portsOf are the controllers that are a port for one device.
var portsOf = map[string]bool{"pcie-root-port": true, "pcie-switch-downstream-port": true}

func (p *ports) count() {
	if p.counted {
		return
	}
	p.counted = true
	p.open, p.occupied = map[place]bool{}, occupied(p.guest)
	taken, defined := occupied(p.definition), map[int64]string{}
	maps.Copy(taken, p.occupied)
	for _, c := range p.definition.At("devices.controllers").Elems() {
		if c.Attr("type").Str() == "pci" {
			defined[whole(c.Attr("index"))] = c.Attr("model").Str()
		}
	}
	for _, c := range p.guest.At("devices.controllers").Elems() {
		index, model := whole(c.Attr("index")), c.Attr("model").Str()
		if c.Attr("type").Str() != "pci" || defined[index] != model || c.At("pci.target.hotplug").Str() == "off" {
			continue
		}
		p.shared = p.shared || model == "pci-root"
		p.open[place{bus: index}] = portsOf[model] || slotsOf[model]
		switch {
		case portsOf[model]:
			if at := (place{bus: index}); !taken[at] {
				p.express = append(p.express, at)
			}
		case slotsOf[model]:
			for slot := range int64(31) {
				// The chipset and its graphics card have the first ones of the root.
				at := place{bus: index, slot: slot + 1}
				if !taken[at] && (model != "pci-root" || at.slot > 2) {
					p.slots = append(p.slots, at)
				}
			}
		}
	}
	byBus := func(a, b place) int { return int(a.bus - b.bus) }
	slices.SortStableFunc(p.express, byBus)
	slices.SortStableFunc(p.slots, byBus)
}

// occupied are the places that devices have.
func occupied(definition tree.Value) map[place]bool {
	out := map[place]bool{}
	definition.Attr("devices").Walk(func(at tree.Path, v tree.Value) bool {
		if len(at) == 0 || at[len(at)-1].Attr != "address" {
			return true
		}
		if pci := v.Attr("pci"); pci.IsKnown() {
			out[placeOf(pci)] = true
		}
		return false
	})
	return out
}

func placeOf(pci tree.Value) place {
	return place{whole(pci.Attr("domain")), whole(pci.Attr("bus")), whole(pci.Attr("slot"))}
}

// releases says whether a device can leave its address while the guest runs.
func (p *ports) releases(pci tree.Value) bool {
	p.count()
	return p.open[place{bus: whole(pci.Attr("bus"))}] && whole(pci.Attr("function")) == 0 && pci.Attr("multi_function").Str() != "on"
}

// reserve says whether the guest has this place for a device that comes, with
// nothing in it, and keeps others out of it.
func (p *ports) reserve(pci tree.Value) bool {
	at := placeOf(pci)
	if !p.releases(pci) || p.occupied[at] {
		return false
	}
	p.occupied[at] = true
	isIt := func(other place) bool { return other == at }
	p.express, p.slots = slices.DeleteFunc(p.express, isIt), slices.DeleteFunc(p.slots, isIt)
	return true
}

// take finds a place for a device, and takes it.
func (p *ports) take(s seat) (at place, found bool) {
	p.count()
	from := &p.express
	if s == conventional || p.shared {
		from = &p.slots
	}
	if len(*from) == 0 {
		return place{}, false
	}
	at = (*from)[0]
	*from = (*from)[1:]
	return at, true
}

// address is the place in a definition.
func (p place) address() tree.Value {
	return tree.ObjectValue(map[string]tree.Value{"pci": tree.ObjectValue(map[string]tree.Value{
		"domain": tree.IntValue(p.domain), "bus": tree.IntValue(p.bus), "slot": tree.IntValue(p.slot), "function": tree.IntValue(0),
	})})
}
