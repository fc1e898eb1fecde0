package storage_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func link(t testing.TB, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(at) })
	return at
}

// qemuDisk is a disk of a document, of any device.
func qemuDisk(device, format, file, target, bus string) string {
	return fmt.Sprintf("<disk type='file' device='%s'><driver name='qemu' type='%s'/><source file='%s'/><target dev='%s' bus='%s'/></disk>", device, format, file, target, bus)
}

func TestAccDestroy_volumeInUse(t *testing.T) {
	core := acctest.Case(t, "a volume is not destroyed while anybody names it: a running or a defined domain, as a disk, medium, kernel or firmware, by pool, path, link or device, below an image that is off, in a snapshot or a saved guest, below another volume; all of them are listed")
	dir, loose := t.TempDir(), t.TempDir()
	lab.Virsh(t, "pool-define-as", "vault", "dir", "--target", dir)
	lab.Virsh(t, "pool-start", "vault")
	t.Cleanup(func() { lab.Virsh(t, "pool-destroy", "vault"); lab.Virsh(t, "pool-undefine", "vault") })
	config := lab.Config(t, `
resource "libvirt_volume" "it" {
  name     = "base.qcow2"
  pool     = "vault"
  capacity = 1048576
  target   = { format = { type = "qcow2" } }
}`)
	p := lab.StartProject(t, core, config, "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	file := dir + "/base.qcow2"
	overlay := func(name, below string) string {
		tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", below, loose+"/"+name)
		return loose + "/" + name
	}
	// Who names it how, and what the message says of that.
	var names, says []string
	user := func(name, place, os, devices string) {
		name = "uses-" + name
		define(t, name, os, devices)
		names, says = append(names, name), append(says, fmt.Sprintf("domain %s (defined), %s", name, place))
	}
	user("by-pool", "disk vda", "", "<disk type='volume'><driver name='qemu' type='qcow2'/><source pool='vault' volume='base.qcow2'/><target dev='vda' bus='virtio'/></disk>")
	user("by-path", "disk vda", "", disk(file, "qcow2", "vda"))
	user("by-link", "disk vda", "", disk(link(t, file, loose+"/link"), "qcow2", "vda"))
	user("by-directory", "disk vda", "", disk(link(t, dir, loose+"/vault")+"/base.qcow2", "qcow2", "vda"))
	user("by-device", "disk vda", "", fmt.Sprintf("<disk type='block'><driver name='qemu' type='qcow2'/><source dev='%s'/><target dev='vda' bus='virtio'/></disk>", link(t, file, fmt.Sprintf("/dev/shm/destroy-device-%d", os.Getpid()))))
	user("cdrom", "disk hda", "", qemuDisk("cdrom", "raw", file, "hda", "ide"))
	user("floppy", "disk fda", "", qemuDisk("floppy", "raw", file, "fda", "fdc"))
	user("kernel", "os.kernel", "<kernel>"+file+"</kernel>", "")
	user("initrd", "os.initrd", "<kernel>/x</kernel><initrd>"+file+"</initrd>", "")
	user("loader", "os.loader", "<loader type='rom'>"+file+"</loader>", "")
	user("nvram", "os.nv_ram", "<loader readonly='yes' type='pflash'>/code.fd</loader><nvram>"+file+"</nvram></os><features><acpi/></features><os>", "")
	user("below", "disk vda", "", disk(overlay("over.qcow2", file), "qcow2", "vda"))
	user("far-below", "disk vda", "", disk(overlay("higher.qcow2", loose+"/over.qcow2"), "qcow2", "vda"))
	user("described", "disk vda", "", disk(overlay("json.qcow2", fmt.Sprintf(`json:{"driver":"qcow2","file":{"driver":"file","filename":"%s"}}`, file)), "qcow2", "vda"))

	// A snapshot, and a saved guest, that had it; their definitions have it no more.
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", loose+"/system.qcow2", "1M")
	both := disk(loose+"/system.qcow2", "qcow2", "vda") + disk(file, "qcow2", "vdb")
	define(t, "pictured", "", both)
	lab.Virsh(t, "snapshot-create-as", "pictured", "then", "--disk-only", "--diskspec", "vda,file="+loose+"/later.qcow2", "--diskspec", "vdb,snapshot=no")
	lab.Virsh(t, "detach-disk", "pictured", "vdb", "--config")
	define(t, "saved", "", disk(file, "qcow2", "vdb"))
	lab.Virsh(t, "start", "saved")
	lab.Virsh(t, "managedsave", "saved")
	lab.Virsh(t, "detach-disk", "saved", "vdb", "--config")
	says = append(says, `domain pictured (defined), snapshot "then"`, "domain saved (defined), managed save")

	// One that runs and has no definition, with an overlay.
	document := filepath.Join(t.TempDir(), "d.xml")
	if err := writeText(document, "<domain type='qemu'><name>transient</name><memory unit='MiB'>32</memory><os><type arch='x86_64'>hvm</type></os><devices>"+disk(overlay("running.qcow2", file), "qcow2", "vda")+"</devices></domain>"); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "create", document)
	lab.Virsh(t, "vol-create-as", "vault", "over.qcow2", "1M", "--format", "qcow2", "--backing-vol", "base.qcow2", "--backing-vol-format", "qcow2")
	says = append(says, "domain transient (running), disk vda", "volume over.qcow2 of pool vault")

	out := p.Must(1, "destroy", "-auto-approve")
	says = append(says, `Refusing to destroy volume "base.qcow2": it is in use`, "Nothing was changed")
	for _, text := range says {
		if !lab.Says(text).MatchString(out) {
			t.Errorf("nothing says %q:\n%s", text, out)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		lab.Virsh(t, "undefine", name, "--keep-nvram")
	}
	lab.Virsh(t, "destroy", "transient")
	lab.Virsh(t, "snapshot-delete", "pictured", "then", "--metadata")
	lab.Virsh(t, "undefine", "pictured")
	lab.Virsh(t, "undefine", "saved", "--managed-save")
	p.Refuses([]string{"It is needed by volume over.qcow2 of pool vault. libvirt"}, "destroy", "-auto-approve")
	lab.Virsh(t, "vol-delete", "over.qcow2", "vault")
	p.Must(0, "destroy", "-auto-approve")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the volume is still there: %v", err)
	}
}

