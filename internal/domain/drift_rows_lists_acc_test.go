package domain_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// disk is an element of devices.disks.
func disk(t testing.TB, name, dev, more string) string {
	t.Helper()
	return fmt.Sprintf(`{ driver = { name = "qemu", type = "raw", cache = "none" %s }, source = { file = { file = %q } }, target = { dev = %q, bus = "virtio" } }`,
		more, lab.Host(t).PoolDir()+"/"+name+"-"+dev+".raw", dev)
}

func disks(all ...string) string {
	return "disks = [\n      " + strings.Join(all, ",\n      ") + "\n    ]"
}

func TestAccDrift_foreignDevicesStay(t *testing.T) {
	core := acctest.Case(t, "devices that somebody plugged into a machine or its definition survive every later apply: of the title, of the memory, of an element of the same list, of more and fewer elements")
	const on, off, live = "stay-on", "stay-off", "stay-live"
	for _, name := range []string{on, off, live} {
		for _, dev := range []string{"vda", "vdb", "vdx", "vdy"} {
			image(t, name+"-"+dev+".raw")
		}
	}
	forget(t, on, off, live)
	body := func(more string, memory int, devs ...func(name string) string) (b string) {
		for _, name := range []string{on, off, live} {
			var all []string
			for _, d := range devs {
				all = append(all, d(name))
			}
			b += machine{name: name, off: name == off, memory: memory, more: pluggable + "\n  " + more, devices: disks(all...) + "\n    " + nics(name) + "\n    " + ports(12)}.block(t)
		}
		return b
	}
	dev := func(dev, more string) func(string) string {
		return func(name string) string { return disk(t, name, dev, more) }
	}
	p := project(t, core, body("", 128, dev("vda", ""), dev("vdb", "")))
	p.Must(0, "apply", "-auto-approve")
	guests := map[string]*lab.Guest{on: lab.Observe(t, on), live: lab.Observe(t, live)}
	for name, flags := range map[string]string{on: "--live --config", off: "--config", live: "--live"} {
		virsh("attach-disk $ "+lab.Host(t).PoolDir()+"/"+name+"-vdx.raw vdx "+flags, "attach-interface $ network default --model virtio --mac "+macOf(name, 9)+" "+flags)(t, name)
	}
	stay := func(when string) {
		t.Helper()
		for _, name := range []string{on, off, live} {
			var xmls []string
			if name != live {
				xmls = append(xmls, lab.Virsh(t, "dumpxml", "--inactive", name))
			}
			if name != off {
				xmls = append(xmls, lab.Virsh(t, "dumpxml", name))
			}
			for _, xml := range xmls {
				if !containsAll(xml, []string{name + "-vdx.raw", macOf(name, 9)}) {
					t.Errorf("%s: after an apply of %s, a foreign device is gone:\n%s", name, when, xml)
				}
			}
		}
	}
	titled := `title = "ours"`
	for _, step := range []struct{ what, body string }{
		{"the title", body(titled, 128, dev("vda", ""), dev("vdb", ""))},
		{"the memory", body(titled, 144, dev("vda", ""), dev("vdb", ""))},
		{"an element of the same list", body(titled, 144, dev("vda", `, discard = "unmap"`), dev("vdb", ""))},
		{"one element more, in front", body(titled, 144, dev("vdy", ""), dev("vda", `, discard = "unmap"`), dev("vdb", ""))},
		{"one element less", body(titled, 144, dev("vda", `, discard = "unmap"`), dev("vdb", ""))},
		{"none of the list", body(titled, 144)},
	} {
		configure(t, p, step.body)
		p.Must(0, "apply", "-auto-approve")
		p.Must(0, "plan", "-detailed-exitcode")
		stay(step.what)
	}
	for name, guest := range guests {
		guest.Untouched(t, name)
	}
	last := tell(t, p)
	for name, want := range map[string]string{on: "", off: "", live: " (guest only)"} {
		got := words(last.state(name), "status.foreign")
		if !containsAll(strings.Join(got, "\n"), []string{"disk vdx" + want, "interface " + macOf(name, 9) + want}) {
			t.Errorf("%s: status.foreign is %q", name, got)
		}
	}
}

