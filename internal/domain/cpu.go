package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// cpuAspect is what CPU the guest sees: mode, model, features, topology, NUMA
// cells. A running guest has found its CPUs at boot.
var cpuAspect = &aspect{
	name: "cpu",
	owns: []string{"cpu"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "The guest finds its CPUs when it starts."
	},
}