// writeText writes a document.
func writeText(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) }

func TestAccDestroy_pool(t *testing.T) {
	core := acctest.Case(t, "a pool is not destroyed while a domain has its files, also by another path, and its storage is not deleted with files of others in it; without destroy.delete they stay")
	dir, other := t.TempDir()+"/real", t.TempDir()+"/link"
	with := func(more string) string { return poolConfig(t, "linked", dir, more) }
	p := lab.StartProject(t, core, with("destroy = { delete = true }"), "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	link(t, dir, other)
	define(t, "roundabout", "", disk(other+"/x.img", "raw", "vda"))
	p.Refuses([]string{`Refusing to destroy pool "linked": its volumes are in use`, "domain roundabout (defined), disk vda"}, "destroy", "-auto-approve")
	lab.Virsh(t, "undefine", "roundabout")
	if err := writeText(dir+"/foreign", "precious"); err != nil {
		t.Fatal(err)
	}
	p.Refuses([]string{`Refusing to delete the storage of pool "linked": it is not empty`, "It holds foreign", "destroy.delete = false"}, "destroy", "-auto-approve")
	if info := lab.Virsh(t, "pool-info", "linked"); !strings.Contains(info, "running") {
		t.Errorf("the pool was stopped:\n%s", info)
	}
	p.Write(with("destroy = { delete = false }"))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "destroy", "-auto-approve")
	absent(t, "pool-list --all", "linked")
	if text, err := os.ReadFile(dir + "/foreign"); err != nil || string(text) != "precious" {
		t.Errorf("the foreign file holds %q, %v", text, err)
	}
}
