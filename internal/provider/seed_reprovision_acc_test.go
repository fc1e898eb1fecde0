package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// reprovisioned is two machines that a changed seed sets up again, disk and all, as
// the guide on seeds has it: one's seed lies in a pool, the other's in a volume.
func reprovisioned(t *testing.T, greeting string, protect bool) string {
	machine := func(name, seed, cd string) string {
		again := fmt.Sprintf("protect = %v\n  lifecycle { replace_triggered_by = [libvirt_cloudinit_disk.%s.digest] }", protect, name)
		return fmt.Sprintf(`
resource "libvirt_cloudinit_disk" %[1]q {
  name      = "again-%[1]s"
  %[2]s
  user_data = "#cloud-config\n# %[3]s\n"
  meta_data = "instance-id: %[1]s-%[3]s\n"
}
resource "libvirt_volume" "%[1]s_root" {
  name     = "again-%[1]s.qcow2"
  pool     = "default"
  capacity = 1048576
  target   = { format = { type = "qcow2" } }
  %[5]s
}
resource "libvirt_domain" %[1]q {
  name   = "again-%[1]s"
  type   = "qemu"
  memory = 16384
  vcpu   = 1
  os     = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  devices = {
    disks = [
      { driver = { name = "qemu", type = "qcow2" }, source = { volume = { pool = "default", volume = libvirt_volume.%[1]s_root.name } }, target = { dev = "vda", bus = "virtio" } },
      { device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "default", volume = %[4]s } }, target = { dev = "sda", bus = "sata" } },
    ]
  }
  %[5]s
}
`, name, seed, greeting, cd, again)
	}
	return lab.Config(t, machine("pooled", `pool = "default"`, "libvirt_cloudinit_disk.pooled.volume_name")+machine("plain", "", "libvirt_volume.seed.name")+`
resource "libvirt_volume" "seed" {
  name    = "again-plain-seed.iso"
  pool    = "default"
  protect = false
  create  = { content = { url = libvirt_cloudinit_disk.plain.path } }
}
`)
}

func TestAccSeed_reprovision(t *testing.T) {
	c := acctest.Case(t, "a changed seed that is to set up its machine again replaces disk and machine in one apply, in both styles, leaves no old volume, and the second plan is empty; with protect the plan is refused")
	p := lab.StartProject(t, c, reprovisioned(t, "one", true))
	t.Cleanup(func() { _, _ = p.With("LIBVIRT_PROTECT=false").Run("destroy", "-auto-approve") })
	p.Must(0, "apply", "-auto-approve")
	identities := func() (all []string) {
		for _, name := range []string{"again-pooled", "again-plain"} {
			all = append(all, strings.TrimSpace(lab.Virsh(t, "domuuid", name)))
		}
		return all
	}
	volumes := func() (all []string) {
		for _, field := range strings.Fields(lab.Virsh(t, "vol-list", "default")) {
			if strings.HasPrefix(field, "again-") {
				all = append(all, field)
			}
		}
		slices.Sort(all)
		return all
	}
	machines, before := identities(), volumes()
	if len(before) != 4 {
		t.Fatalf("the pool has %q", before)
	}

	p.Write(reprovisioned(t, "two", true))
	refusal := p.Must(1, "apply", "-auto-approve")
	for _, object := range []string{"again-pooled.qcow2", "again-plain.qcow2"} { // what depends on them is not asked any more
		if !lab.Says("protect", object).MatchString(refusal) {
			t.Errorf("the refusal does not name %s:\n%s", object, refusal)
		}
	}
	if now := identities(); !slices.Equal(now, machines) || !slices.Equal(volumes(), before) {
		t.Errorf("the refusal left %q and %q, not %q and %q", now, volumes(), machines, before)
	}

	p.Write(reprovisioned(t, "one", false)) // lets them go, and touches nothing
	p.Must(0, "apply", "-auto-approve")
	if now := identities(); !slices.Equal(now, machines) || !slices.Equal(volumes(), before) {
		t.Errorf("protect = false left %q and %q, not %q and %q", now, volumes(), machines, before)
	}
	p.Write(reprovisioned(t, "two", false))
	if out := p.Must(0, "apply", "-auto-approve"); !strings.Contains(out, "4 added, 3 changed, 4 destroyed") {
		t.Errorf("it did\n%s", out)
	}
	for i, now := range identities() {
		if now == machines[i] {
			t.Errorf("machine %s is the one of before", now)
		}
	}
	if after := volumes(); len(after) != 4 || slices.Equal(after, before) {
		t.Errorf("the pool has %q; before it had %q", after, before)
	}
	p.Must(0, "plan", "-detailed-exitcode")
}
