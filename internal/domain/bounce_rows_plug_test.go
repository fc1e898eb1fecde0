package domain_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

const (
	rng    = `{ model = "virtio", backend = { random = "/dev/urandom" } }`
	card   = `{ model = { type = "virtio" }, source = { network = { network = "default" } }, mac = { address = "52:54:00:bb:%s" } }`
	xhci   = `{ type = "usb", index = 0, model = "qemu-xhci" }`
	scsi   = `{ type = "scsi", index = 0, model = "virtio-scsi" }`
	tablet = `{ type = "tablet", bus = "usb" }`
)

// list writes a list of HCL.
func list(elems ...string) string { return "[" + strings.Join(elems, ", ") + "]" }

// cards writes interfaces with the MAC addresses that end so.
func cards(ends ...string) string {
	var out []string
	for _, e := range ends {
		out = append(out, fmt.Sprintf(card, e))
	}
	return list(out...)
}

// with writes one interface that has more, or something else.
func with(end, old, replacement string) string {
	return strings.Replace(cards(end), old, replacement, 1)
}

// drive is a disk that the guest may use and nobody needs.
func drive(t testing.TB, file, dev, bus, more string) string {
	t.Helper()
	return fmt.Sprintf(`{ driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = %q, bus = %q }%s }`, image(t, file), dev, bus, more)
}

// cdrom is a drive, empty if the file is.
func cdrom(t testing.TB, file string) string {
	t.Helper()
	source := ""
	if file != "" {
		source = fmt.Sprintf(`source = { file = { file = %q } },`, image(t, file))
	}
	return fmt.Sprintf(`{ device = "cdrom", readonly = true, driver = { name = "qemu", type = "raw" }, %s target = { dev = "sda", bus = "sata" } }`, source)
}

// nicsNow says that the guest itself has so many interfaces.
func nicsNow(n int) func(before, now host.Report) bool {
	return func(_, now host.Report) bool { return len(now.NICs) == n }
}

// linkNow says that the guest itself sees a carrier, or none, on its interface.
func linkNow(up bool) func(before, now host.Report) bool {
	return func(_, now host.Report) bool {
		for _, carrier := range now.Links {
			if carrier == up {
				return true
			}
		}
		return false
	}
}

// disksNow says that the guest itself has so many disks.
func disksNow(n int) func(before, now host.Report) bool {
	return func(_, now host.Report) bool { return len(now.Disks) == n }
}

// withACPI gives all machines what a PC is told by of devices that come and go.
func withACPI(rows []bounce.Row) []bounce.Row {
	for i, r := range rows {
		rows[i].Base = bounce.Fields{"features.acpi": "true"}
		maps.Copy(rows[i].Base, r.Base)
	}
	return rows
}

// turns is a row of one step from one value of an attribute to another.
func turns(name, attr, from, to string, step bounce.Step) bounce.Row {
	base := bounce.Fields{}
	if from != "" {
		base[attr] = from
	}
	step.Change = bounce.Fields{attr: to}
	return bounce.Row{Name: name, Base: base, Steps: []bounce.Step{step}}
}

// plugRows are small devices that come into a running guest and leave it.
func plugRows(testing.TB) []bounce.Row {
	live := bounce.Always(bounce.Live)
	rows := withACPI([]bounce.Row{
		turns("rng-added", "devices.rngs", "", list(rng), bounce.Step{Live: bounce.Leaves{"devices/rng/@model": "virtio"}, Want: live}),
		turns("rng-removed", "devices.rngs", list(rng, rng), list(rng), bounce.Step{
			Live: bounce.Leaves{"devices/rng[2]/@model": bounce.Absent, "devices/rng/@model": "virtio"}, Want: live,
		}),
		turns("rng-rate", "devices.rngs", list(rng), list(strings.Replace(rng, `backend`, `rate = { bytes = 1234 }, backend`, 1)), bounce.Step{
			Boot: bounce.Leaves{"devices/rng/rate/@bytes": "1234"}, Want: bounce.Waits("devices.rngs[0].rate.bytes"),
		}),
		turns("watchdog-added", "devices.watchdogs", "", list(`{ model = "i6300esb", action = "none" }`), bounce.Step{
			Live: bounce.Leaves{"devices/watchdog/@model": "i6300esb"}, Want: live,
		}),
		turns("tablet-added", "devices.inputs", "", list(tablet), bounce.Step{Live: bounce.Leaves{"devices/input[2]/@bus": "usb"}, Want: live}),
		turns("keyboard-added", "devices.inputs", "", list(`{ type = "keyboard", bus = "virtio" }`), bounce.Step{
			Live: bounce.Leaves{"devices/input[2]/@bus": "virtio"}, Want: live,
		}),
		turns("mouse-and-keyboard-on-ps2-added", "devices.inputs", "", list(`{ type = "mouse", bus = "ps2" }`, `{ type = "keyboard", bus = "ps2" }`), bounce.Step{
			// Every PC has both, whether or not somebody names them.
			Definition: bounce.Leaves{"devices/input/@bus": "ps2", "devices/input[2]/@bus": bounce.Absent}, Want: bounce.Always(bounce.None),
		}),
	})
	rows[3].Base["devices.controllers"] = list(pciBridge)
	rows[4].Base["devices.controllers"] = list(xhci)
	return append(rows, turns("rng-without-acpi", "devices.rngs", "", list(rng), bounce.Step{
		Boot: bounce.Leaves{"devices/rng/@model": "virtio"}, Want: bounce.Waits("devices.rngs[0]"),
	}))
}

