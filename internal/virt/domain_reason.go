package virt

import "libvirt.org/go/libvirt"

// The reasons for a state, by the words that virsh has for them (domstate
// --reason). What is not in a table says nothing.
var (
	runningReasons = map[libvirt.DomainRunningReason]string{
		libvirt.DOMAIN_RUNNING_BOOTED: "booted", libvirt.DOMAIN_RUNNING_MIGRATED: "migrated", libvirt.DOMAIN_RUNNING_RESTORED: "restored",
		libvirt.DOMAIN_RUNNING_FROM_SNAPSHOT: "from snapshot", libvirt.DOMAIN_RUNNING_UNPAUSED: "unpaused",
		libvirt.DOMAIN_RUNNING_MIGRATION_CANCELED: "migration canceled", libvirt.DOMAIN_RUNNING_SAVE_CANCELED: "save canceled",
		libvirt.DOMAIN_RUNNING_WAKEUP: "event wakeup", libvirt.DOMAIN_RUNNING_CRASHED: "crashed", libvirt.DOMAIN_RUNNING_POSTCOPY: "post-copy",
	}
	pausedReasons = map[libvirt.DomainPausedReason]string{
		libvirt.DOMAIN_PAUSED_USER: "user", libvirt.DOMAIN_PAUSED_MIGRATION: "migrating", libvirt.DOMAIN_PAUSED_SAVE: "saving",
		libvirt.DOMAIN_PAUSED_DUMP: "dumping", libvirt.DOMAIN_PAUSED_IOERROR: "I/O error", libvirt.DOMAIN_PAUSED_WATCHDOG: "watchdog",
		libvirt.DOMAIN_PAUSED_FROM_SNAPSHOT: "from snapshot", libvirt.DOMAIN_PAUSED_SHUTTING_DOWN: "shutting down",
		libvirt.DOMAIN_PAUSED_SNAPSHOT: "creating snapshot", libvirt.DOMAIN_PAUSED_CRASHED: "crashed", libvirt.DOMAIN_PAUSED_STARTING_UP: "starting up",
		libvirt.DOMAIN_PAUSED_POSTCOPY: "post-copy", libvirt.DOMAIN_PAUSED_POSTCOPY_FAILED: "post-copy failed", libvirt.DOMAIN_PAUSED_API_ERROR: "api error",
	}
	shutoffReasons = map[libvirt.DomainShutoffReason]string{
		libvirt.DOMAIN_SHUTOFF_SHUTDOWN: "shutdown", libvirt.DOMAIN_SHUTOFF_DESTROYED: "destroyed", libvirt.DOMAIN_SHUTOFF_CRASHED: "crashed",
		libvirt.DOMAIN_SHUTOFF_MIGRATED: "migrated", libvirt.DOMAIN_SHUTOFF_SAVED: "saved", libvirt.DOMAIN_SHUTOFF_FAILED: "failed",
		libvirt.DOMAIN_SHUTOFF_FROM_SNAPSHOT: "from snapshot", libvirt.DOMAIN_SHUTOFF_DAEMON: "daemon",
	}
)

// Reason names libvirt's reason for a state in words, "" if it gives none.
func Reason(state State, reason int) string {
	switch {
	case state == StateRunning:
		return runningReasons[libvirt.DomainRunningReason(reason)]
	case state == StatePaused:
		return pausedReasons[libvirt.DomainPausedReason(reason)]
	case state == StateShutoff:
		return shutoffReasons[libvirt.DomainShutoffReason(reason)]
	case state == StateShutdown && libvirt.DomainShutdownReason(reason) == libvirt.DOMAIN_SHUTDOWN_USER:
		return "user"
	case state == StateCrashed && libvirt.DomainCrashedReason(reason) == libvirt.DOMAIN_CRASHED_PANICKED:
		return "panicked"
	}
	return ""
}

// IsPausedByHand says whether a state and libvirt's reason for it are those of a
// guest that somebody paused, or started paused. libvirt itself pauses one too,
// as when a disk is full.
func IsPausedByHand(state State, reason int) bool {
	return state == StatePaused && libvirt.DomainPausedReason(reason) == libvirt.DOMAIN_PAUSED_USER
}

// IsPausedByDisk says whether it is paused as a disk could not be read or written.
func IsPausedByDisk(state State, reason int) bool {
	return state == StatePaused && libvirt.DomainPausedReason(reason) == libvirt.DOMAIN_PAUSED_IOERROR
}

// IsPausedByWatchdog says whether it is paused as its watchdog was not fed.
func IsPausedByWatchdog(state State, reason int) bool {
	return state == StatePaused && libvirt.DomainPausedReason(reason) == libvirt.DOMAIN_PAUSED_WATCHDOG
}

// IsPausedByFault says whether libvirt or QEMU paused the guest because
// something went wrong. A pause for a snapshot or a migration is none: it ends
// by itself.
func IsPausedByFault(state State, reason int) bool {
	if state != StatePaused {
		return false
	}
	switch libvirt.DomainPausedReason(reason) {
	case libvirt.DOMAIN_PAUSED_IOERROR, libvirt.DOMAIN_PAUSED_WATCHDOG, libvirt.DOMAIN_PAUSED_CRASHED, libvirt.DOMAIN_PAUSED_POSTCOPY_FAILED, libvirt.DOMAIN_PAUSED_API_ERROR:
		return true
	}
	return false
}

// HasRun says whether libvirt's reason why a guest is off proves that it has run.
// libvirt forgets the reason when its daemon is started again, and a start that
// failed has a reason of its own: what is not proven is not denied.
func HasRun(state State, reason int) bool {
	if state != StateShutoff {
		return state.Active()
	}
	switch libvirt.DomainShutoffReason(reason) {
	case libvirt.DOMAIN_SHUTOFF_UNKNOWN, libvirt.DOMAIN_SHUTOFF_FAILED:
		return false
	}
	return true
}

// IsFailedStart says whether the guest is off as its last start failed.
func IsFailedStart(state State, reason int) bool {
	return state == StateShutoff && libvirt.DomainShutoffReason(reason) == libvirt.DOMAIN_SHUTOFF_FAILED
}
