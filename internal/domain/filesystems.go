package domain

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// filesystemPlug are directories of the host that the guest sees. Those by
// virtiofs come and go, where host and guest share the guest's memory; those by
// 9p are set up by QEMU when the guest starts. libvirt changes nothing in one
// that is there.
var filesystemPlug = &plug{
	noun: "filesystem",
	list: "devices.filesystems",
	in: func(filesystem tree.Value, now situation) string {
		switch {
		case filesystem.At("driver.type").Str() != "virtiofs":
			return "QEMU sets up a share of this kind (9p) when the guest starts; one with the driver type virtiofs can be plugged in."
		case !sharesMemory(now.guest):
			return "virtiofs works in the memory of the guest, and the running guest was started without sharing it (memory_backing.memory_access.mode = \"shared\")."
		}
		return ""
	},
	seat: func(tree.Value, situation) seat { return express },
}

var filesystemAspect = filesystemPlug.aspect()

// sharesMemory says whether other processes may map the memory of a guest: all
// of its NUMA cells, each as it says or else as the whole guest does
// (qemuValidateDomainDefVhostUserRequireSharedMemory).
func sharesMemory(guest tree.Value) bool {
	whole := guest.At("memory_backing.memory_access.mode").Str()
	cells := guest.At("cpu.numa.cell").Elems()
	for _, cell := range cells {
		if access := cell.Attr("mem_access"); access.Str() != "shared" && (!access.IsNull() || whole != "shared") {
			return false
		}
	}
	return len(cells) > 0 || whole == "shared"
}