// diskRows are disks and drives.
func diskRows(t testing.TB) []bounce.Row {
	at := func(row, dev string) string { return drive(t, row+"-"+dev+".raw", dev, "virtio", "") }
	live := bounce.Always(bounce.Live)
	cd := func(file string) string { return list(cdrom(t, file)) }
	tuned := func(row, limits string) string {
		return list(drive(t, row+".raw", "vda", "virtio", `, io_tune = {`+limits+`}`))
	}
	rows := withACPI([]bounce.Row{
		turns("disk-middle-of-three", "devices.disks", list(at("mid", "vda"), at("mid", "vdb"), at("mid", "vdc")), list(at("mid", "vda"), at("mid", "vdc")), bounce.Step{
			Live:  bounce.Leaves{"devices/disk/target/@dev": "vda", "devices/disk[2]/target/@dev": "vdc", "devices/disk[3]/target/@dev": bounce.Absent},
			Guest: disksNow(2), Want: live,
		}),
		turns("disk-scsi-added", "devices.disks", "", list(drive(t, "scsi.raw", "sda", "scsi", "")), bounce.Step{
			Live: bounce.Leaves{"devices/disk/target/@bus": "scsi"}, Guest: disksNow(1), Want: live,
		}),
		turns("disk-sata-added", "devices.disks", "", list(drive(t, "sata.raw", "sda", "sata", "")), bounce.Step{
			Boot: bounce.Leaves{"devices/disk/target/@bus": "sata"}, Want: bounce.Waits("devices.disks[sda]"),
		}),
		turns("cd-other", "devices.disks", cd("other-1.iso"), cd("other-2.iso"), bounce.Step{
			Live: bounce.Leaves{"devices/disk/source/@file": lab.Host(t).PoolDir() + "/other-2.iso"}, Want: live,
		}),
		turns("cd-ejected", "devices.disks", cd("ejected.iso"), cd(""), bounce.Step{
			Live: bounce.Leaves{"devices/disk/source/@file": bounce.Absent}, Want: live,
		}),
		turns("disk-iotune", "devices.disks", tuned("tune", ` total_iops_sec = 100, total_bytes_sec = 1000000 `), tuned("tune", ` read_iops_sec = 50, write_iops_sec = 60, total_bytes_sec = 1000000 `), bounce.Step{
			Live: bounce.Leaves{"devices/disk/iotune/read_iops_sec": "50", "devices/disk/iotune/total_iops_sec": bounce.Absent, "devices/disk/iotune/total_bytes_sec": "1000000"}, Want: live,
		}),
		turns("disk-cache", "devices.disks", list(at("cache", "vda")), list(strings.Replace(at("cache", "vda"), `type = "raw"`, `type = "raw", cache = "none"`, 1)), bounce.Step{
			Boot: bounce.Leaves{"devices/disk/driver/@cache": "none"}, Want: bounce.Waits("devices.disks[vda].driver.cache"),
		}),
	})
	rows[1].Base["devices.controllers"] = list(scsi)
	return append(rows, mediumRows(t)...)
}

