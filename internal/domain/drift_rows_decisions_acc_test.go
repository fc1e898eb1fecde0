package domain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// memoryIs fails the test unless the definition has so many MiB.
func memoryIs(t testing.TB, name string, mib int) {
	t.Helper()
	want := fmt.Sprintf("<memory unit='KiB'>%d</memory>", mib<<10)
	if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, want) {
		t.Errorf("%s has not %s:\n%s", name, want, xml)
	}
}

// plans fails the test unless the plan does this to a machine: the fields, nil
// for an empty plan.
func plans(t testing.TB, s told, name string, fields ...string) {
	t.Helper()
	action, change := s.change(name)
	switch got := words(change, "fields"); {
	case fields == nil && action != "no-op":
		t.Errorf("%s: the plan is %s %v, want an empty one", name, action, change)
	case fields != nil && (action != "update" || !slices.Equal(got, fields)):
		t.Errorf("%s: the plan is %s %v, want %q", name, action, change, fields)
	}
}

// says fails the test unless a warning about a machine has these parts.
func says(t testing.TB, s told, name string, parts ...string) {
	t.Helper()
	if text := strings.Join(s.about(name), "\n"); !containsAll(text, parts) {
		t.Errorf("%s: no warning says %q: %s", name, parts, text)
	}
}

// digest is what approves the one drift of a machine that is held.
func digest(t testing.TB, s told, name string) string {
	t.Helper()
	d, _ := at(s.state(name), "status.held.0.approve").(string)
	if d == "" || at(s.state(name), "status.held.1") != nil {
		t.Fatalf("%s: not one drift is held: %v", name, at(s.state(name), "status.held"))
	}
	return d
}

func TestAccDrift_decisions(t *testing.T) {
	core := acctest.Case(t, "held drift stays until it is approved by its digest (resource, provider, environment), reverted, or agreed with; an approval for another drift changes nothing and says so")
	names := []string{"by-attr", "by-provider", "by-env", "wrong", "reverted", "kept", "stays"}
	more, memory := map[string]string{}, map[string]int{}
	body := func() (b string) {
		for _, name := range names {
			b += machine{name: name, off: true, memory: memory[name], more: more[name]}.block(t)
		}
		return b + machine{name: "by-live", more: "current_memory = 120\n  current_memory_unit = \"MiB\"\n" + more["by-live"]}.block(t)
	}
	forget(t, append(names, "by-live")...)
	p := project(t, core, body())
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, "by-live")
	for _, name := range names {
		lab.Virsh(t, "setmaxmem", name, "192M", "--config")
	}
	inflate("--live")(t, "by-live")
	seen := tell(t, p)
	digests := map[string]string{}
	for _, name := range append(names, "by-live") {
		plans(t, seen, name)
		d := digest(t, seen, name)
		if other := digests[d]; other != "" {
			t.Errorf("%s and %s have one digest: an approval of one drift would approve another", name, other)
		}
		digests[d], digests[name] = name, d
		says(t, seen, name, "was changed on the host, and is left as it is", d)
	}

	approve := func(name string) string { return fmt.Sprintf("update = { approve = [%q] }", digests[name]) }
	more["by-attr"], more["by-live"], more["wrong"] = approve("by-attr"), approve("by-live"), approve("by-attr")
	more["reverted"], more["stays"] = `update = { drift = "revert" }`, `title = "unrelated"`
	memory["kept"] = 192
	p = lab.NewProject(t, core, p.Dir(), "LIBVIRT_PROTECT=false", "LIBVIRT_APPROVE="+digests["by-env"]+",0123456789ab")
	configure(t, p, body(), fmt.Sprintf("approve = [%q]", digests["by-provider"]))
	decided := tell(t, p)
	for _, name := range []string{"by-attr", "by-provider", "by-env", "reverted"} {
		plans(t, decided, name, "memory: none")
	}
	plans(t, decided, "by-live", "current_memory: live")
	plans(t, decided, "wrong", []string{}...)
	plans(t, decided, "kept", "memory: agreed none")
	plans(t, decided, "stays", "title: none")
	says(t, decided, "wrong", `An approval for domain "wrong" is for another drift`, digests["by-attr"]+" approves nothing", "What is held now: memory: "+digests["wrong"])
	says(t, decided, "stays", digests["stays"])
	p.Must(0, "apply", "plan")
	guest.Untouched(t, "by-live")
	if xml := lab.Virsh(t, "dumpxml", "by-live"); !strings.Contains(xml, "<currentMemory unit='KiB'>122880<") {
		t.Errorf("the guest has not got its memory back:\n%s", xml)
	}
	after := tell(t, p)
	for name, mib := range map[string]int{"by-attr": 128, "by-provider": 128, "by-env": 128, "reverted": 128, "wrong": 192, "kept": 192, "stays": 192} {
		memoryIs(t, name, mib)
		plans(t, after, name)
		if state, want := at(after.state(name), "status.state"), map[bool]string{true: "held", false: "settled"}[name == "wrong" || name == "stays"]; state != want {
			t.Errorf("%s is %v, want %s", name, state, want)
		}
	}

	// What was agreed with is the agreement now: the old value is an intent.
	// An approval is for one drift only, and the next one is held again.
	memory["kept"] = 128
	lab.Virsh(t, "setmaxmem", "by-attr", "160M", "--config")
	configure(t, p, body())
	again := tell(t, p)
	plans(t, again, "kept", "memory: none")
	plans(t, again, "by-attr")
	says(t, again, "by-attr", digests["by-attr"]+" approves nothing", "What is held now: memory: "+digest(t, again, "by-attr"))
	p.Must(0, "apply", "plan")
	memoryIs(t, "kept", 128)
	memoryIs(t, "by-attr", 160)
	memoryIs(t, "stays", 192)
	last := tell(t, p)
	plans(t, last, "kept")
	plans(t, last, "by-attr")
}

