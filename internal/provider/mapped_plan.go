package provider

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Plan is a pure function of the request and the provider's configuration:
// cores run it again at apply and reject another answer. Only whether the end of
// an object is refused also depends on the host.
func (m *mapped) Plan(ctx context.Context, req protocol.PlanRequest) protocol.PlanResponse {
	switch {
	case req.IsDestroy():
		return m.planDestroy(ctx, req)
	case req.IsCreate():
		return m.planCreate(req)
	}
	return m.planUpdate(req)
}

func (m *mapped) planDestroy(ctx context.Context, req protocol.PlanRequest) (resp protocol.PlanResponse) {
	resp.Private = req.Private
	if g := m.guardOf(req.Prior); g.Protect && !m.gone(ctx, req.Prior, req.Private) {
		refuseDestroy(&resp.Diagnostics, "destroy", g)
	}
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
	prior, rec := plain(req.Prior), loadRecords(req.Private)
	if isStub(prior, rec) {
		resp.Planned, resp.Private = req.Prior, req.Private
		m.refuseStub(&resp.Diagnostics, prior)
		return resp
	}
	p := m.compare(req.Config, req.Prior, rec)
	resp.Private = req.Private.Clone()
	if err := resp.Private.Set(guardKey, m.guardOfUpdate(req.Prior, req.Config, p.verdict.Replace)); err != nil {
		m.addFailure(&resp.Diagnostics, "plan", prior.Attr("name").Str(), err)
	}
	m.warnAboutDrift(&resp.Diagnostics, req.Config, prior, p.Result)
	m.warnAboutApprovals(&resp.Diagnostics, req.Config, prior, p.Result)
	m.warnAboutChanges(&resp.Diagnostics, prior, p.Result)
	m.warnAboutOwner(&resp.Diagnostics, req.Config, req.Prior)
	m.refuseInexpressible(&resp.Diagnostics, req.Config, prior, p.Result)
	m.refuseUnresolved(&resp.Diagnostics, prior, p.Result)
	if p.isNothing(prior) {
		resp.Planned = req.Prior
		return resp
	}
	resp.Replace = p.verdict.Replace
	if len(resp.Replace) == 0 {
		// What this object cannot become, another one can.
		addProblems(&resp.Diagnostics, protocol.Error, stopDestroy(p.verdict.Refusals))
	}
	addProblems(&resp.Diagnostics, protocol.Warning, p.verdict.Warnings)
	m.refuseClashes(&resp.Diagnostics, prior, p.Result)
	m.refuseUndecided(&resp.Diagnostics, prior, p.Result)
	value := changeValue(p.verdict)
	if len(p.Unknown) > 0 {
		value = tree.UnknownValue
		m.warnAboutUnknown(&resp.Diagnostics, req.Config, req.Prior, p)
	}
	resp.Planned = p.Planned.With("status", tree.UnknownValue).With("change", value)
	return resp
}

// passDestroy is the sentence of every refusal of an update: the cores make an
// ordinary plan before a destroy, and end with its errors.
const passDestroy = " This also stops `destroy`, which plans first; there, -refresh=false is the way past it."

func stopDestroy(refusals []kind.Problem) []kind.Problem {
	out := slices.Clone(refusals)
	for i := range out {
		out[i].Detail += passDestroy
	}
	return out
}

// comparison is what a plan is made of: the planned state with its reasons,
// and what the kind says of it.
type comparison struct {
	change.Result
	in      change.Input
	waiting []tree.Path // where the guest waits for its next start, by an apply or by the configuration
	verdict kind.Verdict
}

// compare is the pure heart of a plan: the configuration against what the last
// read saw. An apply makes it again, and acts on the same reasons.
func (m *mapped) compare(config, state tree.Value, rec records) comparison {
	rules, prior := m.kind.Rules(), plain(state)
	p := comparison{in: change.Input{
		Type: m.kind.Type(), Object: m.kind.Identity(state), Config: config, Prior: prior, Owned: rec.Owned,
		Baseline: rules.Overlay(prior, rec.Baseline, m.kind.Secret),
		Actual:   rules.Overlay(prior, rec.Actual, m.kind.Secret),
		Lagging:  rec.lagging(),
		Policy:   m.policy(config),
	}}
	if !rec.Guest.IsNull() {
		p.in.Guest = m.guestOf(config, prior, rec)
	}
	if rec.Actual.IsNull() {
		// A plan without a read before it (-refresh=false) on a state that has
		// no records: what state holds is all that is known.
		p.in.Actual, p.in.Baseline = prior, prior
	}
	p.Result = rules.Plan(p.in)
	p.waiting = m.restartsFor(config, rec, p.Held)
	p.verdict = m.kind.Judge(p.judgement(config, state))
	p.verdict.Fields = append(p.verdict.Fields, m.heldOtherwise(state, p.Result, rec)...)
	p.verdict.Fields = append(p.verdict.Fields, m.beside(config, state)...)
	p.renew(m.atMost(config, state, p).Renewed)
	return p
}

// renew makes unknown what the host gives another value. What state does not
// have stays out of it: a plan does not take it in.
func (p *comparison) renew(leaves []tree.Path) {
	for _, leaf := range leaves {
		if p.Planned.Get(leaf).IsKnown() && !p.Planned.Get(leaf).IsNull() {
			p.Planned = p.Planned.Set(leaf, tree.UnknownValue)
		}
	}
}

