package protocol

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// ValidateResourceConfig checks a configuration.
func (s *server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ValidateResourceConfig(ctx, req)
	}
	resp := &tfprotov6.ValidateResourceConfigResponse{}
	var diags Diagnostics
	c := begin(ctx, "ValidateResourceConfig", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	config := c.decode(r.codec(), req.Config, "configuration", &diags)
	if !diags.HasErrors() {
		diags.Append(r.Validate(ctx, config)...)
	}
	return resp, nil
}

// ReadResource refreshes a state. With an error the old state stays.
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ReadResource(ctx, req)
	}
	resp := &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}
	var diags Diagnostics
	c := begin(ctx, "ReadResource", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	state := c.decode(r.codec(), req.CurrentState, "state", &diags)
	if diags.HasErrors() || state.IsNull() {
		return resp, nil
	}
	got := r.Read(ctx, ReadRequest{State: state, Private: decodePrivate(req.Private)})
	diags.Append(got.Diagnostics...)
	if diags.HasErrors() {
		return resp, nil
	}
	if newState := c.encodeState(r.codec(), got.State, false, &diags); newState != nil {
		resp.NewState = newState
	}
	c.keepPrivate(&resp.Private, got.Private, &diags)
	return resp, nil
}

// PlanResourceChange plans a create, an update or a destroy.
func (s *server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.PlanResourceChange(ctx, req)
	}
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: req.PriorState, PlannedPrivate: req.PriorPrivate}
	var diags Diagnostics
	c := begin(ctx, "PlanResourceChange", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	plan := PlanRequest{
		Config:   c.decode(r.codec(), req.Config, "configuration", &diags),
		Prior:    c.decode(r.codec(), req.PriorState, "prior state", &diags),
		Proposed: c.decode(r.codec(), req.ProposedNewState, "proposed state", &diags),
		Private:  decodePrivate(req.PriorPrivate),
	}
	if diags.HasErrors() {
		return resp, nil
	}
	got := r.Plan(ctx, plan)
	diags.Append(got.Diagnostics...)
	if plan.IsDestroy() {
		resp.PlannedState = req.ProposedNewState // an absent object has no other plan
	} else {
		if got.Planned.IsNull() && !diags.HasErrors() {
			c.internalError(&diags, nil, "the resource planned nothing for an object that is to exist")
		}
		planned, err := r.codec().encode(got.Planned)
		if err != nil {
			c.internalError(&diags, errorPath(err), "write the planned state: "+err.Error())
		} else {
			resp.PlannedState = planned
		}
	}
	for _, p := range got.Replace {
		resp.RequiresReplace = append(resp.RequiresReplace, wirePath(p))
	}
	c.keepPrivate(&resp.PlannedPrivate, got.Private, &diags)
	return resp, nil
}

// ApplyResourceChange creates, updates or deletes an object.
func (s *server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ApplyResourceChange(ctx, req)
	}
	// Whatever goes wrong below, the object is where it was.
	resp := &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate}
	var diags Diagnostics
	c := begin(ctx, "ApplyResourceChange", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	apply := ApplyRequest{
		Config:  c.decode(r.codec(), req.Config, "configuration", &diags),
		Prior:   c.decode(r.codec(), req.PriorState, "prior state", &diags),
		Planned: c.decode(r.codec(), req.PlannedState, "planned state", &diags),
		Private: decodePrivate(req.PlannedPrivate),
	}
	if diags.HasErrors() {
		return resp, nil
	}
	got := r.Apply(ctx, apply)
	diags.Append(got.Diagnostics...)
	failed := diags.HasErrors()
	switch {
	case apply.IsDelete() && !failed:
		resp.NewState, resp.Private = req.PlannedState, nil
		return resp, nil
	case got.State.IsNull() && !failed:
		c.internalError(&diags, nil, "the resource returned no state for an object that is to exist")
	case !got.State.IsNull():
		if newState := c.encodeState(r.codec(), got.State, failed, &diags); newState != nil {
			resp.NewState = newState
		}
	}
	c.keepPrivate(&resp.Private, got.Private, &diags)
	return resp, nil
}

// ImportResourceState finds an existing object by its id.
func (s *server) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ImportResourceState(ctx, req)
	}
	resp := &tfprotov6.ImportResourceStateResponse{}
	var diags Diagnostics
	c := begin(ctx, "ImportResourceState", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	switch {
	case req.ID != "":
	case req.Identity != nil:
		diags.AddError(nil, req.TypeName+": import needs an id", "This type has no resource identity. Give the import block an id instead of an identity.")
		return resp, nil
	default:
		diags.AddError(nil, req.TypeName+": import needs an id", "The id of the import is empty.")
		return resp, nil
	}
	got := r.Import(ctx, ImportRequest{ID: req.ID})
	diags.Append(got.Diagnostics...)
	if diags.HasErrors() {
		return resp, nil
	}
	if got.State.IsNull() {
		c.internalError(&diags, nil, "the resource returned no state for "+req.ID)
		return resp, nil
	}
	imported := &tfprotov6.ImportedResource{TypeName: req.TypeName}
	imported.State = c.encodeState(r.codec(), got.State, false, &diags)
	c.keepPrivate(&imported.Private, got.Private, &diags)
	if !diags.HasErrors() {
		resp.ImportedResources = []*tfprotov6.ImportedResource{imported}
	}
	return resp, nil
}

