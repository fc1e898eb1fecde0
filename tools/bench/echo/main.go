// Command echo is the floor that the provider is measured against: the schema
// of libvirt_domain, served by the same adapter, on a resource that asks no
// host, compares nothing and returns what it is given. What a plan costs with
// it is the cost of the schema and of the core.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func main() {
	serve := func() tfprotov6.ProviderServer {
		echoed := &echo{typ: domain.New(nil).Type()}
		return protocol.NewServer(providerserver.NewProtocol6(bare{})(), []protocol.Resource{echoed}, nil)
	}
	if err := tf6server.Serve("registry.terraform.io/driftsafe/libvirt", serve); err != nil {
		log.Fatal(err)
	}
}

// echo is the resource.
type echo struct {
	typ *tree.Type
	protocol.LenientUpgrade
}

func (e *echo) Schema() protocol.Schema {
	return protocol.Schema{TypeName: "libvirt_domain", Type: e.typ}
}

func (e *echo) Validate(context.Context, tree.Value) protocol.Diagnostics { return nil }

func (e *echo) Read(_ context.Context, req protocol.ReadRequest) protocol.ReadResponse {
	return protocol.ReadResponse{State: req.State}
}

func (e *echo) Plan(_ context.Context, req protocol.PlanRequest) protocol.PlanResponse {
	return protocol.PlanResponse{Planned: req.Proposed}
}

func (e *echo) Apply(_ context.Context, req protocol.ApplyRequest) protocol.ApplyResponse {
	return protocol.ApplyResponse{State: req.Planned.Known()}
}

func (e *echo) Import(context.Context, protocol.ImportRequest) (resp protocol.ImportResponse) {
	resp.Diagnostics.AddError(nil, "The echo provider imports nothing", "It exists to be measured.")
	return resp
}

// bare is a provider with the configuration of the real one and nothing else.
type bare struct{}

func (bare) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "libvirt"
}

func (bare) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{"uri": schema.StringAttribute{Optional: true}}}
}

func (bare) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (bare) Resources(context.Context) []func() resource.Resource                              { return nil }
func (bare) DataSources(context.Context) []func() datasource.DataSource                        { return nil }
