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
		return hardLimitRule(c, now)
	case "memory_tune.min_guarantee":
		return change.ClassNextBoot, "libvirt cannot change it in a running guest."
	}
	return change.ClassLive, ""
}

// hardLimitRule is about a limit above which the kernel kills all of QEMU. A
// limit that goes, or rises, kills nobody; another one is set on a running guest
// only if it leaves room for more than the guest can come to have.
func hardLimitRule(c change.Change, now situation) (change.Class, string) {
	if c.Desired.IsNull() {
		return change.ClassLive, ""
	}
	limit := c.Path[len(c.Path)-1].Attr
	want, is := kibibytesOf(c), memoryLimit(now.guest, limit)
	if is != virt.NoLimit && want >= is {
		return change.ClassLive, ""
	}
	if least := roomyLimit(now); want < least {
		return change.ClassNextBoot, fmt.Sprintf("The kernel kills a guest of which all of QEMU has more than its limit, and libvirt cannot say how much that is. In a running guest a limit is removed or raised; it is lowered, or set where there was none, only if it is at least %d KiB (the guest's memory, a quarter of that and 512 MiB).", least)
	}
	if limit == "swap_hard_limit" {
		if hard := hardLimitAfter(now); want < hard {
			return change.ClassNextBoot, fmt.Sprintf("It may not be below the hard_limit, and that of the running guest is %d KiB until its next start.", hard)
		}
	}
	return change.ClassLive, ""
}

// What QEMU may have beside the memory of its guest: video memory, the pages of
// its own tables, which grow with the guest's memory, the caches and the buffers
// of its disks and displays, which do not. Nobody can say how much that is: it
// is far less than this for nearly every guest, and a limit with less to spare
// can still be set for the next start.
const (
	overheadShare = 4          // one part in so many of the guest's memory
	overheadKiB   = 512 * 1024 // and this
)

// roomyLimit is the least limit in KiB that cannot kill the running guest: it has
// room for all of its memory, whatever the balloon leaves it now, with the
// modules that come in the same plan, and for what QEMU has beside it.
func roomyLimit(now situation) int64 {
	kib := kibibytes(now.guest, "memory")
	for _, c := range now.beside {
		if c.Path.Pattern() == moduleList+"[]" && !c.Desired.IsNull() {
			kib += bytesOf(c.Desired, "target.size") / 1024
		}
	}
	return kib + kib/overheadShare + overheadKiB
}

// hardLimitAfter is the hard limit in KiB that the running guest has once the
// plan is carried out, 0 if it has none then.
func hardLimitAfter(now situation) int64 {
	for _, c := range now.beside {
		if c.Path.Pattern() != "memory_tune.hard_limit" {
			continue
		}
		if class, _ := hardLimitRule(c, now); class == change.ClassLive {
			return kibibytesOf(c)
		}
	}
	if hard := memoryLimit(now.guest, "hard_limit"); hard != virt.NoLimit {
		return hard
	}
	return 0
}

// kibibytesOf is the quantity that a change asks for, 0 if it is not known yet.
func kibibytesOf(c change.Change) int64 {
	n := c.Desired.Num()
	if n == nil || c.Unit != "bytes" {
		return 0
	}
	bytes, _ := n.Int64()
	return bytes / 1024
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
