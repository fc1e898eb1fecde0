package protocol

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// server serves the mapped types. What it does not override, and every call
// for another type, goes to the embedded fallback.
type server struct {
	tfprotov6.ProviderServer
	resources   map[string]*resource
	dataSources map[string]*dataSource
	conflicts   Diagnostics // two mapped types of one name
	schemas     func() (*wireSchemas, error)
}

// resource and dataSource are a type with what is compiled from its schema
// when it is first used.
type resource struct {
	Resource
	schema Schema
	codec  func() *codec
}

type dataSource struct {
	DataSource
	schema Schema
	codec  func() *codec
}

type wireSchemas struct {
	resources, dataSources, lists map[string]*tfprotov6.Schema
}

// NewServer returns a provider server that serves the given types itself and
// hands everything else on to fallback, which is the server of the provider's
// configuration too. Mistakes in a schema are reported when the core asks for
// the schemas.
func NewServer(fallback tfprotov6.ProviderServer, resources []Resource, dataSources []DataSource) tfprotov6.ProviderServer {
	s := &server{
		ProviderServer: fallback,
		resources:      make(map[string]*resource, len(resources)),
		dataSources:    make(map[string]*dataSource, len(dataSources)),
	}
	for _, r := range resources {
		schema := r.Schema()
		if s.resources[schema.TypeName] != nil {
			s.conflicts.Append(duplicate("resource", schema.TypeName))
		}
		s.resources[schema.TypeName] = &resource{r, schema, lazyCodec(schema)}
	}
	for _, d := range dataSources {
		schema := d.Schema()
		if s.dataSources[schema.TypeName] != nil {
			s.conflicts.Append(duplicate("data source", schema.TypeName))
		}
		s.dataSources[schema.TypeName] = &dataSource{d, schema, lazyCodec(schema)}
	}
	s.schemas = sync.OnceValues(s.convertSchemas)
	return withOptionalServers(s, fallback)
}

// withOptionalServers keeps the parts of the protocol that not every server
// has: plugin-go looks for them by type assertion, which an embedded
// ProviderServer would hide. The framework's server has them all; one that
// lacks any is served without all of them.
func withOptionalServers(s *server, fallback tfprotov6.ProviderServer) tfprotov6.ProviderServer {
	lists, isList := fallback.(tfprotov6.ListResourceServer)
	actions, isAction := fallback.(tfprotov6.ActionServer)
	stores, isStore := fallback.(tfprotov6.StateStoreServer)
	if !isList || !isAction || !isStore {
		return s
	}
	return struct {
		*listServer
		tfprotov6.ActionServer
		tfprotov6.StateStoreServer
	}{&listServer{s, lists}, actions, stores}
}

func lazyCodec(schema Schema) func() *codec {
	return sync.OnceValue(func() *codec { return newCodec(schema.Type) })
}

func duplicate(kind, typeName string) Diagnostic {
	return Diagnostic{Summary: fmt.Sprintf("The provider has two %ss called %s", kind, typeName), Detail: reportBug}
}

// reportBug ends the message of whatever only a mistake in this provider can
// cause.
const reportBug = "This is a bug in the provider, please report it."