func TestAccDrift_foreignDeviceInThePlan(t *testing.T) {
	core := acctest.Case(t, "neither the text of a plan nor show -json reads as the removal of a device that stays, without a warning that says so; on the core at hand")
	const made, found = "text-made", "text-found"
	for _, name := range []string{made, found} {
		for _, dev := range []string{"vda", "vdb", "vdx"} {
			image(t, name+"-"+dev+".raw")
		}
	}
	forget(t, made, found)
	body := func(more string) string {
		m := machine{name: made, off: true, devices: disks(disk(t, made, "vda", more), disk(t, made, "vdb", ""))}
		f := machine{name: found, off: true, devices: disks(disk(t, found, "vda", more), disk(t, found, "vdb", ""))}
		return m.block(t) + f.block(t)
	}
	p := project(t, core, body(""))
	p.Must(0, "apply", "-auto-approve")
	for _, name := range []string{made, found} {
		lab.Virsh(t, "attach-disk", name, lab.Host(t).PoolDir()+"/"+name+"-vdx.raw", "vdx", "--config")
	}
	p.Must(0, "state", "rm", "libvirt_domain."+found)
	p.Must(0, "import", "libvirt_domain."+found, found)
	if out := p.Must(0, "plan", "-detailed-exitcode"); !strings.Contains(out, "No changes.") {
		t.Errorf("a foreign disk is no change:\n%s", out)
	}

	configure(t, p, body(`, discard = "unmap"`))
	text := p.Must(2, "plan", "-detailed-exitcode")
	seen := tell(t, p)
	for _, name := range []string{made, found} {
		plans(t, seen, name, "devices.disks[vda].driver.discard: none")
	}
	const warning = "These leave the state, not the machine (1); nothing of them changes on the host: devices.disks[vdx]"
	if told := lab.Says(`The plan for domain "text-made" needs a second look`); told.MatchString(text) || removesElement(t, text, made) || seen.shrinks(made) != 0 {
		t.Errorf("%s: its plan reads as a removal, or warns of one:\n%s", made, text)
	}
	if told := lab.Says(`The plan for domain "text-found" needs a second look`, warning); !told.MatchString(text) || !removesElement(t, text, found) || seen.shrinks(found) != 1 {
		t.Errorf("%s: its list gets shorter, and a warning says what that is:\n%s", found, text)
	}
	says(t, seen, found, warning)
	p.Must(0, "apply", "plan")
	p.Must(0, "plan", "-detailed-exitcode")
	for name, xml := range definitions(t, []string{made, found}) {
		if !containsAll(xml, []string{"-vda.raw", "-vdb.raw", "-vdx.raw", "discard='unmap'"}) {
			t.Errorf("%s lost a disk:\n%s", name, xml)
		}
	}
}

// removesElement says whether the text of a plan takes an element out of a
// list of a machine's devices. What it shows of status is only not known yet.
func removesElement(t testing.TB, text, name string) bool {
	t.Helper()
	_, block, found := strings.Cut(text, fmt.Sprintf("resource \"libvirt_domain\" %q {", name))
	if !found {
		t.Fatalf("the plan does not show %s:\n%s", name, text)
	}
	block, _, _ = strings.Cut(block, "\n    }")
	block, _, _ = strings.Cut(block, " status ")
	return regexp.MustCompile(`(?m)^ *- \{`).MatchString(block)
}

// shrinks says by how many disks the state of a machine gets shorter.
func (s told) shrinks(name string) int {
	for _, c := range s.Changes {
		if c.Address == "libvirt_domain."+name {
			before, _ := at(c.Change.Before, "devices.disks").([]any)
			after, _ := at(c.Change.After, "devices.disks").([]any)
			return len(before) - len(after)
		}
	}
	return 0
}

