package domain_test

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// adds is a change that adds lines to the configuration.
func adds(lines ...string) func(machine) machine {
	return func(m machine) machine {
		m.more += "\n  " + strings.Join(lines, "\n  ")
		return m
	}
}

// without is a change that takes a text out of the lines that were added.
func without(text string) func(machine) machine {
	return func(m machine) machine {
		m.more = strings.Replace(m.more, text, "", 1)
		return m
	}
}

const mayRestart = `update = { allow = "restart", shutdown = { timeout = 60 } }`

// refusedByQEMU is a definition that libvirt takes and QEMU does not.
const refusedByQEMU = `qemu_commandline = { args = [{ value = "-device" }, { value = "no-such-device" }] }`

func TestAccFailures_definitionThatQEMURejects(t *testing.T) {
	core := acctest.Case(t, "a definition that libvirt accepts and QEMU does not: a restart into it brings the guest back with the old one, a creation leaves a failed machine that the next apply replaces")
	failures{
		on: machine{name: "rejected", more: pluggable + "\n" + mayRestart},
		rows: []failure{
			{what: "restart with an unknown device", change: adds(refusedByQEMU), restarted: true,
				says: []string{"Could not update domain \"rejected\"", "no-such-device", "The previous definition is in force again"},
				next: without(refusedByQEMU)},
		},
	}.run(t, core)
	creations{
		of: machine{name: "rejected-new", more: pluggable},
		rows: []failure{
			{what: "creation with an unknown device", change: adds(refusedByQEMU), defined: true,
				says: []string{"Could not create domain \"rejected-new\"", "which is defined now", "no-such-device"}, next: without(refusedByQEMU)},
			{what: "creation with a network that is not there", change: func(m machine) machine {
				m.devices = `interfaces = [{ source = { network = { network = "failures-net" } }, model = { type = "virtio" } }]`
				return m
			}, says: []string{`network "failures-net" does not exist`, "Nothing was changed"},
				mend: func(t testing.TB, _ string) {
					lab.Virsh(t, "net-define", netFile(t, "failures-net"))
					lab.Virsh(t, "net-start", "failures-net")
					t.Cleanup(func() { virsh("net-destroy failures-net", "net-undefine failures-net")(t, "") })
				}},
		},
	}.run(t, core)
}
