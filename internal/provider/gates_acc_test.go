package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The settings under which objects that say nothing are let go.
var letGo = []setting{{"", "false"}, {"false", ""}}

// spent reports how much of the table was played.
func (w *gates) spent(begin time.Time) {
	w.t.Helper()
	w.t.Logf("%d cells in %.0f s", w.cells, time.Since(begin).Seconds())
}

func TestAccGates_refusedInThePlan(t *testing.T) {
	c := acctest.Case(t, "what would destroy or replace a protected object is refused in the plan, whatever protects it: nothing of the plan is applied, and the message has both ways out")
	w := newGates(t, c, plain(gateSays...))
	w.runs = true
	w.apply(setting{}, w.blocks(form{}))
	begin := time.Now()
	w.guest = lab.Observe(t, "plain-guarded")
	for i, r := range gateRows {
		if r.core != "" && r.core != c.Name {
			continue
		}
		for _, s := range settingsOf(i, acctest.Sampled()) {
			before := w.seen()
			got, objects := r.play(w, s), r.means(w.objects)
			w.judge(r.does, s, got, w.refusals(s, r.verb, objects), r.says...)
			for summary, o := range w.refusals(s, r.verb, objects) {
				if field := r.names[o.typ]; field != "" && !strings.Contains(got.errors[summary], "the change of "+field) {
					t.Errorf("%s, %s: %q does not name %s: %s", r.does, s, summary, field, got.errors[summary])
				}
			}
			w.same(r.does+", "+s.String(), before, w.seen())
			w.cells += len(objects)
		}
		w.guest.Untouched(t, "plain-guarded")
	}
	// Another setting is no difference of any object. The last one has nothing in
	// common with that of the apply.
	for _, s := range settingsOf(8, acctest.Sampled()) {
		w.write(s, w.blocks(form{}))
		w.under(s).Must(0, "plan", "-detailed-exitcode")
	}
	w.spent(begin)
	w.givenUp()
}

// givenUp takes the way out that the messages offer, to its end.
func (w *gates) givenUp() {
	w.t.Helper()
	before := w.seen()
	if o := w.apply(setting{}, w.blocks(form{waive: true})); o.added+o.removed > 0 || o.changed != len(w.objects)/3 {
		w.t.Errorf("protect = false: %d added, %d changed, %d removed\n%s", o.added, o.changed, o.removed, o.text)
	}
	w.same("protect = false", before, w.seen())
	if w.guest != nil {
		w.guest.Untouched(w.t, "plain-guarded")
	}
	silent := without(w.objects, func(o object) bool { return o.says != "silent" })
	got := w.run(setting{}, w.blocks(form{waive: true}), "destroy", "-auto-approve")
	w.judge("destroy after protect = false", setting{}, got, w.refusals(setting{}, "destroy", silent))
	w.same("destroy after protect = false", before, w.seen())
	w.write(setting{}, w.blocks(form{waive: true}))
	w.under(setting{env: "false"}).Must(0, "destroy", "-auto-approve")
	w.same("destroy with LIBVIRT_PROTECT=false", w.initial, w.seen())
}

func TestAccGates_countAndKeys(t *testing.T) {
	c := acctest.Case(t, "a smaller count, a key that left for_each and a removed module are refused for protected objects, and do what they say for the others")
	objects := slices.Concat(shaped("counted", gateSays...), shaped("keyed", gateSays...), shaped("module", gateSays...))
	w := newGates(t, c, objects)
	body := func(count, keys string, f form) string {
		w.writeModule(f)
		counted, keyed, module := f, f, "module \"inner\" {\n  source = \"./inner\"\n}\n"
		counted.head = "count = " + count
		keyed.head, keyed.label = "for_each = toset("+keys+")", "-keyed"
		if count == "0" {
			module = ""
		}
		return w.only(shaped("counted", gateSays...), counted) + w.only(shaped("keyed", gateSays...), keyed) + module
	}
	w.write(setting{}, body("1", `["a"]`, form{}))
	w.project.Must(0, "get") // the module
	w.apply(setting{}, body("1", `["a"]`, form{}))
	begin := time.Now()
	for _, s := range settingsOf(1, acctest.Sampled()) {
		before := w.seen()
		got := w.run(s, other+body("0", "[]", form{}), "apply", "-auto-approve")
		w.judge("count, for_each and module", s, got, w.refusals(s, "destroy", objects))
		w.same("count, for_each and module, "+s.String(), before, w.seen())
		w.cells += len(objects)
	}
	// Without protection they go.
	w.apply(setting{}, body("1", `["a"]`, form{waive: true}))
	w.apply(setting{env: "false"}, body("0", "[]", form{waive: true}))
	w.same("count, for_each and module without protection", w.initial, w.seen())
	w.cells += len(objects)
	w.spent(begin)
}

