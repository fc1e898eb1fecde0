package domain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// ioThreadsAspect is the threads that QEMU has for disks: how many, which
// numbers they have, and how each works. They come and go on a running guest,
// unless a device uses them.
//
// libvirt writes them in two ways: as their count, when they have the numbers
// from 1 on, or as a list beside the count. A thread that comes later makes a
// list of all that run.
var ioThreadsAspect = &aspect{
	name: "io_threads",
	owns: []string{"io_threads", "io_thread_i_ds"},
	rule: ioThreadRule,
	live: setIOThreads,
}

const ioThreadList = "io_thread_i_ds.io_threads"

func ioThreadRule(c change.Change, now situation) (change.Class, string) {
	thread, listed := numberOf(c.Path, ioThreadList)
	whole := c.Path.Pattern() == ioThreadList+"[]"
	switch {
	case !listed || whole && c.Desired.IsNull():
		gone := []int64{thread}
		if !listed {
			gone = leavingThreads(situation{guest: now.guest, definition: now.definition, beside: append(now.beside[:len(now.beside):len(now.beside)], c)})
		}
		for _, t := range gone {
			if threadInUse(now.guest, t) {
				return change.ClassNextBoot, fmt.Sprintf("A device of the running guest uses I/O thread %d.", t)
			}
		}
	case strings.HasSuffix(c.Path.Pattern(), ".poll.weight") || whole && !c.Desired.At("poll.weight").IsNull():
		return change.ClassNextBoot, "libvirt has no call for the weight of polling; QEMU takes it when the guest starts."
	case c.Desired.IsNull():
		return change.ClassNextBoot, "libvirt can give a running I/O thread another value, and cannot take it away: QEMU chooses by itself when the guest starts."
	}
	return change.ClassLive, ""
}

// threadsAfter are the I/O threads of the definition once a plan is carried out:
// those that the list says, and the lowest numbers that are free, up to the
// count. Where the plan changes the count alone, the last ones go.
func threadsAfter(now situation) []int64 {
	threads := ioThreadsOf(now.definition)
	const unknown = -1
	listed, count := false, int64(unknown)
	for _, c := range now.beside {
		switch n, ok := numberOf(c.Path, ioThreadList); {
		case c.Path.Pattern() == "io_threads" && !c.Desired.IsUnknown():
			count = whole(c.Desired)
		case !ok || c.Path.Pattern() != ioThreadList+"[]":
		case c.Desired.IsNull():
			listed, threads = true, slices.DeleteFunc(threads, func(t int64) bool { return t == n })
		case !slices.Contains(threads, n):
			listed, threads = true, append(threads, n)
		}
	}
	if count != unknown && !listed {
		threads = threads[:min(len(threads), int(count))]
	}
	return fillThreads(threads, count)
}

// leavingThreads are the threads of the guest that a plan takes away. One that
// only the guest has is somebody else's, and stays.
func leavingThreads(now situation) []int64 {
	after, have := threadsAfter(now), ioThreadsOf(now.guest)
	return slices.DeleteFunc(ioThreadsOf(now.definition), func(t int64) bool { return slices.Contains(after, t) || !slices.Contains(have, t) })
}

// arrivingThreads are the threads that the running guest has not, and that a plan
// brings into it now.
func arrivingThreads(now situation) (come []int64) {
	after, have := threadsAfter(now), ioThreadsOf(now.guest)
	for _, c := range now.beside {
		n, listed := numberOf(c.Path, ioThreadList)
		counted := c.Path.Pattern() == "io_threads"
		if class, _ := ioThreadRule(c, now); class != change.ClassLive || !counted && !listed {
			continue
		}
		for _, t := range after {
			if (counted || t == n) && !slices.Contains(have, t) {
				come = append(come, t)
			}
		}
	}
	return come
}

// threadInUse says whether a device of a guest uses an I/O thread.
func threadInUse(guest tree.Value, thread int64) bool {
	uses := func(device tree.Value) bool {
		driver := device.Attr("driver")
		return whole(driver.Attr("io_thread")) == thread || slices.ContainsFunc(driver.At("io_threads.io_thread").Elems(), func(t tree.Value) bool {
			return whole(t.Attr("id")) == thread
		})
	}
	return slices.ContainsFunc(guest.At("devices.disks").Elems(), uses) || slices.ContainsFunc(guest.At("devices.controllers").Elems(), uses)
}

// ioThreadsOf are the numbers of the I/O threads of a definition: those that it
// lists, then the lowest that are free, up to the count.
func ioThreadsOf(definition tree.Value) (threads []int64) {
	for _, t := range definition.At(ioThreadList).Elems() {
		threads = append(threads, whole(t.Attr("id")))
	}
	return fillThreads(threads, whole(definition.Attr("io_threads")))
}

// fillThreads adds the lowest numbers that are free, up to the count.
func fillThreads(threads []int64, count int64) []int64 {
	for n := int64(1); int64(len(threads)) < count; n++ {
		if !slices.Contains(threads, n) {
			threads = append(threads, n)
		}
	}
	return threads
}

