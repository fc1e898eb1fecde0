package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// memoryTuneAspect is how much of the host's memory all of QEMU may have, the
// guest's own in it.
var memoryTuneAspect = &aspect{
	name: "memory_tune",
	owns: []string{"memory_tune"},
	rule: memoryTuneRule,
	live: setMemoryLimits,
}

// memoryLimits are those that change on a running guest.
var memoryLimits = []string{"hard_limit", "soft_limit", "swap_hard_limit"}

func memoryTuneRule(c change.Change, now situation) (change.Class, string) {
	switch c.Path.Pattern() {
	case "memory_tune.hard_limit", "memory_tune.swap_hard_limit":
		// The kernel kills what is above such a limit: the guest.
		most := kibibytes(now.guest, "memory")
		if n := c.Desired.Num(); n != nil && c.Unit == "bytes" {
			if bytes, _ := n.Int64(); bytes < most*1024 {
				return change.ClassNextBoot, fmt.Sprintf("The running guest may use %d KiB by itself, and the kernel kills a guest that has more than its limit.", most)
			}
		}
	case "memory_tune.min_guarantee":
		return change.ClassNextBoot, "libvirt cannot change it in a running guest."
	}
	return change.ClassLive, ""
}

// setMemoryLimits sets the limits of the running guest, all in one call: libvirt
// knows in which order one of them may pass the other.
func setMemoryLimits(ctx context.Context, a *apply) error {
	now, was := virt.Parameters{}, virt.Parameters{}
	for _, limit := range memoryLimits {
		if a.does("memory_tune." + limit) {
			now[limit], was[limit] = memoryLimit(a.wanted, limit), memoryLimit(a.before.running(), limit)
		}
	}
	set := func(p virt.Parameters) func(context.Context) error {
		return func(ctx context.Context) error { return a.before.dom.SetMemoryParameters(ctx, p, virt.AffectLive) }
	}
	return a.tryParts(ctx, set(now), set(was))
}

func memoryLimit(definition tree.Value, limit string) int64 {
	if tune := definition.Attr("memory_tune"); !tune.Attr(limit).IsNull() {
		return kibibytes(tune, limit)
	}
	return virt.NoLimit
}
