package protocol

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// UpgradeResourceState reads a stored state.
func (s *server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (resp *tfprotov6.UpgradeResourceStateResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.UpgradeResourceState(ctx, req)
	}
	resp = &tfprotov6.UpgradeResourceStateResponse{}
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
	if got.State.IsNull() {
		c.internalError(diags, nil, "the resource made nothing of the stored state")
		return nil
	}
	return c.encodeState(r.codec(), got.State, false, diags)
}

// MoveResourceState takes over the state of an object of another address. A
// type of the same name, from another provider, is upgraded like a state that
// was taken over in place.
func (s *server) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (resp *tfprotov6.MoveResourceStateResponse, _ error) {
	r := s.resources[req.TargetTypeName]
	if r == nil {
		return s.ProviderServer.MoveResourceState(ctx, req)
	}
	resp = &tfprotov6.MoveResourceStateResponse{}
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
func (s *server) GenerateResourceConfig(ctx context.Context, req *tfprotov6.GenerateResourceConfigRequest) (resp *tfprotov6.GenerateResourceConfigResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.GenerateResourceConfig(ctx, req)
	}
	resp = &tfprotov6.GenerateResourceConfigResponse{}
	var diags Diagnostics
	c := begin(ctx, "GenerateResourceConfig", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	state := c.decode(r.codec(), req.State, "state", &diags)
	if diags.HasErrors() {
		return resp, nil
	}
	resp.Config = c.encode(r.codec(), configurable(state, r.schema.Type), "configuration", &diags)
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
