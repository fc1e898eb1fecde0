package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// How a guest is brought down: asked in order, within a time, and stopped hard
// only where somebody said so.

const (
	// standardShutdown is how long a guest gets to shut down in order.
	standardShutdown = 300 * time.Second
	// lookAgain is how often it is looked at meanwhile.
	lookAgain = 200 * time.Millisecond
	// pressAgain is when the button is pressed once more: a guest that is still
	// booting misses the first time.
	pressAgain = 10 * time.Second
	// askSoon is when it is asked once more that could not be asked just now.
	askSoon = time.Second
	// agentPatience is how long its agent alone is relied on.
	agentPatience = 5 * time.Second
)

// stillRunning says that a guest did not shut down in time, or cannot.
type stillRunning struct {
	name    string
	wait    time.Duration
	crashed bool  // it hears no button
	deaf    error // why it could not be asked, nil if it was
}

func (e *stillRunning) Error() string {
	switch {
	case e.crashed:
		return fmt.Sprintf("the guest of %q has crashed, and hears no power button", e.name)
	case e.deaf != nil:
		return fmt.Sprintf("the guest of %q could not be asked to shut down: %s", e.name, e.deaf)
	}
	return fmt.Sprintf("the guest of %q did not shut down within %s", e.name, e.wait)
}

func (e *stillRunning) Unwrap() error { return e.deaf }

// wasAsked says whether the guest may go down later.
func (e *stillRunning) wasAsked() bool { return !e.crashed && e.deaf == nil }

// shutdown is one guest on its way down.
type shutdown struct {
	dom     *virt.Domain
	name    string
	wait    time.Duration
	again   time.Time    // when it is asked once more
	agent   <-chan error // gets the agent's answer, nil if none is waited for
	button  bool         // the agent was asked, and the button is next
	pressed time.Time    // the button, for the first time
	deaf    error        // why it could not be asked the last time
	powered bool         // it was seen to that it stays off
	restart string       // its own on_poweroff, if that was changed for this
}

