package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// memoryBackingAspect is what the guest's memory is made of on the host: pages
// and their size, files, whether they are shared or locked.
var memoryBackingAspect = &aspect{
	name: "memory_backing",
	owns: []string{"memory_backing"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "QEMU takes the guest's memory from the host when the guest starts."
	},
}