// meeting is drift that is held and an intent in the same list.
type meeting struct {
	name          string
	made, planned func(name string) string // what the machine has, before and after the intent
	drift         action
	refused       []string // parts of the error; none: the plan can express both
	fields        []string // of the plan that can

	beside      bool   // the list is not one of devices
	told, drawn string // what the warning says of the drift, and the definition has by it
}

// meetings are the ways in which a hold and an intent meet.
func meetings(t testing.TB) []meeting {
	t.Helper()
	dev := func(dev, more string) func(string) string {
		return func(name string) string { return disk(t, name, dev, more) }
	}
	a, b, c := dev("vda", ""), dev("vdb", ""), dev("vdc", "")
	list := func(all ...func(string) string) func(string) string {
		return func(name string) string {
			var elems []string
			for _, e := range all {
				elems = append(elems, e(name))
			}
			return disks(elems...)
		}
	}
	// cached changes the cache of the one disk that is known by its file.
	cached := func(dev string) action {
		return func(t testing.TB, name string) {
			t.Helper()
			file := name + "-" + dev + ".raw"
			before, _, found := strings.Cut(lab.Virsh(t, "dumpxml", "--inactive", name), file)
			if !found {
				t.Fatalf("%s has no disk %s", name, file)
			}
			elem := before[strings.LastIndex(before, "<disk"):] + file
			edit(elem, strings.Replace(elem, "cache='none'", "cache='writeback'", 1))(t, name)
		}
	}
	held := func(dev string) []string {
		return []string{`disks[` + dev + `].driver.cache is "writeback" on the host and "none" in the configuration`, "update = { approve = ["}
	}
	met := []meeting{
		{name: "in-front", made: list(a, b), planned: list(c, a, b), drift: cached("vda"), refused: held("vda")},
		{name: "taken-before", made: list(a, b), planned: list(b), drift: cached("vdb"), refused: held("vdb")},
		{name: "permuted", made: list(a, b), planned: list(b, dev("vda", `, discard = "unmap"`)), drift: cached("vdb"), refused: held("vdb")},
		{name: "gone-before", made: list(a, b), planned: list(a, b), drift: both(virsh("detach-disk $ vda --config"), cached("vdb"))},
		{name: "gone-and-intent", made: list(a, b), planned: list(a, dev("vdb", `, discard = "unmap"`)), drift: both(virsh("detach-disk $ vda --config"), cached("vdb")), refused: held("vdb")},
		{name: "at-the-end", made: list(a, b), planned: list(a, b, c), drift: cached("vda"), fields: []string{"devices.disks[vdc]: added none"}},
		{name: "taken-behind", made: list(a, b), planned: list(a), drift: cached("vda"), fields: []string{"devices.disks[vdb]: removed none"}},
		{name: "same-element", made: list(a, b), planned: list(dev("vda", `, discard = "unmap"`), b), drift: cached("vda"), fields: []string{"devices.disks[vda].driver.discard: none"}},
		{name: "other-element", made: list(a, b), planned: list(a, dev("vdb", `, discard = "unmap"`)), drift: cached("vda"), fields: []string{"devices.disks[vdb].driver.discard: none"}},
		{name: "permuted-only", made: list(a, b), planned: list(b, a), drift: cached("vda")},
	}
	for i := range met {
		met[i].told, met[i].drawn = `cache is "writeback" on the host`, "cache='writeback'"
	}
	return append(met, meetingsElsewhere()...)
}

