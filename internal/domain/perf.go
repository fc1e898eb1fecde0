package domain

import (
	"context"
	"maps"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// perfAspect is which events of a guest the host counts. One that is no longer
// counted stays in the XML of a running guest, switched off, which means the
// same as if it were not there.
var perfAspect = &aspect{
	name: "perf",
	owns: []string{"perf"},
	rule: func(change.Change, situation) (change.Class, string) { return change.ClassLive, "" },
	live: countEvents,
}

const perfEvents = "perf.events"

// countEvents switches the counting of events on and off, each by itself: a call
// for several does those before the one that it refuses.
func countEvents(ctx context.Context, a *apply) error {
	was, now := countedBy(a.before.running()), countedBy(a.wanted)
	names := map[string]bool{}
	for _, counted := range []map[string]int64{was, now} {
		for name := range counted {
			names[name] = was[name] != now[name] && a.doesElement(perfEvents, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		set := func(on int64) func(context.Context) error {
			return func(ctx context.Context) error {
				return a.before.dom.SetPerfEvents(ctx, virt.Parameters{name: on}, virt.AffectLive)
			}
		}
		if err := a.try(ctx, set(now[name]), set(was[name])); err != nil {
			return err
		}
	}
	return nil
}

// countedBy is 1 for each event that a definition has counted, 0 for those that
// it names and has not.
func countedBy(definition tree.Value) map[string]int64 {
	out := map[string]int64{}
	for _, e := range definition.At(perfEvents).Elems() {
		out[e.Attr("name").Str()] = 0
		if e.Attr("enabled").Str() == "yes" {
			out[e.Attr("name").Str()] = 1
		}
	}
	return out
}

// perfAs writes the events of a guest in the way in which its definition does:
// one that is not counted may be named or not.
func perfAs(definition, guest tree.Value) tree.Value {
	theirs, ours := countedBy(definition), countedBy(guest)
	events := slices.DeleteFunc(slices.Clone(guest.At(perfEvents).Elems()), func(e tree.Value) bool {
		name := e.Attr("name").Str()
		_, named := theirs[name]
		return !named && ours[name] == 0
	})
	for _, e := range definition.At(perfEvents).Elems() {
		name := e.Attr("name").Str()
		if _, named := ours[name]; !named && theirs[name] == 0 {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return guest.With("perf", tree.NullValue)
	}
	return guest.SetAt(perfEvents, tree.ListValue(events))
}
