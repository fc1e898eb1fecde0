package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// An aspect is one thing about a domain that has a way of its own to change.
type aspect struct {
	name string   // of its step
	owns []string // patterns; what lies below them is the aspect's too

	// rule is pure: what does it take to make this change, as the guest is now?
	// The reason is shown where the answer is more than the plan may do.
	rule func(c change.Change, now situation) (change.Class, string)

	// live changes what is beside the definition, or the running guest. It is
	// called after the definition was written, and only if something of the
	// aspect is to be done. nil: the definition is all.
	live func(ctx context.Context, a *apply) error
}

// situation is what a rule needs to know of the guest.
type situation struct {
	active     bool
	ends       bool            // it runs, and this plan shuts it down: for all else it is not active
	saved      bool            // it is off, and has a managed save
	resumes    bool            // and this plan starts it from that
	guest      tree.Value      // what runs, in the form of a definition
	definition tree.Value      // as it is before the change
	beside     []change.Change // all that changes in the definition at once
	ports      *ports          // of the guest; each device that is plugged in takes one
	room       *moduleRoom     // for memory modules; each takes some
}

func newSituation(active bool, guest, definition tree.Value) situation {
	return situation{active: active, guest: guest, definition: definition, ports: &ports{guest: guest, definition: definition}, room: &moduleRoom{guest: guest}}
}

// aspects lists them in the order in which their live actions run. Modules come
// before the memory that they make, and controllers before what sits on them.
// CPUs come late, with their pins: not every guest lets go of one again.
var aspects = slices.Concat([]*aspect{
	textAspect, metadataAspect, moduleAspect, memoryAspect, machineAspect, cpuAspect, bootAspect,
	ioThreadsAspect, cpuTuneAspect, threadsAspect, memoryTuneAspect, memoryBackingAspect, numaTuneAspect,
	blockIOTuneAspect, throttleGroupsAspect, perfAspect, onEventAspect, memBalloonAspect, resourceAspect,
	controllerAspect, diskAspect, interfaceAspect, rngAspect, watchdogAspect, inputAspect,
	channelAspect, consoleAspect, serialAspect, parallelAspect, graphicsAspect, filesystemAspect,
	redirDevAspect, redirFilterAspect, shmemAspect, leaseAspect, vcpuAspect, pinsAspect,
	extraAspect, uuidAspect, nameAspect, autostartAspect, runningAspect,
}, builtInAspects)

// aspectOf finds the owner of a path, nil for what only the definition has.
func aspectOf(pattern string) *aspect {
	for _, a := range aspects {
		for _, p := range a.owns {
			if within(pattern, p) {
				return a
			}
		}
	}
	return nil
}

func classify(c change.Change, now situation) (change.Class, string) {
	if a := aspectOf(c.Path.Pattern()); a != nil {
		return a.rule(c, now)
	}
	return change.ClassNextBoot, "The guest takes it from the definition when it starts."
}

// cost is what a change takes, and why.
type cost struct {
	class  change.Class
	reason string
}

// costsOf classifies all changes of a plan. Some depend on each other: a guest
// has only so many places for new devices.
func costsOf(changes []change.Change, now situation) []cost {
	now.beside = changes
	out := make([]cost, len(changes))
	// Devices that say where they go are served first.
	for _, addressed := range []bool{true, false} {
		for i, c := range changes {
			if hasPlace(c) == addressed {
				out[i].class, out[i].reason = classify(c, now)
			}
		}
	}
	keepReplaced(changes, out)
	growWithModules(changes, out, now)
	return out
}

// correctable says whether a running guest that differs from its definition
// can be made like it without a restart.
func correctable(c change.Change, guest tree.Value) bool {
	class, _ := classify(c, newSituation(true, guest, guest))
	return class == change.ClassLive
}

// allowance is update.allow: the ceiling on what an apply may do to a guest
// that runs.
type allowance string

const (
	allowLive     allowance = "live"
	allowNextBoot allowance = "next_boot"
	allowRestart  allowance = "restart"
)

func allowed(config tree.Value) allowance {
	if a := config.At("update.allow"); a.IsKnown() {
		return allowance(a.Str())
	}
	return allowNextBoot
}

// effectOf is the table of what an apply does: the class of a change against
// the state of the guest and what the user allows. refused says that it does
// nothing of the kind: the plan is refused.
func effectOf(c change.Change, class change.Class, now situation, allow allowance) (effect change.Effect, refused bool) {
	if now.ends && asksToStop(c) {
		return change.EffectShutdown, false
	}
	switch class {
	case change.ClassReplace:
		return change.EffectReplace, false
	case change.ClassNone:
		return change.EffectNone, false
	case change.ClassLive, change.ClassNextBoot, change.ClassOffline:
	}
	switch {
	case now.saved && class == change.ClassOffline:
		return change.EffectNone, true
	case now.resumes:
		return effectOnSaved(allow), false
	case !now.active, c.Reached && class != change.ClassOffline:
		return change.EffectNone, false
	case class == change.ClassLive:
		return change.EffectLive, false
	case allow == allowRestart:
		return change.EffectRestart, false
	case class == change.ClassOffline:
		return change.EffectNextBoot, true
	}
	return change.EffectNextBoot, allow == allowLive
}

