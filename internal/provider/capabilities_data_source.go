package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// capabilitiesSource is what the host is and which guests it can run.
type capabilitiesSource struct{ hostSource }

type hostCapabilities struct {
	ID                  types.String `tfsdk:"id"`
	HostName            string       `tfsdk:"host_name"`
	LibvirtVersion      string       `tfsdk:"libvirt_version"`
	HypervisorType      string       `tfsdk:"hypervisor_type"`
	HypervisorVersion   types.String `tfsdk:"hypervisor_version"`
	Arch                types.String `tfsdk:"arch"`
	CPUModel            types.String `tfsdk:"cpu_model"`
	CPUVendor           types.String `tfsdk:"cpu_vendor"`
	CPUFeatures         []string     `tfsdk:"cpu_features"`
	PageSizes           []int64      `tfsdk:"page_sizes"`
	IOMMU               bool         `tfsdk:"iommu"`
	SecurityModels      []string     `tfsdk:"security_models"`
	MigrationTransports []string     `tfsdk:"migration_transports"`
	NUMACells           []numaCell   `tfsdk:"numa_cells"`
	Guests              []guestKind  `tfsdk:"guests"`
}

type numaCell struct {
	ID     int64   `tfsdk:"id"`
	Memory int64   `tfsdk:"memory"`
	CPUs   []int64 `tfsdk:"cpus"`
}

type guestKind struct {
	OSType    string   `tfsdk:"os_type"`
	Arch      string   `tfsdk:"arch"`
	WordSize  int64    `tfsdk:"word_size"`
	Emulator  string   `tfsdk:"emulator"`
	Machines  []string `tfsdk:"machines"`
	VirtTypes []string `tfsdk:"virt_types"`
}

func (s *capabilitiesSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_capabilities"
}

func (s *capabilitiesSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	numbers := func(text string) schema.ListAttribute {
		return schema.ListAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: text}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What the host is and which kinds of guests it can run, as `virsh capabilities` tells it, for preconditions and for choosing values. What a guest of one kind can have is in `libvirt_domain_capabilities`.",
		Attributes: map[string]schema.Attribute{
			"id":                   computedText("UUID of the host."),
			"host_name":            computedText("The host's own name."),
			"libvirt_version":      computedText("Version of libvirt on the host, as `9.0.0`."),
			"hypervisor_type":      computedText("libvirt's driver: `QEMU`, …"),
			"hypervisor_version":   computedText("Version of the hypervisor, null if libvirt does not tell."),
			"arch":                 computedText("Architecture of the host."),
			"cpu_model":            computedText("CPU model of the host as libvirt recognises it, null if it does not."),
			"cpu_vendor":           computedText("Vendor of the CPU."),
			"cpu_features":         computedTexts("Features of the CPU beside those of the model, sorted."),
			"page_sizes":           numbers("Sizes of memory pages in KiB. More than the first of them: huge pages are possible."),
			"iommu":                computedFlag("Whether devices of the host can be given to guests."),
			"security_models":      computedTexts("Security models in use: `apparmor`, `selinux`, `dac`."),
			"migration_transports": computedTexts("Ways of live migration."),
			"numa_cells": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The NUMA nodes.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": computedNumber("Number of the node."), "memory": computedNumber("Memory in KiB."), "cpus": numbers("Numbers of its processors."),
				}},
			},
			"guests": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The kinds of guests.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"os_type":    computedText("`hvm`, …: `os.type` of a domain."),
					"arch":       computedText("Architecture: `os.type_arch`."),
					"word_size":  computedNumber("Bits of it."),
					"emulator":   computedText("The program that runs such guests: `devices.emulator`."),
					"machines":   computedTexts("Machine types and their aliases, sorted: `os.type_machine`."),
					"virt_types": computedTexts("`qemu`, and `kvm` where it can be used: `type` of a domain."),
				}},
			},
		},
	}
}

func (s *capabilitiesSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	const what = "the capabilities of the host"
	host := s.host(&resp.Diagnostics, what)
	if host == nil {
		return
	}
	versions, err := host.Versions(ctx)
	var c virt.HostCapabilities
	if err == nil {
		c, err = host.HostCapabilities(ctx)
	}
	if err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	out := hostCapabilities{
		ID: textOrNull(c.UUID), HostName: versions.HostName, LibvirtVersion: versions.Daemon.String(), HypervisorType: versions.Type,
		Arch: textOrNull(c.Arch), CPUModel: textOrNull(c.CPUModel), CPUVendor: textOrNull(c.CPUVendor), CPUFeatures: some(c.CPUFeatures),
		PageSizes: []int64{}, IOMMU: c.IOMMU, SecurityModels: some(c.SecurityModels), MigrationTransports: some(c.MigrationTransports),
		NUMACells: []numaCell{}, Guests: []guestKind{},
	}
	if versions.Hypervisor > 0 {
		out.HypervisorVersion = types.StringValue(versions.Hypervisor.String())
	}
	for _, size := range c.PageSizes {
		out.PageSizes = append(out.PageSizes, int64(size))
	}
	for _, cell := range c.Cells {
		out.NUMACells = append(out.NUMACells, numaCell{cell.ID, int64(cell.Memory), some(cell.CPUs)})
	}
	for _, g := range c.Guests {
		out.Guests = append(out.Guests, guestKind{g.OSType, g.Arch, g.WordSize, g.Emulator, some(g.Machines), some(g.VirtTypes)})
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, out)...)
}
