package domain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
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
	// field says why a change of a device cannot be made in the running guest, ""
	// if it can. path is the field's, below the device. nil: it never can.
	field func(path string, device tree.Value, c change.Change) string
	// seat is what the device needs on the PCI bus. nil: nothing.
	seat func(device tree.Value, now situation) seat
	// change makes some changes by a call of their own, and returns the others,
	// which libvirt makes by updating the device. nil: it makes none.
	change func(ctx context.Context, a *apply, d *device) ([]change.Change, error)
	// fit adapts the device of the guest that is about to be updated. nil: it is
	// right as it is.
	fit func(was, device, wanted tree.Value) tree.Value
}

// device is one of a running guest that changes.
type device struct {
	plug    *plug
	guest   tree.Value      // as the guest has it, with its alias
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
	case pattern == p.list+"[]" && c.Desired.IsNull():
		reason = p.leaves(c, now)
	case pattern == p.list+"[]" && c.Live:
		reason = p.comes(c.Baseline, now) // the definition has it, with its addresses
	case pattern == p.list+"[]":
		reason = p.comes(c.Desired, now)
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

func (p *plug) comes(device tree.Value, now situation) string {
	if device.HasUnknown() {
		return "Whether it can be plugged in depends on a value that is not known yet."
	}
	if reason := p.in(device, now); reason != "" {
		return reason
	}
	s := p.seatOf(device, now)
	if s == noSeat || !now.active {
		return ""
	}
	if reason := isDeaf(now.guest); reason != "" {
		return reason
	}
	if pci := device.At("address.pci"); !pci.IsNull() {
		if !now.ports.fits(placeOf(pci)) {
			return fmt.Sprintf("The running guest has no such PCI port, or something else in it; the %s gets its place at the next start.", p.noun)
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

func (p *plug) leaves(c change.Change, now situation) string {
	out := p.out
	if out == nil {
		out = p.in
	}
	device := c.Guest
	if device.IsNull() {
		device = c.Actual
	}
	if p.seatOf(device, now) != noSeat && now.active {
		if reason := isDeaf(now.guest); reason != "" {
			return reason
		}
	}
	return out(device, now)
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
		if n, err := strconv.Atoi(step.Key); err == nil {
			at = n
		}
		if at >= 0 && at < list.Len() {
			return list.Elems()[at]
		}
		return tree.NullValue
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

// seatDevices gives the devices that are about to be plugged in, and have no
// address yet, one that is free in the guest and in the definition: libvirt would
// look at the definition alone.
func (a *apply) seatDevices() {
	now := newSituation(a.before.active(), a.before.running(), a.wanted)
	for _, c := range a.live {
		p := plugOf(c.Path)
		if p == nil || len(c.Path) != 3 || c.Kind == change.Removal {
			continue
		}
		device := a.wanted.Get(c.Path)
		if s := p.seatOf(device, now); s != noSeat && device.Attr("address").IsNull() {
			if at, found := now.ports.take(s); found {
				a.wanted = a.wanted.Set(c.Path.Attr("address"), at.address())
			}
		}
	}
}

func plugOf(p tree.Path) *plug {
	for _, plug := range plugs {
		if within(p.Pattern(), plug.list) {
			return plug
		}
	}
	return nil
}

// live takes devices out of the guest, changes those that stay, and plugs new
// ones in.
func (p *plug) live(ctx context.Context, a *apply) error {
	var in, out []change.Change
	changed := map[int][]change.Change{}
	var order []int
	for _, c := range a.live {
		switch at := c.Path; {
		case !within(at.Pattern(), p.list) || len(at) < 3:
		case len(at) == 3 && c.Kind == change.Removal:
			out = append(out, c)
		case len(at) == 3:
			in = append(in, c)
		default:
			i := at[2].Index
			if changed[i] == nil {
				order = append(order, i)
			}
			changed[i] = append(changed[i], c)
		}
	}
	for _, c := range out {
		if err := p.takeOut(ctx, a, c); err != nil {
			return err
		}
	}
	for _, i := range order {
		if err := p.update(ctx, a, i, changed[i]); err != nil {
			return err
		}
	}
	for _, c := range in {
		if err := p.plugIn(ctx, a, c); err != nil {
			return err
		}
	}
	return nil
}

// shown is a document of a domain with its tree.
type shown struct {
	xml string
	raw tree.Value
}

func (a *apply) show(ctx context.Context, flags virt.XMLFlags) (s shown, err error) {
	if s.xml, err = a.before.dom.XML(ctx, flags|virt.XMLSecure); err != nil {
		return s, err
	}
	s.raw, err = spec.Domain().Decode(s.xml)
	return s, err
}

// guestNow is what runs, with the aliases of its devices.
func (a *apply) guestNow(ctx context.Context) (shown, error) { return a.show(ctx, 0) }

// partner finds the device of one list of devices in another one, -1 if it is
// not there.
func (a *apply) partner(list tree.Path, from tree.Value, i int, in tree.Value) int {
	return a.k.rules.Pairs(list.Pattern(), from.Get(list), in.Get(list))[i]
}

// letGoTime is how long an apply waits for a guest to let go of a device.
// libvirt itself returns after five seconds.
const letGoTime = 20 * time.Second

// takeOut has the guest let go of a device. A guest may refuse, or take its
// time: the definition has lost the device then, and the guest waits.
func (p *plug) takeOut(ctx context.Context, a *apply, c change.Change) error {
	list := c.Path[:2]
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	i := a.partner(list, a.before.definition, c.Path[2].Index, guest.raw)
	if i < 0 {
		return nil // somebody did it already
	}
	alias := guest.raw.Get(list.Elem(i, "")).At("alias.name").Str()
	xml, err := spec.Domain().Element(guest.xml, list.Elem(i, ""))
	if err != nil {
		return err
	}
	back := func(ctx context.Context) error { return p.putBack(ctx, a, list, alias, xml) }
	err = a.try(ctx, func(ctx context.Context) error { return a.before.dom.DetachDeviceAlias(ctx, alias, virt.AffectLive) }, back)
	if err != nil {
		return fmt.Errorf("take %s out of the guest: %w", c.Path, err)
	}
	gone, err := waitFor(ctx, letGoTime, func(ctx context.Context) (bool, error) {
		there, err := a.hasAlias(ctx, list, alias)
		return !there, err
	})
	if err != nil || gone {
		return err
	}
	a.late = append(a.late, c.Path)
	a.warnings = append(a.warnings, kind.Problem{
		Path: c.Path[:2], Summary: fmt.Sprintf("The guest of %q has not let go of %s yet", a.before.name, c.Path),
		Detail: fmt.Sprintf("libvirt asked it to, and it did not within %s: it may be using the device, or have no driver that listens. The definition has lost the device, so it is gone after the guest's next start at the latest; status.pending lists it until then.", letGoTime),
	})
	return nil
}

func (a *apply) hasAlias(ctx context.Context, list tree.Path, alias string) (bool, error) {
	guest, err := a.guestNow(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(guest.raw.Get(list).Elems(), func(e tree.Value) bool { return e.At("alias.name").Str() == alias }), nil
}

// putBack plugs a device in again that was taken out, if it is out.
func (p *plug) putBack(ctx context.Context, a *apply, list tree.Path, alias, xml string) error {
	there, err := a.hasAlias(ctx, list, alias)
	if err != nil || there {
		return err
	}
	return a.before.dom.AttachDevice(ctx, xml, virt.AffectLive)
}

// plugIn gives the guest a device as the definition has it.
func (p *plug) plugIn(ctx context.Context, a *apply, c change.Change) error {
	list := c.Path[:2]
	now, err := a.show(ctx, virt.XMLInactive)
	if err != nil {
		return err
	}
	i := a.partner(list, a.wanted, c.Path[2].Index, now.raw)
	if i < 0 {
		return fmt.Errorf("plug %s in: libvirt left it out of the definition", c.Path)
	}
	xml, err := spec.Domain().Element(now.xml, list.Elem(i, ""))
	if err != nil {
		return err
	}
	back := func(ctx context.Context) error { return a.unplug(ctx, list, now.raw, i) }
	if err := a.try(ctx, func(ctx context.Context) error { return a.before.dom.AttachDevice(ctx, xml, virt.AffectLive) }, back); err != nil {
		return fmt.Errorf("plug %s in: %w", c.Path, err)
	}
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	if a.partner(list, now.raw, i, guest.raw) < 0 {
		return fmt.Errorf("plug %s in: libvirt accepted it, and the guest does not have it", c.Path)
	}
	return nil
}

// unplug takes out what was plugged in.
func (a *apply) unplug(ctx context.Context, list tree.Path, definition tree.Value, i int) error {
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	j := a.partner(list, definition, i, guest.raw)
	if j < 0 {
		return nil
	}
	alias := guest.raw.Get(list.Elem(j, "")).At("alias.name").Str()
	if err := a.before.dom.DetachDeviceAlias(ctx, alias, virt.AffectLive); err != nil {
		return err
	}
	gone, err := waitFor(ctx, letGoTime, func(ctx context.Context) (bool, error) {
		there, err := a.hasAlias(ctx, list, alias)
		return !there, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("the guest has not let go of %s yet", list.Elem(i, ""))
	}
	return err
}

// update changes a device of the guest: its element with exactly those fields
// changed, so that what only the guest knows of it stays.
func (p *plug) update(ctx context.Context, a *apply, i int, changes []change.Change) error {
	list := changes[0].Path[:2]
	here := changes[0].Path[:3]
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	j := a.partner(list, a.wanted, i, guest.raw)
	if j < 0 {
		return fmt.Errorf("change %s: the guest does not have it", here)
	}
	at := list.Elem(j, "")
	d := &device{plug: p, guest: guest.raw.Get(at), wanted: a.wanted.Get(here), changes: changes}
	if p.change != nil {
		if changes, err = p.change(ctx, a, d); err != nil || len(changes) == 0 {
			return err
		}
	}
	now := d.guest
	for _, c := range changes {
		now = setField(now, c, d.wanted)
	}
	if p.fit != nil {
		now = p.fit(d.guest, now, d.wanted)
	}
	xml, err := spec.Domain().Edit(guest.xml, guest.raw, guest.raw.Set(at, now))
	if err != nil {
		return err
	}
	was, err := spec.Domain().Element(guest.xml, at)
	if err != nil {
		return err
	}
	if xml, err = spec.Domain().Element(xml, at); err != nil {
		return err
	}
	write := func(xml string) func(context.Context) error {
		return func(ctx context.Context) error {
			return a.before.dom.UpdateDevice(ctx, xml, virt.AffectLive, virt.UpdateFlags{})
		}
	}
	if err := a.try(ctx, write(xml), write(was)); err != nil {
		return fmt.Errorf("change %s: %w", here, err)
	}
	return nil
}

// setField gives a device the value that the definition has in a field, with
// the unit of a quantity.
func setField(device tree.Value, c change.Change, wanted tree.Value) tree.Value {
	below := c.Path[3:]
	device = device.Set(below, wanted.Get(below))
	if unit, _ := spec.Domain().Unit(c.Path.Pattern()); c.Unit != "" && unit != "" {
		sibling := below[:len(below)-1].Attr(unit)
		device = device.Set(sibling, wanted.Get(sibling))
	}
	return device
}
