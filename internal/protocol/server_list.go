package protocol

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Lister is a Resource whose objects a core can list, to import them (the query
// command). A core that cannot do that never asks. The type needs an identity.
type Lister interface {
	Resource

	// ListType is what a list block can configure: an object.
	ListType() *tree.Type

	// ValidateList checks the configuration of a list block.
	ValidateList(ctx context.Context, config tree.Value) Diagnostics

	// List calls found for each object, until that returns false.
	List(ctx context.Context, req ListRequest, found func(Listed) bool) Diagnostics
}

// ListRequest asks for the objects on the host.
type ListRequest struct {
	Config tree.Value
	Whole  bool // their states too, as an import would read them
}

// Listed is one of them. State holds the identity, and all of the rest if that
// was asked for. An error concerns this one alone.
type Listed struct {
	Name        string // for people
	State       tree.Value
	Diagnostics Diagnostics
}

// listServer adds the mapped types to the lists of the fallback.
type listServer struct {
	*server
	fallback tfprotov6.ListResourceServer
}

// lister returns a mapped type that can be listed, nil if it is none.
func (s *server) lister(typeName string) (*resource, Lister) {
	r := s.resources[typeName]
	if r == nil || r.schema.Identity == "" {
		return nil, nil
	}
	l, is := r.Resource.(Lister)
	if !is {
		return nil, nil
	}
	return r, l
}

// ValidateListResourceConfig checks the configuration of a list block.
func (s *listServer) ValidateListResourceConfig(ctx context.Context, req *tfprotov6.ValidateListResourceConfigRequest) (resp *tfprotov6.ValidateListResourceConfigResponse, _ error) {
	_, l := s.lister(req.TypeName)
	if l == nil {
		return s.fallback.ValidateListResourceConfig(ctx, req)
	}
	resp = &tfprotov6.ValidateListResourceConfigResponse{}
	var diags Diagnostics
	c := begin(ctx, "ValidateListResourceConfig", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	config := c.decode(newCodec(l.ListType()), req.Config, "configuration", &diags)
	if !diags.HasErrors() {
		diags.Append(l.ValidateList(ctx, config)...)
	}
	return resp, nil
}

// ListResource lists the objects of a mapped type. What concerns all of them is
// the diagnostic of a result that is no object.
func (s *listServer) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	r, l := s.lister(req.TypeName)
	if l == nil {
		return s.fallback.ListResource(ctx, req)
	}
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		var problems []*tfprotov6.Diagnostic
		more := begin(ctx, "ListResource", req.TypeName).list(r, l, req, yield, &problems)
		if more && len(problems) > 0 {
			yield(tfprotov6.ListResourceResult{Diagnostics: problems})
		}
	}}, nil
}

// list says whether the core still wants to hear anything.
func (c call) list(r *resource, l Lister, req *tfprotov6.ListResourceRequest, yield func(tfprotov6.ListResourceResult) bool, problems *[]*tfprotov6.Diagnostic) (more bool) {
	var diags Diagnostics
	defer c.end(problems, &diags)
	more = true
	config := c.decode(newCodec(l.ListType()), req.Config, "configuration", &diags)
	if diags.HasErrors() {
		return more
	}
	left := req.Limit // 0: as many as there are
	diags.Append(l.List(c.ctx, ListRequest{Config: config, Whole: req.IncludeResource}, func(one Listed) bool {
		more = yield(c.listed(r, one, req.IncludeResource))
		left--
		return more && left != 0
	})...)
	return more
}

// listed is one object on the wire.
func (c call) listed(r *resource, one Listed, whole bool) tfprotov6.ListResourceResult {
	out := tfprotov6.ListResourceResult{DisplayName: one.Name}
	diags := one.Diagnostics
	if !diags.HasErrors() {
		if out.Identity = c.identify(r, one.State); out.Identity == nil {
			c.internalError(&diags, nil, "an object without an identity is listed")
		}
		if whole {
			out.Resource = c.encodeState(r.codec(), one.State, false, &diags)
		}
	}
	out.Diagnostics = diags.wire()
	return out
}
