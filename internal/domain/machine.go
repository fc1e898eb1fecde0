package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// machineAspect is the chipset that QEMU builds the guest on, and what it
// emulates. Nothing of it can change under a running guest. An alias (q35, pc)
// stands for the version that libvirt recorded when the domain was defined:
// internal/spec compares the two as equal.
var machineAspect = &aspect{
	name: "machine",
	owns: []string{"os.type", "os.type_machine", "os.type_arch", "type"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "QEMU builds the machine when the guest starts."
	},
}
