package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// What the host lacks is told before anything is touched, all at once.

// wanting is one of everything that a domain can name and the host not have. The
// filter of a guest that runs cannot be removed, so each has its own.
type wanting struct{ dir, filter string }

func (w wanting) at(name string) string { return filepath.Join(w.dir, name) }

// devices name it all.
func (w wanting) devices() string {
	disk := func(source, format, target string) string {
		return fmt.Sprintf(`{ source = { %s }, driver = { name = "qemu", type = %q }, target = { dev = %q, bus = "virtio" } }`, source, format, target)
	}
	file := func(name string) string { return fmt.Sprintf(`file = { file = %q }`, w.at(name)) }
	return fmt.Sprintf(`
    disks = [
      %s, %s, %s, %s,
      { device = "cdrom", source = { %s }, driver = { name = "qemu", type = "raw" }, target = { dev = "sda", bus = "sata" } },
    ]
    interfaces = [
      { source = { network = { network = "pf-net" } }, model = { type = "virtio" }, mac = { address = "52:54:00:9f:00:01" } },
      { source = { bridge = { bridge = "pfbr0" } }, model = { type = "virtio" }, mac = { address = "52:54:00:9f:00:02" } },
      { source = { network = { network = "default" } }, filter_ref = { filter = %q }, model = { type = "virtio" }, mac = { address = "52:54:00:9f:00:03" } },
    ]
    filesystems = [{ access_mode = "mapped", source = { mount = { dir = %q } }, target = { dir = "pf" } }]`,
		disk(`volume = { pool = "pf-pool", volume = "v.raw" }`, "raw", "vdb"), disk(`volume = { pool = "default", volume = "pf-v.raw" }`, "raw", "vdc"),
		disk(file("disk.raw"), "raw", "vdd"), disk(file("over.qcow2"), "qcow2", "vde"), file("medium.iso"), w.filter, w.at("share"))
}

// says is what a refusal says of it.
func (w wanting) says() []string {
	return []string{
		`cannot start as configured: pool "pf-pool" does not exist`, "devices.disks[vdb].source.volume.pool is \"pf-pool\"", "Pools of the host", "default", "libvirt_pool.x.name", "Nothing was changed",
		`volume "pf-v.raw" of pool "default" does not exist`, "devices.disks[vdc].source.volume.volume", "The way out: create the volume first", "virsh pool-refresh default",
		"file " + w.at("disk.raw") + " does not exist", "devices.disks[vdd].source.file.file is", "The way out: put it there, or change the attribute",
		"backing file " + w.at("base.qcow2") + " does not exist", "devices.disks[vde].source.file.file is", "The way out: put it there: " + w.at("over.qcow2") + " lies over it",
		"medium " + w.at("medium.iso") + " does not exist", "devices.disks[sda].source.file.file is", "The way out: put it there, or change the attribute",
		"directory " + w.at("share") + " does not exist", "devices.filesystems[pf].source.mount.dir is", "The way out: put it there, or change the attribute",
		`network "pf-net" does not exist`, "Networks of the host", "default", "libvirt_network.x.name",
		`bridge "pfbr0" does not exist on the host`, "devices.interfaces[52:54:00:9f:00:02].source.bridge.bridge is", "The way out: create it on the host first, or name another one",
		fmt.Sprintf("network filter %q does not exist", w.filter), "Network filters of the host", "virsh nwfilter-define",
	}
}

// prepare leaves an image whose backing file is gone.
func (w wanting) prepare(t testing.TB, _ string) {
	t.Helper()
	w.imagine(t, "base.qcow2")
	w.imagine(t, "over.qcow2", "-b", w.at("base.qcow2"), "-F", "qcow2")
	rename(t, w.at("base.qcow2"), w.at("away"))
}

