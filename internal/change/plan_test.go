package change

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func (r Result) text() string {
	return strings.ReplaceAll(strings.TrimSpace(planText(Input{}, r)), "\n", "; ")
}

func checkConverges(t *testing.T, name string, in Input) {
	t.Helper()
	first := testRules.Plan(in)
	if len(first.Clashes) > 0 {
		return
	}
	order := in.order(testRules, first)
	actual := order.Patch(in.Actual)
	if in.Type == testType { // the host chooses addresses
		for i, n := range actual.Attr("nics").Elems() {
			if n.Attr("mac").IsNull() {
				actual = actual.Set(tree.Root.Attr("nics").Elem(i, "").Attr("mac"), tree.StringValue(fmt.Sprint("new", i)))
			}
		}
	}
	if unmet := testRules.Unmet(in.Type, in.Prior, first.Planned, actual); len(unmet) > 0 {
		t.Errorf("%s: planned, and not in the definition: %v", name, unmet)
	}
	state := order.Settle(in.Actual, actual)
	if !refines(first.Planned, state) {
		t.Errorf("%s: planned %s\nbut after apply the state is %s\n(definition %s)", name, first.Planned, state, actual)
	}
	refreshed := testRules.Project(in.Type, state, actual)
	if !tree.Equal(refreshed, state) {
		t.Errorf("%s: a refresh after the apply changes the state\nfrom %s\nto   %s", name, state, refreshed)
	}
	owned := order.Identify(state)
	second := testRules.Plan(Input{Type: in.Type, Config: in.Config, Prior: state, Baseline: actual, Actual: actual, Owned: owned})
	if len(first.Held) == 0 && (len(second.Changes) > 0 || !tree.Equal(second.Planned, state)) {
		t.Errorf("%s: the second plan is not empty: %s\nstate   %s\nplanned %s", name, second.text(), state, second.Planned)
	}
}

// order is what an apply of a plan carries out.
func (in Input) order(r *Rules, p Result) Order {
	return Order{Rules: r, Type: in.Type, Config: in.Config, Prior: in.Prior, Planned: p.Planned, Owned: in.Owned}
}

// refines is the core's rule: a new state is the planned one, with values in
// the place of what was unknown.
func refines(planned, state tree.Value) bool {
	switch {
	case planned.IsUnknown():
		return true
	case planned.Kind() != state.Kind() || planned.Kind() == tree.List && planned.Len() != state.Len():
		return false
	case planned.Kind() == tree.List:
		for i, e := range planned.Elems() {
			if !refines(e, state.Elems()[i]) {
				return false
			}
		}
		return true
	case planned.Kind() == tree.Object:
		for _, name := range append(planned.Names(), state.Names()...) {
			if !refines(planned.Attr(name), state.Attr(name)) {
				return false
			}
		}
		return true
	}
	return tree.Equal(planned, state)
}

func TestApplyTwiceIsANoOpForRandomTrees(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for i := range 2000 * *effort {
		actual := randomTree(rng, true)
		config, owned, baseline := randomTree(rng, false), randomTree(rng, false), randomTree(rng, true)
		prior := testRules.Project(testType, randomShape(rng, actual, owned), actual)
		checkConverges(t, fmt.Sprintf("case %d\nconfig   %s\nprior    %s\nbaseline %s\nactual   %s\nowned    %s", i, config, prior, baseline, actual, owned),
			Input{Type: testType, Config: config, Prior: prior, Baseline: baseline, Actual: actual, Owned: owned})
		if t.Failed() {
			return
		}
	}
}

// randomShape is what state may hold: everything, or what was owned and the
// identities that libvirt chose.
func randomShape(rng *rand.Rand, actual, owned tree.Value) tree.Value {
	if rng.Intn(2) == 0 {
		return actual
	}
	for i, n := range owned.Attr("nics").Elems() {
		if n.Attr("mac").IsNull() {
			owned = owned.Set(tree.Root.Attr("nics").Elem(i, "").Attr("mac"), tree.UnknownValue)
		}
	}
	return owned
}

