package change

import (
	"slices"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// These names are in plans, in policies that filter on them, and in the
// documentation.
func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		ClassNone.String(): "none", ClassLive.String(): "live", ClassNextBoot.String(): "next_boot", ClassOffline.String(): "offline", ClassReplace.String(): "replace",
		EffectRestart.String(): "restart", EffectShutdown.String(): "shutdown", TierRoutine.String(): "routine", TierModification.String(): "modification",
		TierAddition.String(): "addition", TierLocked.String(): "locked", Conflict.String(): "conflict", Removal.String(): "removal",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if EffectNone.String() != "none" || EffectLive.String() != "live" || EffectNextBoot.String() != "next_boot" || EffectReplace.String() != "replace" {
		t.Error("the names of the effects are others")
	}
	if !(EffectNone < EffectLive && EffectLive < EffectNextBoot && EffectNextBoot < EffectRestart && EffectRestart < EffectShutdown && EffectShutdown < EffectReplace) {
		t.Error("effects rise in what they do to a guest")
	}
	if !(ClassNone < ClassLive && ClassLive < ClassNextBoot && ClassNextBoot < ClassOffline && ClassOffline < ClassReplace) {
		t.Error("classes rise in what they ask of a guest")
	}
}

func TestKnownUnit(t *testing.T) {
	for unit, known := range map[string]bool{"KiB": true, "kib": true, "b": true, "GB": true, "": false, "XiB": false, "Ki B": false} {
		if KnownUnit(unit) != known {
			t.Errorf("%q is known: %v", unit, !known)
		}
	}
}

// Two values of an element of a list are the same if both are there.
func TestSame(t *testing.T) {
	element, other := obj(t, `dev = "a"`), obj(t, `dev = "b"`)
	for _, c := range []struct {
		pattern string
		a, b    tree.Value
		same    bool
	}{
		{"disks[]", element, other, true},
		{"disks[]", element, tree.NullValue, false},
		{"disks[]", tree.NullValue, element, false},
		{"nics[].mac", tree.StringValue("AB"), tree.StringValue("ab"), true},
		{"nics[].net", tree.StringValue("AB"), tree.StringValue("ab"), false},
		{"title", tree.NullValue, tree.NullValue, true},
	} {
		if got := testRules.Same(c.pattern, c.a, c.b); got != c.same {
			t.Errorf("%s: %s and %s: %v", c.pattern, c.a, c.b, got)
		}
	}
}

