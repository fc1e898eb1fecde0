package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// warnAboutDrift says what the host has that the configuration does not want,
// and that stays as it is.
func (m *mapped) warnAboutDrift(d *protocol.Diagnostics, config, prior tree.Value, result change.Result) {
	if len(result.Held) == 0 {
		return
	}
	var b strings.Builder
	for _, h := range result.Held {
		where := "on the host"
		if h.Live {
			where = "in the running guest; its definition and"
		} else {
			where += ";"
		}
		fmt.Fprintf(&b, "%s is %s %s the configuration has %s. ", h.Path, m.shown(h.Path, h.Actual, h.Unit), where, m.shown(h.Path, h.Desired, h.Unit))
		keep := ""
		if !h.Live {
			keep = fmt.Sprintf("To keep it, write %s into the configuration. ", m.line(config, h))
		}
		if h.Tier == change.TierLocked {
			fmt.Fprintf(&b, "It is never changed by a plan. %sElse repair it by hand.\n", keep)
			continue
		}
		fmt.Fprintf(&b, "%sTo put it back, approve exactly this drift: %s or LIBVIRT_APPROVE=%s", keep, m.approval(h.Digest), h.Digest)
		if m.decides() {
			b.WriteString("; or update = { drift = \"revert\" }")
		}
		b.WriteString(".\n")
	}
	for _, p := range result.Postponed {
		fmt.Fprintf(&b, "%s was changed too, and is put back once that is decided: no plan can hold and change this list at the same time.\n", p)
	}
	d.AddWarning(nil, fmt.Sprintf("%s %q was changed on the host, and is left as it is", capital(m.kind.Noun()), prior.Attr("name").Str()), strings.TrimSpace(b.String()))
}

// decides says whether objects of this kind say themselves what becomes of drift.
func (m *mapped) decides() bool {
	update := m.kind.Type().Attrs["update"]
	return update != nil && update.Type.Attrs["approve"] != nil
}

// approval is what a person writes to have one drift put back.
func (m *mapped) approval(digest string) string {
	if m.decides() {
		return fmt.Sprintf("update = { approve = [%q] }", digest)
	}
	return fmt.Sprintf("approve = [%q] in the provider's configuration", digest)
}

// line is what a person writes to agree with held drift, in the unit that the
// configuration has.
func (m *mapped) line(config tree.Value, h change.Held) string {
	last := h.Path[len(h.Path)-1].Attr
	if m.kind.Secret(h.Path.Pattern()) || last == "" {
		return "what the host has"
	}
	if h.Unit == "" {
		return fmt.Sprintf("`%s = %s`", last, h.Actual)
	}
	attr, standard := m.kind.Rules().Unit(h.Path.Pattern())
	owner := config.Get(h.Path[:len(h.Path)-1])
	unit := owner.Attr(attr)
	if amount := change.InUnit(h.Actual, unit, standard); !amount.IsNull() {
		return fmt.Sprintf("`%s = %s`", last, amount)
	}
	return fmt.Sprintf("`%s = %s` with `%s = \"bytes\"`", last, h.Actual, attr)
}

// warnAboutApprovals says that an approval approves nothing: the drift is
// another one now, or none. One of the provider or the environment is for
// other objects as well, so that only the object's own is looked at.
func (m *mapped) warnAboutApprovals(d *protocol.Diagnostics, config, prior tree.Value, result change.Result) {
	var current, stale []string
	for _, h := range result.Held {
		if h.Tier == change.TierModification {
			current = append(current, fmt.Sprintf("%s: %s", h.Path, h.Digest))
		}
	}
	if len(current) == 0 {
		return // what was approved is done, or somebody put it back
	}
	for _, v := range config.At("update.approve").Elems() {
		if v.IsKnown() && !slices.Contains(result.Approved, v.Str()) {
			stale = append(stale, v.Str())
		}
	}
	if len(stale) == 0 {
		return
	}
	d.AddWarning(tree.ParsePath("update.approve"), fmt.Sprintf("An approval for %s %q is for another drift", m.kind.Noun(), prior.Attr("name").Str()),
		fmt.Sprintf("%s approves nothing: the host is not as it was when that digest was shown. Nothing is changed by it. What is held now: %s.", strings.Join(stale, ", "), strings.Join(current, "; ")))
}

// refuseInexpressible is the last look at a plan: what the core would reject
// as an invalid plan of ours is refused with a reason.
func (m *mapped) refuseInexpressible(d *protocol.Diagnostics, config, prior tree.Value, result change.Result) {
	if len(result.Clashes) > 0 || len(result.Undecided) > 0 || len(result.Unresolved) > 0 {
		return // said already
	}
	for _, e := range change.Expressible(m.kind.Type(), prior, config, result.Planned) {
		d.AddError(e.Path, fmt.Sprintf("The plan for %s %q cannot be written down", m.kind.Noun(), prior.Attr("name").Str()),
			fmt.Sprintf("At %s the planned value is neither the configuration's nor the one in the state (%s), and cores accept nothing else. Nothing was changed. Apply the changes of this list by themselves, one after another, or write what the host has into the configuration.", e.Path, e.Reason))
	}
}
