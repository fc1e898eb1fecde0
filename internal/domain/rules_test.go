package domain

import (
	"fmt"
	"slices"
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
	for p := range ordered {
		check("ordered", p)
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
	for _, p := range []string{"running", "memory", "vcpu", "os.type_machine"} {
		for _, f := range follows(p) {
			check("follows", f)
		}
	}
}

func TestJudge(t *testing.T) {
	k := New(nil)
	str, num := tree.StringValue, tree.IntValue
	const mib = 1 << 20
	guest := tree.NullValue.With("memory", num(128)).With("memory_unit", str("MiB")).With("current_memory", num(128)).With("current_memory_unit", str("MiB")).
		With("vcpu", num(4)).With("vcpu_current", num(2)).SetAt("vcpus.vcpu", tree.ListValue([]tree.Value{
		tree.NullValue.With("id", num(0)).With("enabled", str("yes")).With("hotpluggable", str("no")),
		tree.NullValue.With("id", num(1)).With("enabled", str("yes")).With("hotpluggable", str("yes")),
		tree.NullValue.With("id", num(2)).With("enabled", str("no")).With("hotpluggable", str("yes")),
	}))
	at := func(path string, desired tree.Value) change.Change {
		return change.Change{Path: tree.ParsePath(path), Desired: desired}
	}
	bytes := func(path string, n int64) change.Change {
		return change.Change{Path: tree.ParsePath(path), Desired: num(n), Unit: "bytes"}
	}
	reached := func(c change.Change) change.Change { c.Reached = true; return c }
	stop, waits := "Cannot change", "cannot be applied without a restart"
	// live, next_boot and restart are what the three limits make of it on a
	// running guest; a text is a refusal that has it.
	cases := map[string]struct {
		change                  change.Change
		live, nextBoot, restart string
		off                     change.Effect
	}{
		"autostart":               {at("autostart", tree.BoolValue(true)), "none", "none", "none", 0},
		"title":                   {at("title", str("x")), "live", "live", "live", 0},
		"memory":                  {bytes("memory", 256*mib), waits, "next_boot", "restart", 0},
		"memory, not known yet":   {at("memory", tree.UnknownValue), waits, "next_boot", "restart", 0},
		"memory, taken back":      {reached(bytes("memory", 128*mib)), "none", "none", "none", 0},
		"balloon, down":           {bytes("current_memory", 64*mib), "live", "live", "live", 0},
		"balloon, up to the end":  {bytes("current_memory", 128*mib), "live", "live", "live", 0},
		"balloon, above the end":  {bytes("current_memory", 129*mib), waits, "next_boot", "restart", 0},
		"balloon, left out":       {change.Change{Path: tree.ParsePath("current_memory"), Kind: change.Withdrawal}, waits, "next_boot", "restart", 0},
		"CPU plugged in":          {at("vcpu_current", num(4)), "live", "live", "live", 0},
		"CPU taken out":           {at("vcpu_current", num(1)), "live", "live", "live", 0},
		"more CPUs than room":     {at("vcpu_current", num(5)), waits, "next_boot", "restart", 0},
		"most CPUs":               {at("vcpu", num(5)), waits, "next_boot", "restart", 0},
		"machine type":            {at("os.type_machine", str("pc")), waits, "next_boot", "restart", 0},
		"CPU model":               {at("cpu.model.value", str("qemu64")), waits, "next_boot", "restart", 0},
		"boot order":              {at("os.boot_devices[0].dev", str("hd")), waits, "next_boot", "restart", 0},
		"boot order of a disk":    {at("devices.disks[0].boot.order", num(1)), waits, "next_boot", "restart", 0},
		"a path without an owner": {at("devices.sounds[0].model", str("ac97")), waits, "next_boot", "restart", 0},
		"name":                    {at("name", str("x")), stop, stop, "restart", 0},
		"stop":                    {at("running", tree.BoolValue(false)), "shutdown", "shutdown", "shutdown", 0},
		"stop, perhaps":           {at("running", tree.UnknownValue), "shutdown", "shutdown", "shutdown", 0},
		"power left alone":        {change.Change{Path: tree.ParsePath("running"), Kind: change.Withdrawal}, "none", "none", "none", 0},
		"start":                   {at("running", tree.BoolValue(true)), "none", "none", "none", 0},
		"uuid":                    {at("uuid", str("x")), "replace", "replace", "replace", change.EffectReplace},
	}
	judge := func(power, allow string, c change.Change) string {
		prior := tree.NullValue.With("name", str("web")).SetAt("status.power", textOrNull(power))
		v := k.Judge(kind.Judgement{Prior: prior, Config: tree.NullValue.SetAt("update.allow", textOrNull(allow)), Changes: []change.Change{c}, Guest: guest})
		if len(v.Fields) != 1 || !strings.HasSuffix(v.Fields[0], v.Effect.String()) {
			t.Errorf("fields %v, effect %s", v.Fields, v.Effect)
		}
		if len(v.Refusals) > 0 {
			r := v.Refusals[0]
			if !strings.Contains(r.Summary, `"web"`) || !strings.Contains(r.Summary, c.Path.String()) || !strings.Contains(r.Detail, "Nothing was changed") {
				t.Errorf("refusal %+v", r)
			}
			return r.Summary
		}
		return v.Effect.String()
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, power := range []string{"running", "paused", "crashed", ""} {
				for allow, want := range map[string]string{"live": c.live, "next_boot": c.nextBoot, "": c.nextBoot, "restart": c.restart} {
					if got := judge(power, allow, c.change); got != want && !(strings.Contains(want, " ") && strings.Contains(got, want)) {
						t.Errorf("%q, allow %q: %s, want %s", power, allow, got, want)
					}
				}
			}
			for _, allow := range []string{"live", "next_boot", "restart"} {
				if got := judge("shutoff", allow, c.change); got != c.off.String() {
					t.Errorf("off, allow %s: %s, want %s", allow, got, c.off)
				}
			}
		})
	}
}