func randomTree(rng *rand.Rand, host bool) tree.Value {
	v := tree.ObjectValue(nil)
	pick := func(path string, values ...string) {
		if rng.Intn(2) == 0 {
			v = v.SetAt(path, tree.StringValue(values[rng.Intn(len(values))]))
		}
	}
	pick("title", "a", "b")
	pick("cpu.mode", "x", "y")
	pick("cpu.check", "c", "d")
	if rng.Intn(2) == 0 {
		v = v.With("memory", tree.IntValue(int64(1+rng.Intn(2))*1024))
		if rng.Intn(2) == 0 {
			v = v.With("memory", tree.IntValue(int64(1+rng.Intn(2)))).With("memory_unit", tree.StringValue("MiB"))
		}
	}
	if host {
		v = v.With("uuid", tree.StringValue("u"))
	}
	var disks, nics []tree.Value
	for _, dev := range rng.Perm(3)[:rng.Intn(4)] {
		d := tree.NullValue.With("dev", tree.StringValue(fmt.Sprint("vd", dev)))
		if rng.Intn(2) == 0 {
			d = d.With("cache", tree.StringValue([]string{"none", "off"}[rng.Intn(2)]))
		}
		disks = append(disks, d)
	}
	for _, mac := range rng.Perm(3)[:rng.Intn(4)] {
		n := tree.NullValue.With("net", tree.StringValue([]string{"one", "two"}[rng.Intn(2)]))
		if host || rng.Intn(3) == 0 {
			n = n.With("mac", tree.StringValue(fmt.Sprint(mac)))
		}
		nics = append(nics, n)
	}
	if len(disks) > 0 {
		v = v.With("disks", tree.ListValue(disks))
	}
	if len(nics) > 0 {
		v = v.With("nics", tree.ListValue(nics))
	}
	return v
}

// Cores plan twice when a value is known only at apply: the second plan may
// fill in what the first left unknown, and change nothing else.
func TestPlanWithUnknownsIsRefinedByThePlanWithValues(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	decided := 0
	defer func() {
		if decided < 1000**effort {
			t.Errorf("only %d cases were decided", decided)
		}
	}()
	for i := range 2000 * *effort {
		actual, config := randomTree(rng, true), randomTree(rng, false)
		owned := Order{Rules: testRules, Type: testType, Config: randomTree(rng, false)}.Identify(actual)
		in := Input{Type: testType, Config: config, Prior: testRules.Project(testType, randomShape(rng, actual, owned), actual), Baseline: randomTree(rng, true), Actual: actual, Owned: owned}
		later := in
		in.Config = withUnknown(rng, config)
		first, second := testRules.Plan(in), testRules.Plan(later)
		if len(first.Undecided) > 0 {
			continue
		}
		decided++
		if !refines(first.Planned, second.Planned) {
			t.Fatalf("case %d\nconfig   %s\nthen     %s\nprior    %s\nbaseline %s\nactual   %s\nowned    %s\nplanned  %s\nthen     %s", i, in.Config, config, in.Prior, in.Baseline, actual, owned, first.Planned, second.Planned)
		}
	}
}

// withUnknown makes one scalar unknown. Not the memory: where its drift is held
// and state spells the unit otherwise, the second plan cannot keep both the
// first plan's unit and the prior amount, and the core says so. Nor the target
// of a disk, which is its identity: until it is known, nobody can say which
// disk is meant.
func withUnknown(rng *rand.Rand, v tree.Value) tree.Value {
	var leaves []tree.Path
	v.Walk(func(p tree.Path, n tree.Value) bool {
		if n.Kind() != tree.Object && n.Kind() != tree.List && !strings.HasPrefix(p.String(), "memory") && p.Pattern() != "disks[].dev" {
			leaves = append(leaves, p)
		}
		return true
	})
	if len(leaves) == 0 {
		return v
	}
	return v.Set(leaves[rng.Intn(len(leaves))], tree.UnknownValue)
}
