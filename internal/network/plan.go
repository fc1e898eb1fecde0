package network

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// classify says what a change takes. The effect of a network's change is that
// on the guests which are attached to it.
func classify(pattern string) change.Class {
	switch {
	case pattern == "autostart", pattern == "active":
		return change.ClassNone
	case pattern == "uuid":
		return change.ClassReplace
	case pattern == "name":
		return change.ClassOffline
	case sectionOf(pattern) != nil:
		return change.ClassLive
	}
	return change.ClassNextBoot
}

// Judge says what the changes of a plan do to the started network.
func (k *Kind) Judge(j kind.Judgement) kind.Verdict {
	v := kind.Verdict{Outcome: "update"}
	name := j.Prior.Attr("name").Str()
	active := j.Prior.At("status.active")
	running := active.Bool() || !active.IsKnown()
	for _, c := range j.Changes {
		class := classify(c.Path.Pattern())
		if class == change.ClassReplace {
			v.Replace, v.Outcome = append(v.Replace, c.Path), "recreate"
		}
		if class == change.ClassOffline {
			v.Refusals = append(v.Refusals, kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Cannot rename network %q", name),
				Detail: "libvirt has no way to rename a network, and guests name it in their definitions. Take the change back; or write a second network beside it, move the guests over, and remove the first.",
			})
		}
		effect := kind.EffectOf(class, running)
		v.Effect = max(v.Effect, effect)
		v.Fields = append(v.Fields, kind.Describe(c, effect))
	}
	return v
}

// Validate checks what can be known without the host.
func (k *Kind) Validate(config tree.Value) []kind.Problem {
	return kind.ValidateFit(spec.Network(), config)
}
