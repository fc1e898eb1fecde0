package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A row of a table that names no field hides a mistake.
func TestTablesNameFields(t *testing.T) {
	fields := map[string]bool{}
	resourceType().Walk(func(pattern string, a *tree.Attribute) {
		fields[pattern] = true
		if a.Type.Kind == tree.List {
			fields[pattern+"[]"] = true
		}
	})
	check := func(table, pattern string) {
		if !fields[pattern] {
			t.Errorf("%s: there is no field %s", table, pattern)
		}
	}
	for list, ways := range keys {
		check("keys", list)
		for _, way := range ways {
			for _, path := range way {
				check("keys", list+"."+path)
			}
		}
	}
	for _, row := range tiers {
		check("tiers", row.prefix)
		if row.reason == "" {
			t.Errorf("tiers: %s has no reason", row.prefix)
		}
	}
	for _, p := range noise {
		check("noise", p)
	}
	for _, p := range kept {
		check("kept", p)
	}
	for p := range chosen {
		check("chosen", p)
	}
	for p := range settings {
		check("settings", p)
	}
	owner := map[string]string{}
	for _, a := range aspects {
		for _, p := range a.owns {
			check("aspect "+a.name, p)
			if other := owner[p]; other != "" {
				t.Errorf("%s belongs to the aspects %s and %s", p, other, a.name)
			}
			owner[p] = a.name
		}
	}
	for _, p := range []string{"memory", "vcpu", "os.type_machine"} {
		for _, f := range follows(p) {
			check("follows", f)
		}
	}
}

func TestJudge(t *testing.T) {
	k := New(nil)
	state := func(power string) tree.Value {
		return tree.NullValue.With("name", tree.StringValue("web")).SetAt("status.power", tree.StringValue(power))
	}
	at := func(path string, desired tree.Value) change.Change {
		return change.Change{Path: tree.ParsePath(path), Desired: desired}
	}
	cases := map[string]struct {
		prior    tree.Value
		changes  []change.Change
		outcome  string
		effect   change.Effect
		refusals string
	}{
		"autostart":               {state("running"), []change.Change{at("autostart", tree.BoolValue(true))}, "update", change.EffectNone, ""},
		"title, running":          {state("running"), []change.Change{at("title", tree.StringValue("x"))}, "update", change.EffectLive, ""},
		"title, off":              {state("shutoff"), []change.Change{at("title", tree.StringValue("x"))}, "update", change.EffectNone, ""},
		"memory, running":         {state("running"), []change.Change{at("memory", tree.IntValue(1))}, "resize", change.EffectNextBoot, ""},
		"memory, paused":          {state("paused"), []change.Change{at("memory", tree.IntValue(1))}, "resize", change.EffectNextBoot, ""},
		"memory, crashed":         {state("crashed"), []change.Change{at("memory", tree.IntValue(1))}, "resize", change.EffectNextBoot, ""},
		"memory, off":             {state("shutoff"), []change.Change{at("memory", tree.IntValue(1))}, "resize", change.EffectNone, ""},
		"memory, power unknown":   {tree.NullValue.With("name", tree.StringValue("web")), []change.Change{at("memory", tree.IntValue(1))}, "resize", change.EffectNextBoot, ""},
		"memory and a disk":       {state("running"), []change.Change{at("memory", tree.IntValue(1)), at("devices.disks[0].driver.cache", tree.StringValue("none"))}, "update", change.EffectNextBoot, ""},
		"a path without an owner": {state("running"), []change.Change{at("devices.sounds[0].model", tree.StringValue("ac97"))}, "update", change.EffectNextBoot, ""},
		"name, running":           {state("running"), []change.Change{at("name", tree.StringValue("x"))}, "update", change.EffectNextBoot, "Cannot change name of the running domain"},
		"name, off":               {state("shutoff"), []change.Change{at("name", tree.StringValue("x"))}, "update", change.EffectNone, ""},
		"stop":                    {state("running"), []change.Change{at("running", tree.BoolValue(false))}, "update", change.EffectNextBoot, "Cannot change running of the running domain"},
		"start":                   {state("shutoff"), []change.Change{at("running", tree.BoolValue(true))}, "update", change.EffectNone, ""},
		"uuid":                    {state("running"), []change.Change{at("uuid", tree.StringValue("x"))}, "recreate", change.EffectReplace, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := k.Judge(kind.Judgement{Prior: c.prior, Changes: c.changes})
			if v.Outcome != c.outcome || v.Effect != c.effect {
				t.Errorf("outcome %s, effect %s", v.Outcome, v.Effect)
			}
			if len(v.Fields) != len(c.changes) {
				t.Errorf("fields %v", v.Fields)
			}
			var refused string
			for _, r := range v.Refusals {
				refused += r.Summary
			}
			if !strings.Contains(refused, c.refusals) || c.refusals == "" && refused != "" {
				t.Errorf("refusals %q", refused)
			}
		})
	}
}

func TestTier(t *testing.T) {
	for pattern, want := range map[string]change.Tier{
		"uuid": change.TierLocked, "os.nv_ram.source.file.file": change.TierLocked, "os.type_machine": change.TierModification, "os.loader_type": change.TierModification,
		"memory": change.TierModification, "memory_backing.memory_locked": change.TierRoutine, "devices.disks[].driver.cache": change.TierModification, "title": change.TierRoutine, "autostart": change.TierRoutine,
	} {
		if got := tier(pattern); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestMarker(t *testing.T) {
	const foreign = `<x:site xmlns:x="u" rack="7"/>`
	for _, user := range []string{"", foreign} {
		rest, m := splitMarker(joinMarker(user, marker{7}))
		if rest != user || m.Generation != 7 {
			t.Errorf("%q: got %q, %+v", user, rest, m)
		}
	}
	if rest, m := splitMarker(foreign); rest != foreign || m.Generation != 0 {
		t.Errorf("got %q, %+v", rest, m)
	}
	for _, broken := range []string{"<", `<domain generation="x"/>`, ""} {
		if got := parseMarker(broken); got.Generation != 0 {
			t.Errorf("%q: %+v", broken, got)
		}
	}
}

func TestMergeMetadata(t *testing.T) {
	a, b, c := `<a:a xmlns:a="a"/>`, `<b:b xmlns:b="b"/>`, `<c:c xmlns:c="c"/>`
	got, err := mergeMetadata(a+b+c, `<a:a xmlns:a="a" n="2"/>`, a+b)
	if err != nil {
		t.Fatal(err)
	}
	if want := `<a:a xmlns:a="a" n="2"/>` + c; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	cases := map[string]struct {
		desired, actual, owned string
		covers                 bool
	}{
		"foreign on the host":     {a, a + c, a, true},
		"owned once, still there": {a, a + b, a + b, false},
		"owned once, gone":        {a, a, a + b, true},
		"missing":                 {a + b, a, "", false},
		"other content":           {a, `<a:a xmlns:a="a" n="2"/>`, "", false},
		"other order of elements": {b + a, a + b, "", true},
		"spelt with other prefix": {a, `<a xmlns="a"/>`, "", true},
	}
	for name, tc := range cases {
		covers, applies := coversMetadata("metadata.xml", tree.StringValue(tc.desired), tree.StringValue(tc.actual), tree.StringValue(tc.owned))
		if !applies || covers != tc.covers {
			t.Errorf("%s: covers %v, applies %v", name, covers, applies)
		}
	}
	if _, applies := coversMetadata("title", tree.NullValue, tree.NullValue, tree.NullValue); applies {
		t.Error("applies to a title")
	}
}
