package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// throttleGroupsAspect is limits that disks share (libvirt 11.2). The call that
// changes one in a running guest is not made: no libvirt that this was tested
// with has it.
var throttleGroupsAspect = &aspect{
	name: "throttle_groups",
	owns: []string{"throttle_groups"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "QEMU makes the groups when the guest starts."
	},
}
