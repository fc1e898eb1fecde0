package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Validate checks what can be known without the host.
func (k *Kind) Validate(config tree.Value) []kind.Problem {
	var problems []kind.Problem
	for _, check := range []func(tree.Value) []kind.Problem{validateText, validateMetadata, validateSettings, validateWaits, validateIdentities, validateExtras} {
		problems = append(problems, check(config)...)
	}
	return append(problems, kind.ValidateFit(spec.Domain(), config)...)
}

func validateSettings(config tree.Value) []kind.Problem {
	var problems []kind.Problem
	if drift := config.At("update.drift"); drift.IsKnown() && drift.Str() != "revert" && drift.Str() != "hold" {
		problems = append(problems, kind.Problem{
			Path: tree.ParsePath("update.drift"), Summary: "Unknown way to treat drift",
			Detail: fmt.Sprintf("update.drift is %q; it can be hold, which is the standard, or revert.", drift.Str()),
		})
	}
	problems = append(problems, validateMedia(config)...)
	switch allow := config.At("update.allow"); allowance(allow.Str()) {
	case allowLive, allowNextBoot, allowRestart:
	default:
		if allow.IsKnown() {
			problems = append(problems, kind.Problem{
				Path: tree.ParsePath("update.allow"), Summary: "Unknown limit for updates",
				Detail: fmt.Sprintf("update.allow is %q; it can be live, next_boot, which is the standard, or restart.", allow.Str()),
			})
		}
	}
	return problems
}

// validateIdentities finds two elements of a list that claim to be the same.
func validateIdentities(config tree.Value) []kind.Problem {
	var problems []kind.Problem
	for _, list := range []string{"devices.disks", "devices.interfaces"} {
		seen := map[string]int{}
		for i, e := range config.At(list).Elems() {
			id := keysOf(list+"[]", e)[0]
			if first, twice := seen[id]; twice && id != "" {
				problems = append(problems, kind.Problem{
					Path: tree.ParsePath(list).Elem(i, ""), Summary: fmt.Sprintf("Two elements of %s are %s", list, id),
					Detail: fmt.Sprintf("Elements %d and %d have the same identity. A disk is known by target.dev, an interface by mac.address: give each its own.", first, i),
				})
			}
			seen[id] = i
		}
	}
	return problems
}
