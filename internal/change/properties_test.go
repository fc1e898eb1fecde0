package change

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// adopted is a host with an object that nobody managed yet, and a
// configuration that names some of it.
func adopted(d draw) *world {
	w := &world{definition: d.host()}
	w.definition = w.chosen(w.definition)
	w.config = d.named(testType, nil, w.definition)
	w.adopt()
	return w
}

// settled is adopted after an apply. ok is false where there is none.
func settled(d draw) (w *world, ok bool) {
	w = adopted(d)
	p := w.plan()
	if refused(p) != "" {
		return w, false
	}
	w.apply(p)
	w.refresh()
	return w, true
}

// What the configuration does not name and never named stays, whatever it names:
// no plan removes or changes it.
func TestOmissionNeverRemoves(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	tried := 0
	for range 1500 * *effort {
		d := draw{Rand: rng}
		w := adopted(d)
		for range d.Intn(4) {
			w.config, _ = d.edited(w.config, false)
		}
		before, p := w.definition, w.plan()
		if refused(p) != "" {
			continue
		}
		tried++
		for _, c := range p.Changes {
			if c.Kind == Removal || c.Kind == Withdrawal {
				t.Fatalf("%s %s\n%s", c.Kind, c.Path, planText(w.input(), p))
			}
		}
		w.apply(p)
		for _, path := range testRules.Differences(testType, before, w.definition) {
			pattern := path.Pattern()
			if !isNameless(path) && testRules.Find(w.config, path).IsNull() && !strings.Contains(pattern, "backend") && !slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Path.Pattern() == pattern }) {
				t.Fatalf("%s was never named, and is %s now\nconfig %s\nbefore %s\nafter  %s", path, testRules.Find(w.definition, path), w.config, before, w.definition)
			}
		}
		for _, list := range []string{"disks", "nics", "serials", "rngs", "boot"} {
			if had, has := before.Attr(list).Len(), w.definition.Attr(list).Len(); has < had {
				t.Fatalf("%s had %d elements, and has %d\nconfig %s\nbefore %s\nafter  %s", list, had, has, w.config, before, w.definition)
			}
		}
	}
	if tried < 1300**effort {
		t.Errorf("only %d plans could be applied", tried)
	}
}

// A change that is taken back leaves no trace but in what only it named.
func TestTakingBack(t *testing.T) {
	rng := rand.New(rand.NewSource(8))
	tried := 0
	for range 1500 * *effort {
		d := draw{Rand: rng}
		w, ok := settled(d)
		first, before := w.config, w.definition
		for range 1 + d.Intn(2) {
			w.config, _ = d.edited(w.config, false)
		}
		second, p := w.config, w.plan()
		if !ok || refused(p) != "" || len(p.Changes) == 0 {
			continue
		}
		w.apply(p)
		w.refresh()
		w.config = first
		back := w.plan()
		if refused(back) != "" {
			continue
		}
		tried++
		w.apply(back)
		for _, path := range testRules.Differences(testType, before, w.definition) {
			named := !testRules.Find(first, path).IsNull()
			// What state did not show of a device that went and came back is lost with it.
			inElement := strings.Contains(path.Pattern(), "[]")
			if !inElement && (named || testRules.Find(second, path).IsNull()) && path[0].Attr != "backend" {
				t.Fatalf("%s is another after the change was taken back\nfirst  %s\nsecond %s\nbefore %s\nafter  %s\n%s", path, first, second, before, w.definition, planText(w.input(), back))
			}
			if inElement && named && !isNameless(path) && path[len(path)-1].Attr != "" {
				t.Fatalf("%s is named, and another after the change was taken back\nfirst  %s\nbefore %s\nafter  %s", path, first, before, w.definition)
			}
		}
		w.refresh()
		if again := w.plan(); len(again.Changes) > 0 {
			t.Fatalf("taken back, and still to be done: %s", again.text())
		}
	}
	if tried < 500**effort {
		t.Errorf("only %d changes were taken back", tried)
	}
}

