package domain

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What this libvirt and this QEMU cannot build, an apply learns by asking for the
// command line of the guest (virt.View.Builds). That answer is right, but it names
// no attribute and nothing that could be had instead. The domain capabilities of
// the host do; only, they are not always complete. So libvirt's answer decides,
// and the capabilities explain it where they can.

// wish is a value of a definition that the capabilities of a host list.
type wish struct {
	ref    reference
	noun   string // of the value: "CPU model"
	plural string
	listed string // in virt.Capabilities
}

// wishDocument is where a definition has such values.
type wishDocument struct {
	OS struct {
		Firmware string `xml:"firmware,attr"`
	} `xml:"os"`
	VCPU int `xml:"vcpu"`
	CPU  struct {
		Mode  string `xml:"mode,attr"`
		Model string `xml:"model"`
	} `xml:"cpu"`
	Devices struct {
		Disks []struct {
			Target struct {
				Dev string `xml:"dev,attr"`
				Bus string `xml:"bus,attr"`
			} `xml:"target"`
		} `xml:"disk"`
		Videos []struct {
			Model struct {
				Type string `xml:"type,attr"`
			} `xml:"model"`
		} `xml:"video"`
		TPMs []struct {
			Model string `xml:"model,attr"`
		} `xml:"tpm"`
		RNGs []struct {
			Model string `xml:"model,attr"`
		} `xml:"rng"`
		Graphics []struct {
			Type string `xml:"type,attr"`
		} `xml:"graphics"`
	} `xml:"devices"`
}

// wishesOf are what a definition asks for, and its number of CPUs.
func wishesOf(definition string) ([]wish, int, error) {
	var doc wishDocument
	if err := xml.Unmarshal([]byte(definition), &doc); err != nil {
		return nil, 0, fmt.Errorf("read what a domain asks for: %w", err)
	}
	out := []wish{
		{reference{leaf: "os.firmware", value: doc.OS.Firmware}, "firmware", "Kinds of firmware", "os.firmware"},
		{reference{leaf: "cpu.mode", value: doc.CPU.Mode}, "CPU mode", "CPU modes", "cpu.mode"},
		{reference{leaf: "cpu.model", value: strings.TrimSpace(doc.CPU.Model)}, "CPU model", "CPU models", "cpu.model"},
	}
	for _, d := range doc.Devices.Disks {
		ref := reference{list: "devices.disks", leaf: "target.bus", key: strings.ToLower(d.Target.Dev), value: d.Target.Bus}
		out = append(out, wish{ref, "disk bus", "Disk buses", "disk.bus"})
	}
	for _, v := range doc.Devices.Videos {
		out = append(out, wish{reference{list: "devices.videos", leaf: "model.type", value: v.Model.Type}, "video model", "Video models", "video.modelType"})
	}
	for _, t := range doc.Devices.TPMs {
		out = append(out, wish{reference{list: "devices.tpms", leaf: "model", value: t.Model}, "TPM model", "TPM models", "tpm.model"})
	}
	for _, r := range doc.Devices.RNGs {
		out = append(out, wish{reference{list: "devices.rngs", leaf: "model", value: r.Model}, "model of a random number generator", "Models of random number generators", "rng.model"})
	}
	for _, g := range doc.Devices.Graphics {
		out = append(out, wish{reference{list: "devices.graphics", leaf: g.Type, value: g.Type}, "display", "Displays", "graphics.type"})
	}
	return slices.DeleteFunc(out, func(w wish) bool { return w.ref.value == "" }), doc.VCPU, nil
}

