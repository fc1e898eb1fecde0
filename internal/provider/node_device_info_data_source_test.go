package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestNodeDeviceIn(t *testing.T) {
	text, number := types.StringValue, types.Int64Value
	for _, c := range []struct {
		what, document string
		want           nodeDeviceInfo
	}{
		{
			"PCI", `<device><name>pci_0000_00_1f_2</name><path>/sys/devices/pci0000:00/0000:00:1f.2</path><parent>computer</parent>
			<capability type='pci'><class>0x010601</class><domain>0</domain><bus>0</bus><slot>31</slot><function>2</function>
			<product id='0x2922'>ICH9</product><vendor id='0x8086'>Intel</vendor><iommuGroup number='7'/></capability></device>`,
			nodeDeviceInfo{
				Path: text("/sys/devices/pci0000:00/0000:00:1f.2"), Parent: text("computer"),
				Capability: nodeDeviceCapability{
					Type: text("pci"), Class: text("0x010601"), Domain: number(0), Bus: number(0), Slot: number(31), Function: number(2),
					ProductID: text("0x2922"), ProductName: text("ICH9"), VendorID: text("0x8086"), VendorName: text("Intel"), IOMMUGroup: number(7),
				},
			},
		},
		{
			"network", `<device><parent>pci_0000_00_19_0</parent><capability type='net'><interface>eth0</interface><address>52:54:00:00:00:01</address><link speed='1000' state='up'/><capability type='80203'/></capability></device>`,
			nodeDeviceInfo{Parent: text("pci_0000_00_19_0"), Capability: nodeDeviceCapability{
				Type: text("net"), Interface: text("eth0"), Address: text("52:54:00:00:00:01"), LinkSpeed: text("1000"), LinkState: text("up"),
			}},
		},
		{
			"disk, whose bus is no number", `<device><capability type='storage'><block>/dev/sda</block><bus>ata</bus><drive_type>disk</drive_type><model>M</model><vendor>ATA</vendor><serial>S1</serial>
			<size>1000</size><logical_block_size>512</logical_block_size><num_blocks>2</num_blocks></capability></device>`,
			nodeDeviceInfo{Capability: nodeDeviceCapability{
				Type: text("storage"), Block: text("/dev/sda"), DriveType: text("disk"), Model: text("M"), VendorName: text("ATA"), Serial: text("S1"),
				Size: number(1000), LogicalBlockSize: number(512), NumBlocks: number(2),
			}},
		},
		{
			"drive with a medium", `<device><capability type='storage'><block>/dev/sr0</block><drive_type>cdrom</drive_type>
			<capability type='removable'><media_available>1</media_available><media_size>700</media_size><logical_block_size>2048</logical_block_size><num_blocks>3</num_blocks></capability></capability></device>`,
			nodeDeviceInfo{Capability: nodeDeviceCapability{
				Type: text("storage"), Block: text("/dev/sr0"), DriveType: text("cdrom"), Size: number(700), LogicalBlockSize: number(2048), NumBlocks: number(3),
			}},
		},
		{
			"SCSI", `<device><capability type='scsi'><host>2</host><bus>0</bus><target>1</target><lun>4</lun><type>disk</type></capability></device>`,
			nodeDeviceInfo{Capability: nodeDeviceCapability{Type: text("scsi"), Host: number(2), Bus: number(0), Target: number(1), LUN: number(4), SCSIType: text("disk")}},
		},
		{
			"USB", `<device><capability type='usb_device'><bus>1</bus><device>3</device><product id='0x0001'/><vendor id='0x1d6b'>Linux Foundation</vendor></capability></device>`,
			nodeDeviceInfo{Capability: nodeDeviceCapability{Type: text("usb_device"), Bus: number(1), DeviceNumber: number(3), ProductID: text("0x0001"), VendorID: text("0x1d6b"), VendorName: text("Linux Foundation")}},
		},
	} {
		got, err := nodeDeviceIn(c.document)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\ngot  %v\nwant %v", c.what, err, got, c.want)
		}
	}
	if _, err := nodeDeviceIn("<device>"); err == nil {
		t.Error("half a document is read")
	}
}
