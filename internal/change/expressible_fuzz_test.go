package change

import (
	"math/rand"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// fuzzed makes decisions of the input of a fuzz target, zeros when it ends.
type fuzzed struct{ data []byte }

func (f *fuzzed) Intn(n int) int {
	if len(f.data) == 0 || n <= 1 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	return int(b) % n
}

// What must hold of any answer, whatever the core says.
func FuzzExpressible(f *testing.F) {
	rng := rand.New(rand.NewSource(3))
	for range 50 {
		seed := make([]byte, 300)
		rng.Read(seed)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &fuzzed{data}
		checkInvariants(t, randomCall(c, randomType(c, 2)))
	})
}

func TestExpressibleInvariants(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 1500 * *effort {
		checkInvariants(t, randomCall(rng, randomType(rng, rng.Intn(3))))
		if t.Failed() {
			return
		}
	}
}

func checkInvariants(t *testing.T, c planCall) {
	t.Helper()
	before := c.String()
	ask := func(prior, config, planned tree.Value) []Inexpressible {
		return Expressible(c.typ, prior, config, planned)
	}
	refused := ask(c.prior, c.config, c.planned)
	wants := func(holds bool, what string, got []Inexpressible) {
		t.Helper()
		if !holds {
			t.Errorf("%s\n%s\nrefused %s\nand     %s", what, c, refusals(refused), refusals(got))
		}
	}
	wants(refusals(ask(c.prior, c.config, c.planned)) == refusals(refused), "asked twice, two answers", nil)
	wants(c.String() == before, "the values changed: they were\n"+before, nil)

	asConfigured := ask(c.prior, c.config, c.config)
	wants(len(asConfigured) == 0, "the configuration itself is not expressible", asConfigured)
	wants(len(ask(c.prior, c.prior, c.prior)) == 0, "a plan of nothing is not expressible", nil)

	// A prior value gives the plan more room, never less.
	wants(len(ask(tree.NullValue, c.config, c.planned)) >= min(1, len(refused)), "refused because there is a prior state", nil)

	seen := map[string]bool{}
	for _, r := range refused {
		at := r.Path.String()
		wants(!seen[at], "refused twice: "+at, nil)
		seen[at] = true
		planned, config := c.planned.Get(r.Path), c.config.Get(r.Path)
		wants(planned.IsNull() || !tree.Equal(planned, config), "refused, though as configured: "+at, nil)
	}
	if c.config.Kind() == tree.Object && c.planned.Kind() == tree.Object {
		checkAttributes(t, c, refused, wants)
	}
}

// checkAttributes asks about each attribute of the root alone: no attribute
// has a say in another one.
func checkAttributes(t *testing.T, c planCall, refused []Inexpressible, wants func(bool, string, []Inexpressible)) {
	t.Helper()
	var one []Inexpressible
	for _, name := range c.typ.Names() {
		a, prior, config := c.typ.Attrs[name], c.prior.Attr(name), c.config.Attr(name)
		only := func(v tree.Value) []Inexpressible {
			return Expressible(c.typ, c.prior, c.config, c.config.With(name, v))
		}
		one = append(one, only(c.planned.Attr(name))...)
		if !prior.IsNull() && !config.IsNull() {
			wants(len(only(prior)) == 0, "cannot be held: "+name, only(prior))
		}
		if config.IsNull() && a.Computed {
			wants(len(only(tree.UnknownValue))+len(only(prior)) == 0, "computed, and cannot be chosen: "+name, nil)
		}
		if !config.IsNull() && !a.Computed {
			wants(len(only(tree.NullValue)) == 1, "configured, and can be dropped: "+name, only(tree.NullValue))
		}
	}
	wants(refusals(one) == refusals(refused), "attribute by attribute, another answer", one)
}
