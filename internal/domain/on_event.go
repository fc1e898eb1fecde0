package domain

import (
	"context"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// onEventAspect is what libvirt does when the guest powers off, reboots or
// crashes, or loses the lock of a disk.
var onEventAspect = &aspect{
	name: "on_event",
	owns: []string{"on_poweroff", "on_reboot", "on_crash", "on_lock_failure"},
	rule: func(c change.Change, _ situation) (change.Class, string) {
		if c.Path.Pattern() == "on_lock_failure" {
			return change.ClassNextBoot, "The lock manager takes it when the guest starts."
		}
		return change.ClassLive, ""
	},
	live: setActions,
}

// standardActions are what libvirt does where nobody says.
var standardActions = map[string]string{"on_poweroff": "destroy", "on_reboot": "restart", "on_crash": "destroy"}

func actionOn(event string, definition tree.Value) string {
	if action := definition.Attr(event).Str(); action != "" {
		return action
	}
	return standardActions[event]
}

// setActions sets what happens on events. QEMU's driver refuses to destroy
// after a reboot while it restarts after a power-off, so the order matters.
func setActions(ctx context.Context, a *apply) error {
	events := []string{"on_poweroff", "on_reboot", "on_crash"}
	if actionOn("on_reboot", a.wanted) == "restart" {
		events = []string{"on_reboot", "on_poweroff", "on_crash"}
	}
	for _, event := range events {
		if !a.does(event) {
			continue
		}
		set := func(action string) func(context.Context) error {
			return func(ctx context.Context) error {
				return a.before.dom.SetLifecycleAction(ctx, event, action, virt.AffectLive)
			}
		}
		if err := a.try(ctx, set(actionOn(event, a.wanted)), set(actionOn(event, a.before.running()))); err != nil {
			return err
		}
	}
	return nil
}