func (s *server) convertSchemas() (*wireSchemas, error) {
	w := &wireSchemas{map[string]*tfprotov6.Schema{}, map[string]*tfprotov6.Schema{}, map[string]*tfprotov6.Schema{}}
	var err error
	for name, r := range s.resources {
		if w.resources[name], err = wireSchema(r.schema); err != nil {
			return nil, err
		}
		if _, l := s.lister(name); l != nil {
			if w.lists[name], err = wireSchema(Schema{TypeName: name, Type: l.ListType()}); err != nil {
				return nil, err
			}
		}
	}
	for name, d := range s.dataSources {
		if w.dataSources[name], err = wireSchema(d.schema); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// call is one request for a mapped type: it logs how long it took, and turns a
// panic into an error.
type call struct {
	ctx      context.Context
	rpc      string
	typeName string
	start    time.Time
}

func begin(ctx context.Context, rpc, typeName string) call {
	return call{ctx, rpc, typeName, time.Now()}
}

// end must be deferred as it is, so that recover works, in a function whose
// response is a named result: that is what a panic leaves behind.
func (c call) end(response *[]*tfprotov6.Diagnostic, diags *Diagnostics) {
	if cause := recover(); cause != nil {
		tflog.Error(c.ctx, "panic", map[string]any{
			"type": c.typeName, "rpc": c.rpc, "cause": fmt.Sprint(cause), "stack": string(debug.Stack()),
		})
		diags.AddError(nil, c.typeName+": the provider failed unexpectedly",
			fmt.Sprintf("%s: %v. The log has the details (TF_LOG=ERROR). %s", c.rpc, cause, reportBug))
	}
	*response = append(*response, diags.wire()...)
	tflog.Debug(c.ctx, "served", map[string]any{
		"type": c.typeName, "rpc": c.rpc, "ms": time.Since(c.start).Milliseconds(),
	})
}

// decode reads one value of the request; what names it in the message.
func (c call) decode(codec *codec, d *tfprotov6.DynamicValue, what string, diags *Diagnostics) tree.Value {
	v, err := codec.decode(d)
	if err != nil {
		diags.AddError(nil, fmt.Sprintf("%s: the %s cannot be read", c.typeName, what), fmt.Sprintf("%s: %v.", c.rpc, err))
	}
	return v
}

// internalError adds the message for what only a mistake in the resource can
// cause.
func (c call) internalError(diags *Diagnostics, path tree.Path, problem string) {
	diags.AddError(path, c.typeName+": internal error of the provider", fmt.Sprintf("%s: %s. %s", c.rpc, problem, reportBug))
}

// GetMetadata lists all types.
func (s *server) GetMetadata(ctx context.Context, req *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	resp, err := s.ProviderServer.GetMetadata(ctx, req)
	if err != nil {
		return resp, err
	}
	diags := slices.Clone(s.conflicts)
	for _, r := range resp.Resources {
		if s.resources[r.TypeName] != nil {
			diags.Append(duplicate("resource", r.TypeName))
		}
	}
	for _, d := range resp.DataSources {
		if s.dataSources[d.TypeName] != nil {
			diags.Append(duplicate("data source", d.TypeName))
		}
	}
	out := *resp
	out.ServerCapabilities = capabilities(resp.ServerCapabilities)
	out.Resources, out.DataSources = slices.Clone(resp.Resources), slices.Clone(resp.DataSources)
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		out.Resources = append(out.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for _, name := range slices.Sorted(maps.Keys(s.dataSources)) {
		out.DataSources = append(out.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	out.ListResources = slices.Clone(resp.ListResources)
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		if _, l := s.lister(name); l != nil {
			out.ListResources = append(out.ListResources, tfprotov6.ListResourceMetadata{TypeName: name})
		}
	}
	out.Diagnostics = slices.Concat(resp.Diagnostics, diags.wire())
	return &out, nil
}

// GetProviderSchema returns the schemas of all types.
func (s *server) GetProviderSchema(ctx context.Context, req *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	resp, err := s.ProviderServer.GetProviderSchema(ctx, req)
	if err != nil {
		return resp, err
	}
	out := *resp
	out.ServerCapabilities = capabilities(resp.ServerCapabilities)
	diags := slices.Clone(s.conflicts)
	ours, err := s.schemas()
	if err != nil {
		diags.AddError(nil, "The provider has a schema that cannot be served", err.Error()+". "+reportBug)
		ours = &wireSchemas{}
	}
	out.ResourceSchemas = merge("resource", resp.ResourceSchemas, ours.resources, &diags)
	out.ListResourceSchemas = merge("list resource", resp.ListResourceSchemas, ours.lists, &diags)
	out.DataSourceSchemas = merge("data source", resp.DataSourceSchemas, ours.dataSources, &diags)
	out.Diagnostics = slices.Concat(resp.Diagnostics, diags.wire())
	return &out, nil
}

func merge(kind string, theirs, ours map[string]*tfprotov6.Schema, diags *Diagnostics) map[string]*tfprotov6.Schema {
	all := make(map[string]*tfprotov6.Schema, len(theirs)+len(ours))
	maps.Copy(all, theirs)
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if all[name] != nil {
			diags.Append(duplicate(kind, name))
		}
		all[name] = ours[name]
	}
	return all
}

// capabilities adds what the mapped types need: to be asked about a destroy
// when it is planned, and about a state that is moved here from elsewhere.
func capabilities(theirs *tfprotov6.ServerCapabilities) *tfprotov6.ServerCapabilities {
	var c tfprotov6.ServerCapabilities
	if theirs != nil {
		c = *theirs
	}
	c.PlanDestroy = true
	c.MoveResourceState = true
	return &c
}