// shutDown asks the guest to power off and waits for it. A guest that is off
// already is success. One that is paused or suspended could not hear, so that it
// goes on first. One that is on its way down is waited for.
func shutDown(ctx context.Context, dom *virt.Domain, name string, wait time.Duration) (err error) {
	s := &shutdown{dom: dom, name: name, wait: wait}
	defer func() {
		if err != nil {
			err = s.bootAgain(ctx, err)
		}
	}()
	for deadline := time.Now().Add(wait); ; {
		power, _, err := dom.State(ctx)
		switch {
		case virt.IsNotFound(err):
			return nil // one without a definition is gone with its guest
		case err != nil:
			return err
		case !power.Active():
			return nil
		case power == virt.StateCrashed:
			return &stillRunning{name: name, crashed: true}
		case time.Now().After(deadline) && s.hadItsTime(power):
			return &stillRunning{name: name, wait: wait, deaf: s.deaf}
		case power != virt.StateShutdown && time.Now().After(s.again):
			err = s.ask(ctx, power)
		}
		if err == nil {
			err = s.pause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// hadItsTime says whether a guest whose time is over may be given up. It must
// have heard the button, and have had a moment after that: calls to a host that
// has much to do can take longer than the guest was given.
func (s *shutdown) hadItsTime(power virt.State) bool {
	if power == virt.StateShutdown || s.deaf != nil {
		return true
	}
	return !s.pressed.IsZero() && time.Since(s.pressed) > min(pressAgain, s.wait/2)
}

// ask asks the guest's agent, as libvirt does first where it is left the choice,
// then presses the button, and so on in turn: a guest that just woke up may hear
// only the one or the other. libvirt's own way of both would last longer than the
// guest has, as a call to an agent that hangs cannot be broken off, and would
// press the button after that, perhaps of a guest that has been started since.
// Where too many agents are waited for, the button comes at once.
func (s *shutdown) ask(ctx context.Context, power virt.State) error {
	s.deaf = s.rouse(ctx, power)
	if s.deaf == nil {
		s.deaf = s.stayOff(ctx)
	}
	if s.deaf != nil {
		s.again = time.Now().Add(askSoon)
		if ctx.Err() != nil || virt.IsUnreachable(s.deaf) {
			return s.deaf
		}
		return nil
	}
	if !s.button {
		if answer := s.dom.AskAgent(ctx); answer != nil {
			s.button, s.agent, s.again = true, answer, time.Now().Add(min(agentPatience, s.wait/2))
			return nil
		}
	}
	err := s.dom.Shutdown(ctx, virt.ByACPI)
	if virt.HasCode(err, virt.ErrInvalidArg) || virt.HasCode(err, virt.ErrUnsupported) || virt.HasCode(err, virt.ErrArgumentUnsupported) {
		err = s.dom.Shutdown(ctx) // a hypervisor with other ways
	}
	switch {
	case err == nil:
		s.again, s.button = time.Now().Add(pressAgain), s.agent != nil
	case virt.HasCode(err, virt.ErrOperationInvalid), virt.IsNotFound(err):
		s.again, err = time.Now().Add(askSoon), nil // it went, or does not run yet: the next look tells
	}
	if s.pressed.IsZero() {
		s.pressed = time.Now()
	}
	return err
}

// stayOff sees to it that a guest whose on_poweroff has it boot again stays off
// this once: libvirt makes a reboot of every wish that it shut down.
func (s *shutdown) stayOff(ctx context.Context) error {
	if s.powered {
		return nil
	}
	xml, err := s.dom.XML(ctx, 0)
	if virt.IsNotFound(err) {
		return nil // it went
	}
	if err != nil {
		return fmt.Errorf("read what %s does when it powers off: %w", s.name, err)
	}
	guest, err := spec.Domain().Decode(xml)
	if err != nil {
		return fmt.Errorf("read what %s does when it powers off: %w", s.name, err)
	}
	action := actionOn("on_poweroff", guest)
	if action == "restart" || action == "rename-restart" {
		err = s.dom.SetLifecycleAction(ctx, "on_poweroff", "destroy", virt.AffectLive)
		if err != nil && !virt.IsNotFound(err) && !virt.HasCode(err, virt.ErrOperationInvalid) {
			return fmt.Errorf("it boots again whenever it powers off (on_poweroff = %q), which could not be changed: %w", action, err)
		}
		s.restart = action
	}
	s.powered = true
	return nil
}

// bootAgain gives a guest that runs on its own on_poweroff back, and adds to the
// error if it cannot.
func (s *shutdown) bootAgain(ctx context.Context, failed error) error {
	if s.restart == "" {
		return failed
	}
	ctx, cancel := lastingly(ctx)
	defer cancel()
	err := s.dom.SetLifecycleAction(ctx, "on_poweroff", s.restart, virt.AffectLive)
	if err == nil || virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) {
		return failed
	}
	return fmt.Errorf("%w; should it go on, it stays off when it powers off next, as its on_poweroff could not be set back to %q: %w", failed, s.restart, err)
}

// rouse lets a guest go on that hears nothing. Somebody else may do so at the
// same time.
func (s *shutdown) rouse(ctx context.Context, power virt.State) error {
	how, act := "resume", s.dom.Resume
	switch {
	case power == virt.StatePMSuspended:
		how, act = "wake up", s.dom.PMWakeup
	case power != virt.StatePaused:
		return nil
	}
	err := act(ctx)
	if err == nil {
		return nil
	}
	if now, _, lookErr := s.dom.State(ctx); lookErr == nil && now != power || virt.IsNotFound(lookErr) {
		return nil
	}
	return fmt.Errorf("%s %s so that it can shut down: %w", how, s.name, err)
}

// pause waits a moment, or until the agent answers: one that is not there, or
// cannot, is followed by the button at once.
func (s *shutdown) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.agent:
		s.agent = nil
		if virt.IsLost(err) {
			return err
		}
		if err != nil {
			s.again = time.Time{}
		}
	case <-time.After(lookAgain):
	}
	return nil
}

