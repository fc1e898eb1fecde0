// Package provider wires everything together: the provider's configuration,
// the connection that all share, the XML-mapped resources on the protocol
// adapter, and the resources of the plugin framework.
package provider

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

// Address is where registries keep the provider.
const Address = "registry.terraform.io/driftsafe/libvirt"

// NewServer returns a server of the whole provider, with a connection of its
// own.
func NewServer(version string) tfprotov6.ProviderServer { return newServer(version, &Data{}) }

func newServer(version string, data *Data) tfprotov6.ProviderServer {
	framework := &frameworkProvider{version: version, data: data}
	resources := data.resources()
	return protocol.NewServer(providerserver.NewProtocol6(framework)(), resources, dataSources(resources))
}

// resources lists the XML-mapped resource types.
func (d *Data) resources() []protocol.Resource {
	volumes := d.pools().of(d)
	domains := domain.New(d.Host).OwnedBy(d.Owner).Retiring(volumes)
	return []protocol.Resource{
		&mapped{typeName: "libvirt_domain", description: "A virtual machine.", kind: domains, data: d, identity: "uuid"},
		&mapped{typeName: "libvirt_network", description: "A virtual network.", kind: network.New(d.Host).Knowing(domains.Departed), data: d, identity: "uuid"},
		&mapped{typeName: "libvirt_pool", description: "A storage pool.", kind: storage.NewPool(d.Host), data: d, identity: "uuid"},
		&mapped{typeName: "libvirt_volume", description: "A volume of a storage pool.", kind: volumes, data: d, identity: "key", movesFrom: []string{"libvirt_cloudinit_disk", "libvirt_ignition", "libvirt_combustion"}},
	}
}

// frameworkProvider serves the provider's configuration and all that is not
// mapped from XML.
type frameworkProvider struct {
	version string
	data    *Data
}

var _ provider.Provider = (*frameworkProvider)(nil)

type configuration struct {
	URI       types.String `tfsdk:"uri"`
	Protect   types.Bool   `tfsdk:"protect"`
	SeedStore types.String `tfsdk:"seed_store"`
	Approve   types.List   `tfsdk:"approve"`
	Owner     types.String `tfsdk:"owner"`
}

func (p *frameworkProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "libvirt", p.version
}

func (p *frameworkProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Keeps machines of libvirt as code, and never surprises a running one.",
		Attributes: map[string]schema.Attribute{
			"uri": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "libvirt's [connection URI](https://libvirt.org/uri.html). Unset: `LIBVIRT_DEFAULT_URI` from the environment, else `qemu:///system`.",
			},
			"protect": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether objects that say nothing themselves are protected from being destroyed and replaced. Unset: `true` for domains, volumes, pools and networks, `false` for seeds. `LIBVIRT_PROTECT` in the environment goes before it.",
			},
			"seed_store": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Directory for seed images. Unset: `$XDG_STATE_HOME/terraform-provider-libvirt/seeds`, else `~/.local/state/…`. It is a cache: what is missing is made again.",
			},
			"owner": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Name of this configuration (a repository, a team). Every domain that it defines is marked with it in the domain's metadata, and a domain that is marked with another name is warned about, and not destroyed, until its block says `adopt = true`. Unset: nothing is marked or checked.",
			},
			"approve": schema.ListAttribute{
				ElementType:         types.StringType,
				Optional:            true,
				MarkdownDescription: "Digests of held drift that may be put back, for all objects. `LIBVIRT_APPROVE` in the environment adds to it, separated by commas.",
			},
		},
	}
}

func (p *frameworkProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var c configuration
	resp.Diagnostics.Append(req.Config.Get(ctx, &c)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if c.SeedStore.IsUnknown() {
		resp.Diagnostics.AddAttributeError(path.Root("seed_store"), "seed_store is not known yet",
			"The paths of seeds depend on it, and they are part of the plan. Write the directory literally, or leave it out.")
		return
	}
	var approved []string
	if !c.Approve.IsUnknown() {
		resp.Diagnostics.Append(c.Approve.ElementsAs(ctx, &approved, false)...)
	}
	for _, digest := range strings.Split(os.Getenv("LIBVIRT_APPROVE"), ",") {
		if digest = strings.TrimSpace(digest); digest != "" {
			approved = append(approved, digest)
		}
	}
	if value, set := os.LookupEnv("LIBVIRT_PROTECT"); set && value != "true" && value != "false" && value != "" {
		resp.Diagnostics.AddError("LIBVIRT_PROTECT is neither true nor false", fmt.Sprintf("It is %q. Unset it, or set it to true or false.", value))
	}
	protect := c.Protect.ValueBoolPointer()
	if c.Protect.IsUnknown() { // what is not known yet takes no protection away
		protected := true
		protect = &protected
	}
	p.data.configure(uri(c.URI), protect, c.SeedStore.ValueString(), approved, c.Owner.ValueString())
	resp.ResourceData, resp.DataSourceData = p.data, p.data
}

// uri resolves which daemon is meant. One that is not known yet is "", and
// never stands for another daemon.
func uri(configured types.String) string {
	if configured.IsUnknown() {
		return ""
	}
	for _, candidate := range []string{configured.ValueString(), os.Getenv("LIBVIRT_DEFAULT_URI")} {
		if candidate != "" {
			return candidate
		}
	}
	return "qemu:///system"
}

func (p *frameworkProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newCloudinitDisk, newIgnition, newCombustion}
}

func (p *frameworkProvider) DataSources(context.Context) []func() datasource.DataSource {
	return hostDataSources()
}
