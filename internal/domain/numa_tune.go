package domain

import (
	"context"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// numaTuneAspect is from which of the host's NUMA nodes a guest gets its
// memory. QEMU binds the memory to them when it takes it; only in the mode
// restrictive is it left to the guest's control group, which changes at any
// time.
var numaTuneAspect = &aspect{
	name: "numa_tune",
	owns: []string{"numa_tune"},
	rule: func(c change.Change, now situation) (change.Class, string) {
		switch {
		case c.Path.Pattern() != "numa_tune.memory.nodeset":
			return change.ClassNextBoot, "QEMU binds its memory to nodes of the host when the guest starts."
		case now.guest.At("numa_tune.memory.mode").Str() != "restrictive":
			return change.ClassNextBoot, "QEMU binds its memory to nodes of the host when the guest starts; only in the mode restrictive do they change under it."
		case c.Desired.IsNull():
			return change.ClassNextBoot, "libvirt can give a running guest other nodes, and cannot take the choice of nodes away."
		}
		return change.ClassLive, ""
	},
	live: func(ctx context.Context, a *apply) error {
		set := func(nodes string) func(context.Context) error {
			return func(ctx context.Context) error {
				return a.before.dom.SetNumaParameters(ctx, virt.Numa{Nodeset: nodes}, virt.AffectLive)
			}
		}
		const nodeset = "numa_tune.memory.nodeset"
		return a.try(ctx, set(a.wanted.At(nodeset).Str()), set(a.before.running().At(nodeset).Str()))
	},
}
