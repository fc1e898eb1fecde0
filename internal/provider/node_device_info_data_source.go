package provider

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// nodeDeviceInfoSource tells of one device of the host.
type nodeDeviceInfoSource struct{ hostSource }

type nodeDeviceInfo struct {
	ID         types.String         `tfsdk:"id"`
	Name       types.String         `tfsdk:"name"`
	Path       types.String         `tfsdk:"path"`
	Parent     types.String         `tfsdk:"parent"`
	Capability nodeDeviceCapability `tfsdk:"capability"`
}

// nodeDeviceCapability is what a device is. Which of the values there are depends
// on the type.
type nodeDeviceCapability struct {
	Type             types.String `tfsdk:"type"`
	Domain           types.Int64  `tfsdk:"domain"`
	Bus              types.Int64  `tfsdk:"bus"`
	Slot             types.Int64  `tfsdk:"slot"`
	Function         types.Int64  `tfsdk:"function"`
	Class            types.String `tfsdk:"class"`
	ProductID        types.String `tfsdk:"product_id"`
	ProductName      types.String `tfsdk:"product_name"`
	VendorID         types.String `tfsdk:"vendor_id"`
	VendorName       types.String `tfsdk:"vendor_name"`
	IOMMUGroup       types.Int64  `tfsdk:"iommu_group"`
	DeviceNumber     types.Int64  `tfsdk:"device_number"`
	Interface        types.String `tfsdk:"interface"`
	Address          types.String `tfsdk:"address"`
	LinkSpeed        types.String `tfsdk:"link_speed"`
	LinkState        types.String `tfsdk:"link_state"`
	Block            types.String `tfsdk:"block"`
	DriveType        types.String `tfsdk:"drive_type"`
	Model            types.String `tfsdk:"model"`
	Serial           types.String `tfsdk:"serial"`
	Size             types.Int64  `tfsdk:"size"`
	LogicalBlockSize types.Int64  `tfsdk:"logical_block_size"`
	NumBlocks        types.Int64  `tfsdk:"num_blocks"`
	Host             types.Int64  `tfsdk:"host"`
	Target           types.Int64  `tfsdk:"target"`
	LUN              types.Int64  `tfsdk:"lun"`
	SCSIType         types.String `tfsdk:"scsi_type"`
}

func (s *nodeDeviceInfoSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_node_device_info"
}

func (s *nodeDeviceInfoSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Tells what a device of the host is, as `virsh nodedev-dumpxml` does.",
		Attributes: map[string]schema.Attribute{
			"id":     computedText("The name."),
			"name":   schema.StringAttribute{Required: true, MarkdownDescription: "libvirt's name of the device, as `libvirt_node_devices` lists it."},
			"path":   computedText("Its directory below `/sys/devices`."),
			"parent": computedText("Name of the device that it is attached to."),
			"capability": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "What the device is. What does not apply to its type is null.",
				Attributes: map[string]schema.Attribute{
					"type":               computedText("`pci`, `usb_device`, `net`, `storage`, `scsi`, …"),
					"domain":             computedNumber("Of a PCI device: domain of its address."),
					"bus":                computedNumber("Of a PCI, USB or SCSI device: bus of its address."),
					"slot":               computedNumber("Of a PCI device: slot of its address."),
					"function":           computedNumber("Of a PCI device: function of its address."),
					"class":              computedText("Of a PCI device: its class, as `0x010601`."),
					"product_id":         computedText("Product number, as `0x2922`."),
					"product_name":       computedText("Name of the product, if the host knows it."),
					"vendor_id":          computedText("Vendor number, as `0x8086`."),
					"vendor_name":        computedText("Name of the vendor, if the host knows it."),
					"iommu_group":        computedNumber("Number of the IOMMU group: all devices of one go to a guest together."),
					"device_number":      computedNumber("Of a USB device: its number on the bus. It changes when the device is plugged in anew."),
					"interface":          computedText("Of a network interface: its name on the host."),
					"address":            computedText("Of a network interface: its MAC address."),
					"link_speed":         computedText("Of a network interface: speed of the link in Mbit/s."),
					"link_state":         computedText("Of a network interface: `up`, `down`, …"),
					"block":              computedText("Of storage: its file below `/dev`."),
					"drive_type":         computedText("Of storage: `disk`, `cdrom`, …"),
					"model":              computedText("Of storage: the model."),
					"serial":             computedText("Of storage: the serial number."),
					"size":               computedNumber("Of storage: bytes."),
					"logical_block_size": computedNumber("Of storage: bytes in a logical block."),
					"num_blocks":         computedNumber("Of storage: logical blocks."),
					"host":               computedNumber("Of a SCSI host or device: number of the host adapter."),
					"target":             computedNumber("Of a SCSI device: target of its address."),
					"lun":                computedNumber("Of a SCSI device: unit of its address."),
					"scsi_type":          computedText("Of a SCSI device: `disk`, `cdrom`, …"),
				},
			},
		},
	}
}

