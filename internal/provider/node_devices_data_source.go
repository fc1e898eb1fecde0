package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// nodeDevicesSource lists the devices of the host.
type nodeDevicesSource struct{ hostSource }

type nodeDevices struct {
	ID         types.String `tfsdk:"id"`
	Capability types.String `tfsdk:"capability"`
	Devices    []string     `tfsdk:"devices"`
}

var _ datasource.DataSourceWithValidateConfig = (*nodeDevicesSource)(nil)

func (s *nodeDevicesSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_node_devices"
}

func (s *nodeDevicesSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the devices of the host, as `virsh nodedev-list` does. `libvirt_node_device_info` tells more of one.",
		Attributes: map[string]schema.Attribute{
			"id":         computedText("The capability, or `all`."),
			"capability": schema.StringAttribute{Optional: true, MarkdownDescription: "Only the devices that are this: `" + strings.Join(virt.NodeCapabilities(), "`, `") + "`. Unset: all."},
			"devices":    schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "libvirt's names of the devices, as `pci_0000_00_1f_2`."},
		},
	}
}

func (s *nodeDevicesSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var capability types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("capability"), &capability)...)
	if known := virt.NodeCapabilities(); !capability.IsNull() && !capability.IsUnknown() && !slices.Contains(known, capability.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("capability"), "Unknown capability of node devices",
			fmt.Sprintf("capability is %q; it can be %s. To list all devices, leave it out.", capability.ValueString(), strings.Join(known, ", ")))
	}
}

func (s *nodeDevicesSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config nodeDevices
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("capability"), &config.Capability)...)
	const what = "the devices of the host"
	host := s.host(&resp.Diagnostics, what)
	if host == nil || resp.Diagnostics.HasError() {
		return
	}
	var err error
	if config.Devices, err = host.NodeDevices(ctx, config.Capability.ValueString()); err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	config.ID = types.StringValue("all")
	if !config.Capability.IsNull() {
		config.ID = config.Capability
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, config)...)
}
