package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// unknownTill is a plan for a machine of which one value is not known: it says no
// more than the most that the change can do. Its number is unknown too if it may
// start again, and only then.
func unknownTill(t testing.TB, p *lab.Project, name, path, most string) {
	t.Helper()
	seen := tell(t, p)
	for _, c := range seen.Changes {
		if c.Address != "libvirt_domain."+name {
			continue
		}
		if action := strings.Join(c.Change.Actions, "+"); action != "update" || c.Change.Unknown["change"] != true || c.Change.After["change"] != nil {
			t.Errorf("%s: the plan is %s, its change %v, unknown %v", path, action, c.Change.After["change"], c.Change.Unknown["change"])
		}
		if c.Change.Unknown[path] != true {
			t.Errorf("%s is known: %v", path, c.Change.After[path])
		}
		if id, restarts := c.Change.Unknown["id"] == true, most == "restart"; id != restarts || !restarts && fmt.Sprint(c.Change.After["id"]) != fmt.Sprint(c.Change.Before["id"]) {
			t.Errorf("%s, at most %s: id is unknown: %v; it was %v and is planned %v", path, most, id, c.Change.Before["id"], c.Change.After["id"])
		}
	}
	said := seen.about(name)
	if len(said) != 1 || !containsAll(said[0], []string{
		fmt.Sprintf("The effect on domain %q is known only at apply", name), path + ": the value comes from something that is not applied yet",
		"At most, the effect is " + most + ";", "what cannot be done is refused then, before anything is touched",
	}) {
		t.Errorf("%s, at most %s: the plan warns %q", path, most, said)
	}
}

func TestAccDomain_unknownValues(t *testing.T) {
	core := acctest.Case(t, "while a value of a running machine is not known, its change is not either, and a warning says the most that it can be; its number is unknown only where a restart may come; the apply does what the value asks for then, and nothing if it is the old one")
	const name = "unknowing"
	late := func(value string, try int) string {
		return fmt.Sprintf("resource \"terraform_data\" \"late\" {\n  input            = %s\n  triggers_replace = %d\n}\n", value, try)
	}
	titled := machine{name: name, more: pluggable + "\n  title = terraform_data.late.output"}
	sized := func(more string) string {
		block := machine{name: name, more: pluggable + "\n  title = \"second\"\n  " + more}.block(t)
		return strings.Replace(block, "memory      = 128\n", "memory      = terraform_data.late.output\n", 1)
	}
	p := project(t, core, machine{name: name, more: pluggable + "\n  title = \"first\""}.block(t))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	settled := func(what, effect string) {
		t.Helper()
		seen := tell(t, p)
		planned(t, seen, name, "")
		state := seen.state(name)
		if got := at(state, "change.effect"); effect != "" && got != effect {
			t.Errorf("%s: the effect was %v, want %s", what, got, effect)
		}
		if id, now := fmt.Sprint(at(state, "id")), strings.TrimSpace(lab.Virsh(t, "domid", name)); id != now {
			t.Errorf("%s: the number is %s, in the state %s", what, now, id)
		}
	}

	configure(t, p, late(`"second"`, 1)+titled.block(t))
	unknownTill(t, p, name, "title", "live")
	p.Must(0, "apply", "plan")
	guest.Untouched(t, name)
	if title := lab.Virsh(t, "desc", name, "--live", "--title"); !strings.Contains(title, "second") {
		t.Errorf("the title of the guest is %q", title)
	}
	settled("another title", "live")

	before := definitions(t, []string{name})[name]
	configure(t, p, late(`"second"`, 2)+titled.block(t))
	unknownTill(t, p, name, "title", "live")
	p.Must(0, "apply", "plan")
	settled("the same title", "")
	if now := definitions(t, []string{name})[name]; now != before {
		t.Errorf("the same title: the definition differs:\n%s", difference(before, now))
	}

	configure(t, p, late("160", 3)+sized(""))
	unknownTill(t, p, name, "memory", "next_boot")
	configure(t, p, late("160", 4)+sized(mayRestart))
	unknownTill(t, p, name, "memory", "restart")
	guest.Untouched(t, name)
	p.Must(0, "apply", "plan")
	again := lab.Observe(t, name)
	if was, now := guest.Report(), again.Report(); was.BootID == now.BootID || now.MemKiB <= was.MemKiB {
		t.Errorf("the guest was to be restarted with more memory: it was %+v, and is %+v", was, now)
	}
	settled("more memory", "restart")

	configure(t, p, late("160", 5)+sized(mayRestart))
	unknownTill(t, p, name, "memory", "restart")
	p.Must(0, "apply", "plan")
	again.Untouched(t, name)
	settled("the same memory", "")
}
