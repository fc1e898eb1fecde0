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

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// domainCapabilitiesSource is what a guest of one kind can have.
type domainCapabilitiesSource struct{ hostSource }

type domainCapabilities struct {
	ID            types.String                   `tfsdk:"id"`
	Emulator      types.String                   `tfsdk:"emulator"`
	Arch          types.String                   `tfsdk:"arch"`
	Machine       types.String                   `tfsdk:"machine"`
	VirtType      types.String                   `tfsdk:"virt_type"`
	Machines      types.List                     `tfsdk:"machines"`
	Resolved      types.String                   `tfsdk:"machine_version"`
	MaxVCPUs      types.Int64                    `tfsdk:"max_vcpus"`
	IOThreads     types.Bool                     `tfsdk:"io_threads"`
	Firmware      []string                       `tfsdk:"firmware"`
	Loaders       []string                       `tfsdk:"loaders"`
	SecureBoot    types.Bool                     `tfsdk:"secure_boot"`
	CPUModes      []string                       `tfsdk:"cpu_modes"`
	CPUModels     []string                       `tfsdk:"cpu_models"`
	Unusable      []string                       `tfsdk:"cpu_models_unusable"`
	HostModel     types.String                   `tfsdk:"cpu_host_model"`
	HostFeatures  []string                       `tfsdk:"cpu_host_features"`
	MemoryBacking []string                       `tfsdk:"memory_backing"`
	Devices       map[string]map[string][]string `tfsdk:"devices"`
	Features      map[string]bool                `tfsdk:"features"`
}

func (s *domainCapabilitiesSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_domain_capabilities"
}

func (s *domainCapabilitiesSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	asked := func(text string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: text + " Unset: the host's standard, which is shown."}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a guest of one kind can have on this host, as `virsh domcapabilities` tells it, for preconditions and for choosing values.",
		Attributes: map[string]schema.Attribute{
			"id":                  computedText("Emulator, virtualisation type and machine version."),
			"emulator":            asked("The program that runs the guest: `devices.emulator`."),
			"arch":                asked("Architecture: `os.type_arch`."),
			"machine":             asked("Machine type or alias: `os.type_machine`."),
			"virt_type":           asked("`kvm`, `qemu`, …: `type` of a domain."),
			"machines":            computedTexts("All machine types of the architecture, with their aliases, sorted."),
			"machine_version":     computedText("The machine type that an alias stands for."),
			"max_vcpus":           computedNumber("The most CPUs of a guest."),
			"io_threads":          computedFlag("Whether there are I/O threads."),
			"firmware":            computedTexts("What `os.firmware` can be: `bios`, `efi`."),
			"loaders":             computedTexts("Firmware files that libvirt knows: `os.loader`."),
			"secure_boot":         computedFlag("Whether `os.loader_secure` can be true."),
			"cpu_modes":           computedTexts("What `cpu.mode` can be."),
			"cpu_models":          computedTexts("What `cpu.model` can be: the named models that run on this host, sorted."),
			"cpu_models_unusable": computedTexts("Named models that this host cannot run, sorted."),
			"cpu_host_model":      computedText("The model that `cpu.mode = \"host-model\"` stands for."),
			"cpu_host_features":   computedTexts("Features that host-model adds to it, sorted."),
			"memory_backing":      computedTexts("What `memory_backing.memory_source.type` can be."),
			"devices": schema.MapAttribute{
				Computed: true, ElementType: types.MapType{ElemType: types.ListType{ElemType: types.StringType}},
				MarkdownDescription: "Values of attributes, by kind of device and attribute: `devices[\"disk\"][\"bus\"]`, `devices[\"video\"][\"model_type\"]`, `devices[\"tpm\"][\"backend_model\"]`. A kind that the host does not have is missing: `contains(keys(…devices), \"tpm\")`.",
			},
			"features": schema.MapAttribute{
				Computed: true, ElementType: types.BoolType,
				MarkdownDescription: "Whether the host has a feature: `features[\"genid\"]`, `backup`, `sev`, …",
			},
		},
	}
}

