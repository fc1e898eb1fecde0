package provider

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Plan is a pure function of the request and the provider's configuration:
// cores run it again at apply and reject another answer.
func (m *mapped) Plan(_ context.Context, req protocol.PlanRequest) protocol.PlanResponse {
	switch {
	case req.IsDestroy():
		return m.planDestroy(req)
	case req.IsCreate():
		return m.planCreate(req)
	}
	return m.planUpdate(req)
}

func (m *mapped) planDestroy(req protocol.PlanRequest) (resp protocol.PlanResponse) {
	resp.Private = req.Private
	refuseDestroy(&resp.Diagnostics, "destroy", m.guardOf(req.Prior))
	return resp
}

func (m *mapped) planCreate(req protocol.PlanRequest) (resp protocol.PlanResponse) {
	resp.Private = req.Private.Clone()
	var g guard
	if replaces, err := req.Private.Get(guardKey, &g); err == nil && replaces {
		refuseDestroy(&resp.Diagnostics, "replace", g)
	}
	resp.Private.Delete(guardKey)
	result := m.kind.Rules().Plan(change.Input{Type: m.kind.Type(), Config: req.Config})
	verdict := kind.Verdict{Outcome: "create", Effect: change.EffectNone}
	resp.Planned = result.Planned.With("status", tree.UnknownValue).With("change", changeValue(verdict))
	return resp
}

func (m *mapped) planUpdate(req protocol.PlanRequest) (resp protocol.PlanResponse) {
	prior := plain(req.Prior)
	rules, rec := m.kind.Rules(), loadRecords(req.Private)
	in := change.Input{
		Type: m.kind.Type(), Object: m.kind.Identity(req.Prior), Config: req.Config, Prior: prior, Owned: rec.Owned,
		Baseline: rules.Overlay(prior, rec.Baseline, m.kind.Secret),
		Actual:   rules.Overlay(prior, rec.Actual, m.kind.Secret),
		Policy:   m.policy(req.Config),
	}
	if rec.Actual.IsNull() {
		// A plan without a read before it (-refresh=false) on a state that has
		// no records: what state holds is all that is known.
		in.Actual, in.Baseline = prior, prior
	}
	result := rules.Plan(in)
	resp.Private = req.Private.Clone()
	if err := resp.Private.Set(guardKey, m.guardOf(req.Prior)); err != nil {
		m.addFailure(&resp.Diagnostics, "plan", prior.Attr("name").Str(), err)
	}
	m.warnAboutDrift(&resp.Diagnostics, prior, result)
	m.warnAboutChanges(&resp.Diagnostics, prior, result)
	if tree.Equal(result.Planned, prior) {
		resp.Planned = req.Prior
		return resp
	}
	verdict := m.kind.Judge(kind.Judgement{Config: req.Config, Prior: req.Prior, Planned: result.Planned, Changes: result.Changes})
	resp.Replace = verdict.Replace
	addProblems(&resp.Diagnostics, protocol.Error, verdict.Refusals)
	addProblems(&resp.Diagnostics, protocol.Warning, verdict.Warnings)
	m.refuseClashes(&resp.Diagnostics, prior, result)
	m.refuseUndecided(&resp.Diagnostics, prior, result)
	value := changeValue(verdict)
	if len(result.Unknown) > 0 {
		value = tree.UnknownValue
		m.warnAboutUnknown(&resp.Diagnostics, prior, result)
	}
	resp.Planned = result.Planned.With("status", tree.UnknownValue).With("change", value)
	return resp
}

// policy reads what the user decided about drift.
func (m *mapped) policy(config tree.Value) change.Policy {
	p := change.Policy{Approved: map[string]bool{}, Revert: config.At("update.drift").Str() == "revert"}
	for _, digest := range m.data.Approved() {
		p.Approved[digest] = true
	}
	for _, digest := range config.At("update.approve").Elems() {
		p.Approved[digest.Str()] = true
	}
	return p
}

// changeValue is the computed attribute change.
func changeValue(v kind.Verdict) tree.Value {
	sort.Strings(v.Fields)
	fields := make([]tree.Value, len(v.Fields))
	for i, f := range v.Fields {
		fields[i] = tree.StringValue(f)
	}
	return tree.ObjectValue(map[string]tree.Value{
		"outcome": tree.StringValue(v.Outcome), "effect": tree.StringValue(v.Effect.String()), "fields": tree.ListValue(fields),
	})
}

