package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// libvirt fills the CPU of a running guest with what its definition came to.
// None of that is a difference; a definition that changed is one, until it is
// changed back or the guest is started again.
func TestAccDomain_cpuOfARunningGuest(t *testing.T) {
	acctest.Case(t, "a guest with a CPU that libvirt expands is settled; a change of the CPU waits, is gone when taken back, and is settled by a power cycle made by hand or a planned restart; one made by hand is held, waits, and is put back without a word to the guest, which had the old one all the time")
	const name = "cpu"
	with := func(cpu, more string) string {
		return machine{name: name, more: fmt.Sprintf("cpu = %s\n%s", cpu, more)}.config(t)
	}
	model := with(`{ mode = "host-model" }`, "")
	const nehalem = `{ mode = "custom", match = "exact", model = "Nehalem", model_fallback = "allow" }`
	custom := with(nehalem, "")
	restarts := `update = { allow = "restart", shutdown = { timeout = 60 } }`
	settled := attr("status.state", "settled")
	none := attr("status.foreign.#", "0")
	var guest *lab.Guest
	untouched := func(*terraform.State) error { guest.Untouched(t, name); return nil }
	observe := func(*terraform.State) error { guest = lab.Observe(t, name); return nil }
	cycled := lab.Apply(custom, settled, none, attr("status.pending.#", "0"), observe)
	cycled.PreConfig = func() {
		lab.Virsh(t, "destroy", name)
		lab.Virsh(t, "start", name)
	}
	// Nothing in the guest's metadata says what CPU it has: somebody started it.
	edited := lab.Apply(with(nehalem, `update = { allow = "live" }`), attr("status.state", "held"), attr("change.effect", "none"),
		attr("status.pending.#", "1"), attr("status.pending.0", "cpu.model"), untouched)
	edited.PreConfig = func() { edit(">Nehalem<", ">Westmere<")(t, name) }
	putBack := lab.Apply(with(nehalem, `update = { allow = "live", drift = "revert" }`), settled, none, attr("change.effect", "none"), attr("status.pending.#", "0"), untouched,
		func(*terraform.State) error {
			if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, ">Nehalem<") {
				return fmt.Errorf("the definition has another CPU than the first one:\n%s", xml)
			}
			return nil
		})
	restarted := lab.Apply(with(`{ mode = "host-model" }`, restarts), settled, attr("change.effect", "restart"), attr("status.pending.#", "0"),
		func(*terraform.State) error {
			if now := lab.Observe(t, name); now.Report().BootID == guest.Report().BootID {
				return fmt.Errorf("the plan said restart, and the guest runs on")
			}
			return nil
		})
	lab.Steps(t,
		lab.Apply(model, settled, none, observe),
		lab.Apply(custom, attr("status.state", "pending"), attr("change.effect", "next_boot"), untouched),
		lab.Apply(model, settled, attr("change.effect", "none"), attr("status.pending.#", "0"), untouched),
		lab.Apply(custom, attr("status.state", "pending"), untouched),
		cycled,
		edited,
		putBack,
		restarted,
		lab.Apply(with(`{ mode = "host-model" }`, restarts), settled),
	)
}
