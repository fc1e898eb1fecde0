package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// ValidateResourceConfig checks a configuration.
func (s *server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (resp *tfprotov6.ValidateResourceConfigResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ValidateResourceConfig(ctx, req)
	}
	resp = &tfprotov6.ValidateResourceConfigResponse{}
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
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (resp *tfprotov6.ReadResourceResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ReadResource(ctx, req)
	}
	resp = &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, NewIdentity: req.CurrentIdentity}
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
		resp.NewIdentity = c.identify(r, got.State)
	}
	c.keepPrivate(&resp.Private, got.Private, &diags)
	return resp, nil
}

// PlanResourceChange plans a create, an update or a destroy.
func (s *server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (resp *tfprotov6.PlanResourceChangeResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.PlanResourceChange(ctx, req)
	}
	resp = &tfprotov6.PlanResourceChangeResponse{PlannedState: req.PriorState, PlannedPrivate: req.PriorPrivate, PlannedIdentity: req.PriorIdentity}
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
	switch {
	case plan.IsDestroy():
		resp.PlannedState = req.ProposedNewState // null: an object that is to go has no other plan
	case !got.Planned.IsNull():
		if planned := c.encode(r.codec(), got.Planned, "planned state", &diags); planned != nil {
			resp.PlannedState = planned
		}
	case !diags.HasErrors():
		c.internalError(&diags, nil, "the resource planned nothing for an object that is to exist")
	}
	for _, p := range got.Replace {
		resp.RequiresReplace = append(resp.RequiresReplace, wirePath(p))
	}
	c.keepPrivate(&resp.PlannedPrivate, got.Private, &diags)
	return resp, nil
}

// ApplyResourceChange creates, updates or deletes an object.
func (s *server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (resp *tfprotov6.ApplyResourceChangeResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ApplyResourceChange(ctx, req)
	}
	// Whatever goes wrong below, the object is where it was.
	resp = &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, NewIdentity: req.PlannedIdentity}
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
		resp.NewState, resp.Private, resp.NewIdentity = req.PlannedState, nil, nil
		return resp, nil
	case got.State.IsNull() && !failed:
		c.internalError(&diags, nil, "the resource returned no state for an object that is to exist")
	case !got.State.IsNull():
		if newState := c.encodeState(r.codec(), got.State, failed, &diags); newState != nil {
			resp.NewState = newState
			resp.NewIdentity = c.identify(r, got.State)
		}
	}
	c.keepPrivate(&resp.Private, got.Private, &diags)
	return resp, nil
}

// ImportResourceState finds an existing object by its id, or by its identity.
func (s *server) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (resp *tfprotov6.ImportResourceStateResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.ImportResourceState(ctx, req)
	}
	resp = &tfprotov6.ImportResourceStateResponse{}
	var diags Diagnostics
	c := begin(ctx, "ImportResourceState", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	id := req.ID
	switch {
	case id != "":
	case req.Identity != nil:
		id = c.identified(r, req.Identity, &diags)
	default:
		diags.AddError(nil, req.TypeName+": import needs an id", "The id of the import is empty.")
	}
	if diags.HasErrors() {
		return resp, nil
	}
	got := r.Import(ctx, ImportRequest{ID: id})
	diags.Append(got.Diagnostics...)
	if diags.HasErrors() {
		return resp, nil
	}
	if got.State.IsNull() {
		c.internalError(&diags, nil, "the resource returned no state for "+id)
		return resp, nil
	}
	imported := &tfprotov6.ImportedResource{TypeName: req.TypeName, Identity: c.identify(r, got.State)}
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
// are what it did not get to. The result is nil if nothing can be stored.
func (c call) encodeState(codec *codec, state tree.Value, failed bool, diags *Diagnostics) *tfprotov6.DynamicValue {
	if state.HasUnknown() {
		var paths []tree.Path
		state = withoutUnknown(state, nil, &paths)
		if !failed {
			c.internalError(diags, paths[0], "the new state has values that are still unknown: "+joinPaths(paths))
		}
		if state.IsNull() {
			return nil
		}
	}
	if w := c.encode(codec, state, "new state", diags); w != nil {
		return w
	}
	var problems []*valueError // the first of them has been reported
	state = coerce(state, codec.typ, nil, &problems)
	if state.IsNull() {
		return nil
	}
	w, err := codec.encode(state)
	if err != nil {
		return nil
	}
	return w
}

// encode writes one value of the response; what names it in the message. The
// result is nil if it does not fit.
func (c call) encode(codec *codec, v tree.Value, what string, diags *Diagnostics) *tfprotov6.DynamicValue {
	w, err := codec.encode(v)
	if err == nil {
		return w
	}
	var misfit *valueError
	var path tree.Path
	if errors.As(err, &misfit) {
		path = misfit.path
	}
	c.internalError(diags, path, fmt.Sprintf("write the %s: %v", what, err))
	return nil
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

// withoutUnknown returns the value with null for everything unknown, and adds
// where that was to paths. Elements of lists stay, as null, so that the others
// keep their places.
func withoutUnknown(v tree.Value, at tree.Path, paths *[]tree.Path) tree.Value {
	switch v.Kind() {
	case tree.Unknown:
		*paths = append(*paths, at)
		return tree.NullValue
	case tree.List:
		elems := make([]tree.Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = withoutUnknown(e, at.Elem(i, ""), paths)
		}
		return tree.ListValue(elems)
	case tree.Object:
		attrs := make(map[string]tree.Value, v.Len())
		for _, name := range v.Names() {
			attrs[name] = withoutUnknown(v.Attr(name), at.Attr(name), paths)
		}
		return tree.ObjectValue(attrs)
	}
	return v
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
