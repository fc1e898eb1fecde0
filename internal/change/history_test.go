package change

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

var (
	histories = flag.Int("histories", 1500, "how many random histories are lived through")
	firstSeed = flag.Int64("seed", 1, "of the random histories")
	effort    = flag.Int("effort", 1, "how many times as many random cases all other tests try")
)

// past is one life of an object: how it began, and what happened to it. It is
// run again and again while a failure is made smaller, so that all of it is
// data: an event is a kind and the seed of its choices.
type past struct {
	about              map[string]bool
	definition, config tree.Value
	created            bool // by us, from the configuration; else it was there and is adopted
	events             []event
}

type event struct {
	what string
	seed int64
}

var eventKinds = []string{
	"edit", "edit", "edit", "edit", "agree", "drift", "drift", "drift", "visitor", "guest drift", "guest drift", "guest visitor",
	"start", "stop", "apply", "apply", "apply", "apply", "apply with approval", "apply with approval", "apply with revert",
}

func randomPast(d draw) past {
	d.about = map[string]bool{"uuid": true, "title": true}
	for range 1 + d.Intn(3) {
		name := pickOf(d, pickOf(d, testType.Names()...), pickOf(d, "cpu", "disks", "nics", "serials", "rngs", "boot", "memory", "balloon"))
		d.about[name] = true
		if testType.Attrs[name+"_unit"] != nil {
			d.about[name+"_unit"] = true
		}
	}
	h := past{about: d.about, definition: d.host(), created: d.percent(30)}
	if h.config = d.named(testType, nil, h.definition); h.created || d.percent(20) {
		h.config = d.object(testType, nil, false)
	}
	if d.percent(60) {
		h.events = append(h.events, event{"start", 0})
	}
	for range 3 + d.Intn(15) {
		h.events = append(h.events, event{pickOf(d, eventKinds...), d.Int63()})
	}
	return h
}

// live runs a past and checks every plan and apply of it. It tells what
// happened, and what went wrong first.
func (h past) live() (story string, err error) {
	w := &world{config: h.config}
	w.definition = w.chosen(h.definition).With("uuid", tree.StringValue("u"))
	if h.created {
		w.create(func(v tree.Value) tree.Value { return overlaid(v, h.definition) })
	} else {
		w.adopt()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "definition  %s\nconfig      %s\ncreated     %v\n", w.definition, w.config, h.created)
	for _, e := range h.events {
		said, err := w.happens(draw{rand.New(rand.NewSource(e.seed)), h.about}, e.what)
		fmt.Fprintf(&b, "%-11s %s\n", e.what, said)
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// overlaid adds to a definition what only other has, outside of lists.
func overlaid(v, other tree.Value) tree.Value {
	for _, name := range other.Names() {
		if v.Attr(name).IsNull() && other.Attr(name).Kind() != tree.List && !strings.HasPrefix(name, "memory") && !strings.HasPrefix(name, "balloon") {
			v = v.With(name, other.Attr(name))
		}
	}
	return v
}

func (w *world) happens(d draw, what string) (said string, err error) {
	switch what {
	case "edit":
		w.config, said = d.edited(w.config, false)
		said += " " + w.config.String()
	case "agree":
		w.config, said = d.agreed(w.config, w.definition)
	case "drift":
		w.definition, said = d.edited(w.definition, true)
		said += " " + w.definition.String()
	case "visitor":
		w.definition, said = d.visited(w.definition)
	case "guest drift":
		if w.guest.IsNull() {
			return "nothing runs", nil
		}
		w.guest, said = d.edited(w.guest, true)
		said += " " + w.guest.String()
	case "guest visitor":
		if w.guest.IsNull() {
			return "nothing runs", nil
		}
		w.guest, said = d.visited(w.guest)
	case "start":
		w.start()
	case "stop":
		w.guest = tree.NullValue
	case "apply":
		return w.applyChecked(Policy{})
	case "apply with revert":
		return w.applyChecked(Policy{Revert: true})
	case "apply with approval":
		w.refresh()
		policy := Policy{Approved: map[string]bool{}}
		for _, h := range w.plan().Held {
			if d.percent(50) {
				policy.Approved[h.Digest] = true
			}
		}
		return w.applyChecked(policy)
	default:
		panic(what)
	}
	return said, nil
}

// agreed writes one value of the host into the configuration.
func (d draw) agreed(config, definition tree.Value) (out tree.Value, at string) {
	in := Input{Type: testType, Config: config, Prior: definition, Baseline: definition, Actual: definition, Owned: config}
	changes := testRules.Plan(in).Changes
	if len(changes) == 0 {
		return config, "nothing differs"
	}
	c := pickOf(d, changes...)
	if last := c.Path[len(c.Path)-1]; last.Attr == "" {
		if c.Kind == Removal || c.Path[len(c.Path)-1].Index >= config.Get(c.Path[:len(c.Path)-1]).Len() {
			return config, "nothing"
		}
		list := c.Path[:len(c.Path)-1]
		elems := slices.Delete(slices.Clone(config.Get(list).Elems()), last.Index, last.Index+1)
		return config.Set(list, listOf(elems)), c.Path.String()
	}
	owner := c.Path[:len(c.Path)-1]
	is := c.Actual
	if unit, standard := testRules.unitOf(typeAt(testType, owner), c.Path); unit != "" && c.Unit != "" {
		is = InUnit(is, config.Get(owner).Attr(unit), standard)
	}
	return config.Set(c.Path, is), c.Path.String() + " " + is.String()
}

// applyChecked refreshes, plans and applies, and says which promise is broken.
func (w *world) applyChecked(policy Policy) (said string, err error) {
	w.refresh()
	w.policy = policy
	before, in := *w, w.input()
	p := w.plan()
	said = strings.TrimSpace(strings.ReplaceAll(planText(in, p), "\n", "\n            "))
	if refused(p) != "" {
		return said, nil
	}
	if bad := Expressible(worldSchema, in.Prior, in.Config, p.Planned); len(bad) > 0 {
		return said, fmt.Errorf("the core refuses the plan: %v", bad)
	}
	if w.isNoOp(p) {
		return said, nil
	}
	w.apply(p)
	said += fmt.Sprintf("\ndefinition  %s\nstate       %s\nowned       %s\nbaseline    %s\nguest       %s\nlagging     %v",
		w.definition, w.state, w.owned, w.baseline, w.guest, w.lagging)
	for _, promise := range promises {
		if err := promise.kept(&before, p, w); err != nil {
			return said, fmt.Errorf("%s: %w", promise.name, err)
		}
	}
	return said, nil
}

func TestHistories(t *testing.T) {
	plans := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+int64(*histories); seed++ {
		h := randomPast(draw{Rand: rand.New(rand.NewSource(seed))})
		told, err := h.live()
		for _, line := range strings.Split(told, "\n") {
			plans[firstWord(strings.TrimSpace(strings.TrimPrefix(line, "apply")))]++
		}
		if err != nil {
			small := h.shrunk(func(h past) bool { _, other := h.live(); return other != nil && promiseOf(other) == promiseOf(err) })
			told, err = small.live()
			t.Fatalf("seed %d: %v\n%s", seed, err, told)
		}
	}
	t.Log(plans)
	for _, word := range lineOrder[1:14] {
		if plans[word] < *histories/300 && word != "ignored" && word != "unknown" && word != "clash" && word != "postponed" {
			t.Errorf("of %d histories only %d plans had a line %q: they prove too little", *histories, plans[word], word)
		}
	}
}

func promiseOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}