// Find follows a path of another tree: by the identity that it shows, else by
// the place.
func TestFind(t *testing.T) {
	v := obj(t, `disks = [{dev = "b", cache = "2"}, {dev = "a", cache = "1", hosts = [{name = "h"}]}], rngs = [{rate = "1"}, {rate = "2"}], cpu = {mode = "x"}`)
	disk := func(key string) tree.Path { return tree.Root.Attr("disks").Elem(0, key) }
	for _, c := range []struct {
		path tree.Path
		want string
	}{
		{disk("a").Attr("cache"), `"1"`},
		{disk("b").Attr("cache"), `"2"`},
		{disk("c").Attr("cache"), "null"},
		{disk("a").Attr("hosts").Elem(0, "").Attr("name"), `"h"`},
		{disk("").Attr("cache"), `"2"`},
		{tree.Root.Attr("rngs").Elem(1, "").Attr("rate"), `"2"`},
		{tree.Root.Attr("rngs").Elem(2, "").Attr("rate"), "null"},
		{tree.Root.Attr("cpu").Attr("mode"), `"x"`},
		{tree.Root.Attr("cpu").Attr("check"), "null"},
	} {
		if got := testRules.Find(v, c.path); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}

func TestStrangers(t *testing.T) {
	in := obj(t, `title = "t", disks = [{dev = "a", hosts = [{name = "h"}]}, {dev = "b"}, {dev = "c"}], cpu = {features = [{name = "x"}, {name = "y"}]}, rngs = [{source = "r1", rate = "1"}, {source = "r2", rate = "2"}], args = ["p"]`)
	for _, c := range []struct {
		others []string
		want   []string
	}{
		{nil, []string{"cpu.features[x]", "cpu.features[y]", "disks[a]", "disks[b]", "disks[c]", "rngs[0]", "rngs[1]"}},
		{[]string{`disks = [{dev = "b"}]`}, []string{"cpu.features[x]", "cpu.features[y]", "disks[a]", "disks[c]", "rngs[0]", "rngs[1]"}},
		{[]string{`disks = [{dev = "b"}], cpu = {features = [{name = "y"}]}`, `disks = [{dev = "c"}, {dev = "a"}], rngs = [{source = "r2"}]`},
			[]string{"cpu.features[x]", "rngs[0]"}},
	} {
		var others []tree.Value
		for _, o := range c.others {
			others = append(others, obj(t, o))
		}
		if got := pathTexts(testRules.Strangers(testType, in, others...)); !slices.Equal(got, c.want) {
			t.Errorf("beside %q: %q, want %q", c.others, got, c.want)
		}
	}
}

func TestLagging(t *testing.T) {
	path := tree.ParsePath
	waiting := []tree.Path{path("cpu.mode"), path("balloon"), path("title")}
	for _, c := range []struct {
		name    string
		was     map[string]bool
		changes []Change
		held    []Held
		want    []string
	}{
		{name: "what waits is late, but not what moves by itself", want: []string{"cpu.mode", "title"}},
		{name: "moved by this apply", changes: []Change{{Path: path("balloon")}}, want: []string{"balloon", "cpu.mode", "title"}},
		{name: "moved by an apply before", was: map[string]bool{"balloon": true}, want: []string{"balloon", "cpu.mode", "title"}},
		{name: "held in the guest", held: []Held{{Path: path("title"), Live: true}}, want: []string{"cpu.mode"}},
		{name: "held in the guest, as this apply lets it wait", changes: []Change{{Path: path("title")}}, held: []Held{{Path: path("title"), Live: true}}, want: []string{"cpu.mode", "title"}},
		{name: "and as one before did", was: map[string]bool{"title": true}, held: []Held{{Path: path("title"), Live: true}}, want: []string{"cpu.mode", "title"}},
		{name: "held in the definition", held: []Held{{Path: path("title")}}, want: []string{"cpu.mode", "title"}},
	} {
		if got := pathTexts(testRules.Lagging(waiting, c.was, c.changes, c.held)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Rules that say little: everything that may be nil is.
func TestSparseRules(t *testing.T) {
	no := func(string) bool { return false }
	r := &Rules{
		Equal: func(string, tree.Value, tree.Value) bool { return false }, Keys: func(string, tree.Value) []string { return nil },
		Tier: func(string) Tier { return TierModification }, Setting: no, Chosen: no,
	}
	definition := obj(t, `title = "a", memory = 1, disks = [{dev = "a", file = "f"}], backend = {host = {name = "h"}}`)
	config := obj(t, `title = "b", memory = 2, disks = [{dev = "a", file = "g"}], backend = {file = {path = "p"}}`)
	in := Input{Type: testType, Config: config, Prior: definition, Baseline: definition, Actual: definition, Guest: config}
	p := r.Plan(in)
	if got := p.text(); got != `planned     {backend = {file = {path = "p"}, host = {name = (known after apply)}}, disks = [{dev = "a", file = "g"}], memory = 2, title = "b"}; `+
		`intent      backend.file.path: null to "p" guest "p" reached; intent      disks[0].file: "f" to "g" guest "g" reached; intent      memory: 1 to 2 guest 2 reached; intent      title: "a" to "b" guest "b" reached` {
		t.Errorf("the plan is %s", got)
	}
	order := in.order(r, p)
	after := order.Patch(definition)
	if want := obj(t, `title = "b", memory = 2, disks = [{dev = "a", file = "g"}], backend = {host = {name = "h"}, file = {path = "p"}}`); !tree.Equal(after, want) {
		t.Errorf("the definition is %s", after)
	}
	if got := pathTexts(r.Waiting(testType, definition, config, tree.NullValue)); !slices.Equal(got, []string{"backend.file.path", "backend.host.name", "disks[0].file", "memory", "title"}) {
		t.Errorf("waiting: %q", got)
	}
	if got := pathTexts(r.Lagging([]tree.Path{tree.ParsePath("balloon")}, nil, nil, nil)); len(got) != 1 {
		t.Errorf("where nothing moves by itself, all that waits is late: %q", got)
	}
}

// What differs between a guest and its definition though nobody changed it
// does not wait for anything.
func TestNoiseDoesNotWait(t *testing.T) {
	definition, guest := obj(t, `title = "a", label = "a"`), obj(t, `title = "b", label = "b"`)
	if got := pathTexts(testRules.Waiting(testType, definition, guest, definition)); !slices.Equal(got, []string{"title"}) {
		t.Errorf("waiting: %q", got)
	}
}