func TestAccDrift_importedIsHeld(t *testing.T) {
	core := acctest.Case(t, "a machine that was imported with a sparse configuration plans nothing; what somebody changes then is held")
	const name = "by-hand"
	lab.Virsh(t, "define", definition(t, `<domain type='qemu'><name>by-hand</name><memory unit='MiB'>128</memory><vcpu>1</vcpu><title>theirs</title>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/nowhere/root.raw'/><target dev='vda' bus='virtio'/></disk></devices></domain>`))
	forget(t, name)
	sparse := func(more string) string {
		return "resource \"libvirt_domain\" \"by-hand\" {\n name = \"by-hand\"\n type = \"qemu\"\n memory = 128\n memory_unit = \"MiB\"\n " + more + "\n}"
	}
	p := project(t, core, sparse(""))
	p.Must(0, "import", "libvirt_domain.by-hand", name)
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "setmaxmem", name, "192M", "--config")
	lab.Virsh(t, "desc", name, "--config", "--title", "others")
	seen := tell(t, p)
	plans(t, seen, name)
	says(t, seen, name, "memory is 201326592 bytes on the host; the configuration has 134217728 bytes", "write `memory = 192`", "update = { approve = [")
	if title := at(seen.state(name), "title"); title != "others" {
		t.Errorf("the refreshed title is %v", title)
	}
	p.Must(0, "apply", "plan")
	memoryIs(t, name, 192)

	configure(t, p, sparse(`description = "ours"`))
	described := tell(t, p)
	plans(t, described, name, "description: none")
	p.Must(0, "apply", "plan")
	memoryIs(t, name, 192)
	held := tell(t, p)
	plans(t, held, name)
	configure(t, p, sparse(`description = "ours"`+"\n update = { approve = [\""+digest(t, held, name)+"\"] }"))
	approved := tell(t, p)
	plans(t, approved, name, "memory: none")
	p.Must(0, "apply", "plan")
	memoryIs(t, name, 128)
	p.Must(0, "plan", "-detailed-exitcode")
	if title := lab.Virsh(t, "desc", name, "--title"); !strings.Contains(title, "others") {
		t.Errorf("nobody asked for another title: %s", title)
	}
}

func TestAccDrift_refreshOnly(t *testing.T) {
	core := acctest.Case(t, "apply -refresh-only takes what somebody did into the state and touches nothing; the next plan tells the truth about it")
	const on, off = "only-on", "only-off"
	texts := "autostart = true\n  title = \"ours\"\n  description = \"ours too\""
	body := machine{name: on, more: texts}.block(t) + machine{name: off, off: true, more: texts}.block(t)
	p := project(t, core, body)
	forget(t, on, off)
	p.Must(0, "apply", "-auto-approve")
	for _, name := range []string{on, off} {
		virsh("autostart --disable $", "desc $ --config --title theirs", "desc $ --config --new-desc ''")(t, name)
	}
	lab.Virsh(t, "destroy", on)
	lab.Virsh(t, "setmaxmem", off, "192M", "--config")
	before := definitions(t, []string{on, off})
	p.Must(0, "apply", "-refresh-only", "-auto-approve")
	var state struct {
		Values struct {
			Root struct {
				Resources []resourceState `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(p.Must(0, "show", "-json")), &state); err != nil {
		t.Fatal(err)
	}
	for _, r := range state.Values.Root.Resources {
		want := map[string]string{"autostart": "false", "title": "theirs", "description": "<nil>", "running": "false", "status.power": "shutoff"}
		if r.Values["name"] == off {
			want["memory"], want["status.state"] = "196608", "held"
		}
		for path, v := range want {
			if got := fmt.Sprint(at(r.Values, path)); got != v {
				t.Errorf("%s in the state: %s is %s, want %s", r.Address, path, got, v)
			}
		}
	}
	for name, xml := range definitions(t, []string{on, off}) {
		if power := strings.TrimSpace(lab.Virsh(t, "domstate", name)); xml != before[name] || power != "shut off" {
			t.Errorf("%s: -refresh-only touched it: %s\n%s", name, power, xml)
		}
	}
	truth := tell(t, p)
	plans(t, truth, on, "autostart: none", "description: none", "running: none", "title: none")
	plans(t, truth, off, "autostart: none", "description: none", "title: none")
	says(t, truth, off, "memory is 201326592 bytes on the host")
	p.Must(0, "apply", "plan")
	p.Must(0, "plan", "-detailed-exitcode")
	memoryIs(t, off, 192)
	if power := strings.TrimSpace(lab.Virsh(t, "domstate", on)); power != "running" {
		t.Errorf("%s is %s", on, power)
	}
}
