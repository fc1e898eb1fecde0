package domain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A plug says how the devices of one list come into a running guest, change
// there and leave it. Each kind of device has one, in a file of its own
// (disks.go, interfaces.go, …); what they have in common is here.
//
// The definition comes first, as with every change: it gives a new device its
// addresses. The guest gets the device as the definition has it then, so that
// both agree. A device that leaves is found in the guest by what the definition
// has of it, and named to libvirt by the alias that it has there: two devices
// that are alike are not mixed up.
type plug struct {
	noun string // of one device: "disk"
	list string // its list: "devices.disks"

	// in says why a device cannot be plugged into the running guest, "" if it can.
	// out says it of taking one out; nil: what goes in comes out.
	in, out func(device tree.Value, now situation) string
	// inherent says of a device that every guest has it, named or not. nil: none is.
	inherent func(device tree.Value) bool
	// field says why a change of a device cannot be made in the running guest, ""
	// if it can. path is the field's, below the device. nil: it never can.
	field func(path string, device tree.Value, c change.Change) string
	// seat is what the device needs on the PCI bus. nil: nothing.
	seat func(device tree.Value, now situation) seat
	// change makes some changes by a call of their own, and returns the others,
	// which libvirt makes by updating the device. nil: it makes none.
	change func(ctx context.Context, a *apply, d *device) ([]change.Change, error)
	// fit adapts the device of the guest, as it is to be after the update: what
	// libvirt shows of a guest is not always what it wants to be told. nil: it is
	// right as it is.
	fit func(d *device, becomes tree.Value) tree.Value
	// collides says why a device cannot come while another one is in the guest,
	// beside the place and the identity, which are looked at for all. nil: never.
	collides func(device, other tree.Value) string
	// stays notes what else the guest keeps as long as it keeps a device that it
	// is to let go of. nil: nothing, and a guest that says no is an error.
	stays func(a *apply)
	// left is called when devices have gone. nil: nothing follows.
	left func(ctx context.Context, a *apply) error
}

// device is one of a running guest that changes.
type device struct {
	plug    *plug
	guest   tree.Value      // as the guest has it, with its alias
	form    tree.Value      // as the guest has it, in the form of a definition
	wanted  tree.Value      // as the definition has it now
	changes []change.Change // what is to reach the guest
}

// aspect makes an aspect of a plug.
func (p *plug) aspect() *aspect {
	return &aspect{name: p.noun, owns: []string{p.list}, rule: p.rule, live: p.live}
}

const atStart = "The guest takes it from the definition when it starts."

func (p *plug) rule(c change.Change, now situation) (change.Class, string) {
	var reason string
	switch pattern := c.Path.Pattern(); {
	case pattern == p.list:
		reason = atStart
	case pattern == p.list+"[]" && p.inherent != nil && (p.inherent(c.Desired) || p.inherent(c.Actual)):
		return change.ClassNone, ""
	case pattern == p.list+"[]" && c.Desired.IsNull():
		reason = p.leaves(c, now)
	case pattern == p.list+"[]" && c.Live:
		reason = p.comes(c.Baseline, now) // the definition has it, with its addresses
	case pattern == p.list+"[]":
		reason = p.comes(c.Desired, now)
	case now.active && deviceIn(now.guest, c.Path).IsNull():
		reason = fmt.Sprintf("The guest gets the %s at its next start.", p.noun)
	case p.field == nil:
		reason = fmt.Sprintf("libvirt cannot change a %s that is plugged in.", p.noun)
	default:
		reason = p.field(strings.TrimPrefix(pattern, p.list+"[]."), deviceIn(now.guest, c.Path), c)
	}
	if reason != "" {
		return change.ClassNextBoot, reason
	}
	return change.ClassLive, ""
}

// comes says why a device cannot be plugged into the guest as it is. What is not
// known yet does not speak against it: an apply asks again.
func (p *plug) comes(device tree.Value, now situation) string {
	if device.IsUnknown() {
		return "What device it is is not known yet."
	}
	if reason := p.in(device, now); reason != "" && !undecided(device) {
		return reason
	}
	if !now.active {
		return ""
	}
	if reason := p.collision(device, now); reason != "" {
		return reason
	}
	s := p.seatOf(device, now)
	if s == noSeat {
		return ""
	}
	if reason := isDeaf(now.guest); reason != "" {
		return reason
	}
	if pci := device.At("address.pci"); !pci.IsNull() {
		if !now.ports.reserve(pci) {
			return fmt.Sprintf("The running guest has no such PCI port that takes devices, or something else in it; the %s gets its place at the next start.", p.noun)
		}
		return ""
	}
	if _, found := now.ports.take(s); !found {
		if s == conventional && !now.ports.shared {
			return fmt.Sprintf("The running guest has no free slot for a %s of this kind; one comes with a controller of the model pcie-to-pci-bridge, at the next start.", p.noun)
		}
		return fmt.Sprintf("The running guest has no free PCI port for another %s; more of them come with controllers of the model pcie-root-port, at the next start.", p.noun)
	}
	return ""
}