// meetingsElsewhere are those in lists that are none of devices: one in which
// elements have a name, one in which the place counts, and one within another.
func meetingsElsewhere() (met []meeting) {
	cpu := func(features ...string) func(string) string {
		elems := []string{}
		for _, f := range features {
			name, policy, _ := strings.Cut(f, " ")
			elems = append(elems, fmt.Sprintf("{ name = %q, policy = %q }", name, policy))
		}
		return func(string) string {
			return `cpu = { mode = "custom", match = "exact", model = "qemu64", model_fallback = "allow", features = [` + strings.Join(elems, ", ") + "] }"
		}
	}
	forced := edit("<feature policy='disable' name='svm'/>", "<feature policy='force' name='svm'/>")
	svm := []string{`cpu.features[svm].policy is "force" on the host and "disable" in the configuration`, "update = { approve = ["}
	a, b := "svm disable", "x2apic require"
	for _, m := range []meeting{
		{name: "feature-in-front", made: cpu(a, b), planned: cpu("aes disable", a, b), refused: svm},
		{name: "feature-gone", made: cpu(b, a), planned: cpu(a), refused: svm},
		{name: "feature-at-the-end", made: cpu(a, b), planned: cpu(a, b, "aes disable"), fields: []string{"cpu.features[aes]: added none"}},
		{name: "feature-beside", made: cpu(a, b), planned: cpu(a, "x2apic force"), fields: []string{"cpu.features[x2apic].policy: none"}},
	} {
		m.beside, m.drift, m.told, m.drawn = true, forced, `cpu.features[svm].policy is "force" on the host`, "policy='force' name='svm'"
		met = append(met, m)
	}

	const first, second = `{ id = 0, cpus = "0", memory = 65536, distances = { siblings = [{ id = 0, value = 10 }, { id = 1, value = 21 }] } }`, `{ id = 1, cpus = "1", memory = 65536 `
	cells := func(cells ...string) func(string) string {
		return func(string) string { return "cpu = { numa = { cell = [" + strings.Join(cells, ", ") + "] } }" }
	}
	made := cells(first, second+"}")
	for _, m := range []meeting{
		{name: "cell-beside", made: made, planned: cells(first, second+`, discard = "yes" }`), fields: []string{"cpu.numa.cell[1].discard: none"}},
		{name: "cells-permuted", made: made, planned: cells(second+`, discard = "yes" }`, first),
			refused: []string{"cpu.numa.cell[0].distances.siblings[1].value is 30 on the host and 21 in the configuration", "update = { approve = ["}},
	} {
		m.beside, m.drift = true, edit("<sibling id='1' value='21'/>", "<sibling id='1' value='30'/>")
		m.told, m.drawn = "cpu.numa.cell[0].distances.siblings[1].value is 30 on the host", "<sibling id='1' value='30'/>"
		met = append(met, m)
	}
	return met
}

func both(first, second action) action {
	return func(t testing.TB, name string) {
		t.Helper()
		first(t, name)
		second(t, name)
	}
}

