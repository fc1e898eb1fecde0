package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Volume is the kind of object "volume".
type Volume struct {
	host   func() *virt.Host
	typ    *tree.Type
	rules  *change.Rules
	census census
	holds  holds
	run    seedRun
}

var _ kind.Kind = (*Volume)(nil)

// volumeMeasured are figures that move by themselves.
var volumeMeasured = map[string]bool{"allocation": true, "physical": true}

var volumeSettings = map[string]bool{
	"create": true, "update": true, "protect": true, "change": true, "status": true, "allocation_unit": true, "physical_unit": true,
}

// isVolumeSetting says that a path speaks to the provider.
func isVolumeSetting(pattern string) bool { return volumeSettings[pattern] || pattern == onChange }

// volumeChosen are what libvirt chooses and people refer to.
var volumeChosen = map[string]bool{
	"id": true, "key": true, "path": true, "target.path": true, "capacity": true, "allocation": true, "physical": true,
}

// NewVolume returns the kind. host is asked at each call.
func NewVolume(host func() *virt.Host) *Volume {
	k := &Volume{host: host, typ: volumeType()}
	k.rules = &change.Rules{
		Equal: equalVolume,
		Keys:  func(string, tree.Value) []string { return nil },
		Unit: func(pattern string) (string, string) {
			if volumeMeasured[pattern] {
				return "", ""
			}
			return spec.Volume().Unit(pattern)
		},
		Tier:     tierOfVolume,
		Setting:  isVolumeSetting,
		Chosen:   func(pattern string) bool { return volumeChosen[pattern] },
		Kept:     func(pattern string) bool { return !isVolumeSetting(pattern) },
		Once:     func(pattern string) bool { return pattern == "create" },
		Remakes:  remakesVolume,
		Decides:  decidesVolume,
		Renewal:  renewsSeed,
		Follows:  followsSeed,
		Measured: func(pattern string) bool { return volumeMeasured[pattern] },

		Alternatives: spec.Volume().Alternatives,
	}
	return k
}

// tierOfVolume says how drift is treated. Nothing of a volume but its size and
// its seed can change, and the size only upwards: so drift is never put back,
// except that of a seed, which the configuration has whole.
func tierOfVolume(pattern string) change.Tier {
	if pattern == seedURL {
		return change.TierRoutine
	}
	return change.TierLocked
}

// equalVolume is equality by meaning. The content of an ISO image is that of a
// raw one, and libvirt calls it one or the other, depending on whether it has
// looked inside.
func equalVolume(pattern string, a, b tree.Value) bool {
	switch pattern {
	case "create":
		return sameOrigin(a, b)
	case seedURL:
		return sameSeed(a.Str(), b.Str())
	case "target.format.type":
		if a.IsKnown() && b.IsKnown() && plainFormat(a.Str()) == plainFormat(b.Str()) {
			return true
		}
	}
	return spec.Volume().Equal(pattern, a, b)
}

func plainFormat(format string) string {
	if format == "iso" {
		return "raw"
	}
	return format
}

// Noun is what people call it.
func (k *Volume) Noun() string { return "volume" }

// Type is the whole schema of the resource.
func (k *Volume) Type() *tree.Type { return k.typ }

// Rules are those of the comparison.
func (k *Volume) Rules() *change.Rules { return k.rules }

// Secret says that a path is kept out of records; a volume names secrets only.
func (k *Volume) Secret(string) bool { return false }

// NeverUsed is false: a volume holds data from its creation on.
func (k *Volume) NeverUsed(tree.Value) bool { return false }

// Identity finds the volume: its key, else its pool and name.
func (k *Volume) Identity(state tree.Value) string {
	if key := firstOf(state, "key", "id", "path"); key != "" {
		return key
	}
	if state.Attr("pool").Str() == "" || state.Attr("name").Str() == "" {
		return ""
	}
	return state.Attr("pool").Str() + "/" + state.Attr("name").Str()
}