// atMost is the verdict if all that is not known yet turns out to be a change.
func (m *mapped) atMost(config, state tree.Value, p comparison) kind.Verdict {
	if len(p.Unknown) == 0 {
		return p.verdict
	}
	j := p.judgement(config, state)
	for _, path := range p.Unknown {
		j.Changes = append(j.Changes, change.Change{Path: path, Desired: tree.UnknownValue})
	}
	return m.kind.Judge(j)
}

// isNothing says whether there is nothing to do and nothing to record. A core
// stores what it planned only if it is not the prior state.
func (p *comparison) isNothing(prior tree.Value) bool {
	return tree.Equal(p.Planned, prior) && len(p.verdict.Fields) == 0
}

func (p *comparison) judgement(config, state tree.Value) kind.Judgement {
	guest := p.in.Guest
	if guest.IsNull() {
		guest = p.in.Actual
	}
	return kind.Judgement{
		Config: config, Prior: state, Planned: p.Planned, Changes: p.Changes, Live: p.Live, Guest: guest, Definition: p.in.Actual, Waiting: p.waiting,
	}
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

// warnAboutChanges names what the plan overwrites, and what leaves the state.
func (m *mapped) warnAboutChanges(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	var b strings.Builder
	for _, c := range result.Changes {
		if c.Kind == change.Conflict {
			fmt.Fprintf(&b, "%s was %s at the last apply, is %s on the host now, and becomes %s.\n", c.Path,
				m.shown(c.Path, c.Baseline, c.Unit), m.shown(c.Path, c.Actual, c.Unit), m.shown(c.Path, c.Desired, c.Unit))
		}
		if c.Kind == change.Drift && c.Actual.IsNull() && !m.kind.Rules().Setting(c.Path[0].Attr) {
			fmt.Fprintf(&b, "%s is missing on the host, and is added again.\n", c.Path)
		}
	}
	if n := len(result.Left); n > 0 {
		fmt.Fprintf(&b, "These leave the state, not the machine (%d); nothing of them changes on the host: %s.\n", n, paths(result.Left))
	}
	for _, p := range result.Ignored {
		fmt.Fprintf(&b, "%s acts once, at creation: the object that is there keeps what it was made from, and the new value changes nothing. To use it, make another object under another name, or have this one replaced (%s.on_change = \"replace\"), with the loss of what it holds; to have peace, write the old value.\n", p, p)
	}
	if b.Len() > 0 {
		d.AddWarning(nil, fmt.Sprintf("The plan for %s %q needs a second look", m.kind.Noun(), prior.Attr("name").Str()), strings.TrimSpace(b.String()))
	}
}

// refuseClashes refuses what no plan can express: drift that is held, in a
// list that changes in length or order at the same time.
func (m *mapped) refuseClashes(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	for _, c := range result.Clashes {
		ways, past := fmt.Sprintf("Approve the drift (%s), write the host's value into the configuration, or decide about it first and change the list after that.", m.approval(c.Held.Digest)), "-refresh=false or an approval"
		if c.Held.Tier == change.TierLocked {
			ways, past = "Drift like this is never changed by a plan: write the host's value into the configuration, or repair it by hand, and change the list after that.", "-refresh=false"
		}
		d.AddError(c.Held.Path, fmt.Sprintf("Held drift meets a change of the same list in %s %q", m.kind.Noun(), prior.Attr("name").Str()),
			fmt.Sprintf("%s is %s on the host and %s in the configuration. It cannot be left as it is while its list changes in length or order. "+
				"%s This also stops `destroy`, which plans first; there, %s is the way past it.",
				c.Held.Path, m.shown(c.Held.Path, c.Held.Actual, c.Held.Unit), m.shown(c.Held.Path, c.Held.Desired, c.Held.Unit), ways, past))
	}
}

// refuseUndecided refuses a list with unknown values that no plan made now can
// be sure of.
func (m *mapped) refuseUndecided(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	for _, p := range result.Undecided {
		d.AddError(p, fmt.Sprintf("%s of %s %q holds a value that is not known yet", p, m.kind.Noun(), prior.Attr("name").Str()),
			"State has this list in another order or length than the configuration, and which element is which depends on the value. Nothing was changed. "+
				"Apply what the value depends on first (-target), then this; or write the list in the order and length that state has."+passDestroy)
	}
}

// refuseUnresolved refuses to plan while it is not known whether an object stays
// or another takes its place: what is planned as staying cannot be replaced then.
func (m *mapped) refuseUnresolved(d *protocol.Diagnostics, prior tree.Value, result change.Result) {
	for _, p := range result.Unresolved {
		d.AddError(p, fmt.Sprintf("It is not known yet what becomes of %s %q", m.kind.Noun(), prior.Attr("name").Str()),
			fmt.Sprintf("%s is not known yet, and %s asks for something else than what the object was made from, or may do so: whether it is kept or replaced, with the loss of what it holds, has to be seen in the plan. Nothing was changed. "+
				"Write the value of %[1]s itself; or apply what it depends on first (-target), then this.", p, p[:1])+passDestroy)
	}
}

// warnAboutUnknown says what a plan can at most do while values are unknown.
func (m *mapped) warnAboutUnknown(d *protocol.Diagnostics, config, state tree.Value, p comparison) {
	d.AddWarning(nil, fmt.Sprintf("The effect on %s %q is known only at apply", m.kind.Noun(), state.Attr("name").Str()),
		fmt.Sprintf("%s: the value comes from something that is not applied yet. At most, the effect is %s; what cannot be done is refused then, before anything is touched.", paths(p.Unknown), m.atMost(config, state, p).Effect))
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
	return kind.HideCredentials(v.String())
}

func paths(all []tree.Path) string { return strings.Join(pathTexts(all), ", ") }
