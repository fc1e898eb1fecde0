package virt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Offer is a kind of machine. Empty fields mean the host's standard.
type Offer struct{ Emulator, Arch, Machine, VirtType string }

// Offers asks for the capabilities of that kind. The error is that of
// DomainCapabilities: ErrInvalidArg if the emulator does not know the machine
// type, or cannot accelerate it in this way on this host.
func (v *View) Offers(ctx context.Context, o Offer) error {
	_, err := v.Capabilities(ctx, o)
	return err
}

// Capabilities are what domains of a kind can have on a host.
type Capabilities struct {
	Machine  string // an alias is told by the version that it stands for
	MaxVCPUs int    // 0 if that is not told

	// What values an attribute can have: cpu.mode, cpu.model, os.firmware, and of
	// the devices disk.bus, video.modelType, rng.backendModel, …: as libvirt calls
	// them. What is not in the map is not told.
	Values map[string][]string
}

// Capabilities returns those of a kind.
func (v *View) Capabilities(ctx context.Context, o Offer) (Capabilities, error) {
	return v.offers.get(o, v.writes.Load(), func() (Capabilities, error) {
		document, err := v.host.DomainCapabilities(ctx, o.Emulator, o.Arch, o.Machine, o.VirtType)
		if err != nil {
			return Capabilities{}, err
		}
		return capabilitiesIn(document)
	})
}

func capabilitiesIn(document string) (Capabilities, error) {
	type enum struct {
		Name   string   `xml:"name,attr"`
		Values []string `xml:"value"`
	}
	var doc struct {
		Machine string `xml:"machine"`
		VCPU    struct {
			Max int `xml:"max,attr"`
		} `xml:"vcpu"`
		OS struct {
			Enums []enum `xml:"enum"`
		} `xml:"os"`
		Modes []struct {
			Name      string   `xml:"name,attr"`
			Supported string   `xml:"supported,attr"`
			Models    []string `xml:"model"`
		} `xml:"cpu>mode"`
		Devices struct {
			Kinds []struct {
				XMLName   xml.Name
				Supported string `xml:"supported,attr"`
				Enums     []enum `xml:"enum"`
			} `xml:",any"`
		} `xml:"devices"`
	}
	if err := xml.Unmarshal([]byte(document), &doc); err != nil {
		return Capabilities{}, fmt.Errorf("read the domain capabilities: %w", err)
	}
	c := Capabilities{Machine: doc.Machine, MaxVCPUs: doc.VCPU.Max, Values: map[string][]string{}}
	tell := func(name string, values []string) {
		if len(values) > 0 { // an empty list is one that this libvirt does not fill
			c.Values[name] = values
		}
	}
	for _, e := range doc.OS.Enums {
		tell("os."+e.Name, e.Values)
	}
	var modes []string
	for _, m := range doc.Modes {
		if m.Supported == "yes" {
			modes = append(modes, m.Name)
		}
		if m.Name == "custom" {
			tell("cpu.model", m.Models)
		}
	}
	tell("cpu.mode", modes)
	for _, kind := range doc.Devices.Kinds {
		if kind.Supported != "yes" {
			continue
		}
		for _, e := range kind.Enums {
			tell(kind.XMLName.Local+"."+e.Name, e.Values)
		}
	}
	return c, nil
}

// Builds asks libvirt to make the command line that QEMU would be started with,
// and returns why it does not, nil if it does. It looks at everything that QEMU
// and libvirt can do and that they cannot, and at none of the networks, files and
// devices that are named.
//
// Interfaces and devices of the host are left out of the question. libvirt 9.0
// crashes over an interface that is a device of the host, and takes devices of the
// host for misconfigured; and it would make a tap device for each interface, and
// run its script. Volumes of pools are files for the question: libvirt would look
// them up, and take a pool that is stopped for something that no guest can have.
func (v *View) Builds(ctx context.Context, document string) error {
	document, err := withoutHostSide(document)
	if err != nil {
		return err
	}
	// Never twice: the answer may be that the daemon is gone.
	return v.host.do(ctx, Call{"make the command line of domain", nameIn(document), false}, false, func(s *session) error {
		_, err := s.conn.DomainXMLToNative("qemu-argv", document, 0)
		return err
	})
}

// hostSide are the devices that Builds leaves out.
var hostSide = []string{"domain/devices/interface", "domain/devices/hostdev"}

// withoutHostSide cuts elements out of a document, and makes files of volumes. In
// all else the document stays as it is.
func withoutHostSide(document string) (string, error) {
	d := xml.NewDecoder(strings.NewReader(document))
	var out strings.Builder
	var path []string
	kept, from := int64(0), int64(-1) // from is where an element that is cut begins
	block := false                    // the disk passes SCSI commands through, which no file takes
	for {
		at := d.InputOffset()
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			out.WriteString(document[kept:])
			return out.String(), nil
		}
		if err != nil {
			return "", fmt.Errorf("read a domain's XML: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			if from < 0 && slices.Contains(hostSide, strings.Join(path, "/")) {
				from = at
			}
			if from >= 0 || len(path) < 3 || !slices.Equal(path[:3], []string{"domain", "devices", "disk"}) {
				continue
			}
			if len(path) == 3 {
				block = slices.ContainsFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == "device" && a.Value == "lun" })
			}
			if tag, changed := withoutVolume(t, block); changed {
				out.WriteString(document[kept:at])
				out.WriteString(tag)
				if kept = d.InputOffset(); document[kept-2] == '/' {
					out.WriteString("/")
				}
				out.WriteString(">")
			}
		case xml.EndElement:
			if from >= 0 && slices.Contains(hostSide, strings.Join(path, "/")) {
				out.WriteString(document[kept:from])
				kept, from = d.InputOffset(), -1
			}
			path = path[:max(0, len(path)-1)]
		}
	}
}

// withoutVolume makes the beginning of an element in a disk that of one which is a
// file, or a block device, where it is a volume of a pool. It is without its ">".
func withoutVolume(t xml.StartElement, block bool) (tag string, changed bool) {
	kind, leaf := "file", "file"
	if block {
		kind, leaf = "block", "dev"
	}
	var pool, volume string
	attrs := make([]xml.Attr, 0, len(t.Attr))
	for _, a := range t.Attr {
		switch {
		case a.Name.Local == "type" && a.Value == "volume" && t.Name.Local != "source":
			a.Value, changed = kind, true
		case t.Name.Local == "source" && a.Name.Local == "pool":
			pool, changed = a.Value, true
			continue
		case t.Name.Local == "source" && a.Name.Local == "volume":
			volume = a.Value
			continue
		case t.Name.Local == "source" && a.Name.Local == "mode":
			continue
		}
		attrs = append(attrs, a)
	}
	if pool != "" {
		attrs = append(attrs, xml.Attr{Name: xml.Name{Local: leaf}, Value: "/" + pool + "/" + volume})
	}
	var out strings.Builder
	out.WriteString("<" + qualified(t.Name))
	for _, a := range attrs {
		out.WriteString(" " + qualified(a.Name) + `="`)
		_ = xml.EscapeText(&out, []byte(a.Value)) // a strings.Builder takes all
		out.WriteString(`"`)
	}
	return out.String(), changed
}

// qualified is a name as RawToken found it, with its prefix.
func qualified(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}
