package change

import (
	"fmt"
	"hash/fnv"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// schemaOf is the type as a schema has it: everything that is on the host may
// be left to it, and what speaks to the provider is the configuration's alone.
func schemaOf(r *Rules, typ *tree.Type, prefix string) *tree.Type {
	switch typ.Kind {
	case tree.List:
		return tree.ListOf(schemaOf(r, typ.Elem, prefix+"[]"))
	case tree.Object:
		var attrs []*tree.Attribute
		for _, name := range typ.Names() {
			pattern := join(prefix, name)
			attrs = append(attrs, &tree.Attribute{
				Name: name, Optional: true, Computed: !r.Setting(pattern), Type: schemaOf(r, typ.Attrs[name].Type, pattern),
			})
		}
		return tree.ObjectOf(attrs...)
	}
	return typ
}

var testSchema = schemaOf(testRules, testType, "")

// randomInput is a plan's input as it may come at any time: after an import
// or an apply, with drift, approvals and values that are not known yet.
func randomInput(rng *rand.Rand) Input {
	actual, config := randomTree(rng, true), randomTree(rng, false)
	if rng.Intn(2) == 0 {
		config = withUnknown(rng, config)
	}
	owned := Order{Rules: testRules, Type: testType, Config: randomTree(rng, false)}.Identify(actual)
	in := Input{Type: testType, Config: config, Baseline: randomTree(rng, true), Actual: actual, Owned: owned, Policy: Policy{Revert: rng.Intn(4) == 0}}
	switch rng.Intn(8) {
	case 0: // a create
		in.Baseline, in.Actual, in.Owned = tree.NullValue, tree.NullValue, tree.NullValue
		return in
	case 1: // no record yet
		in.Baseline, in.Owned, owned = tree.NullValue, tree.NullValue, tree.NullValue
	case 2: // what the configuration said is on the host, and something else was changed
		in.Baseline = actual
	}
	in.Prior = testRules.Project(testType, randomShape(rng, actual, owned), actual)
	return in
}

func describeInput(in Input, got Result) string {
	return fmt.Sprintf("config   %s\nprior    %s\nbaseline %s\nactual   %s\nowned    %s\nplanned  %s\nsays     %s",
		in.Config, in.Prior, in.Baseline, in.Actual, in.Owned, got.Planned, got.text())
}

// A plan that has neither a clash nor a list it cannot decide about is one
// that the core accepts.
func TestPlanIsExpressible(t *testing.T) {
	for _, c := range allCases(t) {
		in := c.input(t)
		if got := testRules.Plan(in); len(got.Clashes) == 0 && len(got.Undecided) == 0 {
			if refused := Expressible(testSchema, in.Prior, in.Config, got.Planned); len(refused) > 0 {
				t.Errorf("%s: %s\n%s", c.name, refusals(refused), describeInput(in, got))
			}
		}
	}
	rng := rand.New(rand.NewSource(5))
	decided := 0
	var wrong []string
	for range 4000 * *effort {
		in := randomInput(rng)
		got := testRules.Plan(in)
		if len(got.Clashes) > 0 || len(got.Undecided) > 0 {
			continue
		}
		decided++
		if refused := Expressible(testSchema, in.Prior, in.Config, got.Planned); len(refused) > 0 {
			wrong = append(wrong, refusals(refused)+"\n"+describeInput(in, got))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d plans are refused by the core; the shortest:\n%s", len(wrong), decided, shortest(wrong))
	}
	if decided < 3200**effort {
		t.Errorf("only %d cases were decided", decided)
	}
}

// rulesFor makes rules up for a random type: what they say of a path depends
// on nothing but its name.
func rulesFor(typ *tree.Type, salt int) *Rules {
	attrs := map[string]*tree.Attribute{}
	typ.Walk(func(pattern string, a *tree.Attribute) { attrs[pattern] = a })
	among := func(pattern string, what string, n uint32) bool {
		h := fnv.New32a()
		fmt.Fprint(h, salt, what, pattern)
		return h.Sum32()>>7%n == 0
	}
	scalar := func(pattern string) bool {
		a := attrs[pattern]
		return a != nil && a.Type.Kind != tree.Object && a.Type.Kind != tree.List
	}
	setting := func(pattern string) bool { a := attrs[pattern]; return a != nil && !a.Computed && !a.Required }
	// What a setting is made of is no matter of the host's.
	onHost := func(pattern string) bool {
		for i, r := range pattern + "." {
			if (r == '.' || r == '[') && setting(pattern[:i]) {
				return false
			}
		}
		return attrs[pattern] != nil && attrs[pattern].Computed
	}
	some := func(what string, n uint32) func(string) bool {
		return func(pattern string) bool { return scalar(pattern) && onHost(pattern) && among(pattern, what, n) }
	}
	key := func(pattern string) bool {
		return strings.HasSuffix(pattern, "[].a0") && attrs[pattern].Type == tree.StringType && onHost(pattern) && among(pattern, "key", 2)
	}
	return &Rules{
		Equal: func(pattern string, a, b tree.Value) bool {
			return among(pattern, "equal", 3) && a.Kind() == tree.String && b.Kind() == tree.String && len(a.Str()) == len(b.Str())
		},
		Keys: func(pattern string, e tree.Value) []string {
			if !key(pattern+".a0") || !e.Attr("a0").IsKnown() {
				return []string{""}
			}
			return []string{e.Attr("a0").String()} // with its quotes: an identity is never empty
		},
		Unit: func(pattern string) (string, string) {
			unit, a := attrs[strings.TrimSuffix(pattern, "0")+"1"], attrs[pattern]
			if strings.HasSuffix(pattern, "a0") && a.Type == tree.NumberType && unit != nil && unit.Type == tree.StringType && onHost(pattern) && unit.Computed {
				return "a1", "KiB"
			}
			return "", ""
		},
		Tier: func(pattern string) Tier {
			switch {
			case among(pattern, "locked", 6):
				return TierLocked
			case among(pattern, "modification", 2):
				return TierModification
			}
			return TierRoutine
		},
		Covers: func(pattern string, desired, actual, _ tree.Value) (bool, bool) {
			return strings.HasPrefix(actual.Str(), desired.Str()), scalar(pattern) && attrs[pattern].Type == tree.StringType && among(pattern, "covers", 8)
		},
		Follows: func(pattern string) []string {
			if !among(pattern, "follows", 3) {
				return nil
			}
			return slices.DeleteFunc([]string{"a0", "a2"}, setting)
		},
		Setting: setting,
		Chosen: func(pattern string) bool {
			if strings.Contains(pattern, "[]") {
				return key(pattern) && among(pattern, "chosen", 2)
			}
			return some("chosen", 4)(pattern)
		},
		Alternatives: func(pattern string) (others []string) {
			object, name, _ := cutLast("."+pattern, ".")
			prefix := strings.TrimPrefix(object+".", ".")
			alternative := func(name string) bool {
				a := attrs[prefix+name]
				return (name == "a2" || name == "a3") && a != nil && a.Optional && a.Computed && onHost(prefix+name)
			}
			if !alternative(name) || !among(object, "alternatives", 2) {
				return nil
			}
			return slices.DeleteFunc([]string{"a2", "a3"}, func(n string) bool { return n == name || !alternative(n) })
		},
		Kept:   some("kept", 5),
		Sticky: some("sticky", 6),
		Once: func(pattern string) bool {
			return len(pattern) == len("a0") && setting(pattern) && among(pattern, "once", 2)
		},
	}
}

// randomPlan is an input of random rules and values.
func randomPlan(rng *rand.Rand, typ *tree.Type, r *Rules) Input {
	g := &callMaker{choices: rng, full: true}
	in := Input{Type: typ, Policy: Policy{Revert: rng.Intn(4) == 0}}
	in.Config = g.complete(typ, g.written(typ, g.changed(typ, tree.NullValue, rng.Intn(3) == 0)))
	if rng.Intn(10) == 0 {
		return in
	}
	in.Actual = g.value(typ, false)
	if in.Baseline = in.Actual; rng.Intn(3) > 0 {
		in.Baseline = oneOf(g, tree.NullValue, g.changed(typ, in.Actual, false))
	}
	if rng.Intn(4) > 0 {
		config := in.Baseline // what was agreed, so that all that differs is drift
		if config.IsNull() || rng.Intn(2) == 0 {
			config = g.changed(typ, oneOf(g, in.Actual, in.Baseline), rng.Intn(3) == 0)
		}
		in.Config = g.complete(typ, g.written(typ, config))
	}
	config := g.changed(typ, oneOf(g, in.Config.Known(), in.Actual, tree.NullValue), false)
	config = g.complete(typ, g.written(typ, config))
	in.Config = withoutLoneUnits(r, typ, nil, in.Config)
	in.Owned = Order{Rules: r, Type: typ, Config: config}.Identify(in.Actual)
	in.Prior = r.Project(typ, oneOf(g, in.Actual, in.Owned, g.changed(typ, in.Owned, false)), in.Actual)
	return in
}

// complete adds what a configuration must have.
func (g *callMaker) complete(typ *tree.Type, v tree.Value) tree.Value {
	if v.Kind() != tree.Object {
		if v.Kind() == tree.List && typ.Elem.Kind == tree.Object {
			elems := make([]tree.Value, v.Len())
			for i, e := range v.Elems() {
				elems[i] = g.complete(typ.Elem, e)
			}
			return tree.ListValue(elems)
		}
		return v
	}
	for _, name := range typ.Names() {
		a := typ.Attrs[name]
		attr := v.Attr(name)
		if a.Required && attr.IsNull() {
			attr = g.value(a.Type, false)
		}
		v = v.With(name, g.complete(a.Type, attr))
	}
	return v
}

// withoutLoneUnits takes out the units whose numbers the configuration leaves
// out: they mean nothing.
func withoutLoneUnits(r *Rules, typ *tree.Type, path tree.Path, v tree.Value) tree.Value {
	switch {
	case v.Kind() == tree.Object:
		for _, name := range typ.Names() {
			v = v.With(name, withoutLoneUnits(r, typ.Attrs[name].Type, path.Attr(name), v.Attr(name)))
			if unit, _ := r.unitOf(typ, path.Attr(name)); unit != "" && v.Attr(name).IsNull() {
				v = v.With(unit, tree.NullValue)
			}
		}
	case v.Kind() == tree.List && typ.Elem.Kind == tree.Object:
		elems := make([]tree.Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = withoutLoneUnits(r, typ.Elem, path.Elem(i, ""), e)
		}
		return tree.ListValue(elems)
	}
	return v
}

// The same for types, rules and values of every kind: nested lists, elements
// that come, go, move and change at once.
func TestPlanOfRandomRulesIsExpressible(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	var decided, changed, held int
	var wrong []string
	for range 300 * *effort {
		typ := randomType(rng, 1+rng.Intn(2))
		r := rulesFor(typ, rng.Int())
		for range 20 {
			in := randomPlan(rng, typ, r)
			got := r.Plan(in)
			if len(got.Clashes) > 0 || len(got.Undecided) > 0 {
				continue
			}
			decided++
			changed += min(1, len(got.Changes))
			held += min(1, len(got.Held))
			if refused := Expressible(typ, in.Prior, in.Config, got.Planned); len(refused) > 0 {
				wrong = append(wrong, refusals(refused)+"\ntype     "+describe(typ)+"\n"+describeInput(in, got))
			}
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d plans are refused by the core; the shortest:\n%s", len(wrong), decided, shortest(wrong))
	}
	t.Logf("%d decided, of which %d change something and %d hold something", decided, changed, held)
	if decided < 5000**effort || changed < 2250**effort || held < 75**effort {
		t.Error("too little variety")
	}
}
