package domain_test

import (
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// share writes a directory of the host that the guest sees.
func share(dir, tag, driver string) string {
	return fmt.Sprintf(`{ driver = { type = %q }, source = { mount = { dir = %q } }, target = { dir = %q } }`, driver, dir, tag)
}

// filesystemRows are directories of the host, and locks at its lock manager.
func filesystemRows(t testing.TB) []bounce.Row {
	dir := t.TempDir()
	shared := func(more bounce.Fields) bounce.Fields {
		return bounce.Fields{
			"memory_backing.memory_source": `{ type = "memfd" }`, "memory_backing.memory_access": `{ mode = "shared" }`, "devices.controllers": pcie(10),
		}.With("devices.filesystems", more["devices.filesystems"])
	}
	one, two := share(dir, "one", "virtiofs"), share(dir, "two", "virtiofs")
	const lease = `{ lockspace = "lab", key = %q, target = { path = %q } }`
	lockA, lockB := fmt.Sprintf(lease, "a", dir+"/a"), fmt.Sprintf(lease, "b", dir+"/b")
	live := bounce.Always(bounce.Live)
	return withACPI([]bounce.Row{
		{
			Name: "virtiofs-added", Base: shared(nil),
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.filesystems": list(one)}, Live: bounce.Leaves{"devices/filesystem/target/@dir": "one"}, Want: live}},
		},
		{
			Name: "virtiofs-removed", Base: shared(bounce.Fields{"devices.filesystems": list(one, two)}),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.filesystems": list(one)},
				Live:   bounce.Leaves{"devices/filesystem/target/@dir": "one", "devices/filesystem[2]/target/@dir": bounce.Absent}, Want: live,
			}},
		},
		{
			// The definition cannot have it either: libvirt looks at the memory there.
			Name: "virtiofs-unshared", Base: bounce.Fields{"devices.controllers": pcie(10)}, Only: onlyLive(),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.filesystems": list(one)}, Boot: bounce.Leaves{"devices/filesystem/target/@dir": "one"}, Want: bounce.Waits(),
			}},
		},
		{
			Name: "nine-added", Base: bounce.Fields{"devices.controllers": pcie(10)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.filesystems": list(share(dir, "nine", "path"))}, Boot: bounce.Leaves{"devices/filesystem/target/@dir": "nine"}, Want: bounce.Waits("devices.filesystems[nine]"),
			}},
		},
		{
			Name: "lease-added", Base: bounce.Fields{"devices.leases": list(lockA)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.leases": list(lockA, lockB)}, Live: bounce.Leaves{"devices/lease[2]/key": "b"}, Want: live}},
		},
		{
			Name: "lease-removed", Base: bounce.Fields{"devices.leases": list(lockA, lockB)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.leases": list(lockA)}, Live: bounce.Leaves{"devices/lease/key": "a", "devices/lease[2]/key": bounce.Absent}, Want: live}},
		},
	})
}
