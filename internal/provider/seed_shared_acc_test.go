package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// sharedVault is a pool of the type netfs. Its file system is one of the host's
// memory that has the name of an export, and is mounted already where libvirt would
// mount that.
func sharedVault(t *testing.T, name string) {
	t.Helper()
	dir, h := t.TempDir(), lab.Host(t)
	if _, err := h.Exec(context.Background(), "mount", "-t", "tmpfs", "-o", "size=16m", "server.invalid:/export", dir); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "pool-define-as", name, "netfs", "--source-host", "server.invalid", "--source-path", "/export", "--target", dir)
	lab.Virsh(t, "pool-start", name)
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = h.Virsh(ctx, "pool-destroy", name)
		_, _ = h.Virsh(ctx, "pool-undefine", name)
		_, _ = h.Exec(ctx, "umount", dir)
	})
}

func TestAccSeedShared_pool(t *testing.T) {
	c := acctest.Case(t, "in a pool that other hosts use, too, no apply deletes the volume that it supersedes, not even if the machine of this host has let go of it; the next plan says so, and that only this host was asked, and its apply deletes it; so does the plan of the end")
	sharedVault(t, "shared")
	conf := func(greeting string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_cloudinit_disk" "it" {
  name      = "far"
  pool      = "shared"
  user_data = "#cloud-config\n# %s\n"
  meta_data = "instance-id: one\n"
}
resource "libvirt_domain" "it" {
  name   = "far"
  type   = "qemu"
  memory = 16384
  vcpu   = 1
  os     = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  devices = {
    disks = [{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "shared", volume = libvirt_cloudinit_disk.it.volume_name } }, target = { dev = "sda", bus = "sata" } }]
  }
}
`, greeting))
	}
	volumes := func() (all []string) {
		for _, field := range strings.Fields(lab.Virsh(t, "vol-list", "shared")) {
			if strings.HasPrefix(field, "far-") {
				all = append(all, field)
			}
		}
		slices.Sort(all)
		return all
	}
	p := lab.StartProject(t, c, conf("one"), "LIBVIRT_PROTECT=false")
	t.Cleanup(func() { _, _ = p.Run("destroy", "-auto-approve") })
	p.Must(0, "apply", "-auto-approve")
	first := volumes()
	if len(first) != 1 {
		t.Fatalf("the pool has %q", first)
	}
	p.Must(0, "plan", "-detailed-exitcode")

	p.Write(conf("two"))
	if out := p.Must(0, "apply", "-auto-approve"); !lab.Says(`An old volume of seed "far" is still on the host: shared/`+first[0], "type netfs", "only this host was asked", "was not deleted").MatchString(out) {
		t.Errorf("the apply that supersedes it:\n%s", out)
	}
	if all := volumes(); len(all) != 2 || !slices.Contains(all, first[0]) {
		t.Errorf("after it the pool has %q", all)
	}
	if out := p.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to add, 1 to change, 0 to destroy") ||
		!lab.Says(`The apply deletes an old volume of seed "far": shared/`+first[0], "No machine of this host needs it any more", "only this host was asked").MatchString(out) {
		t.Errorf("the plan of its end:\n%s", out)
	}
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	if all := volumes(); len(all) != 1 || all[0] == first[0] {
		t.Errorf("in the end the pool has %q", all)
	}
	if out := p.Must(0, "plan", "-destroy"); !lab.Says(`Other hosts may need the volume of seed "far"`, "only this host was asked").MatchString(out) {
		t.Errorf("the plan of a destroy:\n%s", out)
	}
	p.Must(0, "destroy", "-auto-approve")
	if all := volumes(); len(all) != 0 {
		t.Errorf("destroyed, and the pool has %q", all)
	}
}
