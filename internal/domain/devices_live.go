package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// How devices come into a running guest, change in it and leave it; what of it
// can be done is devices.go's to say.

// seatDevices gives the devices that are about to be plugged in, and have no
// address yet, one that is free in the guest and in the definition: libvirt would
// look at the definition alone.
func (a *apply) seatDevices() error {
	now := newSituation(a.before.active(), a.before.running(), a.wanted)
	for _, c := range a.live {
		p := plugOf(c.Path)
		if p == nil || len(c.Path) != 3 || c.Kind == change.Removal {
			continue
		}
		device := a.wanted.Get(c.Path)
		if s := p.seatOf(device, now); s != noSeat && device.Attr("address").IsNull() {
			at, found := now.ports.take(s)
			if !found {
				return kind.Refuse(kind.Problem{
					Path: c.Path, Summary: fmt.Sprintf("There is no free PCI port for %s in the guest of domain %q", c.Path, a.before.name),
					Detail: "Other devices of this apply take the last ones. Nothing was changed. Plan in two steps, or give the machine more of them (devices.controllers of the model pcie-root-port), which come with its next start.",
				})
			}
			a.wanted = a.wanted.Set(c.Path.Attr("address"), at.address())
		}
	}
	return nil
}

// live changes the devices that stay, and plugs new ones in. Those that leave do
// so last of all (takeOutDevices).
func (p *plug) live(ctx context.Context, a *apply) error {
	var in []change.Change
	changed := map[int][]change.Change{}
	var order []int
	for _, c := range a.live {
		switch at := c.Path; {
		case !within(at.Pattern(), p.list) || len(at) < 3:
		case len(at) == 3 && c.Kind == change.Removal:
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
	for _, i := range order {
		for _, part := range parts(changed[i]) {
			if err := p.update(ctx, a, i, part); err != nil {
				return err
			}
		}
	}
	for _, c := range in {
		if err := p.plugIn(ctx, a, c); err != nil {
			return err
		}
	}
	return nil
}

// parts are the changes of a device by the attribute of the device that they are
// in. Each goes by itself: of several in one call, libvirt makes one after the
// other, and forgets those that it made when it refuses the next.
func parts(changes []change.Change) (out [][]change.Change) {
	at := map[string]int{}
	for _, c := range changes {
		attr := c.Path[3].Attr
		if _, there := at[attr]; !there {
			at[attr] = len(out)
			out = append(out, nil)
		}
		out[at[attr]] = append(out[at[attr]], c)
	}
	return out
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
func (a *apply) guestNow(ctx context.Context) (shown, error) {
	s, err := a.show(ctx, 0)
	s.raw = withConsolesCounted(s.raw)
	return s, err
}

// partner finds the device of one list of devices in another one, -1 if it is
// not there.
func (a *apply) partner(list tree.Path, from tree.Value, i int, in tree.Value) int {
	return a.k.rules.Pairs(list.Pattern(), from.Get(list), in.Get(list))[i]
}

// takeOutDevices has the guest let go of devices. It is what an apply does last
// to a guest, when all else is done and found right: a device that has left can
// be plugged in again, but what the guest had open on it is lost.
func (a *apply) takeOutDevices(ctx context.Context) error {
	var out []change.Change
	for _, c := range a.live {
		if plugOf(c.Path) != nil && len(c.Path) == 3 && c.Kind == change.Removal {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil
	}
	now, err := a.k.look(ctx, a.k.Identity(a.before.definition), a.before.extra...)
	if err != nil {
		return err
	}
	late := a.late
	for _, c := range out {
		if p := plugOf(c.Path); p.stays != nil {
			p.stays(a) // it is all there still
		}
	}
	err = errors.Join(kind.Unmet(a.k, a.before.name, a.update.Prior, a.update.Planned, now.definition), a.verifyGuest(now))
	if a.late = late; err != nil {
		return err
	}
	for _, c := range out {
		if err := a.takeOut(ctx, c); err != nil {
			return err
		}
	}
	for _, p := range plugs {
		if p.left != nil && below(pathsOf(out), p.list) {
			if err := p.left(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

func pathsOf(changes []change.Change) []tree.Path {
	out := make([]tree.Path, len(changes))
	for i, c := range changes {
		out[i] = c.Path
	}
	return out
}

// letGoTime is how long an apply waits for a guest to let go of a device.
// libvirt itself returns after five seconds.
const letGoTime = 20 * time.Second

// takeOut has the guest let go of a device. A guest may refuse, or take its
// time: the definition has lost the device then, and the guest waits.
func (a *apply) takeOut(ctx context.Context, c change.Change) error {
	list := c.Path[:2]
	if err := a.sameRun(ctx); err != nil {
		return err
	}
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	i := a.partner(list, a.before.definition, c.Path[2].Index, guest.raw)
	if i < 0 {
		return nil // somebody did it already
	}
	if !isSameDevice(a.before.definition.Get(c.Path), withoutOverlays(guest.raw).Get(list.Elem(i, ""))) {
		return fmt.Errorf("take %s out of the guest: it has another device in its place now", c.Path)
	}
	leaving := guest.raw.Get(list.Elem(i, ""))
	xml, err := spec.Domain().Element(guest.xml, list.Elem(i, ""))
	if err != nil {
		return err
	}
	p := plugOf(c.Path)
	back := a.putBack(c.Path, leaving, xml)
	refusal := a.try(ctx, func(ctx context.Context) error { return a.detach(ctx, leaving, xml) }, back)
	if refusal != nil && (p.stays == nil || !virt.HasCode(refusal, virt.ErrOperationFailed)) {
		return fmt.Errorf("take %s out of the guest: %w", c.Path, refusal)
	}
	if refusal == nil {
		if gone, err := a.waitUntilGone(ctx, list, leaving); err != nil || gone {
			return err
		}
	}
	a.late = append(a.late, c.Path)
	if p.stays != nil {
		p.stays(a)
	}
	a.warnings = append(a.warnings, a.unmoved(c.Path, refusal))
	return nil
}

// unmoved says that a guest keeps a device. refusal is what it answered, nil if
// nothing.
func (a *apply) unmoved(device tree.Path, refusal error) kind.Problem {
	answer := fmt.Sprintf("libvirt asked it to, and it did not within %s: it may be using the device, or have no driver that listens.", letGoTime)
	if refusal != nil {
		answer = fmt.Sprintf("libvirt asked it to, and it said no (%s).", refusal)
	}
	return kind.Problem{
		Path: device[:2], Summary: fmt.Sprintf("The guest of %q has not let go of %s yet", a.before.name, device),
		Detail: answer + " The definition has lost the device, so it is gone after the guest's next start at the latest; status.pending lists it until then.",
	}
}

// detach takes a device of the guest out of it. It goes by its alias, or by its
// element where it has none, as a lease, of which there are no two alike.
func (a *apply) detach(ctx context.Context, device tree.Value, xml string) error {
	if alias := device.At("alias.name").Str(); alias != "" {
		return a.before.dom.DetachDeviceAlias(ctx, alias, virt.AffectLive)
	}
	return a.before.dom.DetachDevice(ctx, xml, virt.AffectLive)
}

// isIt recognises a device of a guest that was seen before.
func isIt(device tree.Value) func(tree.Value) bool {
	return func(e tree.Value) bool {
		if alias := device.At("alias.name"); !alias.IsNull() {
			return tree.Equal(e.At("alias.name"), alias)
		}
		return tree.Equal(e, device)
	}
}

// waitUntilGone waits until the guest has no more a device that it was seen
// with.
func (a *apply) waitUntilGone(ctx context.Context, list tree.Path, device tree.Value) (bool, error) {
	return waitFor(ctx, letGoTime, func(ctx context.Context) (bool, error) {
		guest, err := a.guestNow(ctx)
		return err == nil && !slices.ContainsFunc(guest.raw.Get(list).Elems(), isIt(device)), err
	})
}

// putBack plugs a device in again that the guest was asked to let go of. The
// question cannot be taken back, so the answer is waited for.
func (a *apply) putBack(device tree.Path, left tree.Value, xml string) func(context.Context) error {
	plugged := false // again, as far as is known
	return func(ctx context.Context) error {
		if err := a.sameRun(ctx); err != nil {
			return err
		}
		if !plugged {
			gone, err := a.waitUntilGone(ctx, device[:2], left)
			if err != nil {
				return err
			}
			if !gone {
				return fmt.Errorf("the guest was asked to let go of %s, has it still, and may let go of it later: plug it in again then (virsh attach-device %s FILE)", device, a.before.name)
			}
		}
		guest, err := a.guestNow(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(guest.raw.Get(device[:2]).Elems(), isIt(left)) {
			plugged = true
			if err := a.before.dom.AttachDevice(ctx, xml, virt.AffectLive); err != nil {
				return fmt.Errorf("plug %s in again: %w", device, err)
			}
		}
		a.warnings = append(a.warnings, kind.Problem{
			Path: device[:2], Summary: fmt.Sprintf("%s left the guest of domain %q and came back", device, a.before.name),
			Detail: "A later step of the apply failed, and all was taken back. What the guest had open on the device is lost: mount or configure it again.",
		})
		return nil
	}
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
		return fmt.Errorf("plug %s in: %w", c.Path, a.k.explain(err, a.wanted, []tree.Path{c.Path}, []tree.Path{c.Path.Attr("source")}))
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
	if err := a.sameRun(ctx); err != nil {
		return err
	}
	guest, err := a.guestNow(ctx)
	if err != nil {
		return err
	}
	j := a.partner(list, definition, i, guest.raw)
	if j < 0 {
		return nil
	}
	came := guest.raw.Get(list.Elem(j, ""))
	xml, err := spec.Domain().Element(guest.xml, list.Elem(j, ""))
	if err != nil {
		return err
	}
	if err := a.detach(ctx, came, xml); err != nil {
		return err
	}
	gone, err := a.waitUntilGone(ctx, list, came)
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
	if f := a.partner(list, a.wanted, i, a.before.running()); f >= 0 {
		d.form = a.before.running().Get(list.Elem(f, ""))
	}
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
		now = p.fit(d, now)
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
		if told := lockedTray(d.guest, err); !errors.Is(err, told) {
			return fmt.Errorf("change %s: %w", here, told)
		}
		return fmt.Errorf("change %s: %w", here, a.k.explain(err, a.wanted, pathsOf(changes), pathsOf(changes)))
	}
	return nil
}

// setField gives a device the value that the definition has in a field, with
// the unit of a quantity.
func setField(device tree.Value, c change.Change, wanted tree.Value) tree.Value {
	below := c.Path[3:]
	for n := 1; n < len(below); n++ {
		if saysNothing(wanted.Get(below[:n])) {
			// The element goes, not only what it said.
			return device.Set(below[:n], tree.NullValue)
		}
	}
	device = device.Set(below, wanted.Get(below))
	if unit, _ := spec.Domain().Unit(c.Path.Pattern()); c.Unit != "" && unit != "" {
		sibling := below[:len(below)-1].Attr(unit)
		device = device.Set(sibling, wanted.Get(sibling))
	}
	return device
}

// saysNothing says whether an object is absent or has nothing but absent values.
func saysNothing(v tree.Value) bool {
	if v.Kind() != tree.Object {
		return v.IsNull()
	}
	for _, name := range v.Names() {
		if !saysNothing(v.Attr(name)) {
			return false
		}
	}
	return true
}

// verifyBeside finds what an update of a device changed in the guest beside what
// was asked for.
func (a *apply) verifyBeside(after *sight, did map[string]bool) error {
	var moved []tree.Path
	for _, c := range a.live {
		if plugOf(c.Path) == nil || len(c.Path) <= 3 {
			continue
		}
		if moved == nil {
			moved = a.k.rules.Differences(a.k.typ, a.before.running(), after.running())
		}
		device := c.Path[:3].String() + "."
		for _, p := range moved {
			if strings.HasPrefix(p.String(), device) && !did[p.String()] && !isNoise(p.Pattern()) && !goesAlong(c.Path, p) {
				return kind.Refuse(kind.Problem{
					Path: p, Summary: fmt.Sprintf("%s of the guest of domain %q changed without being asked for", p, a.before.name),
					Detail: fmt.Sprintf("It went along with %s, and what it means for the guest is not known.", c.Path),
				})
			}
		}
	}
	return nil
}

// goesAlong says whether a field may change with another one: both are of one
// source, or alternatives of each other. Limits of a disk stand by themselves.
func goesAlong(changed, other tree.Path) bool {
	return len(other) > 3 && changed[3].Attr == other[3].Attr && changed[3].Attr != "io_tune"
}
