package provider

import (
	"context"
	"errors"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Apply makes a plan true. What it leaves in state is always what the host
// says, also after an error.
func (m *mapped) Apply(ctx context.Context, req protocol.ApplyRequest) (resp protocol.ApplyResponse) {
	if m.unconfigured(&resp.Diagnostics, "apply", req.Planned.Attr("name").Str()) {
		resp.State = req.Prior
		return resp
	}
	switch {
	case req.IsDelete():
		resp = m.applyDelete(ctx, req)
	case req.IsCreate():
		resp = m.applyCreate(ctx, req)
	default:
		resp = m.applyUpdate(ctx, req)
	}
	if resp.Private == nil {
		// The guard is for one plan; left behind by an apply that failed, it
		// would take a later creation for a replacement.
		resp.Private = withoutGuard(req.Private)
	}
	return resp
}

func withoutGuard(p protocol.Private) protocol.Private {
	out := p.Clone()
	out.Delete(guardKey)
	return out
}

func (m *mapped) applyCreate(ctx context.Context, req protocol.ApplyRequest) (resp protocol.ApplyResponse) {
	done, err := m.kind.Create(ctx, plain(req.Planned), req.Config)
	if err != nil {
		m.addFailure(&resp.Diagnostics, "create", req.Planned.Attr("name").Str(), err)
	}
	addProblems(&resp.Diagnostics, protocol.Warning, done.Warnings)
	if done.Exists {
		m.settle(ctx, &resp, req, done, nil, true)
	}
	return resp
}

func (m *mapped) applyUpdate(ctx context.Context, req protocol.ApplyRequest) (resp protocol.ApplyResponse) {
	name := req.Prior.Attr("name").Str()
	if tree.Equal(req.Prior, req.Planned) {
		// Cores may call this though nothing changes (sensitive marks that
		// differ). Nothing is touched.
		resp.State = req.Prior
		return resp
	}
	rec := loadRecords(req.Private)
	// A saved plan may be applied with another uri than the one it was made with,
	// and the host of that may have an object of the same path, name or UUID.
	if m.elsewhere(ctx, &resp.Diagnostics, rec, req.Prior) {
		resp.State = req.Prior
		return resp
	}
	p := m.compare(req.Config, req.Prior, rec)
	if len(p.verdict.Refusals) > 0 {
		// What was not known when the plan was made.
		addProblems(&resp.Diagnostics, protocol.Error, p.verdict.Refusals)
		resp.State = req.Prior
		return resp
	}
	done, err := m.kind.Update(ctx, kind.Update{
		Config: req.Config, Prior: req.Prior, Planned: plain(req.Planned), Owned: rec.Owned,
		Changes: p.Changes, Live: p.Live, Waiting: p.waiting, Effect: p.verdict.Effect,
	})
	addProblems(&resp.Diagnostics, protocol.Warning, done.Warnings)
	var late *kind.NotReadyError
	complete := err == nil || errors.As(err, &late)
	if err != nil {
		m.addFailure(&resp.Diagnostics, "update", name, err)
	}
	if complete || done.Exists {
		m.settle(ctx, &resp, req, done, slices.Concat(p.Changes, p.Live), complete)
	}
	return resp
}

// settle writes state and records from what the host says after an apply. An
// apply that is not complete leaves the state in the shape it had, and owned
// what was owned.
func (m *mapped) settle(ctx context.Context, resp *protocol.ApplyResponse, req protocol.ApplyRequest, done kind.Done, changes []change.Change, complete bool) {
	rules, typ := m.kind.Rules(), m.kind.Type()
	prior, planned, definition := plain(req.Prior), plain(req.Planned), done.Facts.Definition
	rec := loadRecords(req.Private)
	var state tree.Value
	if complete {
		order := change.Order{Rules: rules, Type: typ, Config: req.Config, Prior: prior, Planned: planned, Owned: rec.Owned}
		state = order.Settle(rec.Actual, definition)
		if rules.Measured != nil && !prior.IsNull() {
			// A figure that moved since the plan is the next refresh's to tell: the
			// core holds the new state against the plan.
			state = rules.Overlay(planned, state, rules.Measured)
		}
		rec.Owned = change.Masked(order.Identify(state), m.kind.Secret)
	} else {
		state = rules.Project(typ, prior, definition)
	}
	actual := change.Without(definition, m.kind.Secret)
	agreed := tree.NullValue
	if complete {
		agreed = change.Without(rec.Owned, m.kind.Secret)
	}
	rec.Baseline, rec.Actual, rec.Host = rules.Rebase(typ, agreed, rec.Baseline, rec.Actual, actual), actual, m.hostID(ctx)
	rec.HostName, rec.Within = m.hostName(ctx), done.Facts.Within
	rec.Guest = m.guestRecord(done.Facts)
	rec.Late = late{actual.Attr("id"), m.late(state, rec, changes)}
	status := m.complete(withSteps(done.Facts.Status, done.Steps), state, rec)
	resp.State = state.With("status", status).With("change", req.Planned.Attr("change"))
	var err error
	private := req.Private.Clone()
	private.Delete(guardKey)
	if resp.Private, err = rec.store(private); err != nil {
		m.addFailure(&resp.Diagnostics, "store the records of", done.Facts.Name, err)
	}
}

// withSteps adds the steps of this apply to the status, if the kind has one.
func withSteps(status tree.Value, steps []kind.Step) tree.Value {
	if status.IsNull() {
		return status
	}
	list := make([]tree.Value, len(steps))
	for i, s := range steps {
		list[i] = tree.ObjectValue(map[string]tree.Value{"name": tree.StringValue(s.Name), "outcome": tree.StringValue(s.Outcome)})
	}
	return status.With("last_steps", tree.ListValue(list))
}

func (m *mapped) applyDelete(ctx context.Context, req protocol.ApplyRequest) (resp protocol.ApplyResponse) {
	if m.elsewhere(ctx, &resp.Diagnostics, loadRecords(req.Private), req.Prior) {
		resp.State = req.Prior
		return resp
	}
	if g := m.guardOf(req.Prior); g.Protect && !m.nothingToLose(ctx, req) {
		g.Late = true
		refuseDestroy(&resp.Diagnostics, "destroy", g)
		resp.State = req.Prior
		return resp
	}
	warnings, err := m.kind.Delete(ctx, req.Prior)
	addProblems(&resp.Diagnostics, protocol.Warning, warnings)
	if err != nil {
		resp.State = req.Prior
		m.addFailure(&resp.Diagnostics, "destroy", req.Prior.Attr("name").Str(), err)
	}
	return resp
}

// nothingToLose says that a protected object may go all the same: it is gone
// already, or its creation failed half way and it has not run since.
func (m *mapped) nothingToLose(ctx context.Context, req protocol.ApplyRequest) bool {
	if m.gone(ctx, req.Prior, req.Private) {
		return true
	}
	if !m.kind.NeverUsed(req.Prior) {
		return false
	}
	facts, err := m.kind.Read(ctx, req.Prior)
	return err == nil && !facts.Active && m.kind.NeverUsed(req.Prior.With("status", facts.Status))
}
