package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What the states of a guest that is neither running nor off mean. Somebody's
// pause and a system that sleeps are left as they are. A guest that stands still
// because something went wrong is degraded.

// standsStill says, as a warning, why a guest does nothing though nobody told it
// to, nil if it is well. No apply lets it go on: what is wrong is not the
// configuration's.
func (s *sight) standsStill() *kind.Problem {
	reason := virt.Reason(s.power, s.reason)
	switch {
	case s.power == virt.StateCrashed:
		return &kind.Problem{
			Summary: fmt.Sprintf("The guest of domain %q has crashed", s.name),
			Detail: fmt.Sprintf("libvirt says %q, and keeps it for inspection (on_crash). It is not touched. If you need to, save what is in its memory (virsh dump --memory-only %s FILE); then stop it (virsh destroy %s) and start it again, by hand or by an apply with running = true. "+
				"It hears no power button: a planned restart or shutdown needs update.shutdown.force = true.", said(reason), s.name, s.name),
		}
	case virt.IsPausedByFault(s.power, s.reason):
		return &kind.Problem{
			Summary: fmt.Sprintf("The guest of domain %q was paused by libvirt: %s", s.name, reason),
			Detail:  fmt.Sprintf("Nobody asked for that, and it does nothing until somebody resumes it. It is not touched. %s", s.wayOut()),
		}
	}
	return nil
}

// wayOut is what a person does about a guest that libvirt paused.
func (s *sight) wayOut() string {
	switch {
	case virt.IsPausedByDisk(s.power, s.reason):
		return fmt.Sprintf("One of its disks could not be read or written; most often the storage is full or gone (virsh domblkerror %s names the disk). Put that right, then let it go on: virsh resume %s.", s.name, s.name)
	case virt.IsPausedByWatchdog(s.power, s.reason):
		return fmt.Sprintf("It no longer fed its watchdog, so it most likely hangs. Look at its console, then let it go on (virsh resume %s) or reset it (virsh reset %s, then resume).", s.name, s.name)
	}
	return fmt.Sprintf("libvirt's log on the host says more. Put the cause right, then let it go on: virsh resume %s.", s.name)
}

// said is libvirt's word for a crash.
func said(reason string) string {
	if reason == "" {
		return "crashed"
	}
	return reason
}
