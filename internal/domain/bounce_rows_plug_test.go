package domain_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

const (
	rng = `{ model = "virtio", backend = { random = "/dev/urandom" } }`
	nic = `{ model = { type = "virtio" }, source = { network = { network = "default" } }, mac = { address = "52:54:00:bb:%s" } }`
)

// list writes a list of HCL.
func list(elems ...string) string { return "[" + strings.Join(elems, ", ") + "]" }

// cards writes interfaces with the MAC addresses that end so.
func cards(ends ...string) string {
	var out []string
	for _, e := range ends {
		out = append(out, fmt.Sprintf(nic, e))
	}
	return list(out...)
}

// drive is a disk that the guest may use and nobody needs.
func drive(t testing.TB, file, dev, bus, more string) string {
	return fmt.Sprintf(`{ driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = %q, bus = %q } %s }`, image(t, file), dev, bus, more)
}

// nicsNow says that the guest itself has so many interfaces.
func nicsNow(n int) func(before, now host.Report) bool {
	return func(_, now host.Report) bool { return len(now.NICs) == n }
}

// plugRows are devices that come into a running guest and leave it.
func plugRows(t testing.TB) []bounce.Row {
	vda, vdb, vdc := drive(t, "plug-vda.raw", "vda", "virtio", ""), drive(t, "plug-vdb.raw", "vdb", "virtio", ""), drive(t, "plug-vdc.raw", "vdc", "virtio", "")
	live := bounce.Always(bounce.Live)
	rows := []bounce.Row{
		{
			Name:  "rng-added",
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.rngs": list(rng)}, Live: bounce.Leaves{"devices/rng/@model": "virtio"}, Want: live}},
		},
		{
			Name: "rng-removed", Base: bounce.Fields{"devices.rngs": list(rng, rng)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.rngs": list(rng)}, Live: bounce.Leaves{"devices/rng[2]/@model": bounce.Absent, "devices/rng/@model": "virtio"}, Want: live}},
		},
		{
			Name: "nic-removed", Base: bounce.Fields{"devices.interfaces": cards("01:01", "01:02")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.interfaces": cards("01:01")},
				Live:   bounce.Leaves{"devices/interface/mac/@address": "52:54:00:bb:01:01", "devices/interface[2]/mac/@address": bounce.Absent},
				Guest:  nicsNow(1), Want: live,
			}},
		},
		{
			Name: "disk-middle-of-three", Base: bounce.Fields{"devices.disks": list(vda, vdb, vdc)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.disks": list(vda, vdc)},
				Live:   bounce.Leaves{"devices/disk/target/@dev": "vda", "devices/disk[2]/target/@dev": "vdc", "devices/disk[3]/target/@dev": bounce.Absent},
				Want:   live,
			}},
		},
		{
			Name: "nic-link",
			Base: bounce.Fields{"devices.interfaces": cards("02:01")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.interfaces": strings.Replace(cards("02:01"), "mac =", `link = { state = "down" }, mac =`, 1)},
				Live:   bounce.Leaves{"devices/interface/link/@state": "down"}, Want: live,
			}},
		},
		{
			Name: "nic-model",
			Base: bounce.Fields{"devices.interfaces": cards("03:01")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.interfaces": strings.Replace(cards("03:01"), "virtio", "e1000e", 1)},
				Boot:   bounce.Leaves{"devices/interface/model/@type": "e1000e"}, Want: bounce.Waits("devices.interfaces[52:54:00:bb:03:01].model.type"),
			}},
		},
	}
	for i, r := range rows {
		// By ACPI a guest is told of devices that come and go.
		rows[i].Base = bounce.Fields{"features.acpi": "true"}
		maps.Copy(rows[i].Base, r.Base)
	}
	return append(rows, bounce.Row{
		Name: "rng-without-acpi",
		Steps: []bounce.Step{{
			Change: bounce.Fields{"devices.rngs": list(rng)}, Boot: bounce.Leaves{"devices/rng/@model": "virtio"}, Want: bounce.Waits("devices.rngs[0]"),
		}},
	})
}