func volumeType() *tree.Type {
	root := spec.Volume().Type()
	attrs := make([]*tree.Attribute, 0, len(root.Attrs)+10)
	for name, a := range root.Attrs {
		switch {
		case name == "name":
			a = required(a)
		case volumeMeasured[name]:
			a = reported(name, a.Type, "Bytes, as libvirt measures it.")
		case volumeSettings[name]:
			a = optional(name, a.Type, "Accepted for configurations of the incumbent provider. The figure is in bytes, as libvirt measures it.")
		}
		attrs = append(attrs, a)
	}
	attrs = append(attrs,
		&tree.Attribute{Name: "pool", Type: tree.StringType, Required: true, Description: "Name of the pool."},
		reported("id", tree.StringType, "The key."),
		reported("path", tree.StringType, "Where the volume is on the host: for `source.file.file` of a disk, or `backing_store.path` of another volume."),
		createType(),
		optional("update", tree.ObjectOf(
			optional("force_media", tree.BoolType, "Take the seed out of a drive though the guest has locked it, as it does while it has the CD mounted. Without it, such a guest is left alone and the apply ends with an error."),
		), "How changes are made."),
		optional("protect", tree.BoolType, protectText),
		reported("change", kind.ChangeType(), "What the last plan that changed something does. Meaningful where the action is not a no-op."),
		reported("status", tree.ObjectOf(
			reported("users", tree.ListOf(tree.StringType), "What of which domains uses the volume, running or defined."),
			reported("running", tree.BoolType, "Whether a running guest uses the volume."),
			reported("beneath", tree.BoolType, "Whether a disk of a running guest lies over the volume, which is its backing file."),
			reported("medium", tree.BoolType, "Whether the volume is used, and only as a CD: then another seed can take its place."),
			reported("fw_cfg", tree.BoolType, "Whether every running guest that uses the volume has it by fw_cfg: QEMU made a copy of it when it started, so what changes in the volume does not reach such a guest before its next start."),
			reported("content_digest", tree.StringType, "Digest of the seed that the volume holds, as `libvirt_cloudinit_disk`, `libvirt_ignition` and `libvirt_combustion` have it in `digest`, whatever program wrote it. Null if the volume holds no seed; images are not read."),
			reported("capacity", tree.NumberType, "The size in bytes that the storage really gives: some kinds round up."),
			reported("last_steps", kind.StepsType(), "What the last apply did, step by step."),
		), "What the host says, as of the last refresh."),
	)
	return tree.ObjectOf(attrs...)
}

// Judge says what the changes of a plan do. Only the capacity of a volume can
// change, upwards, and the seed that it holds.
func (k *Volume) Judge(j kind.Judgement) kind.Verdict {
	v := kind.Verdict{Outcome: "update"}
	name := j.Prior.Attr("name").Str()
	reached := j.Prior.At("status.running").Bool() && !j.Prior.At("status.fw_cfg").Bool()
	for _, c := range j.Changes {
		effect := change.EffectNone
		switch p := c.Path.Pattern(); {
		case p == "capacity" && c.Kind != change.Withdrawal:
			v.Outcome = "resize"
			if reached {
				effect = change.EffectLive
			}
			v.Refusals = append(v.Refusals, refuseSize(name, j.Prior.At("status.beneath").Bool(), c)...)
		case p == seedURL:
			if reached {
				effect = change.EffectLive
			}
			judgeSeed(&v, j, c)
		case p == "name", p == "pool", p == "create":
			v.Replace, v.Outcome, effect = append(v.Replace, c.Path), "recreate", change.EffectReplace
		case c.Kind == change.Withdrawal, isUnsaid(p) && c.Actual.IsNull():
			// Left out, it stays as it is; and what libvirt does not tell is believed.
		default:
			v.Refusals = append(v.Refusals, kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Cannot change %s of volume %q", c.Path, name),
				Detail: fmt.Sprintf("It is %s on the host; the configuration has %s. libvirt cannot change this of a volume that exists, and it is never made again by itself, as its data would be lost. Nothing was changed. Take the change back, or make another volume under another name.", told(c.Actual), told(c.Desired)),
			})
		}
		v.Effect = max(v.Effect, effect)
		v.Fields = append(v.Fields, kind.Describe(c, effect))
	}
	v.Warnings = append(v.Warnings, warnOfUsers(j.Prior, v.Replace)...)
	return v
}

