package domain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// image makes an empty raw image in the pool's directory.
func image(t testing.TB, name string) string {
	t.Helper()
	path := lab.Host(t).PoolDir() + "/" + name
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

// plugged are the devices of a machine in these cases.
func plugged(t testing.TB, name string, more string) string {
	t.Helper()
	disk := func(dev string) string {
		return fmt.Sprintf(`{ driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = %q, bus = "virtio" } }`, image(t, name+"-"+dev+".raw"), dev)
	}
	return fmt.Sprintf(`disks = [
      %s,
      %s,
      { device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = "sda", bus = "sata" }, readonly = true },
      { device = "cdrom", target = { dev = "sdb", bus = "sata" }, readonly = true },
    ]
    %s`, disk("vda"), disk("vdb"), image(t, name+"-cd.raw"), more)
}

func macOf(name string, n int) string {
	sum := 0
	for _, c := range name {
		sum = (sum*31 + int(c)) & 0xffff
	}
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum>>8, sum&0xff, n)
}

func nics(name string) string {
	one := func(n int) string {
		return fmt.Sprintf(`{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = "default" } } }`, macOf(name, n))
	}
	return "interfaces = [" + one(1) + ", " + one(2) + "]"
}

func TestAccDrift_devicesOff(t *testing.T) {
	core := acctest.Case(t, "devices of a machine that is off: foreign ones stay, owned ones that somebody took come back, changed ones are held or put back by their kind")
	pool := lab.Host(t).PoolDir()
	group{
		machines: []machine{
			{name: "off-gone", off: true, devices: plugged(t, "off-gone", nics("off-gone"))},
			{name: "off-more", off: true, devices: plugged(t, "off-more", nics("off-more"))},
			{name: "off-set", off: true, devices: plugged(t, "off-set", nics("off-set"))},
		},
		rows: []row{
			{on: "off-gone", does: "detach-disk --config", act: virsh("detach-disk $ vdb --config"),
				fields: []string{"devices.disks[vdb]: added none"}, warns: []string{"devices.disks[vdb] is missing on the host, and is added again"},
				definition: []string{"off-gone-vdb.raw"}},
			{on: "off-gone", does: "detach-interface --config", act: virsh("detach-interface $ network --mac " + macOf("off-gone", 1) + " --config"),
				fields:     []string{"devices.interfaces[" + macOf("off-gone", 1) + "]: added none"},
				warns:      []string{"devices.interfaces[" + macOf("off-gone", 1) + "] is missing on the host, and is added again"},
				definition: []string{macOf("off-gone", 1)}},
			{on: "off-gone", does: "change-media --eject --config", act: virsh("change-media $ sda --eject --config"),
				fields: []string{"devices.disks[sda].source.file.file: none"}, definition: []string{"off-gone-cd.raw"}},
			{on: "off-more", does: "attach-disk --config", act: virsh("attach-disk $ " + image(t, "off-more-vdc.raw") + " vdc --config --persistent"),
				foreign: []string{"disk vdc"}, definition: []string{"off-more-vdc.raw"}},
			{on: "off-more", does: "attach-interface --config", act: virsh("attach-interface $ network default --mac 52:54:00:f0:f0:01 --model virtio --config"),
				// libvirt made room for it
				foreign: []string{"interface 52:54:00:f0:f0:01", "controller pci 8"}, definition: []string{"52:54:00:f0:f0:01"}},
			{on: "off-set", does: "change-media --update --config", act: virsh("change-media $ sda " + image(t, "off-set-other.raw") + " --update --config"),
				held:       []hold{{"devices.disks[sda].source.file.file", "modification", fmt.Sprintf("%q", pool+"/off-set-cd.raw"), fmt.Sprintf("%q", pool+"/off-set-other.raw"), fmt.Sprintf("file = %q", pool+"/off-set-other.raw")}},
				definition: []string{"off-set-other.raw"}},
			{on: "off-set", does: "change-media --insert --config, into an empty drive", act: virsh("change-media $ sdb " + image(t, "off-set-more.raw") + " --insert --config"),
				foreign: []string{"setting devices.disks[sdb].source.file.file"}, definition: []string{"off-set-more.raw"}},
			{on: "off-set", does: "domif-setlink --config", act: virsh("domif-setlink $ " + macOf("off-set", 1) + " down --config"),
				foreign: []string{"setting devices.interfaces[" + macOf("off-set", 1) + "].link.state"}},
			{on: "off-set", does: "blkdeviotune --config", act: virsh("blkdeviotune $ vda --total-iops-sec 100 --config"),
				foreign: []string{"setting devices.disks[vda].io_tune.total_iops_sec"}},
		},
	}.run(t, core)
}

// A guest without ACPI lets go of nothing.
const pluggable = "features = { acpi = true }"

