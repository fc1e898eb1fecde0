package domain_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// unprotected is the lab's one line: what is tested here comes after protection.
const unprotected = "LIBVIRT_PROTECT=false"

// bare is a machine without a system: it is up at once, and no button shuts it
// down. Most of what a destroy meets needs no more.
type bare struct {
	name    string
	off     bool
	os      string // more lines of os
	devices string
	destroy string // lines beside a short wait
	more    string
}

func (b bare) String() string {
	return fmt.Sprintf(`
resource "libvirt_domain" %[1]q {
  name        = %[1]q
  type        = "qemu"
  memory      = 64
  memory_unit = "MiB"
  vcpu        = 1
  running     = %[2]v
  features    = { acpi = true }
  on_crash    = "preserve"
  pm          = { suspend_to_mem = { enabled = "yes" } }
  os = {
    type         = "hvm"
    type_arch    = "x86_64"
    type_machine = "q35"
    %[3]s
  }
  devices = {
    panics = [{ model = "isa" }]
    %[4]s
  }
  destroy = {
    shutdown = { timeout = 1 }
    %[5]s
  }
  %[6]s
}
`, b.name, !b.off, b.os, b.devices, b.destroy, b.more)
}

// configOf is a configuration of such machines.
func configOf(t testing.TB, machines ...bare) string {
	t.Helper()
	text := ""
	for _, m := range machines {
		text += m.String()
	}
	return lab.Config(t, text)
}

func address(name string) string { return "-target=libvirt_domain." + name }

// qcow2 makes an image in the host's pool, and a disk of it.
func qcow2(t testing.TB, name string) (file, disk string) {
	t.Helper()
	file = lab.Host(t).PoolDir() + "/" + name
	// Of the present version, as checkpoints need it; libvirt makes an older one.
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", file, "8M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file, fmt.Sprintf(`disks = [{ source = { file = { file = %q } }, driver = { name = "qemu", type = "qcow2" }, target = { dev = "vda", bus = "virtio" } }]`, file)
}

// picture is what virsh says of a machine, to compare it with what it says later.
func picture(t testing.TB, name string) string {
	t.Helper()
	var out strings.Builder
	for _, command := range []string{"domstate", "domid", "dumpxml --inactive", "snapshot-list", "checkpoint-list"} {
		out.WriteString(lab.Virsh(t, append(strings.Fields(command), name)...))
	}
	return out.String()
}

// undefined fails the test if virsh lists one of the machines.
func undefined(t testing.TB, names ...string) {
	t.Helper()
	all := strings.Fields(lab.Virsh(t, "list", "--all", "--name"))
	for _, name := range names {
		if slices.Contains(all, name) {
			t.Errorf("%s is still there", name)
		}
	}
}

func exists(t testing.TB, file string, want bool) {
	t.Helper()
	if _, err := os.Stat(file); (err == nil) != want {
		t.Errorf("%s is there: %v, want %v (%v)", file, err == nil, want, err)
	}
}

// imageHas asserts what qemu-img prints of an image.
func imageHas(t testing.TB, file, text string) {
	t.Helper()
	out, err := exec.Command("qemu-img", "info", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), text) {
		t.Errorf("%s does not have %q: %v\n%s", file, text, err, out)
	}
}

