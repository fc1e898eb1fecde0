package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// standardShutdown is how long a guest gets to shut down in order.
const standardShutdown = 300 * time.Second

// runningAspect is the power. Starting is idempotent: a guest that runs
// already is success. Stopping is not this aspect's: a plan that asks for it
// is refused.
var runningAspect = &aspect{
	name: "running",
	owns: []string{"running"},
	rule: func(c change.Change, now situation) (change.Class, string) {
		if c.Kind != change.Withdrawal && !c.Desired.Bool() && now.active {
			return change.ClassOffline, "running = false does not stop a running guest yet."
		}
		return change.ClassNone, ""
	},
	live: func(ctx context.Context, a *apply) error {
		if !a.changed("running") || !a.wanted.Attr("running").Bool() || a.before.active() {
			return nil
		}
		// A start is not undone: stopping a guest is never part of an update.
		return start(ctx, a.before.dom, tree.NullValue)
	},
}

// start starts the domain with the flags of the attribute create. One that
// runs already is success.
func start(ctx context.Context, dom *virt.Domain, create tree.Value) error {
	on := func(name string) bool { return create.Attr(name).Bool() }
	err := dom.Start(ctx, virt.StartFlags{
		Paused: on("paused"), AutoDestroy: on("autodestroy"), BypassCache: on("bypass_cache"),
		ForceBoot: on("force_boot"), Validate: on("validate"), ResetNVRAM: on("reset_nvram"),
	})
	if err == nil {
		return nil
	}
	if power, _, stateErr := dom.State(ctx); stateErr == nil && power.Active() && virt.HasCode(err, virt.ErrOperationInvalid) {
		return nil
	}
	return err
}

// stillRunning says that a guest did not shut down in time.
type stillRunning struct {
	name string
	wait time.Duration
}

func (e *stillRunning) Error() string {
	return fmt.Sprintf("the guest of %q did not shut down within %s", e.name, e.wait)
}

// shutDown asks the guest to power off and waits for it. A guest that is off
// already is success; a paused one is resumed first, as it could not hear.
func shutDown(ctx context.Context, dom *virt.Domain, name string, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	var asked time.Time
	for {
		power, _, err := dom.State(ctx)
		if virt.IsNotFound(err) {
			return nil // one without a definition is gone with its guest
		}
		if err != nil {
			return err
		}
		if !power.Active() {
			return nil
		}
		if power == virt.StateCrashed || !asked.IsZero() && time.Now().After(deadline) {
			// A crashed guest hears no button.
			return &stillRunning{name, wait}
		}
		// A guest that is still booting misses the first press of the button.
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			if power == virt.StatePaused {
				if err := dom.Resume(ctx); err != nil {
					return fmt.Errorf("resume %s so that it can shut down: %w", name, err)
				}
			}
			if err := dom.Shutdown(ctx); err != nil && !virt.HasCode(err, virt.ErrOperationInvalid) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop shuts the guest down in order, and stops it hard after that unless
// graceful forbids it.
func stop(ctx context.Context, dom *virt.Domain, name string, wait time.Duration, graceful bool) error {
	err := shutDown(ctx, dom, name, wait)
	var still *stillRunning
	if !errors.As(err, &still) {
		return err
	}
	if graceful {
		return err
	}
	err = dom.Destroy(ctx, false)
	if power, _, stateErr := dom.State(ctx); err != nil && stateErr == nil && !power.Active() {
		// It powered off by itself between the timeout and the hard stop.
		return nil
	}
	return err
}

// restart shuts the guest down in order and starts it with its new definition.
// A guest that does not shut down in time is left alone, unless the
// configuration asks for force. Whatever fails after it is down, it is started
// again with the definition that is in force then. One that somebody had paused
// ends paused in any case: it runs for its shutdown only.
func (a *apply) restart(ctx context.Context) error {
	shutdown := a.update.Config.At("update.shutdown")
	dom, name, wait := a.before.dom, a.before.name, seconds(shutdown.Attr("timeout"), standardShutdown)
	interrupted, how := false, tree.ObjectValue(map[string]tree.Value{"paused": tree.BoolValue(a.before.paused)})
	a.AddLast(func(ctx context.Context) error { return bringBack(ctx, dom, interrupted, wait, how) })
	err := stop(ctx, dom, name, wait, !shutdown.Attr("force").Bool())
	interrupted = err != nil && (ctx.Err() != nil || virt.IsLost(err))
	var still *stillRunning
	if errors.As(err, &still) {
		return fmt.Errorf("restart %s: %w; it was asked to, and may still do so. Shut it down by hand, allow more time with update.shutdown.timeout, or have it stopped hard with update.shutdown.force", name, err)
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", name, err)
	}
	if a.changed("name") {
		if err := nameAspect.live(ctx, a); err != nil {
			return fmt.Errorf("rename %s while it is off: %w", name, err)
		}
		a.step(nameAspect.name, kind.Updated)
	}
	if err := start(ctx, dom, how); err != nil {
		return fmt.Errorf("start %s with its new definition: %w", name, err)
	}
	a.restarted = true
	a.step("restart", kind.Updated)
	return nil
}

// bringBack has the guest running again after a restart that failed. One that
// was asked to shut down when the user gave up goes down all the same, in its
// own time, and is waited for. how are the flags of a start.
func bringBack(ctx context.Context, dom *virt.Domain, interrupted bool, wait time.Duration, how tree.Value) error {
	if !interrupted {
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