// ports are places where devices can be plugged into a running guest.
func ports(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{ type = "pci", model = "pcie-root-port", index = %d }`, i+1))
	}
	return "controllers = [" + strings.Join(all, ", ") + "]"
}

// unplug is an action that ends when the running guest has let go of what has
// this text in its XML.
func unplug(text, command string) action {
	return func(t testing.TB, name string) {
		t.Helper()
		virsh(command)(t, name)
		for end := time.Now().Add(time.Minute); strings.Contains(lab.Virsh(t, "dumpxml", name), text); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the guest of %s does not let go of %s", name, text)
			}
		}
	}
}

func TestAccDrift_devicesOfDefinitions(t *testing.T) {
	core := acctest.Case(t, "devices that somebody changed in the definition of a running guest: owned ones come back and the guest never notices, foreign ones stay and wait")
	const name = "on-config"
	first, second, foreign := macOf(name, 1), macOf(name, 2), macOf(name, 9)
	group{
		machines: []machine{{name: name, more: pluggable, devices: plugged(t, name, nics(name)+"\n"+ports(10))}},
		rows: []row{
			{on: name, does: "attach-disk --config", act: virsh("attach-disk $ " + image(t, name+"-vdc.raw") + " vdc --config"),
				foreign: []string{"disk vdc"}, pending: []string{"devices.disks[vdc]"}, waits: []string{"devices.disks[vdc]"},
				definition: []string{"-vdc.raw"}, guest: []string{"!-vdc.raw"}},
			{on: name, does: "attach-interface --config", act: virsh("attach-interface $ network default --model virtio --mac " + foreign + " --config"),
				foreign: []string{"interface " + foreign}, pending: []string{"devices.interfaces[" + foreign + "]"}, waits: []string{"devices.interfaces[" + foreign + "]"},
				definition: []string{foreign}, guest: []string{"!" + foreign}},
			{on: name, does: "detach-disk --config", act: virsh("detach-disk $ vdb --config"),
				pending: []string{"devices.disks[vdb]"}, fields: []string{"devices.disks[vdb]: added none"}, warns: []string{"devices.disks[vdb] is missing on the host, and is added again"},
				definition: []string{"-vdb.raw"}, guest: []string{"-vdb.raw"}},
			{on: name, does: "detach-interface --config", act: virsh("detach-interface $ network --mac " + first + " --config"),
				pending: []string{"devices.interfaces[" + first + "]"}, fields: []string{"devices.interfaces[" + first + "]: added none"},
				warns:      []string{"devices.interfaces[" + first + "] is missing on the host, and is added again"},
				definition: []string{first}, guest: []string{first}},
			{on: name, does: "change-media --eject --config", act: virsh("change-media $ sda --eject --config"),
				pending: []string{"devices.disks[sda].source.file.file"}, fields: []string{"devices.disks[sda].source.file.file: none"},
				warns:      []string{"devices.disks[sda].source.file.file is missing on the host, and is added again"},
				definition: []string{"-cd.raw"}, guest: []string{"-cd.raw"}},
			{on: name, does: "domif-setlink --config", act: virsh("domif-setlink $ " + second + " down --config"),
				foreign: []string{"setting devices.interfaces[" + second + "].link.state"},
				pending: []string{"devices.interfaces[" + second + "].link.state"}, waits: []string{"devices.interfaces[" + second + "].link.state"},
				definition: []string{"<link state='down'/>"}, guest: []string{"!<link state='down'/>"}},
			{on: name, does: "blkdeviotune --config", act: virsh("blkdeviotune $ vda --total-iops-sec 100 --config"),
				foreign: []string{"setting devices.disks[vda].io_tune.total_iops_sec"},
				pending: []string{"devices.disks[vda].io_tune.total_iops_sec"}, waits: []string{"devices.disks[vda].io_tune.total_iops_sec"},
				definition: []string{"<total_iops_sec>100<"}, guest: []string{"!<total_iops_sec>"}},
		},
	}.run(t, core)
}

func TestAccDrift_devicesOfGuests(t *testing.T) {
	core := acctest.Case(t, "devices that somebody plugged into a running guest or took out of it, without or with its definition")
	const live, both = "on-live", "on-both"
	pool := lab.Host(t).PoolDir()
	mac := func(name string, n int) string { return "devices.interfaces[" + macOf(name, n) + "]" }
	plug := func(name, flags string) (disk, nic action) {
		return virsh("attach-disk $ " + image(t, name+"-vdc.raw") + " vdc " + flags),
			virsh("attach-interface $ network default --model virtio --mac " + macOf(name, 9) + " " + flags)
	}
	liveDisk, liveNIC := plug(live, "--live")
	bothDisk, bothNIC := plug(both, "--live --config")
	group{
		machines: []machine{{name: live, more: pluggable, devices: plugged(t, live, nics(live)+"\n"+ports(10))}, {name: both, more: pluggable, devices: plugged(t, both, nics(both)+"\n"+ports(10))}},
		rows: []row{
			{on: live, does: "attach-disk --live", act: liveDisk,
				foreign: []string{"disk vdc (guest only)"}, definition: []string{"!-vdc.raw"}, guest: []string{"-vdc.raw"}},
			{on: live, does: "attach-interface --live", act: liveNIC,
				foreign: []string{"interface " + macOf(live, 9) + " (guest only)"}, definition: []string{"!" + macOf(live, 9)}, guest: []string{macOf(live, 9)}},
			{on: live, does: "detach-disk --live", act: unplug("-vdb.raw", "detach-disk $ vdb --live"),
				pending: []string{"devices.disks[vdb]"}, fields: []string{"devices.disks[vdb]: added live"}, definition: []string{"-vdb.raw"}, guest: []string{"-vdb.raw"}},
			{on: live, does: "detach-interface --live", act: unplug(macOf(live, 1), "detach-interface $ network --mac "+macOf(live, 1)+" --live"),
				pending: []string{mac(live, 1)}, fields: []string{mac(live, 1) + ": added live"}, definition: []string{macOf(live, 1)}, guest: []string{macOf(live, 1)}},
			{on: live, does: "change-media --eject --live", act: virsh("change-media $ sda --eject --live"),
				held:    []hold{{path: "devices.disks[sda].source.file.file", tier: "modification", desired: fmt.Sprintf("%q", pool+"/on-live-cd.raw"), actual: "absent"}},
				pending: []string{"devices.disks[sda].source.file.file"}, waits: []string{"devices.disks[sda].source.file.file"}, definition: []string{"-cd.raw"}},
			{on: live, does: "change-media --insert --live, into an empty drive", act: virsh("change-media $ sdb " + image(t, live+"-more.raw") + " --insert --live"),
				pending: []string{"devices.disks[sdb].source.file.file"}, waits: []string{"devices.disks[sdb].source.file.file"}, guest: []string{"-more.raw"}},
			{on: live, does: "domif-setlink", act: virsh("domif-setlink $ " + macOf(live, 2) + " down"),
				pending: []string{mac(live, 2) + ".link.state"}, waits: []string{mac(live, 2) + ".link.state"}, guest: []string{"<link state='down'/>"}},
			{on: live, does: "blkdeviotune --live", act: virsh("blkdeviotune $ vda --total-iops-sec 100 --live"),
				pending: []string{"devices.disks[vda].io_tune.total_iops_sec"}, waits: []string{"devices.disks[vda].io_tune.total_iops_sec"}, guest: []string{"<total_iops_sec>100<"}},

			{on: both, does: "attach-disk --live --config", act: bothDisk, foreign: []string{"disk vdc"}, definition: []string{"-vdc.raw"}, guest: []string{"-vdc.raw"}},
			{on: both, does: "attach-interface --live --config", act: bothNIC, foreign: []string{"interface " + macOf(both, 9)}, definition: []string{macOf(both, 9)}, guest: []string{macOf(both, 9)}},
			{on: both, does: "detach-disk --live --config", act: unplug("-vdb.raw", "detach-disk $ vdb --live --config"),
				fields: []string{"devices.disks[vdb]: added live"}, warns: []string{"devices.disks[vdb] is missing on the host, and is added again"},
				definition: []string{"-vdb.raw"}, guest: []string{"-vdb.raw"}},
			{on: both, does: "detach-interface --live --config", act: unplug(macOf(both, 1), "detach-interface $ network --mac "+macOf(both, 1)+" --live --config"),
				fields: []string{mac(both, 1) + ": added live"}, warns: []string{mac(both, 1) + " is missing on the host, and is added again"},
				definition: []string{macOf(both, 1)}, guest: []string{macOf(both, 1)}},
			{on: both, does: "change-media --eject --live --config", act: virsh("change-media $ sda --eject --live --config"),
				fields: []string{"devices.disks[sda].source.file.file: live"}, warns: []string{"devices.disks[sda].source.file.file is missing on the host, and is added again"},
				definition: []string{"-cd.raw"}, guest: []string{"-cd.raw"}},
			{on: both, does: "domif-setlink, and --config", act: virsh("domif-setlink $ "+macOf(both, 2)+" down", "domif-setlink $ "+macOf(both, 2)+" down --config"),
				foreign:    []string{"setting " + mac(both, 2) + ".link.state"},
				definition: []string{"<link state='down'/>"}, guest: []string{"<link state='down'/>"}},
			{on: both, does: "blkdeviotune --live --config", act: virsh("blkdeviotune $ vda --total-iops-sec 100 --live --config"),
				foreign:    []string{"setting devices.disks[vda].io_tune.total_iops_sec"},
				definition: []string{"<total_iops_sec>100<"}, guest: []string{"<total_iops_sec>100<"}},
		},
	}.run(t, core)
}
