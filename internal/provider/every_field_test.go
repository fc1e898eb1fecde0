package provider

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func subjects() []*subject {
	text, yes := tree.StringValue, tree.BoolValue(true)
	type values = map[string]tree.Value
	return []*subject{
		newSubject(domain.New(nil), spec.Domain(), values{"name": text("web"), "type": text("kvm")}, values{"power": text("running")}, "title"),
		newSubject(network.New(nil), spec.Network(), values{"name": text("lan")}, values{"active": yes}, "domain.name"),
		newSubject(storage.NewPool(nil), spec.Pool(), values{"name": text("images"), "type": text("dir")}, values{"active": yes}, "source.name"),
		newSubject(storage.NewVolume(nil), spec.Volume(), values{"name": text("disk"), "pool": text("images"), "capacity": tree.IntValue(1)}, values{"running": yes}, "capacity"),
	}
}

// Every field of every kind of object is changed, appears, vanishes, drifts, is
// withdrawn and is left out. Each time the plan must say exactly what the rules
// say of the field; the change must have a line and an effect; an apply must
// bring it, through the XML, and nothing else; and the next plan must be empty.
//
// What is expected comes from the rules and the schema, so that a field nobody
// thought of is compared like any other. The tables in every_field_tables_test.go
// only say how to make a document that has the field.
func TestEveryField(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for _, s := range subjects() {
		t.Run(s.Noun(), func(t *testing.T) {
			counts := map[string]int{}
			none := map[string]bool{}
			for _, l := range s.leaves() {
				x := s.try(l)
				x.run(t, counts)
				counts["fields"]++
				counts["role "+x.role.String()]++
				if x.effect != "" {
					counts["effects"]++
					counts["effect "+x.effect]++
					none[l.pattern] = x.effect == "none"
				}
				if x.role == ordinary {
					counts["tier "+s.Rules().Tier(l.pattern).String()]++
				}
			}
			t.Log(counts)
			checkCounts(t, s, counts)
			checkEffects(t, s, none)
			checkTables(t, s)
		})
	}
}

// run takes the leaf through its steps. A step that fails ends those that build
// on it.
func (t *try) run(test *testing.T, counts map[string]int) {
	step := func(name string, err error) bool {
		counts["step "+name]++
		if err != nil {
			test.Error(t.s.fail(t.l, "%s: %v", name, err))
		}
		return err == nil
	}
	switch t.role {
	case lost:
		step("refused", t.refused())
		return
	case reported, measured:
		step("omitted", t.omitted())
		return
	case ordinary, setting, once, unit, key:
	}
	w, err := t.s.settled(t.whole, t.host(t.a))
	if step("settled", err) {
		step("changed", t.becomes(w, t.b))
	}
	t.history(step)
	if t.role == setting || t.role == once {
		return
	}
	if t.role != unit {
		step("omitted", t.omitted())
	}
	if t.s.Rules().Correctable != nil && t.role != key && t.effect != "" && !t.anonymous() {
		step("running", t.running())
	}
}

// history is a life of the field in one object.
func (t *try) history(step func(string, error) bool) {
	fromNone := t.bare && t.role != key
	start := t.host(t.a)
	if fromNone {
		start = t.host(tree.NullValue)
	}
	w, err := t.s.settled(t.small, start)
	if !step("settled", err) || fromNone && !step("appears", t.becomes(w, t.a)) {
		return
	}
	if fromNone && t.l.typ.Kind == tree.Bool && (!step("false", t.becomes(w, t.b)) || !step("true", t.becomes(w, t.a))) {
		return
	}
	if t.role != setting && t.role != once {
		if !step("drift", t.drifted(w, t.b)) {
			return
		}
		if fromNone && t.role != unit && !t.anonymous() && !step("vanished", t.drifted(w, tree.NullValue)) {
			return
		}
	}
	if fromNone && t.role != unit && t.l.typ.Kind != tree.Bool && t.s.holds(t.with(t.zero), t.s.leavesOf(t.none)...) {
		if !step("zero", t.becomes(w, t.zero)) || !step("again", t.becomes(w, t.a)) {
			return
		}
	}
	if fromNone {
		step("withdrawn", t.withdrawn(w))
	}
}

// checkCounts holds the numbers against the schema's golden file, and against
// what was tried when this was written: nothing may fall out unseen.
func checkCounts(t *testing.T, s *subject, counts map[string]int) {
	golden, err := os.ReadFile(filepath.Join("testdata", "schema.golden"))
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for line := range strings.Lines(string(golden)) {
		part := strings.Split(line, "\t")
		if part[0] == "resource libvirt_"+s.Noun() && !strings.HasPrefix(part[2], "nested:") {
			fields++
		}
	}
	if counts["fields"] != fields || fields == 0 {
		t.Errorf("%d fields were tried, and schema.golden has %d", counts["fields"], fields)
	}
	for name, least := range leastCounts[s.Noun()] {
		if counts[name] < least {
			t.Errorf("%s: %d, and once it was %d", name, counts[name], least)
		}
	}
}

// checkEffects wants a reason for every change that a guest does not feel.
func checkEffects(t *testing.T, s *subject, none map[string]bool) {
	table := unfelt[s.Noun()]
	for pattern, is := range none {
		if is && table[pattern] == "" && table["*"] == "" {
			t.Errorf("a change of %s has no effect on what runs, and no table says why", pattern)
		}
	}
	for pattern, reason := range table {
		if pattern != "*" && !none[pattern] || reason == "" {
			t.Errorf("unfelt: %s (%s) has an effect now", pattern, reason)
		}
	}
}
