package virt

import (
	"context"
	"fmt"
	"slices"

	"libvirt.org/go/libvirt"
)

// What libvirt does when a guest powers off, reboots or crashes, as the XML
// names it, in the order of libvirt's numbers.
var (
	lifecycleEvents  = []string{libvirt.DOMAIN_LIFECYCLE_POWEROFF: "on_poweroff", libvirt.DOMAIN_LIFECYCLE_REBOOT: "on_reboot", libvirt.DOMAIN_LIFECYCLE_CRASH: "on_crash"}
	lifecycleActions = []string{
		libvirt.DOMAIN_LIFECYCLE_ACTION_DESTROY: "destroy", libvirt.DOMAIN_LIFECYCLE_ACTION_RESTART: "restart",
		libvirt.DOMAIN_LIFECYCLE_ACTION_RESTART_RENAME: "rename-restart", libvirt.DOMAIN_LIFECYCLE_ACTION_PRESERVE: "preserve",
		libvirt.DOMAIN_LIFECYCLE_ACTION_COREDUMP_DESTROY: "coredump-destroy", libvirt.DOMAIN_LIFECYCLE_ACTION_COREDUMP_RESTART: "coredump-restart",
	}
)

// SetLifecycleAction says what happens on an event: on_poweroff, on_reboot or
// on_crash, with destroy, restart, preserve and others. What the hypervisor does
// not do is ErrConfigUnsupported: QEMU's driver destroys or restarts after a
// power-off or a reboot, and not destroys after a reboot while it restarts after
// a power-off. It needs libvirt 3.9.
func (d *Domain) SetLifecycleAction(ctx context.Context, event, action string, side Affect) error {
	e, a := slices.Index(lifecycleEvents, event), slices.Index(lifecycleActions, action)
	return d.since(ctx, "set a lifecycle action of domain", true, 3009000, "setting a lifecycle action", func(dom *libvirt.Domain) error {
		if e < 0 || a < 0 {
			return fmt.Errorf("no such action: %s %s", event, action)
		}
		return dom.SetLifecycleAction(libvirt.DomainLifecycle(e), libvirt.DomainLifecycleAction(a), uint32(side))
	})
}