// mediumRows are disks that come, and where disks and drives have their bytes.
func mediumRows(t testing.TB) []bounce.Row {
	live := bounce.Always(bounce.Live)
	pool := lab.Host(t).PoolDir() + "/"
	file := func(name, more string) string { return fmt.Sprintf(`file = { file = %q }%s`, image(t, name), more) }
	disk := func(source, more string) string {
		return list(fmt.Sprintf(`{ driver = { name = "qemu", type = "raw" }, source = { %s }, target = { dev = "vda", bus = "virtio" }%s }`, source, more))
	}
	group := func(name string) string {
		return fmt.Sprintf(`, io_tune = { total_iops_sec = 100, group_name = %q }`, name)
	}
	drives := func(cd, floppy string) string {
		return list(strings.Replace(cdrom(t, cd), `"sata"`, `"scsi"`, 1), strings.Replace(drive(t, floppy, "fda", "fdc", ""), "{", `{ device = "floppy",`, 1))
	}
	return withACPI([]bounce.Row{
		{
			Name: "disk-virtio-and-usb-added", Base: bounce.Fields{"devices.controllers": list(strings.Trim(pcie(10), "[]"), xhci)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.disks": list(drive(t, "come-1.raw", "vda", "virtio", ""), drive(t, "come-2.raw", "sda", "usb", ""))},
				Live:   bounce.Leaves{"devices/disk/target/@bus": "virtio", "devices/disk[2]/target/@bus": "usb"}, Guest: disksNow(2), Want: live,
			}},
		},
		turns("disk-startup-policy-and-group", "devices.disks", disk(file("policy.raw", `, startup_policy = "mandatory"`), group("slow")),
			disk(file("policy.raw", `, startup_policy = "optional"`), group("fast")), bounce.Step{
				Live: bounce.Leaves{"devices/disk/source/@startupPolicy": "optional", "devices/disk/iotune/group_name": "fast", "devices/disk/iotune/total_iops_sec": "100"}, Want: live,
			}),
		turns("disk-source", "devices.disks", disk(file("source-1.raw", ""), ""), disk(file("source-2.raw", ""), ""), bounce.Step{
			Boot: bounce.Leaves{"devices/disk/source/@file": pool + "source-2.raw"}, Want: bounce.Waits("devices.disks[vda].source.file.file"),
		}),
		{
			Name: "scsi-cd-and-floppy-other",
			Base: bounce.Fields{"os.type_machine": `"pc"`, "devices.controllers": list(scsi), "devices.disks": drives("scsi-1.iso", "floppy-1.raw")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.disks": drives("scsi-2.iso", "floppy-2.raw")},
				Live:   bounce.Leaves{"devices/disk/source/@file": pool + "scsi-2.iso", "devices/disk[2]/source/@file": pool + "floppy-2.raw"}, Want: live,
			}},
		},
	})
}