// encodeState writes a state that is to be stored. One that does not fit is
// stored as far as it does, with an error, so that the object is not lost;
// failed says that the resource itself reports an error, and unknown values
// are what it did not get to.
func (c call) encodeState(codec *codec, state tree.Value, failed bool, diags *Diagnostics) *tfprotov6.DynamicValue {
	if state.HasUnknown() {
		known, paths := withoutUnknown(state)
		if !failed {
			c.internalError(diags, paths[0], "the new state has values that are still unknown: "+joinPaths(paths))
		}
		state = known
	}
	w, err := codec.encode(state)
	if err == nil {
		return w
	}
	c.internalError(diags, errorPath(err), "write the new state: "+err.Error())
	var problems []*valueError
	w, err = codec.encode(coerce(state, codec.typ, nil, &problems))
	if err != nil {
		return nil
	}
	return w
}

// keepPrivate replaces the stored private data, if the resource returned any.
func (c call) keepPrivate(stored *[]byte, p Private, diags *Diagnostics) {
	if p == nil {
		return
	}
	encoded, err := p.encode()
	if err != nil {
		c.internalError(diags, nil, err.Error())
		return
	}
	*stored = encoded
}

// errorPath is the path of a *valueError.
func errorPath(err error) tree.Path {
	if v, ok := err.(*valueError); ok {
		return v.path
	}
	return nil
}

// withoutUnknown returns the value with null for everything unknown, and where
// that was. Elements of lists stay, as null, so that the others keep their
// places.
func withoutUnknown(v tree.Value) (tree.Value, []tree.Path) {
	var paths []tree.Path
	v.Walk(func(p tree.Path, node tree.Value) bool {
		if node.IsUnknown() {
			paths = append(paths, p)
		}
		return true
	})
	for _, p := range paths {
		v = v.Set(p, tree.NullValue)
	}
	return v, paths
}

func joinPaths(paths []tree.Path) string {
	var names []string
	for _, p := range paths {
		if len(p) == 0 {
			return "the whole object"
		}
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// UpgradeResourceState reads a stored state.
func (s *server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.UpgradeResourceState(ctx, req)
	}
	resp := &tfprotov6.UpgradeResourceStateResponse{}
	var diags Diagnostics
	c := begin(ctx, "UpgradeResourceState", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	resp.UpgradedState = c.upgrade(r, req.Version, req.RawState, &diags)
	return resp, nil
}

func (c call) upgrade(r *resource, version int64, raw *tfprotov6.RawState, diags *Diagnostics) *tfprotov6.DynamicValue {
	if raw == nil || raw.JSON == nil {
		diags.AddError(nil, c.typeName+": the stored state cannot be read",
			"It is not in the form that Terraform writes since 0.12. Remove the object from the state and import it again.")
		return nil
	}
	got := r.Upgrade(c.ctx, UpgradeRequest{Schema: r.schema, Version: version, JSON: raw.JSON})
	diags.Append(got.Diagnostics...)
	if got.Diagnostics.HasErrors() {
		return nil
	}
	return c.encodeState(r.codec(), got.State, false, diags)
}

// MoveResourceState takes over the state of an object of another address. A
// type of the same name, from another provider, is upgraded like a state that
// was taken over in place.
func (s *server) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	r := s.resources[req.TargetTypeName]
	if r == nil {
		return s.ProviderServer.MoveResourceState(ctx, req)
	}
	resp := &tfprotov6.MoveResourceStateResponse{}
	var diags Diagnostics
	c := begin(ctx, "MoveResourceState", req.TargetTypeName)
	defer c.end(&resp.Diagnostics, &diags)

	if req.SourceTypeName != req.TargetTypeName {
		diags.AddError(nil, fmt.Sprintf("A %s cannot become a %s", req.SourceTypeName, req.TargetTypeName),
			fmt.Sprintf("Only a %s, of this or another provider, can be moved here. Remove the moved block, and import the object instead.", req.TargetTypeName))
		return resp, nil
	}
	resp.TargetState = c.upgrade(r, req.SourceSchemaVersion, req.SourceState, &diags)
	return resp, nil
}

// UpgradeResourceIdentity answers for mapped types that they have no identity.
func (s *server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	if s.resources[req.TypeName] == nil {
		return s.ProviderServer.UpgradeResourceIdentity(ctx, req)
	}
	var diags Diagnostics
	diags.AddError(nil, req.TypeName+": the stored identity cannot be read", "This type has no resource identity; the state was written by a newer version of the provider.")
	return &tfprotov6.UpgradeResourceIdentityResponse{Diagnostics: diags.wire()}, nil
}

// GenerateResourceConfig turns the state of an imported object into a
// configuration: what can only be computed is left out.
func (s *server) GenerateResourceConfig(ctx context.Context, req *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.GenerateResourceConfig(ctx, req)
	}
	resp := &tfprotov6.GenerateResourceConfigResponse{}
	var diags Diagnostics
	c := begin(ctx, "GenerateResourceConfig", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	state := c.decode(r.codec(), req.State, "state", &diags)
	if diags.HasErrors() {
		return resp, nil
	}
	config, err := r.codec().encode(configurable(state, r.schema.Type))
	if err != nil {
		c.internalError(&diags, errorPath(err), "write the configuration: "+err.Error())
		return resp, nil
	}
	resp.Config = config
	return resp, nil
}

// configurable returns the part of a value that a configuration can name.
func configurable(v tree.Value, t *tree.Type) tree.Value {
	switch {
	case v.Kind() == tree.Object:
		attrs := make(map[string]tree.Value, v.Len())
		for _, name := range v.Names() {
			if a := t.Attrs[name]; a.Required || a.Optional {
				attrs[name] = configurable(v.Attr(name), a.Type)
			}
		}
		return tree.ObjectValue(attrs)
	case v.Kind() == tree.List:
		elems := make([]tree.Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = configurable(e, t.Elem)
		}
		return tree.ListValue(elems)
	}
	return v
}