func TestAccDestroy_losses(t *testing.T) {
	core := acctest.Case(t, "a domain with snapshots, inside and beside its image, a managed save or checkpoints is not destroyed, and the message lists them; given up, libvirt's records go and every image stays")
	image, disk := qcow2(t, "lossy.qcow2")
	marked, other := qcow2(t, "checked.qcow2")
	overlay := lab.Host(t).PoolDir() + "/lossy.outer"
	t.Cleanup(func() {
		for _, file := range []string{image, marked, overlay} {
			_ = os.Remove(file)
		}
	})
	lossy, checked := bare{name: "lossy", off: true, devices: disk}, bare{name: "checked", devices: other}
	p := lab.StartProject(t, core, configOf(t, lossy, checked), unprotected)
	p.Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "snapshot-create-as", "lossy", "inner")
	lab.Virsh(t, "snapshot-create-as", "lossy", "outer", "--disk-only")
	lab.Virsh(t, "start", "lossy")
	lab.Virsh(t, "managedsave", "lossy")
	lab.Virsh(t, "checkpoint-create-as", "checked", "monday")
	wasLossy, wasChecked := picture(t, "lossy"), picture(t, "checked")
	same := func() {
		t.Helper()
		if now := picture(t, "lossy"); now != wasLossy {
			t.Errorf("lossy was\n%s\nand is\n%s", wasLossy, now)
		}
		if now := picture(t, "checked"); now != wasChecked {
			t.Errorf("checked was\n%s\nand is\n%s", wasChecked, now)
		}
	}
	p.Refuses([]string{`Refusing to destroy domain "lossy": something would be lost with it`, `snapshot "inner", inside the image of vda (by hand: virsh snapshot-delete lossy inner)`,
		`snapshot "outer", in ` + overlay, "snapshot-delete lossy outer --metadata", "the managed save image", "virsh managedsave-remove lossy",
		"destroy = { delete_snapshots = true, delete_managed_save = true }", "no image"}, "destroy", "-auto-approve", address("lossy"))
	p.Refuses([]string{`Refusing to destroy domain "checked"`, `checkpoint "monday" (by hand: virsh checkpoint-delete checked monday)`, "destroy = { delete_checkpoints = true }"},
		"destroy", "-auto-approve", address("checked"))
	same()

	// One is given up, the other is not. What is only written counts for nothing.
	lossy.destroy, checked.destroy = "delete_snapshots = true", "delete_checkpoints = true"
	p.Write(configOf(t, lossy, checked))
	p.Refuses([]string{`snapshot "inner"`}, "destroy", "-auto-approve", address("lossy"))
	p.Must(0, "apply", "-auto-approve")
	same()
	p.Refuses([]string{`Refusing to destroy domain "lossy"`, "It has:", "- the managed save image", "destroy = { delete_managed_save = true }"}, "destroy", "-auto-approve", address("lossy"))
	same()
	lossy.destroy += "\n delete_managed_save = true"
	p.Write(configOf(t, lossy, checked))
	p.Must(0, "apply", "-auto-approve")
	same()
	saved := lab.Host(t).Dir() + "/varlib/qemu/save/lossy.save"
	exists(t, saved, true)
	p.Must(0, "destroy", "-auto-approve")
	undefined(t, "lossy", "checked")
	exists(t, saved, false)
	exists(t, overlay, true)
	imageHas(t, image, "inner")
	imageHas(t, marked, "monday")
}

func TestAccDestroy_byHand(t *testing.T) {
	core := acctest.Case(t, "what keeps a domain from being destroyed can be removed by hand, with the commands of the message; checkpoints of a guest that is off too")
	image, disk := qcow2(t, "byhand.qcow2")
	t.Cleanup(func() { _ = os.Remove(image) })
	p := lab.StartProject(t, core, configOf(t, bare{name: "byhand", devices: disk}), unprotected)
	p.Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "checkpoint-create-as", "byhand", "monday")
	lab.Virsh(t, "destroy", "byhand")
	p.Refuses([]string{`checkpoint "monday"`, "virsh checkpoint-delete byhand monday --metadata"}, "destroy", "-auto-approve")
	lab.Virsh(t, "checkpoint-delete", "byhand", "monday", "--metadata")
	lab.Virsh(t, "snapshot-create-as", "byhand", "inner")
	p.Refuses([]string{"virsh snapshot-delete byhand inner)"}, "destroy", "-auto-approve")
	lab.Virsh(t, "snapshot-delete", "byhand", "inner")
	lab.Virsh(t, "start", "byhand")
	lab.Virsh(t, "managedsave", "byhand")
	p.Refuses([]string{"virsh managedsave-remove byhand"}, "destroy", "-auto-approve")
	lab.Virsh(t, "managedsave-remove", "byhand")
	p.Must(0, "destroy", "-auto-approve")
	undefined(t, "byhand")
	exists(t, image, true)
}

// monitor gives QEMU's monitor a command until the machine is in a state.
func monitor(t testing.TB, name, command, want string) {
	t.Helper()
	for range 60 {
		lab.Virsh(t, "qemu-monitor-command", name, "--hmp", command)
		if strings.TrimSpace(lab.Virsh(t, "domstate", name)) == want {
			return
		}
		time.Sleep(500 * time.Millisecond) // the firmware is not that far yet
	}
	t.Fatalf("%s did not become %s", name, want)
}

