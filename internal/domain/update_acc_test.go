package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// machine is a domain with the tiny guest; more are further lines of the
// resource, devices further lines of its devices.
type machine struct {
	name, more, devices string
	serials             string // more serial ports
	cmdline             string // more of the kernel's command line
	memory              int    // MiB
	vcpu                int
	off                 bool
	chipset, os         string // the machine type, if not q35, and what else os says
}

func (m machine) config(t testing.TB) string {
	t.Helper()
	h := lab.Host(t)
	if m.memory == 0 {
		m.memory = 128
	}
	if m.vcpu == 0 {
		m.vcpu = 1
	}
	if m.chipset == "" {
		m.chipset = "q35"
	}
	return lab.Config(t, fmt.Sprintf(`
resource "libvirt_domain" "it" {
  name        = %q
  type        = "qemu"
  memory      = %d
  memory_unit = "MiB"
  vcpu        = %d
  running     = %v
  os = {
    type         = "hvm"
    type_arch    = "x86_64"
    type_machine = %q
    kernel       = %q
    initrd       = %q
    cmdline      = %q
    %s
  }
  devices = {
    serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }%s]
    %s
  }
  %s
}
`, m.name, m.memory, m.vcpu, !m.off, m.chipset, h.Guest().Kernel, h.Guest().Initrd, m.cmdline+h.Guest().Cmdline, m.os, h.ConsoleLog(m.name), m.serials, m.devices, m.more))
}

const it = "libvirt_domain.it"

func attr(name string, want string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(it, name, want)
}

// changes is a step that applies a change to a running guest, and holds the
// plan's word against what happened.
func changes(config, effect string, fields []string, check ...resource.TestCheckFunc) resource.TestStep {
	lines := make([]knownvalue.Check, len(fields))
	for i, f := range fields {
		lines[i] = knownvalue.StringExact(f)
	}
	step := lab.Apply(config, append(check, attr("change.effect", effect))...)
	step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(it, tfjsonpath.New("change").AtMapKey("effect"), knownvalue.StringExact(effect)),
		plancheck.ExpectKnownValue(it, tfjsonpath.New("change").AtMapKey("fields"), knownvalue.ListExact(lines)),
	}
	return step
}

func TestAccDomain_updatesLeaveTheGuestAlone(t *testing.T) {
	acctest.Case(t, "autostart, text, metadata, memory, vCPU and devices change without touching the running guest")
	const name = "alone"
	m := machine{name: name}
	var guest *lab.Guest
	untouched := func(*terraform.State) error { guest.Untouched(t, name); return nil }
	step := func(m machine, effect string, fields ...string) resource.TestStep {
		return changes(m.config(t), effect, fields, untouched)
	}
	first := lab.Apply(m.config(t), attr("running", "true"), attr("status.state", "settled"), attr("status.generation", "1"),
		func(*terraform.State) error { guest = lab.Observe(t, name); return nil })
	m.more = `autostart = true`
	auto := step(m, "none", "autostart: none")
	outOfBand := step(m, "none", "autostart: none")
	outOfBand.PreConfig = func() { lab.Virsh(t, "autostart", "--disable", name) }
	m.more += "\n" + `title = "a title"` + "\n" + `description = "some words"`
	text := step(m, "live", "description: live", "title: live")
	text.Check = resource.ComposeAggregateTestCheckFunc(text.Check, attr("status.settled", "true"), func(*terraform.State) error {
		if xml := lab.Virsh(t, "dumpxml", name); !strings.Contains(xml, "<title>a title</title>") {
			return fmt.Errorf("the running guest's XML has no title:\n%s", xml)
		}
		return nil
	})
	m.more += "\n" + `metadata = { xml = "<x:site xmlns:x=\"urn:x\" rack=\"7\"/>" }`
	meta := step(m, "live", "metadata.xml: live")
	meta.Check = resource.ComposeAggregateTestCheckFunc(meta.Check, func(*terraform.State) error {
		if xml := lab.Virsh(t, "metadata", name, "urn:x", "--live"); !strings.Contains(xml, `rack="7"`) {
			return fmt.Errorf("the running guest's metadata: %s", xml)
		}
		return nil
	})
	m.memory = 160
	memory := step(m, "next_boot", "memory: next_boot")
	memory.Check = resource.ComposeAggregateTestCheckFunc(memory.Check, attr("status.state", "pending"), attr("status.pending.0", "memory"), attr("change.outcome", "resize"))
	m.vcpu = 2
	m.devices = `rngs = [{ model = "virtio", backend = { random = "/dev/urandom" } }]`
	devices := step(m, "next_boot", "devices.rngs[0]: added next_boot", "vcpu: next_boot")
	m.memory, m.vcpu, m.devices, m.more = 128, 1, "", ""
	// The guest never got the rest, so that taking it back does nothing to it.
	back := step(m, "live",
		"description: unset live", "devices.rngs[0]: removed none", "memory: none",
		"metadata.xml: unset live", "title: unset live", "vcpu: none")
	back.Check = resource.ComposeAggregateTestCheckFunc(back.Check, attr("autostart", "true"), // left out, it stays
		attr("status.state", "settled"), attr("status.pending.#", "0"))
	lab.Steps(t, first, auto, outOfBand, text, meta, memory, devices, back)
}
