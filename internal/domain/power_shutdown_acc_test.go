package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// domstate is what libvirt says of a machine, with its reason: "shut off
// (shutdown)".
func domstate(t testing.TB, name string) string {
	t.Helper()
	return strings.TrimSpace(lab.Virsh(t, "domstate", "--reason", name))
}

// planned fails the test unless a plan says just this of a machine; no fields:
// that there is nothing to do.
func planned(t testing.TB, seen told, name, effect string, fields ...string) {
	t.Helper()
	action, change := seen.change(name)
	if len(fields) == 0 {
		if action != "no-op" {
			t.Errorf("%s: the plan is %s: %v", name, action, change)
		}
		return
	}
	same(t, name+": change.fields", words(change, "fields"), fields)
	if got := at(change, "effect"); action != "update" || got != effect {
		t.Errorf("%s: the plan is %s with the effect %v, want an update with %s", name, action, got, effect)
	}
	if outcome := at(change, "outcome"); (effect == "shutdown" || effect == "restart") && outcome != effect {
		t.Errorf("%s: the outcome is %v", name, outcome)
	}
}

// isOff sets what the configuration says of the power: off.
func isOff(m machine) machine { m.off = true; return m }

func plus(m machine, more string) machine { m.more += "\n  " + more; return m }

// blocks are the resources of some machines.
func blocks(t testing.TB, machines ...machine) (body string) {
	t.Helper()
	for _, m := range machines {
		body += m.block(t)
	}
	return body
}

// deafened is a configuration whose guests do not hear the button.
func deafened(body string) string {
	return strings.Replace(body, `cmdline      = "`, `cmdline      = "guest.nopower=1 `, 1)
}

func TestAccPower_off(t *testing.T) {
	core := acctest.Case(t, "running = false shuts a guest down in order, whatever update.allow says, with everything else that changes; one that does not hear is left alone and all is taken back, until force; one that boots again whenever it powers off stays off; started by hand it is shut down again, with a warning")
	again := machine{name: "off-again", more: pluggable + "\n  on_poweroff = \"restart\""}
	plain, strict := machine{name: "off-plain", more: pluggable}, machine{name: "off-strict", more: pluggable + "\n  update = { allow = \"live\" }"}
	unheard, hard := machine{name: "off-deaf", more: pluggable}, machine{name: "off-hard", more: pluggable}
	quick := func(m machine, more string) machine {
		return plus(m, fmt.Sprintf("update = { shutdown = { timeout = 3 %s } }\n  destroy = { shutdown = { timeout = 1 } }", more))
	}
	p := project(t, core, blocks(t, plain, strict, again)+deafened(unheard.block(t))+deafened(hard.block(t)))
	forget(t, plain.name, strict.name, again.name, "off-renamed", unheard.name, hard.name)
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, unheard.name)
	for _, m := range []machine{plain, strict, again, hard} {
		lab.Observe(t, m.name)
	}
	before := definitions(t, []string{unheard.name})[unheard.name]

	renamed := isOff(plus(strict, `title = "asleep"`))
	renamed.memory = 160
	away := isOff(quick(plus(unheard, `title = "asleep"`), ""))
	rename := func(body string) string { return strings.Replace(body, `"off-strict"`+"\n", `"off-renamed"`+"\n", 1) }
	body := func(force string) string {
		_, block, _ := strings.Cut(renamed.block(t), "{")
		return blocks(t, isOff(plain), isOff(again)) + "resource \"libvirt_domain\" \"off-strict\" {" + rename(block) + deafened(away.block(t)) + deafened(isOff(quick(hard, force)).block(t))
	}
	configure(t, p, body(", force = true"))
	seen := tell(t, p)
	planned(t, seen, plain.name, "shutdown", "running: shutdown")
	planned(t, seen, again.name, "shutdown", "running: shutdown")
	planned(t, seen, strict.name, "shutdown", "memory: none", "name: none", "running: shutdown", "title: none")
	planned(t, seen, unheard.name, "shutdown", "running: shutdown", "title: none")
	planned(t, seen, hard.name, "shutdown", "running: shutdown")
	for _, name := range []string{plain.name, strict.name, again.name, unheard.name, hard.name} {
		if said := seen.about(name); len(said) > 0 {
			t.Errorf("a warning about what the configuration asks for: %q", said)
		}
	}
	out := p.Must(1, "apply", "plan")
	if !lab.Says(`"off-deaf" did not shut down within 3s`, "may still do so", "update.shutdown.force").MatchString(out) || strings.Count(out, "did not shut down") != 1 {
		t.Errorf("the apply says:\n%s", out)
	}
	for name, want := range map[string]string{plain.name: "shut off (shutdown)", again.name: "shut off (shutdown)", "off-renamed": "shut off (shutdown)", hard.name: "shut off (destroyed)", unheard.name: "running (booted)"} {
		if got := domstate(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		if id := stateOf(t, p, name).Values["id"]; name != "off-renamed" && (id == nil) != strings.HasPrefix(want, "shut off") {
			t.Errorf("%s is %s, and its number in the state %v", name, want, id)
		}
	}
	guest.Untouched(t, unheard.name)
	if now := definitions(t, []string{unheard.name})[unheard.name]; now != before {
		t.Errorf("the definition was\n%s\nand is\n%s", before, now)
	}
	if xml := lab.Virsh(t, "dumpxml", "--inactive", "off-renamed"); !strings.Contains(xml, "<title>asleep<") || !strings.Contains(xml, ">163840</memory>") {
		t.Errorf("the definition is\n%s", xml)
	}
	seen = tell(t, p)
	for _, m := range []machine{plain, strict, again, hard} {
		planned(t, seen, m.name, "")
	}
	planned(t, seen, unheard.name, "shutdown", "running: shutdown", "title: none")
	if steps := fmt.Sprint(at(seen.state(strict.name), "status.last_steps")); !strings.Contains(steps, "name:shutdown") || !strings.Contains(steps, "name:name") {
		t.Errorf("the steps of the apply: %s", steps)
	}

	away = isOff(quick(plus(unheard, `title = "asleep"`), ", force = true"))
	configure(t, p, body(", force = true"))
	lab.Virsh(t, "start", plain.name)
	p.Must(0, "apply", "-auto-approve", "-target=libvirt_domain."+unheard.name)
	seen = tell(t, p)
	planned(t, seen, plain.name, "shutdown", "running: shutdown")
	planned(t, seen, unheard.name, "")
	if said := strings.Join(seen.about(plain.name), "\n"); !strings.Contains(said, "Somebody started domain") || !strings.Contains(said, "running = true") {
		t.Errorf("the plan warns: %s", said)
	}
	lab.Observe(t, plain.name)
	p.Must(0, "apply", "plan")
	if got := domstate(t, plain.name) + ", " + domstate(t, unheard.name); got != "shut off (shutdown), shut off (destroyed)" {
		t.Errorf("in the end: %s", got)
	}
	p.Must(0, "plan", "-detailed-exitcode")
}

