package domain_test

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

func TestAccDrift_settingsOfGuests(t *testing.T) {
	core := acctest.Case(t, "autostart, title, description and metadata that somebody changed on a running guest are put back without touching it")
	const texts = `autostart = true
  title       = "ours"
  description = "ours too"
  metadata    = { xml = "<o:ours xmlns:o=\"urn:ours\" rack=\"7\"/>" }`
	group{
		machines: []machine{{name: "set-config", more: texts}, {name: "set-live", more: texts}, {name: "set-both", more: texts}, {name: "set-bare", off: true}},
		rows: []row{
			{on: "set-config", does: "autostart --disable", act: virsh("autostart --disable $"),
				sees: map[string]string{"autostart": "false"}, fields: []string{"autostart: none"}},
			{on: "set-config", does: "desc --title --config", act: virsh("desc $ --config --title theirs"),
				sees: map[string]string{"title": "theirs"}, fields: []string{"title: none"},
				pending: []string{"title"}, definition: []string{"<title>ours</title>"}, guest: []string{"<title>ours</title>"}},
			{on: "set-config", does: "desc --config", act: virsh("desc $ --config theirs"),
				sees: map[string]string{"description": "theirs"}, fields: []string{"description: none"},
				pending: []string{"description"}, definition: []string{"<description>ours too<"}},
			{on: "set-config", does: "metadata --set --config", act: virsh("metadata $ urn:ours --config --key o --set <x/>"),
				fields: []string{"metadata.xml: none"}, pending: []string{"metadata.xml"},
				definition: []string{`rack="7"`, "!<o:x"}},
			{on: "set-live", does: "desc --title --live", act: virsh("desc $ --live --title theirs"),
				sees: map[string]string{"title": "ours"}, fields: []string{"title: live"}, pending: []string{"title"},
				guest: []string{"<title>ours</title>"}},
			{on: "set-live", does: "desc --live", act: virsh("desc $ --live theirs"),
				fields: []string{"description: live"}, pending: []string{"description"}, guest: []string{"<description>ours too<"}},
			{on: "set-live", does: "metadata --set --live", act: virsh("metadata $ urn:ours --live --key o --set <x/>"),
				fields: []string{"metadata.xml: live"}, pending: []string{"metadata.xml"}, guest: []string{`rack="7"`, "!<o:x"}},
			{on: "set-both", does: "desc --title --live --config", act: virsh("desc $ --live --config --title theirs"),
				fields: []string{"title: live"}, definition: []string{"<title>ours<"}, guest: []string{"<title>ours<"}},
			{on: "set-both", does: "desc --live --config, to nothing", act: virsh("desc $ --live --config --new-desc ''"),
				fields: []string{"description: live"}, warns: []string{"description is missing on the host, and is added again"},
				definition: []string{"<description>ours too<"}, guest: []string{"<description>ours too<"}},
			{on: "set-both", does: "metadata --remove --live --config", act: virsh("metadata $ urn:ours --live --config --remove"),
				fields: []string{"metadata.xml: live"}, definition: []string{`rack="7"`}, guest: []string{`rack="7"`}},
			{on: "set-both", does: "metadata --set of another namespace", act: virsh("metadata $ urn:theirs --live --config --key t --set <x/>"),
				definition: []string{"urn:theirs"}, guest: []string{"urn:theirs"}},
			{on: "set-bare", does: "autostart where the configuration says nothing", act: virsh("autostart $")},
			{on: "set-bare", does: "desc --title --config where the configuration says nothing", act: virsh("desc $ --config --title theirs"),
				foreign: []string{"setting title"}, definition: []string{"<title>theirs<"}},
			{on: "set-bare", does: "desc --config where the configuration says nothing", act: virsh("desc $ --config theirs"),
				foreign: []string{"setting description"}, definition: []string{"<description>theirs<"}},
		},
	}.run(t, core)
}

