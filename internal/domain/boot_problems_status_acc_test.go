package domain_test

import (
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccDomain_bootProblems(t *testing.T) {
	acctest.Case(t, "status.boot_problems says at a refresh what would go wrong, changes nothing in the plan, and is empty again when it is mended")
	const name = "boots"
	lab.Virsh(t, "net-define", netFile(t, "bootstatus"))
	defer lab.Virsh(t, "net-undefine", "bootstatus")
	lab.Virsh(t, "net-start", "bootstatus")
	defer lab.Virsh(t, "net-destroy", "bootstatus")
	lab.Virsh(t, "net-autostart", "bootstatus")
	seed := t.TempDir() + "/seed.iso"
	put := func() {
		if err := os.WriteFile(seed, make([]byte, 1<<16), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put()
	config := machine{name: name, off: true, more: "autostart = true", devices: `
    interfaces = [{ source = { network = { network = "bootstatus" } } }]
    disks      = [{ device = "cdrom", source = { file = { file = "` + seed + `" } }, target = { dev = "sda", bus = "sata" } }]`}.config(t)
	none := attr("status.boot_problems.#", "0")
	both := resource.ComposeAggregateTestCheckFunc(
		attr("status.boot_problems.#", "2"),
		attr("status.boot_problems.0", "disk sda: medium "+seed+" is gone (put it back, or virsh change-media boots sda --eject --config)"),
		attr("status.boot_problems.1", `network "bootstatus" is not set to autostart, this domain is (virsh net-autostart bootstatus)`),
	)
	lab.Steps(t,
		lab.Apply(config, none),
		resource.TestStep{RefreshState: true, Check: both, PreConfig: func() {
			lab.Virsh(t, "net-autostart", "--disable", "bootstatus")
			_ = os.Remove(seed)
		}},
		resource.TestStep{Config: config, ConfigPlanChecks: lab.EmptyAfterwards, Check: both},
		resource.TestStep{RefreshState: true, Check: none, PreConfig: func() {
			lab.Virsh(t, "net-autostart", "bootstatus")
			put()
		}},
	)
}