// stop shuts the guest down in order, and stops it hard after that unless
// graceful forbids it.
func stop(ctx context.Context, dom *virt.Domain, name string, wait time.Duration, graceful bool) error {
	err := shutDown(ctx, dom, name, wait)
	var still *stillRunning
	if graceful || !errors.As(err, &still) {
		return err
	}
	err = dom.Destroy(ctx, false)
	if power, _, lookErr := dom.State(ctx); virt.IsNotFound(lookErr) || lookErr == nil && !power.Active() {
		// Also if it powered off by itself between the timeout and the hard stop.
		return nil
	}
	return err
}

// goDown brings the guest down for an update, which what names, as
// update.shutdown says, and makes what can only be done while it is off.
// Whatever fails from then on, the guest runs in the end, with the definition
// that is in force then. how are the flags of a start.
func (a *apply) goDown(ctx context.Context, what string, how tree.Value) error {
	config := a.update.Config.At("update.shutdown")
	dom, name, wait := a.before.dom, a.before.name, seconds(config.Attr("timeout"), standardShutdown)
	interrupted, slow := false, false
	a.ended = true
	a.AddLast(func(ctx context.Context) error {
		return a.startAsItRan(ctx, how, bringBack(ctx, dom, interrupted, slow, wait, how))
	})
	err := stop(ctx, dom, name, wait, !config.Attr("force").Bool())
	interrupted = err != nil && (ctx.Err() != nil || virt.IsLost(err))
	var still *stillRunning
	slow = errors.As(err, &still) && still.wasAsked()
	woken, later := "", ""
	if what == "restart" {
		later = fmt.Sprintf(": start it then (virsh start %s)", name)
	}
	if a.before.power == virt.StatePMSuspended {
		woken = "it slept and was woken up for that; "
	}
	switch {
	case errors.As(err, &still) && still.crashed:
		return fmt.Errorf("%s %s: %w. Look at it first if you need to (virsh dump --memory-only %s FILE), then stop it by hand (virsh destroy %s), or have it stopped hard with update.shutdown.force", what, name, err, name, name)
	case errors.As(err, &still) && still.deaf != nil:
		return fmt.Errorf("%s %s: %w. Shut it down or stop it by hand (virsh destroy %s), or have it stopped hard with update.shutdown.force", what, name, err, name)
	case slow:
		return fmt.Errorf("%s %s: %w; %sit was asked to, and may still do so%s. Shut it down by hand, allow more time with update.shutdown.timeout, or have it stopped hard with update.shutdown.force", what, name, err, woken, later)
	case err != nil:
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	if a.changed("name") {
		if err := nameAspect.live(ctx, a); err != nil {
			return fmt.Errorf("rename %s while it is off: %w", name, err)
		}
		a.step(nameAspect.name, kind.Updated)
	}
	return nil
}

// bringBack has the guest running again after an update that stopped it and
// failed. One that was asked to shut down goes down all the same, in its own time,
// and is waited for: it was asked when the user gave up (interrupted), or took
// longer than it had (slow). how are the flags of a start.
func bringBack(ctx context.Context, dom *virt.Domain, interrupted, slow bool, wait time.Duration, how tree.Value) error {
	if !interrupted && !slow {
		wait = 0
	}
	down, err := waitFor(ctx, min(wait, time.Minute), func(ctx context.Context) (bool, error) {
		active, err := dom.IsActive(ctx)
		return !active, err
	})
	switch {
	case err != nil:
		return err
	case down:
		return start(ctx, dom, how)
	case interrupted:
		return fmt.Errorf("the guest was asked to shut down, runs still, and may go down later: start it then (virsh start %s)", dom.Name())
	case how.Attr("paused").Bool():
		return dom.Suspend(ctx)
	}
	return nil
}

// seconds reads a timeout attribute.
func seconds(v tree.Value, standard time.Duration) time.Duration {
	if n := v.Num(); n != nil {
		f, _ := n.Float64()
		return time.Duration(f * float64(time.Second))
	}
	return standard
}