// Drift that is approved is put back; all other drift stays exactly as held as
// it was. What is locked no digest releases, and no other digest does anything.
func TestReleaseByExactlyItsDigest(t *testing.T) {
	rng := rand.New(rand.NewSource(9))
	released, locked := 0, 0
	about := map[string]bool{"loader": true, "memory": true, "memory_unit": true, "vcpu": true, "cpu": true, "disks": true, "serials": true}
	for range 1500 * *effort {
		d := draw{Rand: rng, about: about}
		w := adopted(d)
		w.config = d.completed(testType, nil, w.definition, false) // all is named
		w.apply(w.plan())
		for range 2 + d.Intn(3) {
			w.definition, _ = d.edited(w.definition, true)
		}
		w.refresh()
		p := w.plan()
		if refused(p) != "" || len(p.Postponed) > 0 {
			continue
		}
		w.policy.Approved = map[string]bool{"000000000000": true, strings.Repeat("f", 64): true}
		if other := w.plan(); !slices.Equal(digests(other.Held), digests(p.Held)) || len(other.Approved) > 0 {
			t.Fatalf("digests of nothing released something: %s", other.text())
		}
		for i, h := range p.Held {
			w.policy.Approved = map[string]bool{h.Digest: true}
			got := w.plan()
			if h.Tier == TierLocked {
				locked++
				if !slices.Equal(digests(got.Held), digests(p.Held)) || len(got.Approved) > 0 {
					t.Fatalf("%s is locked, and was released: %s", h.Path, got.text())
				}
				continue
			}
			if refused(got) != "" || len(got.Postponed) > 0 {
				continue // its list changes in length or order
			}
			released++
			if want := slices.Delete(digests(p.Held), i, i+1); !slices.Equal(digests(got.Held), want) || !slices.Equal(got.Approved, []string{h.Digest}) {
				t.Fatalf("%s was approved: held %v, want %v; approved %v\n%s", h.Path, digests(got.Held), want, got.Approved, planText(w.input(), got))
			}
			if !slices.ContainsFunc(got.Changes, func(c Change) bool { return c.Path.String() == h.Path.String() && c.Kind == Drift }) {
				t.Fatalf("%s was approved, and is not put back: %s", h.Path, got.text())
			}
		}
	}
	if released < 120**effort || locked < 15**effort {
		t.Errorf("only %d were released, and %d locked", released, locked)
	}
}

// Drift that the configuration agrees with is nobody's drift any more: after an
// apply, what the configuration asks for next is its own intent.
func TestAgreedDriftIsFollowedByIntent(t *testing.T) {
	for path, values := range map[string][3]string{
		"memory": {"memory = 1024", "memory = 2048", "memory = 4096"}, "vcpu": {"vcpu = 1", "vcpu = 2", "vcpu = 3"},
		"title": {`title = "a"`, `title = "b"`, `title = "c"`}, "loader": {`loader = "a"`, `loader = "b"`, `loader = "c"`},
		"disks[a].cache": {`disks = [{dev = "a", cache = "1"}]`, `disks = [{dev = "a", cache = "2"}]`, `disks = [{dev = "a", cache = "3"}]`},
		"boot[0].wait":   {`boot = [{dev = "hd", wait = "1"}]`, `boot = [{dev = "hd", wait = "2"}]`, `boot = [{dev = "hd", wait = "3"}]`},
	} {
		was, drifted, next := obj(t, values[0]), obj(t, values[1]), obj(t, values[2])
		w := &world{definition: was, config: was}
		w.adopt()
		w.apply(w.plan())
		w.definition = drifted
		w.refresh()
		if p := w.plan(); len(p.Held)+len(p.Changes) != 1 || len(p.Changes) == 1 && p.Changes[0].Kind != Drift {
			t.Errorf("%s: drift is %s", path, p.text())
		}
		w.config = next
		if p := w.plan(); len(p.Changes) != 1 || p.Changes[0].Kind != Conflict || len(p.Held) > 0 {
			t.Errorf("%s: another value than both is %s", path, p.text())
		}
		w.config = drifted
		p := w.plan()
		if len(p.Held)+len(p.Changes) > 0 {
			t.Errorf("%s: the configuration agrees, and the plan is %s", path, p.text())
		}
		w.apply(p)
		w.refresh()
		w.config = next
		if p := w.plan(); len(p.Changes) != 1 || p.Changes[0].Kind != Intent || p.Changes[0].Path.String() != path || len(p.Held) > 0 {
			t.Errorf("%s: after the agreement another value is %s", path, p.text())
		}
	}
}