// Judge says what the changes of a plan do to the guest.
func (k *Kind) Judge(j kind.Judgement) kind.Verdict {
	v := kind.Verdict{Outcome: "update"}
	now := endingWith(j.Changes, newSituation(isActive(j.Prior), j.Guest, j.Definition))
	now = resuming(j.Changes, j.Prior.At("status.managed_save").Bool(), now)
	name, allow := j.Prior.Attr("name").Str(), allowed(j.Config)
	sized := len(j.Changes)+len(j.Live) > 0
	said := map[string]bool{}
	effects := make([]change.Effect, 0, len(j.Changes)+len(j.Live))
	costs := withMediaSetting(j.Config, j.Changes, costsOf(j.Changes, now))
	for i, c := range j.Changes {
		class, reason := costs[i].class, costs[i].reason
		effect, refused := effectOf(c, class, now, allow)
		if class == change.ClassReplace {
			v.Replace = append(v.Replace, c.Path)
		}
		if refused {
			v.Refusals = append(v.Refusals, k.refusal(c, class, reason, name, now))
		}
		v.Effect = max(v.Effect, effect)
		effects = append(effects, effect)
		sized = sized && isSize(c.Path.Pattern())
		said[c.Path.String()] = true
	}
	for _, c := range j.Live {
		effect := change.EffectLive
		if now.ends {
			effect = change.EffectNone // what differs goes with the guest
		}
		v.Effect = max(v.Effect, effect)
		effects = append(effects, effect)
		sized = sized && isSize(c.Path.Pattern())
		said[c.Path.String()] = true
	}
	if allow == allowRestart && now.active {
		for _, p := range j.Waiting {
			if !said[p.String()] {
				v.Effect = max(v.Effect, change.EffectRestart)
				v.Fields = append(v.Fields, kind.Describe(change.Change{Path: p}, change.EffectRestart))
			}
		}
	}
	for i, c := range slices.Concat(j.Changes, j.Live) {
		if effects[i] == change.EffectLive && v.Effect == change.EffectRestart {
			effects[i] = change.EffectRestart // it comes with the restart
		}
		v.Fields = append(v.Fields, kind.Describe(c, effects[i]))
	}
	v.Warnings = append(warnAboutStart(j.Changes, j.Config, name), warnAboutSave(j.Changes, effects, now, name)...)
	switch {
	case len(v.Replace) > 0:
		v.Outcome = "recreate"
	case v.Effect == change.EffectRestart, v.Effect == change.EffectShutdown:
		v.Outcome = v.Effect.String()
		v.Renewed = []tree.Path{tree.Root.Attr("id")} // each start has a number of its own
	case sized:
		v.Outcome = "resize"
	}
	return v
}

// refusal says why a change of a running guest is not planned, and what would
// make it possible.
func (k *Kind) refusal(c change.Change, class change.Class, reason, name string, now situation) kind.Problem {
	if now.saved {
		return refuseRename(c.Path, name)
	}
	const passed = " Nothing was changed."
	if class == change.ClassOffline {
		const ways = "Shut the guest down and apply again, take the change back, or set update.allow to \"restart\": the guest is then shut down in order, changed and started again"
		return kind.Problem{
			Path: c.Path, Summary: fmt.Sprintf("Cannot change %s of the running domain %q", c.Path, name),
			Detail: fmt.Sprintf("%s %s.%s", reason, ways, passed),
		}
	}
	return kind.Problem{
		Path: c.Path, Summary: fmt.Sprintf("%s of the running domain %q is changed, and cannot be applied without a restart", c.Path, name),
		Detail: fmt.Sprintf("%s update.allow is \"live\", so an apply does only what needs no restart. Set it to \"next_boot\" (the definition takes the change, the guest at its next start) or to \"restart\" (the guest is restarted in order), or take the change back.%s", reason, passed),
	}
}

// isActive says whether the guest runs. A state that cannot tell counts as
// active, which is the careful answer.
func isActive(state tree.Value) bool {
	power := state.At("status.power")
	if !power.IsKnown() {
		return true
	}
	return power.Str() != "shutoff"
}

func isSize(pattern string) bool {
	for _, p := range []string{"memory", "current_memory", "maximum_memory", "vcpu", "vcpu_current"} {
		if pattern == p {
			return true
		}
	}
	return false
}