// warnOfUsers warns of a volume that is to be replaced and that domains have: its
// destruction is refused unless they let go of it before, which a plan for the
// volume alone does not know.
func warnOfUsers(prior tree.Value, replaced []tree.Path) []kind.Problem {
	users := textsOf(prior.At("status.users"))
	if len(replaced) == 0 || len(users) == 0 {
		return nil
	}
	name, because := prior.Attr("name").Str(), replaced[0].String()
	beside, back := "set", "take the change back"
	if !slices.ContainsFunc(replaced, func(p tree.Path) bool { return p.Pattern() != "create" }) {
		beside, back = "write another name as well, and set", "take the change back, or leave create.on_change out, which keeps the volume"
	}
	return []kind.Problem{{
		Path: replaced[0], Summary: fmt.Sprintf("Volume %q is to be replaced, and is in use", name),
		Detail: fmt.Sprintf("The change of %s asks for another volume in its place; it is used by %s. While one of these has it, its destruction is refused, and the apply ends with that error. "+
			"Have them destroyed or replaced in the same apply (lifecycle { replace_triggered_by = [ADDRESS-OF-THE-VOLUME] } in the domain); or take the volume out of them and apply that first; "+
			"or %s lifecycle { create_before_destroy = true }: then the new volume is made first, and the domains that refer to it change over; or %s.", because, strings.Join(users, "; "), beside, back),
	}}
}

// refuseSize refuses a size that the volume cannot get.
func refuseSize(name string, beneath bool, c change.Change) []kind.Problem {
	desired, actual := c.Desired.Num(), c.Actual.Num()
	switch {
	case desired == nil || actual == nil:
		return nil
	case desired.Cmp(actual) < 0:
		return []kind.Problem{{
			Path: c.Path, Summary: fmt.Sprintf("Refusing to shrink volume %q", name),
			Detail: fmt.Sprintf("It has %s bytes, the configuration asks for %s. libvirt would cut the data off. Nothing was changed. Write at least %s bytes; to have a smaller volume, make another one and copy what is needed.", c.Actual, c.Desired, c.Actual),
		}}
	case beneath:
		return []kind.Problem{{
			Path: c.Path, Summary: fmt.Sprintf("Refusing to grow volume %q under a running guest", name),
			Detail: "A disk of a running guest lies over it (status.users says which), and a backing file must not change under its overlay. Nothing was changed. Grow the overlay, which is what the guest sees; or do this while the guest is off.",
		}}
	}
	return nil
}

// Validate checks what can be known without the host.
func (k *Volume) Validate(config tree.Value) []kind.Problem {
	problems := kind.ValidateFit(spec.Volume(), config)
	problem := func(at, summary, detail string) {
		problems = append(problems, kind.Problem{Path: tree.ParsePath(at), Summary: summary, Detail: detail})
	}
	if unit := config.Attr("capacity_unit"); unit.IsKnown() && !change.KnownUnit(unit.Str()) {
		problem("capacity_unit", "Unknown unit", fmt.Sprintf("capacity_unit is %q; libvirt knows bytes, KiB, MiB, GiB, TiB, PiB, EiB, and KB, MB, GB, … for powers of 1000.", unit.Str()))
	}
	isDirectory := config.Attr("type").Str() == "dir" // which has no size, and is imported so
	if size := config.Attr("capacity"); size.Num() != nil && size.Num().Sign() == 0 && !isDirectory {
		problem("capacity", "A volume of no size", "capacity is 0. Write a size; or leave it out, if there is create.content or a backing_store, which have one.")
	}
	validateOrigin(config, problem)
	return problems
}