func (s *domainCapabilitiesSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var asked [4]types.String
	for i, name := range []string{"emulator", "arch", "machine", "virt_type"} {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(name), &asked[i])...)
	}
	const what = "the domain capabilities"
	host := s.host(&resp.Diagnostics, what)
	if host == nil || resp.Diagnostics.HasError() {
		return
	}
	kindOf := virt.Offer{Emulator: asked[0].ValueString(), Arch: asked[1].ValueString(), Machine: asked[2].ValueString(), VirtType: asked[3].ValueString()}
	offer, err := host.DomainOffer(ctx, kindOf)
	var machines []string
	if err == nil {
		machines, err = host.View().Machines(ctx, virt.Offer{Arch: offer.Arch})
	}
	switch {
	case virt.HasCode(err, virt.ErrInvalidArg), virt.HasCode(err, virt.ErrConfigUnsupported):
		at, detail := whatIsNotOffered(ctx, host, kindOf)
		resp.Diagnostics.AddAttributeError(path.Root(at), "The host has no such guests", sentence(err.Error())+" "+detail+"\n\nAsked: "+host.Display())
		return
	case err != nil:
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	out := domainCapabilities{
		ID: types.StringValue(strings.Join([]string{offer.Emulator, offer.VirtType, offer.Machine}, " ")), Resolved: textOrNull(offer.Machine),
		MaxVCPUs: types.Int64Value(offer.MaxVCPUs), IOThreads: types.BoolValue(offer.IOThreads), Firmware: some(offer.Firmware), Loaders: some(offer.Loaders),
		SecureBoot: types.BoolValue(offer.SecureBoot), CPUModes: some(offer.CPUModes), CPUModels: some(offer.CPUModels), Unusable: some(offer.UnusableCPUModels),
		HostModel: textOrNull(offer.HostModel), HostFeatures: some(offer.HostFeatures), MemoryBacking: some(offer.MemoryBacking),
		Devices: offer.Devices, Features: offer.Features,
	}
	list, diags := types.ListValueFrom(ctx, types.StringType, some(machines))
	resp.Diagnostics.Append(diags...)
	out.Machines = list
	for i, field := range []*types.String{&out.Emulator, &out.Arch, &out.Machine, &out.VirtType} {
		*field = textOrNull([]string{offer.Emulator, offer.Arch, offer.Machine, offer.VirtType}[i])
		if !asked[i].IsNull() {
			*field = asked[i]
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, out)...)
}

// whatIsNotOffered finds the attribute that the host has no guests for, and what
// it could be instead.
func whatIsNotOffered(ctx context.Context, host *virt.Host, asked virt.Offer) (attribute, detail string) {
	c, err := host.HostCapabilities(ctx)
	if err != nil {
		return "machine", "Leave attributes out to get the host's standard."
	}
	var emulators, arches, machines, virtTypes []string
	for _, g := range c.Guests {
		emulators, arches = append(emulators, g.Emulator), append(arches, g.Arch)
		if (asked.Arch == "" || g.Arch == asked.Arch) && (asked.Emulator == "" || g.Emulator == asked.Emulator) {
			machines, virtTypes = append(machines, g.Machines...), append(virtTypes, g.VirtTypes...)
		}
	}
	for _, one := range []struct {
		name, written string
		there         []string
	}{{"arch", asked.Arch, arches}, {"emulator", asked.Emulator, emulators}, {"virt_type", asked.VirtType, virtTypes}, {"machine", asked.Machine, machines}} {
		if one.written != "" && !slices.Contains(one.there, one.written) {
			return one.name, fmt.Sprintf("%sThe way out: write one of these into %s, or leave it out.", kind.Choices("The host has", one.there, one.written), one.name)
		}
	}
	return "machine", "These attributes do not go together. Leave some out to get the host's standard."
}