func TestAccDrift_editedOff(t *testing.T) {
	core := acctest.Case(t, "an edited definition of a machine that is off: machine type, CPU, boot order and disks are held, the clock and a password are put back, a device that was deleted comes back")
	const drawn = `clock = { offset = "utc" }
  cpu = { mode = "custom", match = "exact", model = "qemu64", model_fallback = "allow" }`
	group{
		machines: []machine{
			{name: "edit-os", off: true, more: drawn},
			{name: "edit-dev", off: true, devices: `rngs = [{ model = "virtio", backend = { random = "/dev/urandom" } }]
    graphics = [{ vnc = { auto_port = true, passwd = "ours" } }]`},
			{name: "edit-serial", off: true},
			{name: "renamed", off: true},
		},
		adapt: func(body string) string { // of the first machine
			return strings.Replace(body, `type_machine = "q35"`, `type_machine = "pc-q35-7.2"
    boot_devices = [{ dev = "hd" }, { dev = "network" }]`, 1)
		},
		rows: []row{
			{on: "edit-dev", does: "edit the machine type, where the configuration has an alias", act: edit("machine='pc-q35-7.2'", "machine='pc-q35-7.1'"),
				sees: map[string]string{"os.type_machine": "q35"}, definition: []string{"pc-q35-7.1"}}, // any q35 is one
			{on: "edit-os", does: "edit the machine type", act: edit("machine='pc-q35-7.2'", "machine='pc-q35-7.1'"),
				sees:       map[string]string{"os.type_machine": "pc-q35-7.1"},
				held:       []hold{{"os.type_machine", "modification", `"pc-q35-7.2"`, `"pc-q35-7.1"`, `type_machine = "pc-q35-7.1"`}},
				definition: []string{"pc-q35-7.1"}},
			{on: "edit-os", does: "edit the CPU model", act: edit(">qemu64</model>", ">kvm64</model>"),
				sees:       map[string]string{"cpu.model": "kvm64"},
				held:       []hold{{"cpu.model", "modification", `"qemu64"`, `"kvm64"`, `model = "kvm64"`}},
				definition: []string{"kvm64"}},
			{on: "edit-os", does: "edit the boot order", act: edit("<boot dev='hd'/>", "", "<boot dev='network'/>", "<boot dev='network'/><boot dev='hd'/>"),
				sees: map[string]string{"os.boot_devices.0.dev": "network"},
				held: []hold{{"os.boot_devices[0].dev", "modification", `"hd"`, `"network"`, `dev = "network"`},
					{"os.boot_devices[1].dev", "modification", `"network"`, `"hd"`, `dev = "hd"`}}},
			{on: "edit-os", does: "edit the clock", act: edit("<clock offset='utc'", "<clock offset='localtime'"),
				sees: map[string]string{"clock.offset": "localtime"}, fields: []string{"clock.offset: none"}, definition: []string{"<clock offset='utc'"}},
			{on: "edit-dev", does: "delete the random number generator", act: edit("<rng model='virtio'>", "<!--", "</rng>", "-->"),
				fields: []string{"devices.rngs[0]: added none"}, warns: []string{"devices.rngs[0] is missing on the host, and is added again"},
				definition: []string{"/dev/urandom"}},
			{on: "edit-dev", does: "edit the password of the graphics", act: edit("passwd='ours'", "passwd='theirs'"),
				sees: map[string]string{"devices.graphics.0.vnc.passwd": "theirs"}, fields: []string{"devices.graphics[0].vnc.passwd: none"},
				definition: []string{"passwd='ours'"}},
			{on: "edit-serial", does: "delete the serial port, and not the console on it", act: edit("<serial type='file'>", "<!--", "</serial>", "-->"),
				definition: []string{"<serial type='file'"}}, // libvirt has put it back
			{on: "edit-dev", does: "delete the serial port with its console", act: edit("<serial type='file'>", "<!--", "</serial>", "-->", "<console type='file'>", "<!--", "</console>", "-->"),
				fields: []string{"devices.serials[0]: added none"}, warns: []string{"devices.serials[0] is missing on the host, and is added again"},
				definition: []string{"<serial type='file'"}},
			{on: "renamed", does: "domrename", act: virsh("domrename $ renamed-by-hand"),
				sees: map[string]string{"name": "renamed-by-hand"},
				held: []hold{{"name", "modification", `"renamed"`, `"renamed-by-hand"`, `name = "renamed-by-hand"`}}},
		},
	}.run(t, core)
}

func TestAccDrift_editedOn(t *testing.T) {
	core := acctest.Case(t, "an edited definition of a running guest: what the guest still has is put back without touching it, what is held waits")
	const name = "edit-on"
	group{
		machines: []machine{{name: name, more: `clock = { offset = "utc" }
  cpu = { mode = "custom", match = "exact", model = "qemu64", model_fallback = "allow" }`,
			devices: `rngs = [{ model = "virtio", backend = { random = "/dev/urandom" } }]
    graphics = [{ vnc = { auto_port = true, passwd = "ours" } }]
    disks = [{ driver = { name = "qemu", type = "raw" }, source = { file = { file = "` + image(t, name+"-vda.raw") + `" } }, target = { dev = "vda", bus = "virtio" }, boot = { order = 1 } }]`}},
		rows: []row{
			{on: name, does: "edit the CPU model", act: edit(">qemu64</model>", ">kvm64</model>"),
				held:    []hold{{"cpu.model", "modification", `"qemu64"`, `"kvm64"`, `model = "kvm64"`}},
				pending: []string{"cpu.model"}, waits: []string{"cpu.model"}, definition: []string{"kvm64"}},
			{on: name, does: "edit the boot order", act: edit("<boot order='1'/>", "<boot order='2'/>"),
				held:    []hold{{"devices.disks[vda].boot.order", "modification", "1", "2", "order = 2"}},
				pending: []string{"devices.disks[vda].boot.order"}, waits: []string{"devices.disks[vda].boot.order"}},
			{on: name, does: "edit the clock", act: edit("<clock offset='utc'", "<clock offset='localtime'"),
				pending: []string{"clock.offset"}, fields: []string{"clock.offset: none"}, definition: []string{"<clock offset='utc'"}},
			{on: name, does: "delete the random number generator", act: edit("<rng model='virtio'>", "<!--", "</rng>", "-->"),
				pending: []string{"devices.rngs[0]"}, fields: []string{"devices.rngs[0]: added none"}, warns: []string{"devices.rngs[0] is missing on the host, and is added again"},
				definition: []string{"/dev/urandom"}},
			{on: name, does: "edit the password of the graphics", act: edit("passwd='ours'", "passwd='theirs'"),
				// No secret is in the records, and yet the plan sees that the guest has it still.
				sees: map[string]string{"devices.graphics.0.vnc.passwd": "theirs"}, fields: []string{"devices.graphics[0].vnc.passwd: none"},
				pending:    []string{"devices.graphics[0].vnc.passwd"},
				definition: []string{"passwd='ours'"}, guest: []string{"passwd='ours'"}},
		},
	}.run(t, core)
}
