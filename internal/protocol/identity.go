package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The resource identity of a mapped type is one attribute of its state, a string
// that never changes while the object exists (Schema.Identity). Cores that know
// identities keep it beside the state and can import by it; the others never
// ask. It is derived from the state that goes out, so it cannot differ from it.

// identitySchema describes the identity of a type for the protocol.
func identitySchema(s Schema) *tfprotov6.ResourceIdentitySchema {
	return &tfprotov6.ResourceIdentitySchema{IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{{
		Name: s.Identity, Type: tftypes.String, RequiredForImport: true, Description: s.Type.Attrs[s.Identity].Description,
	}}}
}

// identityCodec reads and writes identities of a type.
func identityCodec(s Schema) *codec {
	return newCodec(tree.ObjectOf(&tree.Attribute{Name: s.Identity, Type: tree.StringType, Required: true}))
}

// GetResourceIdentitySchemas adds those of the mapped types.
func (s *server) GetResourceIdentitySchemas(ctx context.Context, req *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	resp, err := s.ProviderServer.GetResourceIdentitySchemas(ctx, req)
	if err != nil {
		return resp, err
	}
	out := *resp
	out.IdentitySchemas = make(map[string]*tfprotov6.ResourceIdentitySchema, len(resp.IdentitySchemas)+len(s.resources))
	maps.Copy(out.IdentitySchemas, resp.IdentitySchemas)
	for name, r := range s.resources {
		if r.schema.Identity != "" {
			out.IdentitySchemas[name] = identitySchema(r.schema)
		}
	}
	return &out, nil
}

// identify returns the identity of what a state describes; nil if it has none.
func (c call) identify(r *resource, state tree.Value) *tfprotov6.ResourceIdentityData {
	id := state.Attr(r.schema.Identity)
	if r.schema.Identity == "" || id.Str() == "" {
		return nil
	}
	w, err := identityCodec(r.schema).encode(tree.ObjectValue(map[string]tree.Value{r.schema.Identity: id}))
	if err != nil {
		return nil
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: w}
}

// identified returns the text of an identity that came from the core.
func (c call) identified(r *resource, identity *tfprotov6.ResourceIdentityData, diags *Diagnostics) string {
	if r.schema.Identity == "" {
		diags.AddError(nil, c.typeName+": import needs an id", "This type has no resource identity. Give the import block an id instead of an identity.")
		return ""
	}
	id := c.decode(identityCodec(r.schema), identity.IdentityData, "identity", diags).Attr(r.schema.Identity).Str()
	if id == "" && !diags.HasErrors() {
		diags.AddError(nil, c.typeName+": import needs an identity",
			fmt.Sprintf("The identity has no %[1]s. Write identity = { %[1]s = \"…\" }; or give the import block an id, which can be a name.", r.schema.Identity))
	}
	return id
}

// UpgradeResourceIdentity reads a stored identity. There is one form of it.
func (s *server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (resp *tfprotov6.UpgradeResourceIdentityResponse, _ error) {
	r := s.resources[req.TypeName]
	if r == nil {
		return s.ProviderServer.UpgradeResourceIdentity(ctx, req)
	}
	resp = &tfprotov6.UpgradeResourceIdentityResponse{}
	var diags Diagnostics
	c := begin(ctx, "UpgradeResourceIdentity", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	var stored tree.Value
	if req.RawIdentity != nil {
		_ = json.Unmarshal(req.RawIdentity.JSON, &stored)
	}
	if resp.UpgradedIdentity = c.identify(r, stored); resp.UpgradedIdentity == nil {
		diags.AddError(nil, req.TypeName+": the stored identity cannot be read",
			"It was written by another version of the provider, in a form that this one does not know. Use that version; or `state rm ADDRESS` and import the object again, which touches nothing on the host.")
	}
	return resp, nil
}
