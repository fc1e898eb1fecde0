package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// ModifyPlan refuses the end of a protected object, checks inputs that are new,
// and computes what follows from them, so that it is known in the plan.
func (r *stored) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior storedModel
	if !req.State.Raw.IsNull() {
		prior = r.get(ctx, req.State, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() {
		if prior != nil && !resp.Diagnostics.HasError() {
			refuseStored(&resp.Diagnostics, "destroy", r.guardOf(prior.common()))
		}
		return
	}
	plan := r.get(ctx, req.Plan, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	f := plan.common()
	resp.Diagnostics.Append(r.watchReplacement(ctx, prior, f.Protect, req, resp)...)
	if prior != nil && sameFile(plan, prior) {
		// Whatever the file is like, this plan has nothing to do about it.
		was := prior.common()
		f.ID, f.Path, f.Size, f.Digest = was.ID, was.Path, was.Size, was.Digest
		resp.Diagnostics.Append(r.doubt(plan)...)
	} else {
		resp.Diagnostics.Append(r.check(plan, prior)...)
		if resp.Diagnostics.HasError() {
			return
		}
		resp.Diagnostics.Append(r.compute(plan, prior)...)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// identifier is the name; an identifier of another form is one that another
// provider gave, and stays.
func (f *storedFile) identifier(prior *storedFile) types.String {
	if prior == nil || prior.ID.IsNull() || prior.ID.Equal(prior.Name) {
		return f.Name
	}
	return prior.ID
}

// compute sets what follows from name and content, unknown where they are.
func (r *stored) compute(plan, prior storedModel) diag.Diagnostics {
	var diags diag.Diagnostics
	f := plan.common()
	if prior == nil {
		f.ID = f.identifier(nil)
	} else {
		f.ID = f.identifier(prior.common())
	}
	f.Path, f.Size, f.Digest = types.StringUnknown(), types.Int64Unknown(), types.StringUnknown()
	if slices.ContainsFunc(plan.inputs(), func(in storedInput) bool { return in.value.IsUnknown() }) {
		return diags
	}
	content := plan.content()
	file, err := content.Bytes()
	if err != nil {
		r.addFailure(&diags, "make the "+r.kind.file+" of", plan, err)
		return diags
	}
	f.Size = types.Int64Value(int64(len(file)))
	f.Digest = types.StringValue(content.Digest().Tagged())
	if f.Name.IsUnknown() {
		return diags
	}
	store, err := r.store()
	if err != nil {
		r.addFailure(&diags, "plan", plan, err)
		return diags
	}
	f.Path = types.StringValue(store.Path(f.Name.ValueString(), content))
	return diags
}

// check checks the inputs that the object does not have already: a new version
// of the provider must not stop plans of machines that work.
func (r *stored) check(plan, prior storedModel) diag.Diagnostics {
	var diags diag.Diagnostics
	name := plan.common().Name
	now := append([]storedInput{{attribute: "name", value: name, check: seed.CheckName}}, plan.inputs()...)
	was := make([]types.String, len(now)) // null
	if prior != nil {
		was[0] = prior.common().Name
		for i, in := range prior.inputs() {
			was[i+1] = in.value
		}
	}
	for i, in := range now {
		if in.check == nil || in.value.IsUnknown() || in.value.IsNull() || in.value.Equal(was[i]) {
			continue
		}
		for _, found := range in.check(in.value.ValueString()) {
			if found.Warning {
				diags.AddAttributeWarning(path.Root(in.attribute), fmt.Sprintf("Doubtful %s of %s %q", in.attribute, r.kind.noun, name.ValueString()), found.String())
			} else {
				diags.AddAttributeError(path.Root(in.attribute), fmt.Sprintf("Invalid %s of %s %q", in.attribute, r.kind.noun, name.ValueString()), found.String())
			}
		}
	}
	return diags
}

// doubt warns of a content that is a single word, and no good one: other providers
// took the name of a file there, too, and left it in the state.
func (r *stored) doubt(m storedModel) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, in := range m.inputs() {
		text := in.value.ValueString()
		if in.attribute != "content" || len(strings.Fields(text)) != 1 || len(in.check(text)) == 0 {
			continue
		}
		diags.AddAttributeWarning(path.Root(in.attribute), fmt.Sprintf("Doubtful content of %s %q", r.kind.noun, m.common().Name.ValueString()),
			"It is a single word, and no "+r.kind.noun+". Versions 0.6 to 0.8 of dmacvicar/libvirt took the name of a file, too, and read the file; here content is the text itself, "+
				"and a volume that is made of this holds the word. If it is the name of a file, write content = file(\"…\"). What machines have already is not changed by that alone.")
	}
	return diags
}

// guardOf says whether an object may not be destroyed, and why.
func (r *stored) guardOf(state *storedFile) guard {
	g := guard{Noun: r.kind.noun, Name: state.Name.ValueString()}
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
func (r *stored) watchReplacement(ctx context.Context, prior storedModel, asked types.Bool, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) diag.Diagnostics {
	if prior != nil {
		g := r.guardOf(prior.common()).asked(asked.ValueBool())
		if !g.Protect {
			return resp.Private.SetKey(ctx, guardKey, nil)
		}
		raw, err := json.Marshal(g)
		if err != nil {
			return diag.Diagnostics{diag.NewErrorDiagnostic(fmt.Sprintf("The protection of %s %q cannot be recorded", g.Noun, g.Name), err.Error())}
		}
		return resp.Private.SetKey(ctx, guardKey, raw)
	}
	raw, diags := req.Private.GetKey(ctx, guardKey)
	var g guard
	if len(raw) > 0 && json.Unmarshal(raw, &g) == nil {
		refuseStored(&diags, "replace", g)
		diags.Append(resp.Private.SetKey(ctx, guardKey, nil)...)
	}
	return diags
}

// refuseStored adds the refusal in the words that all resources use, if the
// object is protected.
func refuseStored(diags *diag.Diagnostics, verb string, g guard) {
	var d protocol.Diagnostics
	refuseDestroy(&d, verb, g)
	for _, one := range d {
		diags.AddError(one.Summary, one.Detail)
	}
}
