package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// world is a host with one object of testType, and a provider that manages it:
// what the tests apply plans to. It does what the provider does around this
// package, and what libvirt does to a definition.
type world struct {
	config     tree.Value
	state      tree.Value
	definition tree.Value
	guest      tree.Value // what runs; null if nothing does
	baseline   tree.Value
	owned      tree.Value
	lagging    map[string]bool
	policy     Policy
	macs       int // chosen so far
}

// running is the guest as a plan gets it: null if it is as its definition.
func (w *world) running() tree.Value {
	if w.guest.IsNull() || len(testRules.Waiting(testType, w.definition, w.guest, w.definition)) == 0 {
		return tree.NullValue
	}
	return w.guest
}

func (w *world) input() Input {
	return Input{
		Type: testType, Object: "it", Config: w.config, Prior: w.state, Baseline: w.baseline, Actual: w.definition,
		Owned: w.owned, Guest: w.running(), Lagging: w.lagging, Policy: w.policy,
	}
}

func (w *world) plan() Result { return testRules.Plan(w.input()) }

// held is what the status shows: what a plan for the last configuration holds.
func (w *world) held() []Held {
	in := w.input()
	if in.Config, in.Policy = w.owned, (Policy{}); w.owned.IsNull() {
		in.Config = w.baseline
	}
	in.Prior, in.Owned = w.definition, in.Config
	return testRules.Plan(in).Held
}

// refused says why the provider does not apply a plan.
func refused(p Result) string {
	switch {
	case len(p.Clashes) > 0:
		return "a clash"
	case len(p.Undecided) > 0:
		return "undecided"
	}
	return ""
}

// isNoOp says whether the core applies nothing, so that nothing is recorded.
func (w *world) isNoOp(p Result) bool {
	return tree.Equal(p.Planned, w.state) && len(p.Changes) == 0 && len(p.Live) == 0 && slices.Equal(heldPaths(p.Held), heldPaths(w.held()))
}

func heldPaths(all []Held) (out []string) {
	for _, h := range all {
		out = append(out, h.Path.String())
	}
	slices.Sort(out)
	return out
}

// apply does what a plan says, and records it.
func (w *world) apply(p Result) {
	before, order := *w, w.input().order(testRules, p)
	w.definition = w.chosen(w.merged(withOneBackend(before.definition, order.Patch(before.definition))))
	if !w.guest.IsNull() {
		for _, c := range slices.Concat(p.Changes, p.Live) {
			if correctableInTests(c, before.guest) {
				w.change(c)
			}
		}
	}
	w.state = order.Settle(before.definition, w.definition)
	w.state = testRules.Overlay(p.Planned, w.state, testRules.Measured)
	w.owned = order.Identify(w.state)
	w.baseline = testRules.Rebase(testType, w.owned, before.baseline, before.definition, w.definition)
	w.lagging = w.late(before.lagging, slices.Concat(p.Changes, p.Live))
}

// late is where the guest is not yet as its definition: not what is held there,
// and not what others plugged into it.
func (w *world) late(was map[string]bool, changes []Change) map[string]bool {
	known := maps.Clone(was)
	if known == nil {
		known = map[string]bool{}
	}
	for _, c := range changes {
		if c.Kind == Removal {
			known[c.Path.String()] = true
		}
	}
	strangers := pathSet(testRules.Strangers(testType, w.running(), w.definition, w.baseline, w.owned))
	waiting := slices.DeleteFunc(testRules.Waiting(testType, w.definition, w.running(), w.owned), func(p tree.Path) bool {
		return strangers[p.String()] && !known[p.String()]
	})
	now := *w
	now.lagging = nil
	return pathSet(testRules.Lagging(waiting, known, changes, now.held()))
}

// create defines the object as a plan for nothing before says; rest is what
// the host adds to it.
func (w *world) create(rest func(tree.Value) tree.Value) {
	in := Input{Type: testType, Object: "it", Config: w.config}
	p := testRules.Plan(in)
	order := in.order(testRules, p)
	w.definition = w.chosen(rest(order.Patch(tree.NullValue))).With("uuid", tree.StringValue("u"))
	w.state = order.Settle(tree.NullValue, w.definition)
	w.owned = order.Identify(w.state)
	w.baseline, w.guest, w.lagging = w.definition, tree.NullValue, nil
}

// adopt reads an object that exists, as an import does.
func (w *world) adopt() {
	w.state = testRules.Project(testType, w.definition, w.definition)
	w.baseline, w.owned, w.lagging = w.definition, tree.NullValue, nil
}

func (w *world) refresh() {
	shape := testRules.Shape(testType, w.state, w.owned)
	if shape.Attr("uuid").IsNull() {
		shape = shape.With("uuid", tree.UnknownValue)
	}
	w.state = testRules.Project(testType, shape, w.definition)
}

// start starts the guest, or starts it again, from the whole definition.
func (w *world) start() { w.guest, w.lagging = w.definition, nil }