// A digest names a drift, not the words or the order of the configuration, nor
// what else happens to the object.
func TestDigestInvariance(t *testing.T) {
	const definition, drifted = `disks = [{dev = "a", cache = "1"}, {dev = "b", cache = "1"}]`, `disks = [{dev = "a", cache = "1"}, {dev = "b", cache = "2"}]`
	digestOf := func(object, config, baseline, actual, path string) string {
		t.Helper()
		p := testRules.Plan(Input{
			Type: testType, Object: object, Config: obj(t, config), Owned: obj(t, config), Prior: obj(t, actual), Baseline: obj(t, baseline), Actual: obj(t, actual),
		})
		for _, h := range p.Held {
			if h.Path.Pattern() == path {
				return h.Digest
			}
		}
		t.Fatalf("nothing is held: %s", p.text())
		return ""
	}
	const memory, less = "memory = 2048\nmemory_unit = 'KiB'\n", "memory = 1024\nmemory_unit = 'KiB'\n"
	bytes := digestOf("it", memory, memory, less, "memory")
	cache := digestOf("it", definition, definition, drifted, "disks[].cache")
	for name, got := range map[string]string{
		"another unit":             digestOf("it", "memory = 2\nmemory_unit = 'MiB'", memory, less, "memory"),
		"no unit":                  digestOf("it", "memory = 2048", memory, less, "memory"),
		"the host's unit":          digestOf("it", memory, memory, "memory = 1\nmemory_unit = 'MiB'", "memory"),
		"another drift":            digestOf("it", memory+"vcpu = 1", memory+"vcpu = 1", less+"vcpu = 2", "memory"),
		"an intent":                digestOf("it", memory+"title = 'b'", memory+"title = 'a'", less+"title = 'a'", "memory"),
		"more that is not managed": digestOf("it", memory, memory+"kernel = 'a'", less+"kernel = 'b'", "memory"),
	} {
		if got != bytes {
			t.Errorf("%s: the digest is %s, and was %s", name, got, bytes)
		}
	}
	for name, got := range map[string]string{
		"fewer elements":  digestOf("it", `disks = [{dev = "b", cache = "1"}]`, definition, drifted, "disks[].cache"),
		"a stranger":      digestOf("it", definition, definition, `disks = [{dev = "a", cache = "1"}, {dev = "b", cache = "2"}, {dev = "x", cache = "9"}]`, "disks[].cache"),
		"more of its own": digestOf("it", definition, definition, `disks = [{dev = "a", cache = "1"}, {dev = "b", cache = "2", file = "f"}]`, "disks[].cache"),
	} {
		if got != cache {
			t.Errorf("%s: the digest is %s, and was %s", name, got, cache)
		}
	}
	seen := map[string]string{bytes: "the memory", cache: "the cache"}
	for name, got := range map[string]string{
		"another object":      digestOf("other", memory, memory, less, "memory"),
		"another drift of it": digestOf("it", memory, memory, "memory = 512", "memory"),
		"from another value":  digestOf("it", "memory = 4096", "memory = 4096", less, "memory"),
		"the balloon":         digestOf("it", "balloon = 2048", "balloon = 2048", "balloon = 1024", "balloon"),
		"the other disk": digestOf("it", definition, definition, `disks = [{dev = "a", cache = "2"}, {dev = "b", cache = "1"}]`,
			"disks[].cache"),
	} {
		if was, twice := seen[got]; twice {
			t.Errorf("%s has the digest of %s", name, was)
		}
		seen[got] = name
	}
	if drift := (tree.Root.Attr("memory")); DriftDigest("it", drift, tree.IntValue(2), tree.IntValue(1)) == guestDigest("it", drift, tree.IntValue(2), tree.IntValue(1)) {
		t.Error("drift of the definition and drift of the guest have one digest")
	}
}
