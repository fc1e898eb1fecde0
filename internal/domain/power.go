package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// runningAspect is the power. Whoever says running = false has asked for the
// guest to be shut down, which is not update.allow's to limit. A guest that is
// paused or suspended runs: no update lets it go on.
var runningAspect = &aspect{
	name: "running",
	owns: []string{"running"},
	rule: func(change.Change, situation) (change.Class, string) { return change.ClassNone, "" },
	live: func(ctx context.Context, a *apply) error {
		if !a.changed("running") || !a.wanted.Attr("running").Bool() || a.before.active() {
			return nil
		}
		// A start is not undone: stopping a guest is never part of taking back.
		if err := start(ctx, a.before.dom, tree.NullValue); err != nil {
			return err
		}
		a.started = true
		return nil
	},
}

// asksToStop says whether a change is the wish that the guest be off.
func asksToStop(c change.Change) bool {
	return c.Path.Pattern() == "running" && c.Kind != change.Withdrawal && !c.Desired.Bool()
}

// endingWith is the situation of a plan with these changes. Of a guest that it
// shuts down nothing else is asked: all other changes meet a machine that is off.
func endingWith(changes []change.Change, now situation) situation {
	for _, c := range changes {
		if now.active && asksToStop(c) {
			now.active, now.ends = false, true
		}
	}
	return now
}

// warnAboutStart says that somebody started a guest that the configuration wants
// off, before it is shut down.
func warnAboutStart(changes []change.Change, config tree.Value, name string) []kind.Problem {
	for _, c := range changes {
		if !asksToStop(c) || c.Kind != change.Drift {
			continue
		}
		wait := seconds(config.At("update.shutdown.timeout"), standardShutdown)
		return []kind.Problem{{
			Path: c.Path, Summary: fmt.Sprintf("Somebody started domain %q, and this apply shuts it down", name),
			Detail: fmt.Sprintf("The configuration says running = false. The guest gets %s to shut down in order (update.shutdown.timeout). To let it run, write running = true, or leave the attribute out: then its power is nobody's business.", wait),
		}}
	}
	return nil
}

// start starts the domain with the flags of the attribute create, from its
// managed save if it has one. One that runs already is success.
func start(ctx context.Context, dom *virt.Domain, create tree.Value) error {
	on := func(name string) bool { return create.Attr(name).Bool() }
	err := dom.Start(ctx, virt.StartFlags{
		Paused: on("paused"), AutoDestroy: on("autodestroy"), BypassCache: on("bypass_cache"),
		ForceBoot: on("force_boot"), Validate: on("validate"), ResetNVRAM: on("reset_nvram"),
	})
	if err == nil {
		return nil
	}
	if !virt.HasCode(err, virt.ErrOperationInvalid) && !virt.IsLost(err) {
		return err
	}
	// It runs already, or does since the call whose answer was lost.
	if power, _, stateErr := dom.State(ctx); stateErr == nil && power.Active() {
		return nil
	}
	return err
}

// shutsDown says whether the plan said that the guest is shut down, and it still
// runs.
func (a *apply) shutsDown() bool {
	return a.update.Effect == change.EffectShutdown && a.before.active() && a.changed("running") && !a.wanted.Attr("running").Bool()
}

// takesDown says whether this update ends the run of the guest, by a restart or
// for good: the definition is then all that changes.
func (a *apply) takesDown() bool { return a.shutsDown() || a.restarts() }

// cyclePower ends the run of the guest, if the plan said so, and begins another
// one if it is a restart. One that somebody had paused ends paused in any case:
// it runs for its shutdown only.
func (a *apply) cyclePower(ctx context.Context) error {
	how := tree.ObjectValue(map[string]tree.Value{"paused": tree.BoolValue(a.before.paused)})
	switch {
	case a.shutsDown():
		if err := a.goDown(ctx, "shut down", how); err != nil {
			return err
		}
		a.step("shutdown", kind.Updated)
	case a.restarts():
		if err := a.goDown(ctx, "restart", how); err != nil {
			return err
		}
		if err := start(ctx, a.before.dom, how); err != nil {
			return fmt.Errorf("start %s with its new definition: %w", a.before.name, a.k.explain(err, a.wanted, slices.Concat(a.changes, a.update.Waiting), nil))
		}
		a.started = true
		a.step("restart", kind.Updated)
	}
	return nil
}
