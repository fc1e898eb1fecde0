package domain

import (
	"context"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// memBalloonAspect is the device that moves memory between guest and host: how
// often the guest tells of its memory, and what the device is. How much memory
// it leaves to the guest is current_memory, in memory.go.
var memBalloonAspect = &aspect{
	name: "mem_balloon",
	owns: []string{"devices.mem_balloon"},
	rule: func(c change.Change, now situation) (change.Class, string) {
		switch model := now.guest.At("devices.mem_balloon.model").Str(); {
		case c.Path.Pattern() != "devices.mem_balloon.stats.period":
			return change.ClassNextBoot, "libvirt can neither attach nor detach nor change this device; QEMU makes it when the guest starts."
		case model == "none" || model == "":
			return change.ClassNextBoot, "The running guest has no memory balloon that could tell."
		}
		return change.ClassLive, "" // without a period it tells nothing
	},
	live: func(ctx context.Context, a *apply) error {
		set := func(seconds int64) func(context.Context) error {
			return func(ctx context.Context) error {
				return a.before.dom.SetMemoryStatsPeriod(ctx, int(seconds), virt.AffectLive)
			}
		}
		const period = "devices.mem_balloon.stats.period"
		return a.try(ctx, set(whole(a.wanted.At(period))), set(whole(a.before.running().At(period))))
	},
}
