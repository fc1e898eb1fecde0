package domain

import (
	"encoding/xml"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// needs is what a definition names of the host and a start cannot do without.
type needs struct {
	disks           []diskNeed
	files           []fileNeed
	nvram, template string
	interfaces      []interfaceNeed
	devices         []deviceNeed
	offer           virt.Offer
}

type diskNeed struct {
	target       string
	source       string // the attribute of the file
	removable    bool
	file         string // or device or directory
	pool, volume string
	format       string
	below        []layerNeed // of the backing chain, what the definition itself names
	complete     bool        // it names all: libvirt looks for no more
}

type layerNeed struct{ file, format string }

// at is a reference to an attribute of the disk.
func (d diskNeed) at(leaf, value string) reference {
	return reference{list: "devices.disks", leaf: leaf, key: strings.ToLower(d.target), value: value}
}

// fileNeed is a file beside the disks; place and wayOut are for the sentence.
type fileNeed struct {
	ref                       reference
	place, noun, path, wayOut string
}

// fileOf is a file that an attribute outside all lists names.
func fileOf(place, leaf, noun, file string) fileNeed {
	file = strings.TrimSpace(file)
	return fileNeed{reference{leaf: leaf, value: file}, place, noun, file, "put it back, or change " + place}
}

// at is a reference to an attribute of the interface.
func (n interfaceNeed) at(leaf, value string) reference {
	return reference{list: "devices.interfaces", leaf: leaf, key: strings.ToLower(n.mac), value: value}
}

type interfaceNeed struct {
	mac                string
	network, portGroup string
	link, linkNoun     string // a bridge or device of the host
	filter             string
	connection         string   // type of the interface
	untagged           []string // VLANs that only its network could make possible
}

// deviceNeed is a device of the host that is handed to the guest.
type deviceNeed struct {
	attribute  string // the list that names it
	noun, name string
	node       string // libvirt's name of the device, or the beginning of it
	family     string // what names of such devices begin with
	usb        *virt.USBDevice
}

// document is what of a definition's XML names something of the host. It is no
// tree of the schema, as that ends after two levels of backing stores.
type document struct {
	Type string `xml:"type,attr"`
	OS   struct {
		Type struct {
			Arch    string `xml:"arch,attr"`
			Machine string `xml:"machine,attr"`
		} `xml:"type"`
		Loader string `xml:"loader"`
		NVRAM  struct {
			Template string `xml:"template,attr"`
			Path     string `xml:",chardata"`
			Source   struct {
				File string `xml:"file,attr"`
			} `xml:"source"`
		} `xml:"nvram"`
		Kernel string   `xml:"kernel"`
		Initrd string   `xml:"initrd"`
		DTB    string   `xml:"dtb"`
		Shim   string   `xml:"shim"`
		Tables []string `xml:"acpi>table"`
	} `xml:"os"`
	SysInfo []struct {
		Entries []struct {
			File string `xml:"file,attr"` // for fw_cfg
		} `xml:"entry"`
	} `xml:"sysinfo"`
	Devices struct {
		Emulator    string               `xml:"emulator"`
		Disks       []diskDocument       `xml:"disk"`
		Interfaces  []interfaceDocument  `xml:"interface"`
		Hostdevs    []hostdevDocument    `xml:"hostdev"`
		Filesystems []filesystemDocument `xml:"filesystem"`
	} `xml:"devices"`
}

type diskDocument struct {
	Device string `xml:"device,attr"`
	Driver struct {
		Type string `xml:"type,attr"`
	} `xml:"driver"`
	Source sourceDocument `xml:"source"`
	Target struct {
		Dev string `xml:"dev,attr"`
	} `xml:"target"`
	Below *layerDocument `xml:"backingStore"`
}

type sourceDocument struct {
	File          string `xml:"file,attr"`
	Dev           string `xml:"dev,attr"`
	Dir           string `xml:"dir,attr"`
	Pool          string `xml:"pool,attr"`
	Volume        string `xml:"volume,attr"`
	StartupPolicy string `xml:"startupPolicy,attr"`
}

func (s sourceDocument) path() string {
	for _, p := range []string{s.File, s.Dev, s.Dir} {
		if path.IsAbs(p) {
			return path.Clean(p)
		}
	}
	return ""
}

// attribute is where the schema has the path.
func (s sourceDocument) attribute() string {
	switch {
	case path.IsAbs(s.File):
		return "source.file.file"
	case path.IsAbs(s.Dev):
		return "source.block.dev"
	}
	return "source.dir.dir"
}

type layerDocument struct {
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"format"`
	Source *sourceDocument `xml:"source"`
	Below  *layerDocument  `xml:"backingStore"`
}

type filesystemDocument struct {
	Type   string `xml:"type,attr"`
	Source struct {
		Dir string `xml:"dir,attr"`
	} `xml:"source"`
	Target struct {
		Dir string `xml:"dir,attr"`
	} `xml:"target"`
}

func needsOf(definition string) (needs, error) {
	var doc document
	if err := xml.Unmarshal([]byte(definition), &doc); err != nil {
		return needs{}, fmt.Errorf("read what a domain needs: %w", err)
	}
	os := doc.OS
	n := needs{
		nvram:    strings.TrimSpace(os.NVRAM.Path + os.NVRAM.Source.File),
		template: os.NVRAM.Template,
		offer:    virt.Offer{Emulator: doc.Devices.Emulator, Arch: os.Type.Arch, Machine: os.Type.Machine, VirtType: doc.Type},
	}
	for _, f := range []struct{ place, path string }{
		{"os.kernel", os.Kernel}, {"os.initrd", os.Initrd}, {"os.dtb", os.DTB}, {"os.shim", os.Shim}, {"os.loader", os.Loader},
	} {
		n.files = append(n.files, fileOf(f.place, f.place, "file", f.path))
	}
	for _, table := range os.Tables {
		n.files = append(n.files, fileOf("os.acpi", "os.acpi.tables", "table", table))
	}
	for _, info := range doc.SysInfo {
		for _, e := range info.Entries {
			n.files = append(n.files, fileOf("sys_info", "sys_info", "file", e.File))
		}
	}
	for _, d := range doc.Devices.Disks {
		// A guest that may start without the disk is meant to.
		if d.Source.StartupPolicy != "optional" {
			n.disks = append(n.disks, d.need())
		}
	}
	for _, f := range doc.Devices.Filesystems {
		if f.Type == "" || f.Type == "mount" {
			ref := reference{list: "devices.filesystems", leaf: "source.mount.dir", key: strings.ToLower(f.Target.Dir), value: f.Source.Dir}
			n.files = append(n.files, fileNeed{ref, "filesystem " + f.Target.Dir, "directory", f.Source.Dir, "put it back, or change the filesystem"})
		}
	}
	for _, i := range doc.Devices.Interfaces {
		n.interfaces = append(n.interfaces, i.need())
		if i.Type == "hostdev" {
			n.devices = append(n.devices, pciNeed(i.Source.Address).of("devices.interfaces")...)
		}
	}
	for _, h := range doc.Devices.Hostdevs {
		n.devices = append(n.devices, h.needs().of("devices.hostdevs")...)
	}
	return n, nil
}

type deviceNeeds []deviceNeed

// of says in which list the devices are named.
func (all deviceNeeds) of(list string) deviceNeeds {
	for i := range all {
		all[i].attribute = list
	}
	return all
}

func (d diskDocument) need() diskNeed {
	n := diskNeed{
		target: d.Target.Dev, removable: d.Device == "cdrom" || d.Device == "floppy",
		source: d.Source.attribute(), file: d.Source.path(), pool: d.Source.Pool, volume: d.Source.Volume, format: d.Driver.Type,
	}
	for at := d.Below; at != nil; at = at.Below {
		if at.Source == nil {
			n.complete = true
			break
		}
		file := at.Source.path()
		n.below = append(n.below, layerNeed{file, at.Format.Type})
		n.complete = file == "" // a layer that is no file is not looked below
		if n.complete {
			break
		}
	}
	return n
}

type interfaceDocument struct {
	Type string `xml:"type,attr"`
	MAC  struct {
		Address string `xml:"address,attr"`
	} `xml:"mac"`
	Source struct {
		Network   string          `xml:"network,attr"`
		PortGroup string          `xml:"portgroup,attr"`
		Bridge    string          `xml:"bridge,attr"`
		Dev       string          `xml:"dev,attr"`
		Mode      string          `xml:"mode,attr"`
		Address   addressDocument `xml:"address"`
	} `xml:"source"`
	VirtualPort struct {
		Type string `xml:"type,attr"`
	} `xml:"virtualport"`
	VLAN struct {
		Tags []struct {
			ID string `xml:"id,attr"`
		} `xml:"tag"`
	} `xml:"vlan"`
	Filter struct {
		Name string `xml:"filter,attr"`
	} `xml:"filterref"`
}

func (i interfaceDocument) need() interfaceNeed {
	n := interfaceNeed{mac: i.MAC.Address, filter: i.Filter.Name, connection: i.Type, untagged: i.untaggedTags()}
	switch i.Type {
	case "network":
		n.network, n.portGroup = i.Source.Network, i.Source.PortGroup
	case "bridge":
		// Of Open vSwitch's bridges not all are links of the host.
		if i.VirtualPort.Type == "" {
			n.link, n.linkNoun = i.Source.Bridge, "bridge"
		}
	case "direct":
		n.link, n.linkNoun = i.Source.Dev, "network device"
	}
	return n
}

type addressDocument struct {
	Domain   string `xml:"domain,attr"`
	Bus      string `xml:"bus,attr"`
	Slot     string `xml:"slot,attr"`
	Function string `xml:"function,attr"`
	Device   string `xml:"device,attr"`
	Target   string `xml:"target,attr"`
	Unit     string `xml:"unit,attr"`
	UUID     string `xml:"uuid,attr"`
}

type hostdevDocument struct {
	Mode   string `xml:"mode,attr"`
	Type   string `xml:"type,attr"`
	Source struct {
		StartupPolicy string          `xml:"startupPolicy,attr"`
		Address       addressDocument `xml:"address"`
		Vendor        struct {
			ID string `xml:"id,attr"`
		} `xml:"vendor"`
		Product struct {
			ID string `xml:"id,attr"`
		} `xml:"product"`
		Adapter struct {
			Name string `xml:"name,attr"`
		} `xml:"adapter"`
	} `xml:"source"`
}

func (h hostdevDocument) needs() deviceNeeds {
	if h.Mode != "subsystem" {
		return nil
	}
	switch h.Type {
	case "pci":
		return pciNeed(h.Source.Address)
	case "mdev":
		uuid := strings.ToLower(h.Source.Address.UUID)
		if uuid == "" {
			return nil
		}
		return deviceNeeds{{noun: "mediated device", name: uuid, node: "mdev_" + strings.ReplaceAll(uuid, "-", "_")}}
	case "usb":
		if h.Source.StartupPolicy == "optional" {
			return nil
		}
		return h.usbNeed()
	case "scsi":
		host, found := strings.CutPrefix(h.Source.Adapter.Name, "scsi_host")
		n, ok := numbers(host, h.Source.Address.Bus, h.Source.Address.Target, h.Source.Address.Unit)
		if !found || !ok {
			return nil
		}
		name := fmt.Sprintf("%d:%d:%d:%d", n[0], n[1], n[2], n[3])
		return deviceNeeds{{noun: "SCSI device", name: name, node: "scsi_" + strings.ReplaceAll(name, ":", "_"), family: "scsi_"}}
	}
	return nil
}

func pciNeed(a addressDocument) deviceNeeds {
	n, ok := numbers(a.Domain, a.Bus, a.Slot, a.Function)
	if !ok {
		return nil
	}
	return deviceNeeds{{
		noun: "PCI device", name: fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3]),
		node: fmt.Sprintf("pci_%04x_%02x_%02x_%x", n[0], n[1], n[2], n[3]), family: "pci_",
	}}
}

// usbNeed names a device by what it is or, if the definition does not say, by
// where it is.
func (h hostdevDocument) usbNeed() deviceNeeds {
	if vendor, product := h.Source.Vendor.ID, h.Source.Product.ID; vendor != "" && product != "" {
		return deviceNeeds{{noun: "USB device", name: vendor + ":" + product, usb: &virt.USBDevice{Vendor: vendor, Product: product}}}
	}
	n, ok := numbers(h.Source.Address.Bus, h.Source.Address.Device)
	if !ok {
		return nil
	}
	return deviceNeeds{{noun: "USB device", name: fmt.Sprintf("bus %d device %d", n[0], n[1]), usb: &virt.USBDevice{Bus: int(n[0]), Device: int(n[1])}}}
}

// numbers reads the numbers of an address, of which some are written as 0x….
func numbers(texts ...string) (out []uint64, ok bool) {
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