// unlisted are the wishes that the capabilities of the host do not have.
func unlisted(ctx context.Context, host hostView, definition string) []finding {
	needs, err := needsOf(definition)
	if err != nil {
		return nil
	}
	has, err := host.Capabilities(ctx, needs.offer)
	if err != nil {
		return nil // the machine itself is not offered, or nobody could tell
	}
	wishes, vcpus, err := wishesOf(definition)
	if err != nil {
		return nil
	}
	var out []finding
	for _, w := range wishes {
		if values, told := has.Values[w.listed]; told && !slices.Contains(values, w.ref.value) {
			out = append(out, finding{
				ref: w.ref, grade: missing, what: fmt.Sprintf("%s %q is not offered by the host for machine type %s", w.noun, w.ref.value, has.Machine),
				choice: func(context.Context, hostView) choices { return choices{w.plural + " that the host offers", values} },
				wayOut: fmt.Sprintf("change %s", w.ref.attribute()),
			})
		}
	}
	if has.MaxVCPUs > 0 && vcpus > has.MaxVCPUs {
		out = append(out, finding{
			ref: reference{leaf: "vcpu", value: fmt.Sprint(vcpus)}, grade: missing,
			what:   fmt.Sprintf("machine type %s has at most %d vCPUs, not %d", has.Machine, has.MaxVCPUs, vcpus),
			wayOut: fmt.Sprintf("set vcpu to %d or less, or take another machine type (os.type_machine)", has.MaxVCPUs),
		})
	}
	return out
}

// attribute names the attribute without saying of which element.
func (r reference) attribute() string {
	if r.list == "" {
		return r.leaf
	}
	return r.list + "[]." + r.leaf
}

// impossible are the codes with which libvirt says that it cannot build a guest.
// Others may speak of this moment (a device is busy), of what a start does and a
// question does not (asking numad for advice), or of the daemon.
var impossible = []int{virt.ErrConfigUnsupported, virt.ErrCPUIncompatible, virt.ErrXML, virt.ErrOperationFailed, virt.ErrNoSecret, virt.ErrNoNetwork}

// unbuildable says why libvirt cannot build what a definition asks for. If this
// apply does not start the guest, then only as far as that is about what changes:
// if it says the same of the definition before, something else is the matter, and
// for another day. A start needs all of it: QEMU may have been upgraded below the
// guest that is to go down.
func unbuildable(ctx context.Context, host hostView, f flight, document string) (out []finding, reason *kind.Problem) {
	refused := builds(ctx, host, document)
	if refused == nil {
		return nil, nil
	}
	var before []finding
	if f.old != "" && !f.starts {
		if old := builds(ctx, host, f.old); old != nil && old.Message == refused.Message {
			return nil, nil
		}
		before = unlisted(ctx, host, f.old)
	}
	out = newIn(unlisted(ctx, host, document), before)
	if !slices.Contains(impossible, refused.Code) {
		// It may pass, unless it is about something that the host does not list.
		if !slices.ContainsFunc(out, func(one finding) bool { return mentions(refused.Message, one.ref.value) }) {
			return nil, nil
		}
		return out, nil
	}
	if len(out) > 0 {
		return out, nil
	}
	p := &kind.Problem{
		Path: attributeIn(refused.Code), Summary: fmt.Sprintf("Domain %q cannot start as configured: libvirt cannot build it", f.name),
		Detail: fmt.Sprintf("libvirt says: %s. The way out: change what it names. Nothing was changed.", strings.TrimSuffix(refused.Message, ".")),
	}
	if refused.Code == virt.ErrCPUIncompatible {
		p.Detail = fmt.Sprintf("libvirt says: %s. The way out: take a CPU model or features that the host has (virsh domcapabilities lists them), or cpu.mode = \"host-model\". Nothing was changed.", strings.TrimSuffix(refused.Message, "."))
	}
	return nil, p
}

// mentions says whether a message has a value as a word of its own.
func mentions(message, value string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }
	for rest := message; value != ""; {
		before, after, found := strings.Cut(rest, value)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if (before == "" || !inWord(last)) && (after == "" || !inWord(first)) {
			return true
		}
		rest = after
	}
	return false
}

// attributeIn is the attribute that an error of a code is about, empty if it may
// be any.
func attributeIn(code int) tree.Path {
	if code == virt.ErrCPUIncompatible {
		return tree.ParsePath("cpu")
	}
	return nil
}

// builds asks whether libvirt can build a guest; nil also if it does not say.
func builds(ctx context.Context, host hostView, document string) *virt.Error {
	var e *virt.Error
	if err := host.Builds(ctx, document); errors.As(err, &e) && !virt.IsLost(err) {
		switch e.Code {
		case virt.ErrNoSupport, virt.ErrInvalidArg, virt.ErrAccessDenied, virt.ErrOperationDenied, virt.ErrAuthFailed, virt.ErrRPC:
			return nil // this driver or this connection makes no command lines
		}
		return e
	}
	return nil
}