func TestJudgeAsAWhole(t *testing.T) {
	k := New(nil)
	memory, title := change.Change{Path: tree.ParsePath("memory")}, change.Change{Path: tree.ParsePath("title")}
	off, name, uuid := change.Change{Path: tree.ParsePath("running"), Desired: tree.BoolValue(false)}, change.Change{Path: tree.ParsePath("name")}, change.Change{Path: tree.ParsePath("uuid")}
	waiting := []tree.Path{tree.ParsePath("memory"), tree.ParsePath("vcpu")}
	cases := map[string]struct {
		allow   string
		changes []change.Change
		live    []change.Change
		waiting []tree.Path
		want    string
	}{
		"a size":                    {"next_boot", []change.Change{memory}, nil, nil, "resize next_boot [memory: next_boot]"},
		"a size and more":           {"next_boot", []change.Change{memory, title}, nil, nil, "update next_boot [memory: next_boot title: live]"},
		"restart for a change":      {"restart", []change.Change{memory, title}, nil, nil, "restart restart [memory: restart title: restart]"},
		"restart for what waits":    {"restart", nil, nil, waiting, "restart restart [memory: restart vcpu: restart]"},
		"restart for both":          {"restart", []change.Change{memory}, nil, waiting, "restart restart [vcpu: restart memory: restart]"},
		"nothing for what waits":    {"next_boot", nil, nil, waiting, "update none []"},
		"a guest behind":            {"next_boot", nil, []change.Change{title}, nil, "update live [title: live]"},
		"a live change and waiting": {"live", []change.Change{title}, nil, waiting, "update live [title: live]"},
		"a shutdown with all else":  {"live", []change.Change{memory, name, off}, []change.Change{title}, nil, "shutdown shutdown [memory: none name: none running: shutdown title: none]"},
		"a shutdown, no restart":    {"restart", []change.Change{off}, nil, waiting, "shutdown shutdown [running: shutdown]"},
		"a shutdown, and another":   {"live", []change.Change{off, uuid}, nil, nil, "recreate replace [running: shutdown uuid: replace]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			prior := tree.NullValue.SetAt("status.power", tree.StringValue("running"))
			v := k.Judge(kind.Judgement{Prior: prior, Config: tree.NullValue.SetAt("update.allow", tree.StringValue(c.allow)), Changes: c.changes, Live: c.live, Waiting: c.waiting})
			if got := fmt.Sprint(v.Outcome, " ", v.Effect, " ", v.Fields); got != c.want || len(v.Refusals) > 0 {
				t.Errorf("%s, want %s; refusals %v", got, c.want, v.Refusals)
			}
		})
	}
}

func TestTier(t *testing.T) {
	for pattern, want := range map[string]change.Tier{
		"uuid": change.TierLocked, "os.nv_ram.source.file.file": change.TierLocked, "os.type_machine": change.TierModification, "os.loader_secure": change.TierLocked, "os.firmware_info.features[].enabled": change.TierLocked, "os.boot_devices": change.TierModification,
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
		rest, m := splitMarker(joinMarker(user, marker{7, `our "lab" & <more>`, `{"mode":"custom"}`}))
		if rest != user || m.Generation != 7 || m.Owner != `our "lab" & <more>` || m.CPU != `{"mode":"custom"}` {
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

// An element without anything in it is a change, whichever way.
func TestPresent(t *testing.T) {
	k := New(nil)
	without := decoded(t, `<features><acpi/></features>`)
	with := decoded(t, `<features><acpi/><apic/></features>`)
	for name, c := range map[string]struct {
		config, actual, owned tree.Value
		want                  []change.Kind
	}{
		"asked for":         {with, without, without, []change.Kind{change.Intent}},
		"withdrawn":         {without, with, with, []change.Kind{change.Withdrawal}},
		"never asked for":   {without, with, without, nil},
		"there":             {with, with, with, nil},
		"not there":         {without, without, without, nil},
		"withdrawn by hand": {without, without, with, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := k.rules.Plan(change.Input{Type: k.typ, Config: c.config, Prior: c.actual, Baseline: c.actual, Actual: c.actual, Owned: c.owned})
			var got []change.Kind
			for _, changed := range r.Changes {
				if changed.Path.String() != "features.apic" {
					t.Errorf("%s changes", changed.Path)
				}
				got = append(got, changed.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if waiting := k.rules.Waiting(k.typ, with, without, with); len(waiting) != 1 || waiting[0].String() != "features.apic" {
		t.Errorf("%v wait", waiting)
	}
}