func TestAccDestroy_everyState(t *testing.T) {
	core := acctest.Case(t, "guests that are paused, suspended, crashed, off, undefined while they run, gone, or on a network that was stopped are destroyed with one command")
	nic := `interfaces = [{ source = { network = { network = "stopped" } } }]`
	file := t.TempDir() + "/net.xml"
	if err := os.WriteFile(file, []byte("<network><name>stopped</name></network>"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "net-define", file)
	t.Cleanup(func() { lab.Virsh(t, "net-undefine", "stopped") })
	lab.Virsh(t, "net-start", "stopped")
	names := []string{"paused", "suspended", "crashed", "halted", "transient", "gone", "cutoff", "offnet"}
	machines := make([]bare, len(names))
	for i, name := range names {
		machines[i] = bare{name: name, off: name == "offnet"}
		if name == "cutoff" || name == "offnet" {
			machines[i].devices = nic
		}
	}
	p := lab.StartProject(t, core, configOf(t, machines...), unprotected)
	p.Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "net-destroy", "stopped")
	lab.Virsh(t, "suspend", "paused")
	monitor(t, "suspended", "o /w 0x604 0x2400", "pmsuspended") // what a system writes to suspend to memory
	monitor(t, "crashed", "o /b 0x505 1", "crashed")            // what a system writes when it panics
	lab.Virsh(t, "destroy", "halted")
	lab.Virsh(t, "undefine", "transient")
	lab.Virsh(t, "destroy", "gone")
	lab.Virsh(t, "undefine", "gone")
	// Without a refresh, so that it is Delete that meets them.
	p.Must(0, "destroy", "-auto-approve", "-refresh=false")
	undefined(t, names...)
}

func TestAccDestroy_graceful(t *testing.T) {
	core := acctest.Case(t, "with destroy.graceful a guest that does not shut down in time, or has crashed, is left as it is, and the message says how to go on")
	deaf, crashed := bare{name: "deaf", destroy: "graceful = true"}, bare{name: "panicked", destroy: "graceful = true"}
	p := lab.StartProject(t, core, configOf(t, deaf, crashed), unprotected)
	p.Must(0, "apply", "-auto-approve")
	monitor(t, "panicked", "o /b 0x505 1", "crashed")
	was := picture(t, "deaf") + picture(t, "panicked")
	p.Refuses([]string{`Could not destroy domain "deaf"`, "did not shut down within 1s", "destroy.graceful forbids a hard stop"}, "destroy", "-auto-approve", address("deaf"))
	p.Refuses([]string{`Could not destroy domain "panicked"`, "destroy.graceful forbids a hard stop", "virsh destroy panicked"}, "destroy", "-auto-approve", address("panicked"))
	if now := picture(t, "deaf") + picture(t, "panicked"); now != was {
		t.Errorf("they were\n%s\nand are\n%s", was, now)
	}
	deaf.destroy = ""
	lab.Virsh(t, "destroy", "panicked") // as the message says
	p.Write(configOf(t, deaf, crashed))
	p.Must(0, "apply", "-auto-approve", address("deaf"))
	p.Must(0, "destroy", "-auto-approve")
	undefined(t, "deaf", "panicked")
}