func (s *nodeDeviceInfoSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var name types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"), &name)...)
	what := fmt.Sprintf("node device %q", name.ValueString())
	host := s.host(&resp.Diagnostics, what)
	if host == nil || resp.Diagnostics.HasError() {
		return
	}
	document, err := host.NodeDeviceXML(ctx, name.ValueString())
	if virt.HasCode(err, virt.ErrNoNodeDevice) {
		var there []string
		if there, err = host.NodeDevices(ctx, ""); err == nil {
			resp.Diagnostics.AddAttributeError(path.Root("name"), fmt.Sprintf("There is no node device %q", name.ValueString()),
				fmt.Sprintf("The host %s has none of that name. %sThe way out: write one that is there into name; data.libvirt_node_devices lists them all.",
					host.Display(), kind.Choices("There are", there, name.ValueString())))
			return
		}
	}
	var info nodeDeviceInfo
	if err == nil {
		info, err = nodeDeviceIn(document)
	}
	if err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	info.Name, info.ID = name, name
	resp.Diagnostics.Append(resp.State.Set(ctx, info)...)
}

// namedElement is an element of a number and a name.
type namedElement struct {
	ID   string `xml:"id,attr"`
	Name string `xml:",chardata"`
}

// nodeDeviceIn reads what a device is from its document. What libvirt calls by
// one name in devices of several types is told apart by the type.
func nodeDeviceIn(document string) (nodeDeviceInfo, error) {
	type values struct {
		Size             string `xml:"size"`
		MediaSize        string `xml:"media_size"`
		LogicalBlockSize string `xml:"logical_block_size"`
		NumBlocks        string `xml:"num_blocks"`
	}
	var doc struct {
		Path       string `xml:"path"`
		Parent     string `xml:"parent"`
		Capability struct {
			Type      string       `xml:"type,attr"`
			Domain    string       `xml:"domain"`
			Bus       string       `xml:"bus"`
			Slot      string       `xml:"slot"`
			Function  string       `xml:"function"`
			Class     string       `xml:"class"`
			Product   namedElement `xml:"product"`
			Vendor    namedElement `xml:"vendor"`
			Device    string       `xml:"device"`
			Interface string       `xml:"interface"`
			Address   string       `xml:"address"`
			Link      struct {
				Speed string `xml:"speed,attr"`
				State string `xml:"state,attr"`
			} `xml:"link"`
			IOMMU struct {
				Number string `xml:"number,attr"`
			} `xml:"iommuGroup"`
			Block     string `xml:"block"`
			DriveType string `xml:"drive_type"`
			Model     string `xml:"model"`
			Serial    string `xml:"serial"`
			Host      string `xml:"host"`
			Target    string `xml:"target"`
			LUN       string `xml:"lun"`
			SCSIType  string `xml:"type"`
			values
			Inner []values `xml:"capability"`
		} `xml:"capability"`
	}
	if err := xml.Unmarshal([]byte(document), &doc); err != nil {
		return nodeDeviceInfo{}, fmt.Errorf("read the XML of a node device: %w", err)
	}
	c := doc.Capability
	sizes := c.values
	for _, inner := range c.Inner { // a medium that can be taken out
		if sizes == (values{}) {
			sizes = inner
		}
	}
	if sizes.Size == "" {
		sizes.Size = sizes.MediaSize
	}
	return nodeDeviceInfo{
		Path: trimmed(doc.Path), Parent: trimmed(doc.Parent),
		Capability: nodeDeviceCapability{
			Type: trimmed(c.Type), Domain: numberIn(c.Domain), Bus: numberIn(c.Bus), Slot: numberIn(c.Slot), Function: numberIn(c.Function), Class: trimmed(c.Class),
			ProductID: trimmed(c.Product.ID), ProductName: trimmed(c.Product.Name), VendorID: trimmed(c.Vendor.ID), VendorName: trimmed(c.Vendor.Name),
			IOMMUGroup: numberIn(c.IOMMU.Number), DeviceNumber: numberIn(c.Device), Interface: trimmed(c.Interface), Address: trimmed(c.Address),
			LinkSpeed: trimmed(c.Link.Speed), LinkState: trimmed(c.Link.State), Block: trimmed(c.Block), DriveType: trimmed(c.DriveType),
			Model: trimmed(c.Model), Serial: trimmed(c.Serial), Size: numberIn(sizes.Size), LogicalBlockSize: numberIn(sizes.LogicalBlockSize), NumBlocks: numberIn(sizes.NumBlocks),
			Host: numberIn(c.Host), Target: numberIn(c.Target), LUN: numberIn(c.LUN), SCSIType: trimmed(c.SCSIType),
		},
	}, nil
}

func trimmed(s string) types.String { return textOrNull(strings.TrimSpace(s)) }

// numberIn is null for what is no number: the bus of a disk is "ata".
func numberIn(s string) types.Int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 64)
	if err != nil {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}