// keepReplaced leaves a device in the guest while another one of its list
// cannot be plugged in: it may be the one that takes its place, and a guest with
// neither of them is worse off than with the old one.
func keepReplaced(changes []change.Change, costs []cost) {
	waits := map[string]bool{}
	for i, c := range changes {
		if p := plugOf(c.Path); p != nil && len(c.Path) == 3 && !c.Desired.IsNull() && !c.Reached && costs[i].class == change.ClassNextBoot {
			waits[p.list] = true
		}
	}
	for i, c := range changes {
		if p := plugOf(c.Path); p != nil && c.Kind == change.Removal && waits[p.list] && costs[i].class == change.ClassLive {
			costs[i] = cost{change.ClassNextBoot, fmt.Sprintf("It leaves together with the arrival of another %s, which comes with the next start.", p.noun)}
		}
	}
}

// undecided says whether a value is not known yet that decides where a device
// goes.
func undecided(device tree.Value) bool {
	for _, name := range []string{"type", "bus", "model", "device", "mode", "driver", "target", "address"} {
		if device.Attr(name).HasUnknown() {
			return true
		}
	}
	return device.Attr("source").IsUnknown()
}

// collision says why a device cannot come while the guest still has another
// one. That may be about to leave; but a device that is wanted must not go before
// another one is there.
func (p *plug) collision(device tree.Value, now situation) string {
	if order := device.At("boot.order"); order.IsKnown() {
		for _, list := range now.guest.Attr("devices").Names() {
			for _, other := range now.guest.At("devices." + list).Elems() {
				if tree.Equal(other.At("boot.order"), order) {
					return fmt.Sprintf("Another device of the running guest has the place %s in the order of boot.", order)
				}
			}
		}
	}
	for _, other := range now.guest.At(p.list).Elems() {
		if p.collides == nil {
			break
		}
		if reason := p.collides(device, other); reason != "" {
			return reason
		}
	}
	return ""
}

func (p *plug) leaves(c change.Change, now situation) string {
	out := p.out
	if out == nil {
		out = p.in
	}
	device := c.Guest
	if device.IsNull() {
		device = c.Actual
	}
	if now.active && !c.Guest.IsNull() && !isSameDevice(c.Actual, c.Guest) {
		return fmt.Sprintf("The guest has another %s in its place, which nobody asked to take out.", p.noun)
	}
	if now.active && p.seatOf(device, now) != noSeat {
		if reason := isDeaf(now.guest); reason != "" {
			return reason
		}
		if pci := device.At("address.pci"); !pci.IsNull() && !now.ports.releases(pci) {
			return fmt.Sprintf("The %s sits in a part of the PCI bus that devices cannot leave while the guest runs.", p.noun)
		}
	}
	return out(device, now)
}

// isSameDevice says whether a device of the guest is the one that a definition
// has, and not another one under its name or in its likeness.
func isSameDevice(definition, guest tree.Value) bool {
	for _, bus := range []string{"pci", "usb", "drive", "virtio_serial"} {
		a, b := definition.At("address."+bus), guest.At("address."+bus)
		if a.IsKnown() && b.IsKnown() && !tree.Equal(a, b) {
			return false
		}
	}
	same := true
	for _, branch := range []string{"file.file", "block.dev", "volume", "dir.dir", "network", "vhost_user"} {
		a, b := definition.At("source."+branch), guest.At("source."+branch)
		if a.Kind() == tree.String && b.Kind() == tree.String {
			same = same && a.Str() == b.Str()
		}
	}
	return same
}

// isDeaf says why a guest does not notice devices that come and go on its PCI
// bus, "" if it does: a PC is told by ACPI.
func isDeaf(guest tree.Value) string {
	if arch := guest.At("os.type_arch").Str(); arch != "x86_64" && arch != "i686" || guest.At("features.acpi").Bool() {
		return ""
	}
	return "The running guest has no ACPI (features.acpi), by which it would be told of the device."
}

func (p *plug) seatOf(device tree.Value, now situation) seat {
	if p.seat == nil {
		return noSeat
	}
	return p.seat(device, now)
}

// deviceIn finds the device of a guest that a path leads into, null if it is
// not there.
func deviceIn(guest tree.Value, p tree.Path) tree.Value {
	for i, step := range p {
		if step.Attr != "" {
			continue
		}
		list := guest.Get(p[:i])
		for _, e := range list.Elems() {
			if step.Key != "" && slices.Contains(keysOf(p[:i+1].Pattern(), e), step.Key) {
				return e
			}
		}
		at := step.Index
		if step.Key != "" {
			n, err := strconv.Atoi(step.Key)
			if err != nil {
				return tree.NullValue // the one of that identity is not there
			}
			at = n
		}
		if at < 0 || at >= list.Len() {
			return tree.NullValue
		}
		return list.Elems()[at]
	}
	return tree.NullValue
}

// hasController says whether the guest has a controller of a type, so that a
// device can be plugged into it.
func hasController(guest tree.Value, typ string) bool {
	return slices.ContainsFunc(guest.At("devices.controllers").Elems(), func(c tree.Value) bool {
		return c.Attr("type").Str() == typ && c.Attr("model").Str() != "none"
	})
}

func plugOf(p tree.Path) *plug {
	for _, plug := range plugs {
		if within(p.Pattern(), plug.list) {
			return plug
		}
	}
	return nil
}

// hasPlace says whether a change is a device that comes with its PCI address.
func hasPlace(c change.Change) bool {
	return len(c.Path) == 3 && c.Kind != change.Removal && !c.Desired.At("address.pci").IsNull()
}