func TestAccPower_on(t *testing.T) {
	core := acctest.Case(t, "running = true starts a guest in an update and waits for its address; one that gets none in time runs, and the apply says so; a saved guest that goes on has the address that it had")
	on := func(name string, timeout int, off bool) machine {
		return machine{name: name, off: off, more: pluggable, devices: fmt.Sprintf(`interfaces = [{ source = { network = { network = "default" } }, model = { type = "virtio" }, wait_for_ip = { timeout = %d } }]`, timeout)}
	}
	saved := on("on-saved", 120, false)
	p := project(t, core, blocks(t, on("on-late", 1, true), on("on-time", 120, true), saved))
	forget(t, "on-late", "on-time", saved.name)
	p.Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "managedsave", saved.name)
	saved.devices = strings.Replace(saved.devices, "timeout = 120", "timeout = 20", 1)
	configure(t, p, blocks(t, on("on-late", 1, false), on("on-time", 120, false), saved))
	seen := tell(t, p)
	planned(t, seen, "on-late", "none", "running: none")
	planned(t, seen, "on-time", "none", "running: none")
	planned(t, seen, saved.name, "none", "running: none")
	out := p.Must(1, "apply", "plan")
	if !lab.Says(`"on-late"`, "No usable address came within 1s").MatchString(out) || strings.Count(out, "Error:") != 1 {
		t.Errorf("the apply says:\n%s", out)
	}
	if said := lab.Virsh(t, "domifaddr", "on-time"); !strings.Contains(said, "ipv4") {
		t.Errorf("the apply did not wait for the address: %s", said)
	}
	for name, want := range map[string]string{"on-late": "running (booted)", "on-time": "running (booted)", saved.name: "running (restored)"} {
		if got := domstate(t, name); got != want {
			t.Errorf("%s is %s", name, got)
		}
		if id, now := fmt.Sprint(stateOf(t, p, name).Values["id"]), strings.TrimSpace(lab.Virsh(t, "domid", name)); id != now {
			t.Errorf("%s has the number %s, in the state %s", name, now, id)
		}
	}
	p.Must(0, "plan", "-detailed-exitcode")
}