// listThreads is the list of threads of which nothing but the number is said.
func listThreads(threads []int64) tree.Value {
	elems := make([]tree.Value, len(threads))
	for i, t := range threads {
		elems[i] = tree.NullValue.With("id", tree.IntValue(t))
	}
	return tree.ListValue(elems)
}

// isCounted says whether a list says no more than that there are so many
// threads.
func isCounted(list tree.Value, count int64) bool {
	for _, t := range list.Elems() {
		if whole(t.Attr("id")) > count || !tree.Equal(t.With("id", tree.NullValue).Known(), tree.ObjectValue(nil)) {
			return false
		}
	}
	return true
}

// ioThreadsAs writes the I/O threads of a guest in the way in which its
// definition does.
func ioThreadsAs(definition, guest tree.Value) tree.Value {
	theirs, ours := definition.At(ioThreadList), guest.At(ioThreadList)
	switch {
	case theirs.Len() == 0 && isCounted(ours, int64(ours.Len())):
		return guest.With("io_thread_i_ds", tree.NullValue)
	case theirs.Len() > 0 && ours.Len() == 0 && whole(guest.Attr("io_threads")) > 0:
		return guest.SetAt(ioThreadList, listThreads(ioThreadsOf(guest)))
	}
	return guest
}

// followThreads keeps count and list of the threads in agreement where the
// configuration names one of them alone: libvirt takes the greater number.
func followThreads(config, before, wanted tree.Value) tree.Value {
	list, named := wanted.At(ioThreadList), config.At(ioThreadList)
	count := whole(wanted.Attr("io_threads"))
	switch counted := !config.Attr("io_threads").IsNull(); {
	case counted && named.IsNull() && list.Len() > 0 && count != whole(before.Attr("io_threads")):
		list = tree.ListValue(list.Elems()[:min(list.Len(), int(count))])
		if isCounted(list, count) {
			return wanted.With("io_thread_i_ds", tree.NullValue)
		}
		return wanted.SetAt(ioThreadList, list)
	case counted:
		return wanted
	case wanted.Attr("io_threads").IsNull() && !before.Attr("io_threads").IsNull() && named.IsNull():
		return wanted.With("io_thread_i_ds", tree.NullValue) // nobody names any more
	case !named.IsNull() || !before.At(ioThreadList).IsNull():
		unlisted := max(0, whole(before.Attr("io_threads"))-int64(before.At(ioThreadList).Len()))
		if n := unlisted + int64(list.Len()); n != count && !before.At(ioThreadList).IsNull() {
			return wanted.With("io_threads", numberOrNull(n))
		}
	}
	return wanted
}

func numberOrNull(n int64) tree.Value {
	if n == 0 {
		return tree.NullValue
	}
	return tree.IntValue(n)
}

// ioThreadSettings are the settings of a running thread: attribute, libvirt's
// parameter, and what QEMU has where nobody says.
var ioThreadSettings = []struct {
	attr, param string
	standard    int64
}{
	{"pool_min", "thread_pool_min", 0}, {"pool_max", "thread_pool_max", 64},
	{"poll.max", "poll_max_ns", 32768}, {"poll.grow", "poll_grow", 0}, {"poll.shrink", "poll_shrink", 0},
}

// setIOThreads adds threads to the running guest, takes them out, and changes
// how they work. Of a thread that stays, only the settings change that the plan
// changes.
func setIOThreads(ctx context.Context, a *apply) error {
	comes, goes := a.threads()
	for _, t := range goes {
		if err := a.try(ctx, a.delThread(t), a.restoreThread(t)); err != nil {
			return err
		}
	}
	for _, t := range ioThreadsOf(a.wanted) {
		isNew := slices.Contains(comes, t)
		if isNew {
			if err := a.try(ctx, a.addThread(t), a.takeBackThread(t)); err != nil {
				return err
			}
		}
		now, was := a.settingsOf(t, isNew)
		if len(now) > 0 {
			if err := a.tryParts(ctx, a.setThread(t, now), a.setThread(t, was)); err != nil {
				return err
			}
		}
		if !isNew {
			continue
		}
		if err := a.pinThread(ctx, a.wanted, t); err != nil {
			return err // the undo takes the thread out, and its pin with it
		}
	}
	a.leaveForeignThreads(comes, goes)
	return nil
}

