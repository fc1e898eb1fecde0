package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccDomain_refusedInTheApply(t *testing.T) {
	core := acctest.Case(t, "what update.allow forbids and no plan could know is refused in the apply: a value that comes to light there, and a guest that was off when the plan was made; neither guest nor definition is touched")
	const name, onlyLive = "surprised", `update = { allow = "live" }`
	refused := []string{`vcpu of the running domain "surprised" is changed, and cannot be applied without a restart`, `update.allow is "live"`, `Set it to "next_boot"`, `or to "restart"`, "take the change back", "Nothing was changed."}
	// CPUs and title come from a resource that is made in the same apply.
	late := func(vcpu int, title string) string {
		m := machine{name: name, more: pluggable + "\n" + onlyLive + "\n  title = terraform_data.late.output.title"}
		return strings.Replace(m.block(t), "vcpu        = 1\n", "vcpu        = terraform_data.late.output.vcpu\n", 1) +
			fmt.Sprintf("resource \"terraform_data\" \"late\" {\n  input = { vcpu = %d, title = %q }\n}\n", vcpu, title)
	}
	p := project(t, core, late(1, "first"))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	var guest *lab.Guest
	defined := ""
	look := func() { guest, defined = lab.Observe(t, name), definitions(t, []string{name})[name] }
	untouched := func() {
		t.Helper()
		guest.Untouched(t, name)
		if now := definitions(t, []string{name})[name]; now != defined {
			t.Errorf("the definition differs:\n%s", difference(defined, now))
		}
	}
	look()
	before := stateOf(t, p, name)

	configure(t, p, late(2, "second"))
	unknownTill(t, p, name, "vcpu", "next_boot")
	p.Refuses(refused, "apply", "plan")
	untouched()
	failure{}.compare(t, before, stateOf(t, p, name))
	p.Refuses(refused, "plan") // it is known by now

	// What may be done is done, also of a plan that could not know it.
	configure(t, p, late(1, "third"))
	unknownTill(t, p, name, "vcpu", "next_boot")
	p.Must(0, "apply", "plan")
	guest.Untouched(t, name)
	p.Must(0, "plan", "-detailed-exitcode")
	if state := stateOf(t, p, name); at(state.Values, "change.effect") != "live" || !slices.Equal(words(state.Values, "change.fields"), []string{"title: live"}) {
		t.Errorf("change is %v", state.Values["change"])
	}

	// A machine whose power the configuration leaves alone is off when the plan is
	// made, and somebody starts it before the apply.
	loosely := func(vcpu int) {
		configure(t, p, loose(machine{name: name, vcpu: vcpu, more: pluggable + "\n" + onlyLive + "\n  title = \"third\""}.block(t)))
	}
	lab.Virsh(t, "destroy", name)
	loosely(1)
	p.Must(0, "apply", "-auto-approve")
	loosely(2)
	if action, change := tell(t, p).change(name); action != "update" || at(change, "effect") != "none" {
		t.Fatalf("the plan for the machine that is off: %s, %v", action, change)
	}
	lab.Virsh(t, "start", name)
	look()
	p.Refuses(refused, "apply", "plan")
	untouched()
	p.Refuses(refused, "plan")
}
