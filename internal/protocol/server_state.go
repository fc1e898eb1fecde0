package protocol

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

	resp.UpgradedState, _ = c.upgrade(r, "", req.Version, req.RawState, &diags)
	return resp, nil
}

// upgrade reads a state that was stored by another version, provider or, if from
// names one, type. It returns it for the wire, and as a tree.
func (c call) upgrade(r *resource, from string, version int64, raw *tfprotov6.RawState, diags *Diagnostics) (*tfprotov6.DynamicValue, tree.Value) {
	if raw == nil || raw.JSON == nil {
		diags.AddError(nil, c.typeName+": the stored state cannot be read",
			"It is not in the form that Terraform writes since 0.12. Remove the object from the state and import it again.")
		return nil, tree.NullValue
	}
	got := r.Upgrade(c.ctx, UpgradeRequest{Schema: r.schema, From: from, Version: version, JSON: raw.JSON})
	diags.Append(got.Diagnostics...)
	if got.Diagnostics.HasErrors() {
		return nil, tree.NullValue
	}
	if got.State.IsNull() {
		c.internalError(diags, nil, "the resource made nothing of the stored state")
		return nil, tree.NullValue
	}
	return c.encodeState(r.codec(), got.State, false, diags), got.State
}

// MoveResourceState takes over the state of an object of another address. A
// type of the same name, from another provider, is upgraded like a state that
// was taken over in place; other types are those that the schema names.
func (s *server) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (resp *tfprotov6.MoveResourceStateResponse, _ error) {
	r := s.resources[req.TargetTypeName]
	if r == nil {
		return s.ProviderServer.MoveResourceState(ctx, req)
	}
	resp = &tfprotov6.MoveResourceStateResponse{}
	var diags Diagnostics
	c := begin(ctx, "MoveResourceState", req.TargetTypeName)
	defer c.end(&resp.Diagnostics, &diags)

	from := ""
	if req.SourceTypeName != req.TargetTypeName {
		from = req.SourceTypeName
	}
	if from != "" && !slices.Contains(r.schema.MovesFrom, from) {
		diags.AddError(nil, fmt.Sprintf("A %s cannot become a %s", req.SourceTypeName, req.TargetTypeName),
			fmt.Sprintf("Only a %s, of this or another provider, can be moved here. Remove the moved block, and import the object instead.",
				strings.Join(append([]string{req.TargetTypeName}, r.schema.MovesFrom...), ", a ")))
		return resp, nil
	}
	var state tree.Value
	resp.TargetState, state = c.upgrade(r, from, req.SourceSchemaVersion, req.SourceState, &diags)
	resp.TargetIdentity = c.identify(r, state)
	return resp, nil
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