// threads are the I/O threads that come into the running guest and that leave it
// now. What the plan changes in the definition takes away what the definition
// had; what it corrects in the guest alone, what the guest has beside it.
func (a *apply) threads() (comes, goes []int64) {
	guest, wanted := a.before.running(), ioThreadsOf(a.wanted)
	have := ioThreadsOf(guest)
	for _, t := range wanted {
		if !slices.Contains(have, t) && (a.does("io_threads") || a.doesElement(ioThreadList, fmt.Sprint(t))) {
			comes = append(comes, t)
		}
	}
	planned, corrected := situation{guest: guest, definition: a.before.definition}, situation{guest: guest, definition: guest}
	for _, c := range a.live {
		if c.Live {
			corrected.beside = append(corrected.beside, c)
		} else {
			planned.beside = append(planned.beside, c)
		}
	}
	for _, t := range slices.Concat(leavingThreads(planned), leavingThreads(corrected)) {
		if !slices.Contains(wanted, t) && !slices.Contains(goes, t) {
			goes = append(goes, t)
		}
	}
	return comes, goes
}

// leaveForeignThreads says that the guest goes on with threads of which its
// definition does not know, where the count was changed: the next plan sees them.
func (a *apply) leaveForeignThreads(comes, goes []int64) {
	wanted := ioThreadsOf(a.wanted)
	var left []int64
	for _, t := range slices.Concat(ioThreadsOf(a.before.running()), comes) {
		if !slices.Contains(wanted, t) && !slices.Contains(goes, t) {
			left = append(left, t)
		}
	}
	if len(left) == 0 || !a.does("io_threads") {
		return
	}
	count := tree.Root.Attr("io_threads")
	a.late = append(a.late, count)
	a.warnings = append(a.warnings, kind.Problem{
		Path: count, Summary: fmt.Sprintf("The guest of %q has I/O threads that its definition does not have", a.before.name),
		Detail: fmt.Sprintf("Somebody added %d to the running guest alone. They stay until its next start, or until virsh iothreaddel takes them out; status.pending lists io_threads until then.", left),
	})
}

// settingsOf is what the running guest is to be told of a thread now, and what it
// has instead.
func (a *apply) settingsOf(thread int64, isNew bool) (now, was virt.Parameters) {
	now, was = virt.Parameters{}, virt.Parameters{}
	wanted, running := threadSettings(a.wanted, thread), threadSettings(a.before.running(), thread)
	for _, s := range ioThreadSettings {
		n, set := wanted[s.param]
		w, there := running[s.param]
		if !there {
			w = s.standard
		}
		if !set || there && w == n || !isNew && !a.doesField(ioThreadList, fmt.Sprint(thread), s.attr) {
			continue
		}
		now[s.param], was[s.param] = n, w
	}
	return now, was
}

// threadSettings is what a definition says of a thread.
func threadSettings(definition tree.Value, thread int64) virt.Parameters {
	out := virt.Parameters{}
	for _, t := range definition.At(ioThreadList).Elems() {
		for _, s := range ioThreadSettings {
			if n := t.At(s.attr); whole(t.Attr("id")) == thread && n.IsKnown() {
				out[s.param] = whole(n)
			}
		}
	}
	return out
}

// takeBackThread takes out a thread that was added, if it was.
func (a *apply) takeBackThread(thread int64) func(context.Context) error {
	return func(ctx context.Context) error {
		if there, err := a.hasThread(ctx, thread); err != nil || !there {
			return err
		}
		return a.delThread(thread)(ctx)
	}
}

func (a *apply) hasThread(ctx context.Context, thread int64) (bool, error) {
	threads, err := a.before.dom.IOThreads(ctx, virt.AffectLive)
	_, there := threads[uint(thread)]
	return there, err
}

func (a *apply) addThread(thread int64) func(context.Context) error {
	return func(ctx context.Context) error {
		return a.before.dom.AddIOThread(ctx, uint(thread), virt.AffectLive)
	}
}

func (a *apply) delThread(thread int64) func(context.Context) error {
	return func(ctx context.Context) error {
		return a.before.dom.DelIOThread(ctx, uint(thread), virt.AffectLive)
	}
}

func (a *apply) setThread(thread int64, p virt.Parameters) func(context.Context) error {
	return func(ctx context.Context) error {
		return a.before.dom.SetIOThreadParams(ctx, uint(thread), p, virt.AffectLive)
	}
}

// restoreThread brings a thread back that was taken out, as it was.
func (a *apply) restoreThread(thread int64) func(context.Context) error {
	return func(ctx context.Context) error {
		there, err := a.hasThread(ctx, thread)
		if err != nil {
			return err
		}
		if !there {
			if err := a.addThread(thread)(ctx); err != nil {
				return err
			}
		}
		if p := threadSettings(a.before.running(), thread); len(p) > 0 {
			if err := a.setThread(thread, p)(ctx); err != nil {
				return err
			}
		}
		return a.pinThread(ctx, a.before.running(), thread)
	}
}

// pinThread pins a thread that has just come as a definition says.
func (a *apply) pinThread(ctx context.Context, definition tree.Value, thread int64) error {
	for _, pin := range definition.At(ioThreadPins).Elems() {
		if whole(pin.Attr("io_thread")) != thread {
			continue
		}
		cpus, err := cpusOf(pin)
		if err != nil {
			return err
		}
		return a.before.dom.PinIOThread(ctx, uint(thread), cpus, virt.AffectLive)
	}
	return nil
}
