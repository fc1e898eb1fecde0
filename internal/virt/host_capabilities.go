package virt

import (
	"context"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// HostCapabilities is what a host itself is, and which guests its drivers can run.
type HostCapabilities struct {
	UUID, Arch              string
	CPUModel, CPUVendor     string   // "" if libvirt recognises no model
	CPUFeatures             []string // beside those of the model
	PageSizes               []uint64 // KiB
	IOMMU                   bool
	MigrationTransports     []string
	SecurityModels          []string
	Sockets, Cores, Threads int // of each NUMA node, socket and core
	Cells                   []NUMACell
	Guests                  []GuestKind
	SuspendMem, SuspendDisk bool // the host can sleep
}

// NUMACell is a node of the host's memory.
type NUMACell struct {
	ID     int64
	Memory uint64 // KiB
	CPUs   []int64
}

// GuestKind is a kind of guests that the host can run: an architecture with the
// emulator for it.
type GuestKind struct {
	OSType, Arch, Emulator string
	WordSize               int64
	Machines, VirtTypes    []string
}

type capabilitiesDocument struct {
	Host struct {
		UUID string `xml:"uuid"`
		CPU  struct {
			Arch     string `xml:"arch"`
			Model    string `xml:"model"`
			Vendor   string `xml:"vendor"`
			Topology struct {
				Sockets int `xml:"sockets,attr"`
				Cores   int `xml:"cores,attr"`
				Threads int `xml:"threads,attr"`
			} `xml:"topology"`
			Features []struct {
				Name string `xml:"name,attr"`
			} `xml:"feature"`
			Pages []struct {
				Size uint64 `xml:"size,attr"`
				Unit string `xml:"unit,attr"`
			} `xml:"pages"`
		} `xml:"cpu"`
		Power struct {
			Mem  *struct{} `xml:"suspend_mem"`
			Disk *struct{} `xml:"suspend_disk"`
		} `xml:"power_management"`
		IOMMU struct {
			Support string `xml:"support,attr"`
		} `xml:"iommu"`
		Transports []string `xml:"migration_features>uri_transports>uri_transport"`
		Cells      []struct {
			ID     int64  `xml:"id,attr"`
			Memory uint64 `xml:"memory"`
			CPUs   []struct {
				ID int64 `xml:"id,attr"`
			} `xml:"cpus>cpu"`
		} `xml:"topology>cells>cell"`
		Security []string `xml:"secmodel>model"`
	} `xml:"host"`
	Guests []struct {
		OSType string `xml:"os_type"`
		Arch   struct {
			Name     string `xml:"name,attr"`
			WordSize int64  `xml:"wordsize"`
			emulation
			Domains []struct {
				Type string `xml:"type,attr"`
				emulation
			} `xml:"domain"`
		} `xml:"arch"`
	} `xml:"guest"`
}

// emulation is an emulator with its machine types.
type emulation struct {
	Emulator string   `xml:"emulator"`
	Machines []string `xml:"machine"`
}

// HostCapabilities asks for them.
func (h *Host) HostCapabilities(ctx context.Context) (HostCapabilities, error) {
	document, err := h.Capabilities(ctx)
	if err != nil {
		return HostCapabilities{}, err
	}
	return hostCapabilitiesIn(document)
}

func hostCapabilitiesIn(document string) (HostCapabilities, error) {
	var doc capabilitiesDocument
	if err := xml.Unmarshal([]byte(document), &doc); err != nil {
		return HostCapabilities{}, fmt.Errorf("read the host's capabilities: %w", err)
	}
	cpu := doc.Host.CPU
	out := HostCapabilities{
		UUID: doc.Host.UUID, Arch: cpu.Arch, CPUModel: cpu.Model, CPUVendor: cpu.Vendor,
		Sockets: cpu.Topology.Sockets, Cores: cpu.Topology.Cores, Threads: cpu.Topology.Threads,
		IOMMU: doc.Host.IOMMU.Support == "yes", MigrationTransports: doc.Host.Transports, SecurityModels: doc.Host.Security,
		SuspendMem: doc.Host.Power.Mem != nil, SuspendDisk: doc.Host.Power.Disk != nil,
	}
	for _, f := range cpu.Features {
		out.CPUFeatures = append(out.CPUFeatures, f.Name)
	}
	slices.Sort(out.CPUFeatures)
	for _, p := range cpu.Pages {
		if p.Unit == "KiB" {
			out.PageSizes = append(out.PageSizes, p.Size)
		}
	}
	for _, c := range doc.Host.Cells {
		cell := NUMACell{ID: c.ID, Memory: c.Memory}
		for _, one := range c.CPUs {
			cell.CPUs = append(cell.CPUs, one.ID)
		}
		out.Cells = append(out.Cells, cell)
	}
	for _, g := range doc.Guests {
		one := GuestKind{OSType: g.OSType, Arch: g.Arch.Name, WordSize: g.Arch.WordSize, Emulator: g.Arch.Emulator, Machines: g.Arch.Machines}
		for _, d := range g.Arch.Domains {
			one.VirtTypes = append(one.VirtTypes, d.Type)
			one.Machines = append(one.Machines, d.Machines...)
			if one.Emulator == "" {
				one.Emulator = d.Emulator
			}
		}
		slices.Sort(one.Machines)
		one.Machines = slices.Compact(one.Machines)
		out.Guests = append(out.Guests, one)
	}
	return out, nil
}

// DomainOffer is what domains of a kind can have, whole.
type DomainOffer struct {
	Emulator, Arch, Machine, VirtType string
	MaxVCPUs                          int64
	IOThreads                         bool
	Firmware, Loaders                 []string
	SecureBoot                        bool // a loader that is secure can be asked for

	CPUModes, CPUModels, UnusableCPUModels []string // models that this host can and cannot run
	HostModel                              string   // the model that host-model stands for
	HostFeatures                           []string // that host-model requires

	MemoryBacking []string                       // source types
	Devices       map[string]map[string][]string // by kind and attribute, in snake case: disk, bus
	Features      map[string]bool                // by libvirt's name in snake case: genid, backup, sev
}

type enumElement struct {
	Name   string   `xml:"name,attr"`
	Values []string `xml:"value"`
}

type supportElement struct {
	XMLName   xml.Name
	Supported string        `xml:"supported,attr"`
	Enums     []enumElement `xml:"enum"`
}

type domainOfferDocument struct {
	Path    string `xml:"path"`
	Domain  string `xml:"domain"`
	Machine string `xml:"machine"`
	Arch    string `xml:"arch"`
	VCPU    struct {
		Max int64 `xml:"max,attr"`
	} `xml:"vcpu"`
	IOThreads supportElement `xml:"iothreads"`
	OS        struct {
		Enums  []enumElement `xml:"enum"`
		Loader struct {
			Values []string      `xml:"value"`
			Enums  []enumElement `xml:"enum"`
		} `xml:"loader"`
	} `xml:"os"`
	Modes []struct {
		Name      string `xml:"name,attr"`
		Supported string `xml:"supported,attr"`
		Models    []struct {
			Name   string `xml:",chardata"`
			Usable string `xml:"usable,attr"`
		} `xml:"model"`
		Features []struct {
			Name   string `xml:"name,attr"`
			Policy string `xml:"policy,attr"`
		} `xml:"feature"`
	} `xml:"cpu>mode"`
	Memory  supportElement `xml:"memoryBacking"`
	Devices struct {
		Kinds []supportElement `xml:",any"`
	} `xml:"devices"`
	Features struct {
		Kinds []supportElement `xml:",any"`
	} `xml:"features"`
}

// DomainOffer asks what domains of a kind can have.
func (h *Host) DomainOffer(ctx context.Context, o Offer) (DomainOffer, error) {
	document, err := h.DomainCapabilities(ctx, o.Emulator, o.Arch, o.Machine, o.VirtType)
	if err != nil {
		return DomainOffer{}, err
	}
	return domainOfferIn(document)
}

func domainOfferIn(document string) (DomainOffer, error) {
	var doc domainOfferDocument
	if err := xml.Unmarshal([]byte(document), &doc); err != nil {
		return DomainOffer{}, fmt.Errorf("read the domain capabilities: %w", err)
	}
	out := DomainOffer{
		Emulator: doc.Path, Arch: doc.Arch, Machine: doc.Machine, VirtType: doc.Domain, MaxVCPUs: doc.VCPU.Max,
		IOThreads: doc.IOThreads.Supported == "yes", Firmware: enumOf(doc.OS.Enums, "firmware"), Loaders: doc.OS.Loader.Values,
		SecureBoot: slices.Contains(enumOf(doc.OS.Loader.Enums, "secure"), "yes"),
		Devices:    map[string]map[string][]string{}, Features: map[string]bool{},
	}
	for _, m := range doc.Modes {
		if m.Supported != "yes" {
			continue
		}
		out.CPUModes = append(out.CPUModes, m.Name)
		for _, model := range m.Models {
			switch name := strings.TrimSpace(model.Name); {
			case m.Name == "host-model":
				out.HostModel = name
			case model.Usable == "no":
				out.UnusableCPUModels = append(out.UnusableCPUModels, name)
			default:
				out.CPUModels = append(out.CPUModels, name)
			}
		}
		for _, f := range m.Features {
			if m.Name == "host-model" && f.Policy == "require" {
				out.HostFeatures = append(out.HostFeatures, f.Name)
			}
		}
	}
	slices.Sort(out.CPUModels)
	slices.Sort(out.UnusableCPUModels)
	slices.Sort(out.HostFeatures)
	if doc.Memory.Supported == "yes" {
		out.MemoryBacking = enumOf(doc.Memory.Enums, "sourceType")
	}
	for _, d := range doc.Devices.Kinds {
		if d.Supported != "yes" {
			continue
		}
		values := map[string][]string{}
		for _, e := range d.Enums {
			values[snake(e.Name)] = e.Values
		}
		out.Devices[snake(d.XMLName.Local)] = values
	}
	for _, f := range doc.Features.Kinds {
		out.Features[snake(f.XMLName.Local)] = f.Supported == "yes"
	}
	return out, nil
}

func enumOf(all []enumElement, name string) []string {
	for _, e := range all {
		if e.Name == name {
			return e.Values
		}
	}
	return nil
}

// snake writes a name of libvirt's as attributes are written: modelType is
// model_type, async-teardown is async_teardown.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '-':
			b.WriteByte('_')
		case unicode.IsUpper(r) && i > 0:
			b.WriteByte('_')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