// chosen gives what libvirt gives to a definition.
func (w *world) chosen(v tree.Value) tree.Value {
	for i, n := range v.Attr("nics").Elems() {
		if n.Attr("mac").IsNull() {
			w.macs++
			v = v.SetAt(fmt.Sprintf("nics[%d].mac", i), tree.StringValue(fmt.Sprint("new", w.macs)))
		}
	}
	for i, e := range v.Attr("serials").Elems() {
		port, alias := e.Attr("port").Str(), strings.TrimPrefix(e.Attr("alias").Str(), "s")
		if isForeign(e) {
			continue
		}
		if port == "" {
			v = v.SetAt(fmt.Sprintf("serials[%d].port", i), tree.StringValue(alias))
		}
		if alias == "" {
			v = v.SetAt(fmt.Sprintf("serials[%d].alias", i), tree.StringValue("s"+port))
		}
	}
	for _, alone := range []string{"protect", "image"} {
		v = v.With(alone, tree.NullValue)
	}
	return v
}

// merged is what the provider does to texts of which only some words are the
// configuration's: those of others stay.
func (w *world) merged(v tree.Value) tree.Value {
	if tree.Equal(v.Attr("meta"), w.definition.Attr("meta")) {
		return v
	}
	all := words(v.Attr("meta"))
	for word := range words(w.definition.Attr("meta")) {
		if !words(w.owned.Attr("meta"))[word] {
			all[word] = true
		}
	}
	if len(all) == 0 {
		return v.With("meta", tree.NullValue)
	}
	return v.With("meta", tree.StringValue(strings.Join(slices.Sorted(maps.Keys(all)), " ")))
}

// withOneBackend is what a document does with two kinds of a backend: the one
// that was there gives way.
func withOneBackend(before, v tree.Value) tree.Value {
	newcomer := func(was, is tree.Value) tree.Value {
		for _, name := range is.Names() {
			if was.Attr(name).IsNull() {
				return oneBackend(is, name, true)
			}
		}
		return is
	}
	if v.Attr("backend").Len() > 1 {
		v = v.With("backend", newcomer(before.Attr("backend"), v.Attr("backend")))
	}
	for i, e := range v.Attr("disks").Elems() {
		for _, o := range before.Attr("disks").Elems() {
			if e.Attr("backend").Len() > 1 && e.Attr("dev").Str() == o.Attr("dev").Str() {
				v = v.SetAt(fmt.Sprintf("disks[%d].backend", i), newcomer(o.Attr("backend"), e.Attr("backend")))
			}
		}
	}
	return v
}

// change makes one change of a plan in the running guest, without the help of
// the package where that is possible: an element is found by the identity that
// the path has, else as the definition's partner.
func (w *world) change(c Change) {
	w.guest = transplant(testType, c, c.Path, nil, w.config, w.definition, w.guest)
}

// transplant copies the node at the path from the definition to the guest; the
// indices of the path are those of the configuration.
func transplant(typ *tree.Type, c Change, rest, at tree.Path, config, definition, guest tree.Value) tree.Value {
	switch {
	case len(rest) == 0:
		return definition
	case rest[0].Attr != "":
		name := rest[0].Attr
		at = at.Attr(name)
		got := transplant(typ.Attrs[name].Type, c, rest[1:], at, config.Attr(name), definition.Attr(name), guest.Attr(name))
		out := guest.With(name, got)
		if unit, _ := testRules.unitOf(typ, at); unit != "" {
			out = out.With(unit, definition.Attr(unit))
		}
		return out
	}
	pattern := at.Pattern()
	elems := slices.Clone(guest.Elems())
	i := placeOf(pattern, rest[0], config, definition)
	at = at.Elem(0, "")
	if len(rest) == 1 && c.Kind == Removal {
		if j := partner(pattern, c.Actual, tree.ListValue(elems)); j >= 0 {
			elems = slices.Delete(elems, j, j+1)
		}
		return listOf(elems)
	}
	if i < 0 {
		panic(fmt.Sprintf("%s %s: nowhere in the definition's %s", c.Kind, c.Path, definition))
	}
	j := testRules.match(pattern, definition, guest)[i]
	if j < 0 {
		if len(rest) > 1 {
			return guest // a part of a device that the guest does not have
		}
		return tree.ListValue(append(elems, definition.Elems()[i]))
	}
	elems[j] = transplant(typ.Elem, c, rest[1:], at, pick(config, rest[0].Index), definition.Elems()[i], elems[j])
	return tree.ListValue(elems)
}

// placeOf finds the element that a step of a path means in a list of the
// definition.
func placeOf(pattern string, step tree.Step, config, definition tree.Value) int {
	for i, e := range definition.Elems() {
		if slices.Contains(testRules.Keys(pattern+"[]", e), step.Key) && step.Key != "" {
			return i
		}
	}
	at := testRules.match(pattern, config, definition)
	if step.Index < len(at) {
		return at[step.Index]
	}
	return -1
}

func partner(pattern string, elem, in tree.Value) int {
	return testRules.match(pattern, tree.ListValue([]tree.Value{elem}), in)[0]
}

func pathSet(paths []tree.Path) map[string]bool {
	out := map[string]bool{}
	for _, p := range paths {
		out[p.String()] = true
	}
	return out
}

func pathTexts(paths []tree.Path) (out []string) {
	for _, p := range paths {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}