func TestAccDrift_holdMeetsIntent(t *testing.T) {
	core := acctest.Case(t, "drift that is held and an intent in the same list: planned where the core can express both, refused by us with both named where it cannot, and never an invalid plan")
	all := meetings(t)
	body := func(planned bool, of func(meeting) bool, more func(name string) string) (b string) {
		for _, m := range all {
			has := m.made
			if planned && of(m) {
				has = m.planned
			}
			one := machine{name: m.name, off: true, more: more(m.name)}
			if m.beside {
				one.vcpu, one.more = 2, one.more+"\n  "+has(m.name)
			} else {
				one.devices = has(m.name)
			}
			b += one.block(t)
		}
		return b
	}
	nothing := func(string) string { return "" }
	whole := func(meeting) bool { return true }
	for _, m := range all {
		forget(t, m.name)
		for _, dev := range []string{"vda", "vdb", "vdc"} {
			image(t, m.name+"-"+dev+".raw")
		}
	}
	p := project(t, core, body(false, whole, nothing))
	p.Must(0, "apply", "-auto-approve")
	var names []string
	for _, m := range all {
		m.drift(t, m.name)
		names = append(names, m.name)
	}
	before := definitions(t, names)
	drifted := tell(t, p)

	configure(t, p, body(true, whole, nothing))
	says(t, drifted, "gone-before", "devices.disks[vda] was changed too, and is put back once that is decided")
	for _, command := range [][]string{{"plan"}, {"apply", "-auto-approve"}} {
		out := p.Must(1, command...)
		if invalid := regexp.MustCompile(`(?i)invalid plan|Provider produced|bug in the provider`).FindString(out); invalid != "" {
			t.Fatalf("the core says %q:\n%s", invalid, out)
		}
		for _, m := range all {
			named := lab.Says(fmt.Sprintf("Held drift meets a change of the same list in domain %q", m.name)).MatchString(out)
			if refused := len(m.refused) > 0; refused != named {
				t.Errorf("%s: refused: %v, want %v:\n%s", m.name, named, refused, out)
			}
			if named && !lab.Says(m.refused...).MatchString(out) {
				t.Errorf("%s: the refusal does not say %q:\n%s", m.name, m.refused, out)
			}
		}
	}
	if now := definitions(t, names); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Error("something changed though the plan was refused")
	}

	// What can be expressed is done, and the drift stays held.
	fits := func(m meeting) bool { return len(m.refused) == 0 }
	configure(t, p, body(true, fits, nothing))
	seen := tell(t, p)
	for _, m := range all {
		if fits(m) {
			plans(t, seen, m.name, m.fields...)
			says(t, seen, m.name, m.told)
		}
	}
	p.Must(0, "apply", "plan")
	for _, m := range all {
		if xml := lab.Virsh(t, "dumpxml", "--inactive", m.name); fits(m) && !strings.Contains(xml, m.drawn) {
			t.Errorf("%s: the held drift is gone:\n%s", m.name, xml)
		}
	}

	// The way out that each refusal names: with the approval, both are done.
	configure(t, p, body(true, whole, func(name string) string {
		for _, m := range all {
			if m.name == name && !fits(m) {
				return fmt.Sprintf("update = { approve = [%q] }", digest(t, drifted, name))
			}
		}
		return ""
	}))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	for _, m := range all {
		if xml := lab.Virsh(t, "dumpxml", "--inactive", m.name); !fits(m) && strings.Contains(xml, m.drawn) {
			t.Errorf("%s: approved, and still there:\n%s", m.name, xml)
		}
	}
}

func TestAccDomain_whatIsTakenOutIsGone(t *testing.T) {
	core := acctest.Case(t, "a serial port that the configuration drops is gone, though libvirt would make it again from its console; what libvirt cannot do without comes back, and is told")
	const name = "taken-out"
	forget(t, name)
	full := machine{name: name, off: true, devices: `inputs = [{ type = "mouse", bus = "ps2" }]
    controllers = [{ type = "pci", model = "pcie-root-port", index = 1 }]`}.block(t)
	bare := regexp.MustCompile(`(?m)^ *serials = .*$`).ReplaceAllString(machine{name: name, off: true}.block(t), "")
	p := project(t, core, full)
	p.Must(0, "apply", "-auto-approve")
	configure(t, p, bare)
	plans(t, tell(t, p), name, "devices.controllers[pci 1]: removed none", "devices.inputs[ps2 mouse]: removed none", "devices.serials[0]: removed none")
	out := p.Must(0, "apply", "plan")
	for _, device := range []string{"devices.controllers[pci 1]", "devices.inputs[ps2 mouse]"} {
		if !lab.Says(fmt.Sprintf("%s of domain %q came back", device, name)).MatchString(out) {
			t.Errorf("%s came back, and nobody says so:\n%s", device, out)
		}
	}
	if xml := lab.Virsh(t, "dumpxml", "--inactive", name); strings.Contains(xml, "<serial") || strings.Contains(xml, "<console") || !strings.Contains(xml, "<input type='mouse' bus='ps2'/>") {
		t.Errorf("the serial port is there still, or the mouse is not:\n%s", xml)
	}
	p.Must(0, "plan", "-detailed-exitcode")
}