// unshaped says why this host cannot limit what goes over an interface, "" if it
// can: libvirt has sch_sfq queue what comes in, and act_police drop of what goes
// out. The host has a network of its own, so that nobody feels what is tried.
func unshaped(t testing.TB) string {
	t.Helper()
	var lacks []string
	for module, command := range map[string]string{"sch_sfq": "qdisc replace dev lo root sfq", "act_police": "actions replace action police rate 1mbit burst 100k index 7"} {
		if _, err := lab.Host(t).Exec(context.Background(), "tc", strings.Fields(command)...); err != nil {
			lacks = append(lacks, module)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	slices.Sort(lacks)
	return "the kernel of this host has no " + strings.Join(lacks, ", no ") + "; the plan says live"
}

// untagged says why no guest of this host can have a VLAN, "" if it can.
func untagged(t testing.TB) string {
	t.Helper()
	_, daemon, _ := strings.Cut(lab.Virsh(t, "version", "--daemon"), "against daemon:")
	var major int
	if _, err := fmt.Sscan(strings.Split(daemon, ".")[0], &major); err != nil {
		t.Fatalf("the version of the daemon: %v", err)
	}
	if major >= 11 {
		return ""
	}
	return "libvirt before 11.0 starts no guest with a VLAN but on Open vSwitch or on a card with SR-IOV, which this host has not, and the apply refuses it with nothing changed"
}

// otherNetwork is a network beside the host's own.
func otherNetwork(t testing.TB, name string) string {
	t.Helper()
	lab.Virsh(t, "net-define", netFile(t, name))
	lab.Virsh(t, "net-start", name)
	t.Cleanup(func() {
		lab.Virsh(t, "net-destroy", name)
		lab.Virsh(t, "net-undefine", name)
	})
	return name
}

// interfaceRows are network interfaces.
func interfaceRows(t testing.TB) []bounce.Row {
	live := bounce.Always(bounce.Live)
	limited := turns("nic-bandwidth", "devices.interfaces", cards("0d:01"), with("0d:01", "mac =", `bandwidth = { inbound = { average = 1000 }, outbound = { average = 128 } }, mac =`), bounce.Step{
		Live: bounce.Leaves{"devices/interface/bandwidth/inbound/@average": "1000", "devices/interface/bandwidth/outbound/@average": "128"}, Want: live,
	})
	limited.Unavailable = unshaped(t)
	vlan := turns("nic-vlan", "devices.interfaces", cards("0e:01"), with("0e:01", "mac =", `vlan = { tags = [{ id = 42 }] }, mac =`), bounce.Step{
		Boot: bounce.Leaves{"devices/interface/vlan/tag/@id": "42"}, Want: bounce.Waits("devices.interfaces[52:54:00:bb:0e:01].vlan.tags[0]"),
	})
	vlan.Unavailable = untagged(t)
	added := turns("nic-added", "devices.interfaces", cards("0a:01"), cards("0a:01", "0a:02"), bounce.Step{
		Live: bounce.Leaves{"devices/interface[2]/mac/@address": "52:54:00:bb:0a:02"}, Guest: nicsNow(2), Want: live,
	})
	added.Base["devices.controllers"] = pcie(10)
	const at = "devices.interfaces[52:54:00:bb:0c:01]."
	return withACPI([]bounce.Row{
		added,
		turns("nic-network", "devices.interfaces", cards("0b:01"), with("0b:01", `network = "default"`, fmt.Sprintf(`network = %q`, otherNetwork(t, "bounce-other"))), bounce.Step{
			Live: bounce.Leaves{"devices/interface/source/@network": "bounce-other"}, Want: live,
		}),
		turns("nic-mtu-and-queues", "devices.interfaces", cards("0c:01"), with("0c:01", "mac =", `mtu = { size = 1400 }, driver = { queues = 2 }, mac =`), bounce.Step{
			Boot: bounce.Leaves{"devices/interface/mtu/@size": "1400", "devices/interface/driver/@queues": "2"}, Want: bounce.Waits(at+"mtu.size", at+"driver.queues"),
		}),
		limited, vlan,
		turns("nic-removed", "devices.interfaces", cards("01:01", "01:02"), cards("01:01"), bounce.Step{
			Live:  bounce.Leaves{"devices/interface/mac/@address": "52:54:00:bb:01:01", "devices/interface[2]/mac/@address": bounce.Absent},
			Guest: nicsNow(1), Want: live,
		}),
		turns("nic-mac", "devices.interfaces", cards("02:01"), cards("02:02"), bounce.Step{
			Live: bounce.Leaves{"devices/interface/mac/@address": "52:54:00:bb:02:02"}, Guest: nicsNow(1), Want: live,
		}),
		turns("nic-link", "devices.interfaces", cards("03:01"), with("03:01", "mac =", `link = { state = "down" }, mac =`), bounce.Step{
			Live: bounce.Leaves{"devices/interface/link/@state": "down"}, Guest: linkNow(false), Want: live,
		}),
		turns("nic-to-bridge", "devices.interfaces", cards("04:01"), with("04:01", `network = { network = "default" }`, `bridge = { bridge = "virbr0" }`), bounce.Step{
			Live: bounce.Leaves{"devices/interface/source/@bridge": "virbr0", "devices/interface/@type": "bridge"}, Want: live,
		}),
		turns("nic-filter", "devices.interfaces", cards("05:01"), with("05:01", "mac =", `filter_ref = { filter = "clean-traffic" }, mac =`), bounce.Step{
			Live: bounce.Leaves{"devices/interface/filterref/@filter": "clean-traffic"}, Want: live,
		}),
		turns("nic-isolated", "devices.interfaces", cards("06:01"), with("06:01", "mac =", `port_options = { isolated = "yes" }, mac =`), bounce.Step{
			Live: bounce.Leaves{"devices/interface/port/@isolated": "yes"}, Want: live,
		}),
		turns("nic-coalesce", "devices.interfaces", cards("07:01"), with("07:01", "mac =", `coalesce = { rx = { frames = { max = 7 } } }, mac =`), bounce.Step{
			Live: bounce.Leaves{"devices/interface/coalesce/rx/frames/@max": "7"}, Want: live,
		}),
		turns("nic-model", "devices.interfaces", cards("08:01"), with("08:01", `type = "virtio"`, `type = "e1000e"`), bounce.Step{
			Boot: bounce.Leaves{"devices/interface/model/@type": "e1000e"}, Want: bounce.Waits("devices.interfaces[52:54:00:bb:08:01].model.type"),
		}),
		turns("nic-rx-filters", "devices.interfaces", cards("09:01"), with("09:01", "mac =", `trust_guest_rx_filters = "yes", mac =`), bounce.Step{
			Boot: bounce.Leaves{"devices/interface/@trustGuestRxFilters": "yes"}, Want: bounce.Waits("devices.interfaces[52:54:00:bb:09:01].trust_guest_rx_filters"),
		}),
	})
}