func (w wanting) imagine(t testing.TB, name string, more ...string) {
	t.Helper()
	args := append([]string{"create", "-q", "-f", "qcow2"}, append(more, w.at(name), "1M")...)
	if out, err := lab.Host(t).Exec(context.Background(), "qemu-img", args...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// mend makes all that is missing.
func (w wanting) mend(t testing.TB, _ string) {
	t.Helper()
	rename(t, w.at("away"), w.at("base.qcow2"))
	for _, name := range []string{"disk.raw", "medium.iso"} {
		fill(t, w.at(name), 1<<20)
	}
	for _, dir := range []string{"share", "pool"} {
		if err := os.MkdirAll(w.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	filter := w.at("filter.xml")
	if err := os.WriteFile(filter, []byte(`<filter name='`+w.filter+`'><rule action='accept' direction='inout'><all/></rule></filter>`), 0o644); err != nil {
		t.Fatal(err)
	}
	virsh("net-define "+netFile(t, "pf-net"), "net-start pf-net", "nwfilter-define "+filter,
		"pool-define-as pf-pool dir --target "+w.at("pool"), "pool-start pf-pool", "vol-create-as pf-pool v.raw 1M --format raw", "vol-create-as default pf-v.raw 1M --format raw")(t, "")
	link := func(args ...string) {
		if out, err := lab.Host(t).Exec(context.Background(), "ip", append([]string{"link"}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	link("add", "pfbr0", "type", "bridge")
	t.Cleanup(func() {
		virsh("net-destroy pf-net", "net-undefine pf-net", "pool-destroy pf-pool", "pool-undefine pf-pool", "vol-delete pf-v.raw default")(t, "")
		link("del", "pfbr0")
	})
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// fill writes a file of so many bytes, of which none is zero.
func fill(t testing.TB, file string, size int) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Repeat("data", size/4)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// hosted is a directory of the host's.
func hosted(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(lab.Host(t).Dir(), "preflight-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// unbuildables are changes that no host of these tests can build.
func unbuildables(t testing.TB) []failure {
	t.Helper()
	back := func(m machine) machine {
		m.chipset, m.os, m.more, m.devices = "", "", strings.Split(m.more, "\n# change")[0], strings.Split(m.devices, "\n# change")[0]
		return m
	}
	row := func(what string, change func(*machine), says ...string) failure {
		return failure{what: what, change: func(m machine) machine { change(&m); return m }, says: append(says, "Nothing was changed"), next: back}
	}
	rows := []failure{
		row("a machine type that there is not", func(m *machine) { m.chipset = "pc-q35-99.0" },
			`machine type "pc-q35-99.0" is not offered by`, "Machine types of the emulator: pc-q35-", "more", "change os.type_machine"),
		row("an emulator that is not there", func(m *machine) { m.devices += "\n# change\nemulator = \"/nowhere/qemu\"" },
			"emulator /nowhere/qemu is gone", `devices.emulator is "/nowhere/qemu"`, "The way out: install it, or change devices.emulator"),
		row("a CPU model and a firmware at once", func(m *machine) {
			m.os = `firmware = "bios"`
			m.more += "\n# change\ncpu = { mode = \"custom\", model = \"qemu65\" }"
		}, `firmware "bios" is not offered by the host`, "Kinds of firmware that the host offers: efi", `CPU model "qemu65" is not offered`, "CPU models that the host offers: qemu64"),
		row("a CPU mode", func(m *machine) { m.more += "\n# change\ncpu = { mode = \"host-passthrough\" }" },
			`CPU mode "host-passthrough" is not offered`, "CPU modes that the host offers: custom, host-model, maximum"),
		row("a CPU model that the host cannot be", func(m *machine) {
			m.more += "\n# change\ncpu = { mode = \"custom\", model = \"Opteron_G5\", check = \"partial\" }"
		}, "libvirt cannot build it", "required features", "host-model"),
		row("a feature that no list has", func(m *machine) {
			m.more += "\n# change\ncpu = { mode = \"custom\", model = \"qemu64\", features = [{ name = \"telepathy\", policy = \"require\" }] }"
		}, "libvirt cannot build it", "unknown CPU feature: telepathy"),
		row("a loader that is not there", func(m *machine) { m.os = `loader = "/nowhere/code.fd", loader_type = "rom"` },
			"file /nowhere/code.fd does not exist", `os.loader is "/nowhere/code.fd"`, "The way out: put it there, or change the attribute"),
	}
	if untagged(t) == "" {
		return rows
	}
	return slices.Insert(rows, 2, row("a VLAN that nothing tags", func(m *machine) {
		m.devices += "\n# change\n" + `interfaces = [{ source = { network = { network = "default" } }, model = { type = "virtio" }, mac = { address = "52:54:00:9f:00:0a" }, vlan = { tags = [{ id = 42 }] } }]`
	}, `starts no guest with a VLAN (42) on network "default"`, "It is about devices.interfaces[52:54:00:9f:00:0a].vlan", "The way out: connect the interface to a bridge of Open vSwitch", "remove vlan"))
}

func TestAccFailures_preflightOfUpdates(t *testing.T) {
	core := acctest.Case(t, "an update of a running guest that names what the host does not have is refused at once, with everything that is missing, and nothing is touched; it works when that is there")
	w := wanting{hosted(t), "pf-updates"}
	failures{
		on: machine{name: "preflight", more: pluggable},
		rows: append(unbuildables(t),
			failure{what: "everything is missing", prepare: w.prepare, change: func(m machine) machine { m.devices = w.devices(); return m }, says: w.says(), mend: w.mend,
				then: map[string]string{"status.state": "pending"}}),
	}.run(t, core)
}

func TestAccFailures_preflightOfRestarts(t *testing.T) {
	core := acctest.Case(t, "an update that would restart the guest is refused before the guest goes down if the host lacks what it needs to come up again, new or not")
	disk := filepath.Join(hosted(t), "system.raw")
	fill(t, disk, 1<<20)
	failures{
		on: machine{name: "preflight-restart", more: pluggable + "\n" + mayRestart, devices: fmt.Sprintf(`disks = [{ source = { file = { file = %q } }, driver = { name = "qemu", type = "raw" }, target = { dev = "vda", bus = "virtio" } }]`, disk)},
		rows: append(unbuildables(t)[:4],
			failure{what: "a disk that it has is gone", noticed: true, prepare: func(t testing.TB, _ string) { rename(t, disk, disk+".away") }, change: adds("# change", `cpu = { mode = "maximum" }`),
				says: []string{"cannot start as configured: file " + disk + " does not exist", "devices.disks[vda].source.file.file"},
				mend: func(t testing.TB, _ string) { rename(t, disk+".away", disk) }},
			failure{what: "a network is off", prepare: func(t testing.TB, _ string) { virsh("net-define "+netFile(t, "pf-off"))(t, "") }, change: func(m machine) machine {
				m.devices += "\n" + `interfaces = [{ source = { network = { network = "pf-off" } }, model = { type = "virtio" }, mac = { address = "52:54:00:9f:00:09" } }]`
				return m
			}, says: []string{`network "pf-off" is not active`, "virsh net-start pf-off"},
				mend: func(t testing.TB, _ string) {
					virsh("net-start pf-off")(t, "")
					t.Cleanup(func() { virsh("net-destroy pf-off", "net-undefine pf-off")(t, "") })
				}}),
	}.run(t, core)
}

func TestAccFailures_preflightOfCreations(t *testing.T) {
	core := acctest.Case(t, "a creation that names what the host does not have is refused at once: nothing is defined, nothing is in the state; it works when that is there")
	w := wanting{hosted(t), "pf-creations"}
	creations{
		of: machine{name: "preflight-new", more: pluggable, off: true},
		rows: append(unbuildables(t),
			failure{what: "everything is missing", prepare: w.prepare, change: func(m machine) machine { m.devices = w.devices(); return m }, says: w.says(), mend: w.mend}),
	}.run(t, core)
}
