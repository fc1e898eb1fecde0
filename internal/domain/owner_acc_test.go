package domain_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// A domain that another configuration has marked is told, and taken over only
// on request. Nothing of it touches the guest.
func TestAccDomain_owner(t *testing.T) {
	acctest.Case(t, "a domain marked by another owner is warned about and managed all the same, until adopt takes it over; generation and mark survive a power cycle by hand and an import")
	const name = "claimed"
	owned := func(owner string, m machine) string {
		config := m.config(t)
		return strings.Replace(config, `provider "libvirt" {`, "provider \"libvirt\" {\n  owner = \""+owner+"\"\n", 1)
	}
	m := machine{name: name}
	titled := machine{name: name, more: `title = "by another"`}
	adopting := machine{name: name, more: "title = \"by another\"\n  adopt = true"}
	var guest *lab.Guest
	untouched := func(*terraform.State) error { guest.Untouched(t, name); return nil }
	cycled := lab.Apply(owned("site-b", adopting), attr("status.owner", "site-b"), attr("status.settled", "true"),
		attr("status.generation", "3"), attr("status.observed_generation", "3"))
	cycled.PreConfig = func() {
		lab.Virsh(t, "destroy", name)
		lab.Virsh(t, "start", name)
	}
	lab.Steps(t,
		lab.Apply(owned("site-a", m), attr("status.owner", "site-a"), attr("status.generation", "1"),
			func(*terraform.State) error { guest = lab.Observe(t, name); return nil }),
		resource.TestStep{Config: owned("site-b", m), PlanOnly: true}, // a warning alone
		lab.Apply(owned("site-b", titled), attr("status.owner", "site-a"), attr("title", "by another"), untouched),
		lab.Apply(owned("site-b", adopting), attr("status.owner", "site-b"), attr("change.fields.0", "owner: taken over none"),
			attr("change.effect", "none"), attr("status.settled", "true"), untouched),
		cycled,
		resource.TestStep{
			Config: owned("site-b", adopting), ResourceName: it, ImportState: true, ImportStateId: name,
			ImportStateCheck: func(states []*terraform.InstanceState) error {
				for _, key := range []string{"status.generation", "status.observed_generation"} {
					if got := states[0].Attributes[key]; got != "3" {
						t.Errorf("imported: %s is %q", key, got)
					}
				}
				return nil
			},
		},
	)
}
