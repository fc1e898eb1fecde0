package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// A seed that has nothing to do with a pool is a stored file like others; one that
// lies in a pool, or did, is dealt with here.

func (r *cloudinitDisk) seed(ctx context.Context, from getter, diags *diag.Diagnostics) *cloudinitDiskModel {
	m := new(cloudinitDiskModel)
	diags.Append(from.Get(ctx, m)...)
	return m
}

// ModifyPlan refuses the end of a protected seed, checks inputs that are new, and
// computes what follows from them.
func (r *cloudinitDisk) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.stored.ModifyPlan(ctx, req, resp)
		if !resp.Diagnostics.HasError() && !req.State.Raw.IsNull() {
			r.warnOfDestruction(ctx, req, &resp.Diagnostics)
		}
		return
	}
	var prior *cloudinitDiskModel
	if !req.State.Raw.IsNull() {
		prior = r.seed(ctx, req.State, &resp.Diagnostics)
	}
	plan := r.seed(ctx, req.Plan, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.mayBePooled() || prior != nil && prior.inPools() {
		resp.Diagnostics.Append(r.watchReplacement(ctx, asStored(prior), plan.Protect, req, resp)...)
		resp.Diagnostics.Append(r.planInPool(ctx, req, resp, plan, prior)...)
		return
	}
	r.stored.ModifyPlan(ctx, req, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan = r.seed(ctx, resp.Plan, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	plan.withoutPool()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// Create makes the image.
func (r *cloudinitDisk) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan := r.seed(ctx, req.Plan, &resp.Diagnostics)
	switch {
	case resp.Diagnostics.HasError():
	case plan.pooled():
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
		r.createInPool(ctx, req, resp, plan)
	default:
		r.stored.Create(ctx, req, resp)
	}
}

// Read takes the host's word for what lies in a pool, and puts what lies in the
// store there.
func (r *cloudinitDisk) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state := r.seed(ctx, req.State, &resp.Diagnostics)
	switch {
	case resp.Diagnostics.HasError():
	case state.inPools():
		r.readInPool(ctx, req, resp, state)
	default:
		r.stored.Read(ctx, req, resp)
	}
}

// Update makes another image, or puts it elsewhere.
func (r *cloudinitDisk) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, state := r.seed(ctx, req.Plan, &resp.Diagnostics), r.seed(ctx, req.State, &resp.Diagnostics)
	switch {
	case resp.Diagnostics.HasError():
	case plan.pooled() || state.inPools():
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
		r.updateInPool(ctx, req, resp, plan, state)
	default:
		r.stored.Update(ctx, req, resp)
	}
}

// Delete removes the images, wherever they lie.
func (r *cloudinitDisk) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := r.seed(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if state.inPools() {
		if g := r.guardOf(state.common()); g.Protect {
			g.Late = true // plans refuse all but the replacement of a tainted object
			refuseStored(&resp.Diagnostics, "destroy", g)
			return
		}
		r.deleteFromPools(ctx, req, resp, state)
	}
	switch {
	case resp.Diagnostics.HasError():
	case state.pooled():
		r.deleteFiles(ctx, req, resp, state)
	default:
		r.stored.Delete(ctx, req, resp)
	}
}
