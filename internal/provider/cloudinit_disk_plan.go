package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// ModifyPlan refuses the end of a protected seed, checks inputs that are new,
// and computes what follows from them, so that it is known in the plan.
func (r *cloudinitDisk) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior *cloudinitDiskModel
	if !req.State.Raw.IsNull() {
		prior = new(cloudinitDiskModel)
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if req.Plan.Raw.IsNull() {
		if prior != nil && !resp.Diagnostics.HasError() {
			refuseSeed(&resp.Diagnostics, "destroy", r.guardOf(prior))
		}
		return
	}
	var plan cloudinitDiskModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(r.watchReplacement(ctx, prior, plan.Protect, req, resp)...)
	if prior != nil && plan.sameSeed(prior) {
		// Whatever the file is like, this plan has nothing to do about it.
		plan.ID, plan.Path, plan.Size, plan.Digest = prior.ID, prior.Path, prior.Size, prior.Digest
	} else {
		resp.Diagnostics.Append(checkSeed(&plan, prior)...)
		if resp.Diagnostics.HasError() {
			return
		}
		resp.Diagnostics.Append(r.compute(&plan, prior)...)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// identifier is the name; an identifier of another form is one that another
// provider gave, and stays.
func (m *cloudinitDiskModel) identifier(prior *cloudinitDiskModel) types.String {
	if prior == nil || prior.ID.IsNull() || prior.ID.Equal(prior.Name) {
		return m.Name
	}
	return prior.ID
}

// compute sets what follows from name and content, unknown where they are.
func (r *cloudinitDisk) compute(plan, prior *cloudinitDiskModel) diag.Diagnostics {
	var diags diag.Diagnostics
	plan.ID = plan.identifier(prior)
	plan.Path, plan.Size, plan.Digest = types.StringUnknown(), types.Int64Unknown(), types.StringUnknown()
	if plan.UserData.IsUnknown() || plan.MetaData.IsUnknown() || plan.NetworkConfig.IsUnknown() {
		return diags
	}
	content := plan.content()
	image, err := content.ISO()
	if err != nil {
		addSeedFailure(&diags, "make the image of", plan, err)
		return diags
	}
	plan.Size = types.Int64Value(int64(len(image)))
	plan.Digest = types.StringValue(content.Digest().Tagged())
	if plan.Name.IsUnknown() {
		return diags
	}
	store, err := r.store()
	if err != nil {
		addSeedFailure(&diags, "plan", plan, err)
		return diags
	}
	plan.Path = types.StringValue(store.Path(plan.Name.ValueString(), content.Digest()))
	return diags
}

// checkSeed checks the inputs that the object does not have already: a new
// version of the provider must not stop plans of machines that work.
func checkSeed(plan, prior *cloudinitDiskModel) diag.Diagnostics {
	if prior == nil {
		prior = &cloudinitDiskModel{}
	}
	var diags diag.Diagnostics
	for _, input := range []struct {
		attribute string
		now, was  types.String
		check     func(string) []seed.Finding
	}{
		{"name", plan.Name, prior.Name, seed.CheckName},
		{"user_data", plan.UserData, prior.UserData, seed.CheckUserData},
		{"meta_data", plan.MetaData, prior.MetaData, seed.CheckMetaData},
		{"network_config", plan.NetworkConfig, prior.NetworkConfig, seed.CheckNetworkConfig},
	} {
		if input.now.IsUnknown() || input.now.IsNull() || input.now.Equal(input.was) {
			continue
		}
		for _, f := range input.check(input.now.ValueString()) {
			if f.Warning {
				diags.AddAttributeWarning(path.Root(input.attribute), fmt.Sprintf("Doubtful %s of seed %q", input.attribute, plan.Name.ValueString()), f.String())
			} else {
				diags.AddAttributeError(path.Root(input.attribute), fmt.Sprintf("Invalid %s of seed %q", input.attribute, plan.Name.ValueString()), f.String())
			}
		}
	}
	return diags
}

// guardOf says whether a seed may not be destroyed, and why.
func (r *cloudinitDisk) guardOf(state *cloudinitDiskModel) guard {
	g := guard{Noun: "seed", Name: state.Name.ValueString()}
	if state.Protect.IsNull() {
		g.Protect, g.Origin = r.settings.ProtectSeeds()
	} else {
		g.Explicit = true
		g.Protect, g.Origin = state.Protect.ValueBool(), fmt.Sprintf("protect = %t in its state", state.Protect.ValueBool())
	}
	return g
}

// watchReplacement refuses -replace. The core plans a replacement in two calls,
// and tells the second one, the create, nothing about the object that is to go,
// but for the private data that the first call left: see guard.
func (r *cloudinitDisk) watchReplacement(ctx context.Context, prior *cloudinitDiskModel, asked types.Bool, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) diag.Diagnostics {
	if prior != nil {
		g := r.guardOf(prior).asked(asked.ValueBool())
		if !g.Protect {
			return resp.Private.SetKey(ctx, guardKey, nil)
		}
		raw, err := json.Marshal(g)
		if err != nil {
			return diag.Diagnostics{diag.NewErrorDiagnostic("The protection of a seed cannot be recorded", err.Error())}
		}
		return resp.Private.SetKey(ctx, guardKey, raw)
	}
	raw, diags := req.Private.GetKey(ctx, guardKey)
	var g guard
	if len(raw) > 0 && json.Unmarshal(raw, &g) == nil {
		refuseSeed(&diags, "replace", g)
		diags.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	}
	return diags
}

// refuseSeed adds the refusal in the words that all resources use, if the seed
// is protected.
func refuseSeed(diags *diag.Diagnostics, verb string, g guard) {
	var d protocol.Diagnostics
	refuseDestroy(&d, verb, g)
	for _, one := range d {
		diags.AddError(one.Summary, one.Detail)
	}
}
