package storage_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// byVolume is a disk of a document that names pool and volume.
func byVolume(pool, volume string) string {
	return fmt.Sprintf("<disk type='volume'><driver name='qemu' type='qcow2'/><source pool='%s' volume='%s'/><target dev='vda' bus='virtio'/></disk>", pool, volume)
}

func TestAccDestroy_volumeBelowByPool(t *testing.T) {
	core := acctest.Case(t, "a volume is not destroyed while a domain has it by the name of a pool that is stopped or not defined any more, or below an image of such a pool; what cannot be read refuses the destroy if a pool can be started for it, and is named in a warning else")
	bases, vms, loose := t.TempDir(), t.TempDir(), t.TempDir()
	for name, dir := range map[string]string{"bases": bases, "vms": vms, "alias": bases} {
		if name == "alias" { // libvirt has one pool for a directory
			dir = link(t, dir, loose+"/alias")
		}
		lab.Virsh(t, "pool-define-as", name, "dir", "--target", dir)
		t.Cleanup(func() { lab.Virsh(t, "pool-undefine", name) })
	}
	lab.Virsh(t, "pool-start", "bases")
	t.Cleanup(func() { lab.Virsh(t, "pool-destroy", "bases") })
	config := lab.Config(t, `
resource "libvirt_volume" "it" {
  name     = "base.qcow2"
  pool     = "bases"
  capacity = 1048576
  target   = { format = { type = "qcow2" } }
}`)
	p := lab.StartProject(t, core, config, "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	base := bases + "/base.qcow2"
	overlay := func(file, below string) {
		tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", below, file)
	}
	overlay(vms+"/over.qcow2", base)
	overlay(loose+"/middle.qcow2", base)
	overlay(vms+"/high.qcow2", loose+"/middle.qcow2")
	for name, devices := range map[string]string{
		"by-over": byVolume("vms", "over.qcow2"), "by-high": byVolume("vms", "high.qcow2"),
		"by-alias": byVolume("alias", "base.qcow2"), "by-old": byVolume("old", "base.qcow2"), "other": byVolume("old", "another.qcow2"),
	} {
		define(t, name, "", devices)
	}
	refused := func(parts ...string) {
		t.Helper()
		out := p.Must(1, "destroy", "-auto-approve")
		for _, text := range append(parts, "Nothing was changed") { // in any order
			if !lab.Says(text).MatchString(out) {
				t.Errorf("nothing says %q:\n%s", text, out)
			}
		}
		if _, err := os.Stat(base); err != nil {
			t.Fatal(err)
		}
	}
	refused(`Refusing to destroy volume "base.qcow2": it is in use`, "domain by-over (defined), disk vda", "domain by-high (defined), disk vda", "domain by-alias (defined), disk vda",
		"domain by-old (defined), disk vda (volume base.qcow2 of pool old, which is not defined any more)")
	for _, name := range []string{"by-over", "by-high", "by-alias", "by-old"} {
		lab.Virsh(t, "undefine", name)
	}
	// Nobody but a started pool knows of this one.
	lab.Virsh(t, "pool-start", "vms")
	refused("volume high.qcow2 of pool vms", "volume over.qcow2 of pool vms")
	lab.Virsh(t, "pool-destroy", "vms")

	// An image that is not there, in a pool that is not started: it may come with its
	// start. One that is loose, of which nobody knows more: a warning.
	for _, name := range []string{"over", "high"} {
		if err := os.Remove(vms + "/" + name + ".qcow2"); err != nil {
			t.Fatal(err)
		}
	}
	define(t, "away", "", byVolume("vms", "away.qcow2"))
	refused(`Refusing to destroy volume "base.qcow2": it may be a backing file`, vms+"/away.qcow2 (domain away (defined), disk vda)", "virsh pool-start vms")
	lab.Virsh(t, "undefine", "away")
	broken := append([]byte("QFI\xfb"), bytes.Repeat([]byte{0}, 508)...)
	binary.BigEndian.PutUint64(broken[8:], 1<<40)
	binary.BigEndian.PutUint32(broken[16:], 10)
	if err := writeText(loose+"/broken.qcow2", string(broken)); err != nil {
		t.Fatal(err)
	}
	define(t, "broken", "", disk(loose+"/broken.qcow2", "qcow2", "vda"))
	p.Tells([]string{`Volume "base.qcow2" was destroyed, and may have been a backing file`, loose + "/broken.qcow2 (domain broken (defined), disk vda)"}, "destroy", "-auto-approve")
	for _, name := range []string{"broken", "other"} {
		lab.Virsh(t, "undefine", name)
	}
	if _, err := os.Stat(base); !os.IsNotExist(err) {
		t.Errorf("the volume is still there: %v", err)
	}
}