// writeModule writes the module of the shape module.
func (w *gates) writeModule(f form) {
	w.t.Helper()
	dir := filepath.Join(w.project.Dir(), "inner")
	text := "terraform {\n  required_providers {\n    libvirt = { source = \"driftsafe/libvirt\" }\n  }\n}\n" + w.only(shaped("module", gateSays...), f)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestAccGates_letGo(t *testing.T) {
	c := acctest.Case(t, "without protection the same actions do what they say; a block that asks for protection has it in the plan that brings it")
	w := newGates(t, c, plain("free", "silent"))
	w.apply(setting{}, w.blocks(form{}))
	begin := time.Now()
	raised := map[string]object{}
	for _, o := range without(plain("free"), isSeed) {
		raised[`Refusing to replace protected `+o.noun()+` "`+o.name()+`"`] = o
	}
	before := w.seen()
	got := w.run(letGo[0], other+w.blocks(form{field: true, raise: true}), "apply", "-auto-approve")
	w.judge("protect = true with a replacement", letGo[0], got, raised, "protect = true in its block")
	w.same("protect = true with a replacement", before, w.seen())
	w.cells += len(raised)
	for i, r := range gateRows {
		if r.never != "" || r.core != "" && r.core != c.Name {
			continue
		}
		s := letGo[i%len(letGo)]
		before := w.seen()
		if got := r.play(w, s); got.code != 0 {
			t.Fatalf("%s, %s: exit code %d\n%s", r.does, s, got.code, got.text)
		}
		r.done(w, s, before, w.seen())
		w.cells += len(r.means(w.objects))
		w.apply(s, w.blocks(form{}))
	}
	w.movedAway(letGo[0])
	w.spent(begin)
	w.write(setting{}, w.blocks(form{}))
	w.under(letGo[0]).Must(0, "destroy", "-auto-approve")
	w.same("destroy", w.initial, w.seen())
}

// movedAway: objects without protection have another address, and nothing says
// moved. The core ends the old ones and makes the new ones in no order: as both
// have one name, the making may find the old one still there, and is refused. The
// next apply makes it.
func (w *gates) movedAway(s setting) {
	w.t.Helper()
	const does = "another address, without moved"
	before := w.seen()
	got := w.run(s, w.blocks(form{label: "2"}), "apply", "-auto-approve")
	for summary, detail := range got.errors {
		if !strings.Contains(summary, "exists already") {
			w.t.Errorf("%s: error %q: %s", does, summary, detail)
		}
	}
	w.t.Logf("%s: %d of %d were still there, and are made by the next apply", does, len(got.errors), len(w.objects))
	w.apply(s, w.blocks(form{label: "2"}))
	after, list := w.seen(), strings.Fields(w.project.Must(0, "state", "list"))
	for _, o := range w.objects {
		if old, now := before[o.key()], after[o.key()]; now == "" || old == now && !isSeed(o) {
			w.t.Errorf("%s: %s was %q, is %q", does, o.key(), old, now)
		}
		if slices.Contains(list, o.address()) || !slices.Contains(list, o.address()+"2") {
			w.t.Errorf("%s: %s is not at its new address alone: %q", does, o.key(), list)
		}
	}
	w.cells += len(w.objects)
	w.apply(s, w.blocks(form{})+moved(w.objects, "2", ""))
	w.same(does+", moved back", after, w.seen())
}

// done says that a row without protection did what it says.
func (r gateRow) done(w *gates, s setting, before, after map[string]string) {
	w.t.Helper()
	for _, o := range r.means(w.objects) {
		old, now := before[o.key()], after[o.key()]
		if r.renews != nil && r.renews(o) {
			if now != "" {
				w.t.Errorf("%s, %s: %s is still there", r.does, s, o.key())
			}
			now = after[o.renewed().key()]
		}
		if shared := r.shares != nil && r.shares(o); r.gone != (now == "") || (old == now) != shared {
			w.t.Errorf("%s, %s: %s was %q, is %q", r.does, s, o.key(), old, now)
		}
	}
	if !r.destroys && after["volume gates-other"] == "" {
		w.t.Errorf("%s, %s: the rest of the plan was not applied", r.does, s)
	}
}

func TestAccGates_left(t *testing.T) {
	c := acctest.Case(t, "what only forgets or moves protected objects is allowed and touches none: moved, -target and -exclude of others, state rm, removed { destroy = false }, lifecycle { destroy = false }")
	w := newGates(t, c, plain(gateSays...))
	w.apply(setting{}, w.blocks(form{}))
	begin, before := time.Now(), w.seen()
	nothing := func(when string, o outcome, but ...string) {
		t.Helper()
		if o.added+o.changed+o.removed > 0 {
			t.Errorf("%s: %d added, %d changed, %d removed\n%s", when, o.added, o.changed, o.removed, o.text)
		}
		w.same(when, before, w.seen(), but...)
		w.cells += len(w.objects)
	}
	// planned are the same under each setting that the apply after it has not.
	planned := func(when string, made int, body string, args ...string) {
		t.Helper()
		for _, s := range allOr(acctest.Sampled()) {
			o := w.run(s, body, append([]string{"plan"}, args...)...)
			if o.code != 0 || o.added != made || o.changed+o.removed > 0 {
				t.Errorf("%s, %s: exit code %d, %d added, %d changed, %d removed\n%s", when, s, o.code, o.added, o.changed, o.removed, o.text)
			}
			w.same(when+", "+s.String(), before, w.seen())
			w.cells += len(w.objects)
		}
	}
	planned("moved", 0, w.blocks(form{label: "2"})+moved(w.objects, "", "2"))
	nothing("moved", w.apply(setting{}, w.blocks(form{label: "2"})+moved(w.objects, "", "2")))
	nothing("moved back", w.apply(setting{}, w.blocks(form{})+moved(w.objects, "2", "")))

	others := func(when string, args ...string) {
		t.Helper()
		planned(when, 2, other+trigger("1"), args...)
		made := []string{"volume gates-other", "network gates-other"}
		w.apply(setting{}, other+trigger("1"), args...)
		now := w.seen()
		if now[made[0]] == "" || now[made[1]] == "" {
			t.Errorf("%s: the others were not made", when)
		}
		w.same(when, before, now, made...)
		nothing(when+", then the blocks are back", w.apply(setting{}, w.blocks(form{})+other), made...)
		w.apply(setting{}, w.blocks(form{}))
		w.same(when+", then without the others", before, w.seen())
	}
	others("-target of others", "-target=libvirt_volume.other", "-target=libvirt_network.other")
	if c.Name == core.Tofu {
		others("-exclude", addresses("-exclude=", w.objects)...)
		silent, rest := w.split("silent")
		planned("lifecycle { destroy = false }", 0, trigger("1")+w.only(rest, form{})+w.only(silent, form{keep: true}))
		nothing("lifecycle { destroy = false }", w.apply(setting{}, trigger("1")+w.only(rest, form{})+w.only(silent, form{keep: true})))
		planned("then without the block", 0, trigger("1")+w.only(rest, form{}))
		nothing("then without the block", w.apply(setting{}, trigger("1")+w.only(rest, form{})))
		w.objects = rest
	}
	free, rest := w.split("free")
	w.project.Must(0, append([]string{"state", "rm"}, addresses("", free)...)...)
	nothing("state rm", w.apply(setting{}, trigger("1")+w.only(rest, form{})))
	planned("removed { destroy = false }", 0, trigger("1")+removed(rest, false))
	nothing("removed { destroy = false }", w.apply(setting{}, trigger("1")+removed(rest, false)))
	if list := w.project.Must(0, "state", "list"); strings.Contains(list, "libvirt_") {
		t.Errorf("still in the state:\n%s", list)
	}
	w.spent(begin)
}

// split are the objects that say this, and all others.
func (w *gates) split(says string) (some, others []object) {
	return without(w.objects, func(o object) bool { return o.says != says }), without(w.objects, func(o object) bool { return o.says == says })
}

// inState are the addresses whose objects are marked as tainted, and the number
// of deposed ones.
func (w *gates) inState() (tainted []string, deposed int) {
	w.t.Helper()
	var state struct {
		Resources []struct {
			Type, Name string
			Instances  []struct{ Status, Deposed string }
		}
	}
	if err := json.Unmarshal([]byte(w.project.Must(0, "state", "pull")), &state); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			if i.Deposed != "" {
				deposed++
			} else if i.Status == "tainted" {
				tainted = append(tainted, r.Type+"."+r.Name)
			}
		}
	}
	return tainted, deposed
}
