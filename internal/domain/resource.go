package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// resourceAspect is where libvirt puts the guest among the control groups of the
// host, and by which name a storage network knows it.
var resourceAspect = &aspect{
	name: "resource",
	owns: []string{"resource"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "libvirt puts the guest into its control group when it starts it."
	},
}
