package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// State is libvirt's state of a guest.
type State int

// The states.
const (
	StateNone        = State(libvirt.DOMAIN_NOSTATE)
	StateRunning     = State(libvirt.DOMAIN_RUNNING)
	StateBlocked     = State(libvirt.DOMAIN_BLOCKED)
	StatePaused      = State(libvirt.DOMAIN_PAUSED)
	StateShutdown    = State(libvirt.DOMAIN_SHUTDOWN)
	StateShutoff     = State(libvirt.DOMAIN_SHUTOFF)
	StateCrashed     = State(libvirt.DOMAIN_CRASHED)
	StatePMSuspended = State(libvirt.DOMAIN_PMSUSPENDED)
)

var stateNames = map[State]string{
	StateNone: "unknown", StateRunning: "running", StateBlocked: "blocked", StatePaused: "paused", StateShutdown: "shutdown",
	StateShutoff: "shutoff", StateCrashed: "crashed", StatePMSuspended: "pmsuspended",
}

func (s State) String() string { return named(stateNames, s) }

// Active says whether there is a guest process. Paused and suspended guests have
// one, and so has a crashed one, which is kept for inspection (on_crash
// "preserve"); of the others libvirt says that they are off.
func (s State) Active() bool { return s != StateShutoff && s != StateNone }

// State returns the state of the guest and libvirt's reason.
func (d *Domain) State(ctx context.Context) (state State, reason int, err error) {
	err = d.call(ctx, "read the state of domain", false, func(dom *libvirt.Domain) error {
		s, r, err := dom.GetState()
		state, reason = State(s), r
		return err
	})
	return state, reason, err
}

// IsActive says whether there is a guest process.
func (d *Domain) IsActive(ctx context.Context) (yes bool, err error) {
	err = d.call(ctx, "read the state of domain", false, func(dom *libvirt.Domain) (err error) { yes, err = dom.IsActive(); return err })
	return yes, err
}

// StartFlags are those of Start.
type StartFlags struct {
	Paused      bool // do not let the CPUs run yet
	AutoDestroy bool // end the guest with the connection
	BypassCache bool // read a managed save past the cache
	ForceBoot   bool // drop a managed save, and boot
	Validate    bool // check the definition against the schema
	ResetNVRAM  bool // make the NVRAM file anew from its template; libvirt 8.1
}

func (f StartFlags) bits(daemon Version) (bits libvirt.DomainCreateFlags, err error) {
	const resetNVRAM = Version(8001000)
	if f.ResetNVRAM && daemon < resetNVRAM {
		return 0, tooOld(daemon, resetNVRAM, "resetting the NVRAM file")
	}
	for flag, on := range map[libvirt.DomainCreateFlags]bool{
		libvirt.DOMAIN_START_PAUSED: f.Paused, libvirt.DOMAIN_START_AUTODESTROY: f.AutoDestroy,
		libvirt.DOMAIN_START_BYPASS_CACHE: f.BypassCache, libvirt.DOMAIN_START_FORCE_BOOT: f.ForceBoot,
		libvirt.DOMAIN_START_VALIDATE: f.Validate, libvirt.DOMAIN_START_RESET_NVRAM: f.ResetNVRAM,
	} {
		if on {
			bits |= flag
		}
	}
	return bits, nil
}

// Start starts the guest, from its managed save if it has one. A guest that runs
// already is ErrOperationInvalid.
func (d *Domain) Start(ctx context.Context, flags StartFlags) error {
	return d.host.call(ctx, Call{"start domain", d.name, true}, func(s *session) error {
		version, err := s.version()
		if err != nil {
			return err
		}
		bits, err := flags.bits(version)
		if err != nil {
			return err
		}
		return d.on(func(dom *libvirt.Domain) error { return dom.CreateWithFlags(bits) })(s)
	})
}

// PowerButton says how a guest is asked to shut down. Several may be given; none
// leaves the choice to libvirt: the agent if it is there, else ACPI.
type PowerButton uint

// The ways.
const (
	ByACPI  = PowerButton(libvirt.DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
	ByAgent = PowerButton(libvirt.DOMAIN_SHUTDOWN_GUEST_AGENT)
)

// Shutdown asks the guest to power off. By ACPI it does not wait for it. By the
// agent it lasts until the guest is down, a minute and some seconds at most: so
// long libvirt waits for an agent that hangs, or for a guest that takes its
// time. Without a choice it is first the one, then the other. A guest that is not
// running, also a paused or suspended one, is ErrOperationInvalid; an agent that
// is not there is ErrAgentUnresponsive or ErrArgumentUnsupported.
func (d *Domain) Shutdown(ctx context.Context, by ...PowerButton) error {
	f := libvirt.DOMAIN_SHUTDOWN_DEFAULT
	for _, b := range by {
		f |= libvirt.DomainShutdownFlags(b)
	}
	return d.call(ctx, "shut down domain", true, func(dom *libvirt.Domain) error { return dom.ShutdownFlags(f) })
}

// AskAgent asks the guest's agent to power off, and does not wait: the channel
// gets what Shutdown by the agent says in the end. So long the call holds a
// connection. If half of them are held so, nothing is asked, and nil returned.
func (d *Domain) AskAgent(ctx context.Context) <-chan error {
	p := &d.host.sessions
	if !p.hold() {
		return nil
	}
	answer := make(chan error, 1)
	go func() {
		err := d.Shutdown(ctx, ByAgent)
		p.letGo()
		answer <- err
	}()
	return answer
}

// Destroy stops the guest hard. graceful asks QEMU to end and to write its
// caches, waits some seconds, and fails with ErrResourceBusy rather than kill it.
func (d *Domain) Destroy(ctx context.Context, graceful bool) error {
	f := libvirt.DOMAIN_DESTROY_DEFAULT
	if graceful {
		f = libvirt.DOMAIN_DESTROY_GRACEFUL
	}
	return d.call(ctx, "stop domain", true, func(dom *libvirt.Domain) error { return dom.DestroyFlags(f) })
}

// Suspend pauses the guest's CPUs.
func (d *Domain) Suspend(ctx context.Context) error {
	return d.call(ctx, "pause domain", true, func(dom *libvirt.Domain) error { return dom.Suspend() })
}

// Resume lets a paused guest go on.
func (d *Domain) Resume(ctx context.Context) error {
	return d.call(ctx, "resume domain", true, func(dom *libvirt.Domain) error { return dom.Resume() })
}

// PMWakeup wakes up a guest whose system suspended itself to memory. What libvirt answers for a guest that is not suspended
// depends on its version: ErrOperationInvalid, or QEMU's own answer as
// ErrInternal.
func (d *Domain) PMWakeup(ctx context.Context) error {
	return d.call(ctx, "wake up domain", true, func(dom *libvirt.Domain) error { return dom.PMWakeup(0) })
}