// warnAboutDrift says what the host has that the configuration does not want,
// and that stays as it is.
func (m *mapped) warnAboutDrift(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	if len(result.Held) == 0 {
		return
	}
	var b strings.Builder
	for _, h := range result.Held {
		desired, actual := m.shown(h.Path, h.Desired, h.Unit), m.shown(h.Path, h.Actual, h.Unit)
		fmt.Fprintf(&b, "%s is %s on the host; the configuration has %s. ", h.Path, actual, desired)
		if h.Tier == change.TierLocked {
			fmt.Fprintf(&b, "It is never changed by a plan: write %s into the configuration, or repair it by hand.\n", actual)
			continue
		}
		fmt.Fprintf(&b, "To keep it, write %s into the configuration. To put it back, approve exactly this drift: update = { approve = [%q] } or LIBVIRT_APPROVE=%s; or update = { drift = \"revert\" }.\n", actual, h.Digest, h.Digest)
	}
	d.AddWarning(nil, fmt.Sprintf("%s %q was changed on the host, and is left as it is", capital(m.kind.Noun()), prior.Attr("name").Str()), strings.TrimSpace(b.String()))
}

// warnAboutChanges names what the plan overwrites, and what leaves the state.
func (m *mapped) warnAboutChanges(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	var b strings.Builder
	for _, c := range result.Changes {
		if c.Kind == change.Conflict {
			fmt.Fprintf(&b, "%s was %s at the last apply, is %s on the host now, and becomes %s.\n", c.Path,
				m.shown(c.Path, c.Baseline, c.Unit), m.shown(c.Path, c.Actual, c.Unit), m.shown(c.Path, c.Desired, c.Unit))
		}
		if c.Kind == change.Drift && c.Actual.IsNull() {
			fmt.Fprintf(&b, "%s is missing on the host, and is added again.\n", c.Path)
		}
	}
	if n := len(result.Left); n > 0 {
		fmt.Fprintf(&b, "These leave the state, not the machine (%d); nothing of them changes on the host: %s.\n", n, paths(result.Left))
	}
	for _, p := range result.Ignored {
		fmt.Fprintf(&b, "%s acts once, at creation: the object that is there keeps what it was made from, and the new value changes nothing. To use it, make another object under another name; to have peace, write the old value.\n", p)
	}
	if b.Len() > 0 {
		d.AddWarning(nil, fmt.Sprintf("The plan for %s %q needs a second look", m.kind.Noun(), prior.Attr("name").Str()), strings.TrimSpace(b.String()))
	}
}

// refuseClashes refuses what no plan can express: drift that is held, in a
// list that changes in length or order at the same time.
func (m *mapped) refuseClashes(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	for _, c := range result.Clashes {
		d.AddError(c.Held.Path, fmt.Sprintf("Held drift meets a change of the same list in %s %q", m.kind.Noun(), prior.Attr("name").Str()),
			fmt.Sprintf("%s is %s on the host and %s in the configuration. It cannot be left as it is while its list changes in length or order. "+
				"Approve the drift (update = { approve = [%q] }), write the host's value into the configuration, or apply the change of the list by itself first. "+
				"This also stops `destroy`, which plans first; there, -refresh=false or an approval is the way past it.",
				c.Held.Path, m.shown(c.Held.Path, c.Held.Actual, c.Held.Unit), m.shown(c.Held.Path, c.Held.Desired, c.Held.Unit), c.Held.Digest))
	}
}

// refuseUndecided refuses a list with unknown values that no plan made now can
// be sure of.
func (m *mapped) refuseUndecided(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	for _, p := range result.Undecided {
		d.AddError(p, fmt.Sprintf("%s of %s %q holds a value that is not known yet", p, m.kind.Noun(), prior.Attr("name").Str()),
			"State has this list in another order or length than the configuration, and which element is which depends on the value. Nothing was changed. "+
				"Apply what the value depends on first (-target), then this; or write the list in the order and length that state has.")
	}
}

// warnAboutUnknown says what a plan can at most do while values are unknown.
func (m *mapped) warnAboutUnknown(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	most := change.EffectNone
	for _, p := range result.Unknown {
		one := m.kind.Judge(kind.Judgement{Prior: prior, Changes: []change.Change{{Path: p, Desired: tree.UnknownValue}}})
		most = max(most, one.Effect)
	}
	d.AddWarning(nil, fmt.Sprintf("The effect on %s %q is known only at apply", m.kind.Noun(), prior.Attr("name").Str()),
		fmt.Sprintf("%s: the value comes from something that is not applied yet. At most, the effect is %s; what cannot be done is refused then, before anything is touched.", paths(result.Unknown), most))
}

// shown renders a value for a message, never a secret.
func (m *mapped) shown(p tree.Path, v tree.Value, unit string) string {
	switch {
	case v.IsNull():
		return "absent"
	case m.kind.Secret(p.Pattern()):
		return "(sensitive)"
	case unit != "":
		return v.String() + " " + unit
	}
	return v.String()
}

func paths(all []tree.Path) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}
