package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// An aspect is one thing about a domain that has a way of its own to change.
type aspect struct {
	name string   // of its step
	owns []string // patterns; what lies below them is the aspect's too

	// rule is pure: what does it take to make this change? The reason is shown
	// when the answer is offline or replace.
	rule func(c change.Change, active bool) (change.Class, string)

	// live changes what is beside the definition, or the running guest. It is
	// called after the definition was written. nil: the definition is all.
	live func(ctx context.Context, a *apply) error
}

// aspects lists them in the order in which their live actions run.
var aspects = []*aspect{textAspect, metadataAspect, nameAspect, uuidAspect, autostartAspect, runningAspect}

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

func classify(c change.Change, active bool) (change.Class, string) {
	if a := aspectOf(c.Path.Pattern()); a != nil {
		return a.rule(c, active)
	}
	return change.ClassNextBoot, ""
}

// Judge says what the changes of a plan do to the guest.
func (k *Kind) Judge(j kind.Judgement) kind.Verdict {
	v := kind.Verdict{Outcome: "update"}
	active, name := isActive(j.Prior), j.Prior.Attr("name").Str()
	sized := len(j.Changes) > 0
	for _, c := range j.Changes {
		class, reason := classify(c, active)
		effect := kind.EffectOf(class, active)
		if class == change.ClassReplace {
			v.Replace, v.Outcome = append(v.Replace, c.Path), "recreate"
		}
		if class == change.ClassOffline && active {
			v.Refusals = append(v.Refusals, kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Cannot change %s of the running domain %q", c.Path, name),
				Detail: fmt.Sprintf("%s Nothing was changed. Shut the guest down and apply again, or take the change back. This also stops `destroy`, which plans first; there, -refresh=false is the way past it.", reason),
			})
		}
		v.Effect = max(v.Effect, effect)
		v.Fields = append(v.Fields, kind.Describe(c, effect))
		sized = sized && isSize(c.Path.Pattern())
	}
	if sized && v.Outcome == "update" {
		v.Outcome = "resize"
	}
	return v
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