func TestAccDestroy_identity(t *testing.T) {
	core := acctest.Case(t, "a domain that was renamed, or is another one of that name, since the plan is not destroyed; a new plan shows what it has before it")
	p := lab.StartProject(t, core, configOf(t, bare{name: "stays", off: true}), unprotected)
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-destroy", "-out=saved")
	lab.Virsh(t, "domrename", "stays", "renamed")
	was := picture(t, "renamed")
	p.Refuses([]string{`Refusing to destroy domain "renamed": it is not the one in the state`, `"stays"`, "apply -refresh-only"}, "apply", "saved")
	p.Refuses([]string{`Refusing to destroy domain "renamed"`}, "destroy", "-auto-approve", "-refresh=false")
	if now := picture(t, "renamed"); now != was {
		t.Errorf("it was\n%s\nand is\n%s", was, now)
	}
	p.Must(0, "apply", "-refresh-only", "-auto-approve")
	// Another machine takes the old name: it is not ours, and stays.
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte("<domain type='qemu'><name>stays</name><memory>16384</memory><os><type>hvm</type></os></domain>"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	p.Must(0, "destroy", "-auto-approve")
	undefined(t, "renamed")
	lab.Virsh(t, "undefine", "stays")
}

func TestAccDestroy_owner(t *testing.T) {
	core := acctest.Case(t, "a second configuration that claims the same machine is told so when it creates, imports and plans, and destroys it only with adopt")
	m := bare{name: "contested"}
	with := func(owner, more string) string {
		m.more = more
		return strings.Replace(configOf(t, m), "provider \"libvirt\" {", fmt.Sprintf("provider \"libvirt\" {\n  owner = %q", owner), 1)
	}
	first := lab.StartProject(t, core, with("first", ""), unprotected)
	first.Must(0, "apply", "-auto-approve")
	was := picture(t, "contested")
	second := lab.StartProject(t, core, with("second", ""), unprotected)
	second.Refuses([]string{`Domain "contested" exists already`, "import ADDRESS"}, "apply", "-auto-approve")
	claim := []string{`Domain "contested" is marked as "first"'s`, `The provider's owner is "second"`, "adopt = true"}
	second.Write(with("second", "") + "import {\n  to = libvirt_domain.contested\n  id = \"contested\"\n}\n")
	second.Tells(claim, "plan")
	second.Tells(claim, "apply", "-auto-approve")
	second.Write(with("second", ""))
	second.Tells(claim, "plan")
	second.Refuses([]string{`Refusing to destroy domain "contested": it is marked as "first"'s`, "state rm ADDRESS", "adopt = true"}, "destroy", "-auto-approve")
	if now := picture(t, "contested"); now != was {
		t.Errorf("it was\n%s\nand is\n%s", was, now)
	}
	second.Write(with("second", "adopt = true"))
	second.Must(0, "apply", "-auto-approve")
	first.Refuses([]string{`it is marked as "second"'s`}, "destroy", "-auto-approve")
	second.Must(0, "destroy", "-auto-approve")
	undefined(t, "contested")
	first.Must(0, "destroy", "-auto-approve") // it is gone
}

func TestAccDestroy_recreateKeepsData(t *testing.T) {
	core := acctest.Case(t, "a replaced domain takes its volumes along: the same file with the same content is on the new machine")
	source := t.TempDir() + "/content"
	if err := os.WriteFile(source, []byte(strings.Repeat("precious ", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	m := bare{name: "phoenix", devices: `disks = [{ source = { volume = { pool = "default", volume = libvirt_volume.data.name } }, driver = { name = "qemu", type = "raw" }, target = { dev = "vda", bus = "virtio" } }]`}
	config := lab.Config(t, fmt.Sprintf("resource \"libvirt_volume\" \"data\" {\n  name = \"phoenix-data\"\n  pool = \"default\"\n  create = { content = { url = %q } }\n}\n", source)+m.String())
	p := lab.StartProject(t, core, config, unprotected)
	p.Must(0, "apply", "-auto-approve")
	file := lab.Host(t).PoolDir() + "/phoenix-data"
	look := func() (inode uint64, sum [32]byte) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var stat syscall.Stat_t
		if err := syscall.Stat(file, &stat); err != nil {
			t.Fatal(err)
		}
		return stat.Ino, sha256.Sum256(data)
	}
	inode, sum := look()
	uuid := lab.Virsh(t, "domuuid", "phoenix")
	p.Must(0, "apply", "-auto-approve", "-replace=libvirt_domain.phoenix")
	if now := lab.Virsh(t, "domuuid", "phoenix"); now == uuid {
		t.Errorf("it is the same machine, %s", now)
	}
	if i, s := look(); i != inode || s != sum {
		t.Errorf("the disk was inode %d with %x, and is %d with %x", inode, sum, i, s)
	}
	if list := lab.Virsh(t, "domblklist", "phoenix"); !strings.Contains(list, "phoenix-data") {
		t.Errorf("the new machine has no such disk:\n%s", list)
	}
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "destroy", "-auto-approve")
}

func TestAccDestroy_startedMeanwhile(t *testing.T) {
	acctest.Case(t, "a guest that somebody starts again between its stop and the end of its definition is told, and destroyed by the next try")
	const name = "revenant"
	ctx := context.Background()
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte("<domain type='qemu'><name>revenant</name><memory unit='MiB'>32</memory><os><type>hvm</type></os></domain>"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	host := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	defer func() { _ = host.Close() }()
	k := domain.New(func() *virt.Host { return host })
	state, err := k.Find(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	state = state.SetAt("destroy.shutdown.timeout", tree.IntValue(1))
	remove := virttest.Install(host, virttest.Observe(virttest.Op("undefine domain"), func(virt.Call) { lab.Virsh(t, "start", name) }))
	_, err = k.Delete(ctx, state)
	remove()
	if err == nil || !strings.Contains(err.Error(), "somebody started it again") {
		t.Errorf("got %v", err)
	}
	if _, err := k.Delete(ctx, state); err != nil {
		t.Error(err)
	}
	undefined(t, name)
	// Connections that break say nothing: neither gone nor destroyed.
	for _, op := range []string{"look up domain", "list snapshots of domain", "undefine domain"} {
		lab.Virsh(t, "define", file)
		if state, err = k.Find(ctx, name); err != nil {
			t.Fatal(err)
		}
		remove := virttest.Install(host, virttest.Fail(virttest.Op(op), virttest.ConnectionLost))
		if _, err := k.Delete(ctx, state); !virt.IsLost(err) {
			t.Errorf("%s: got %v", op, err)
		}
		remove()
		lab.Virsh(t, "undefine", name)
	}
}
