package domain

import (
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What a start makes of a definition stands in the guest's XML alone: the loader
// for a firmware that is chosen by kind, labels of the host's security drivers, the
// standard partition of resources. It is no difference between the two. But what
// the definition itself names is compared, and so is what it named when the guest
// was started: the guest has that until its next start.

// asDefined is the guest without what a start makes of the definition, a clock
// that runs on from another beginning, and the file that takes what is written to
// a transient disk. A guest of an older generation may have another clock or other
// features of its firmware in earnest.
func (s *sight) asDefined(guest, definition tree.Value) tree.Value {
	same := s.guestMarker.Generation == s.marker.Generation
	guest = withoutChosenFirmware(guest, definition, same)
	guest = withoutMadeLabels(guest, definition)
	if guest.At("resource.partition").Str() == standardPartition && definition.At("resource.partition").IsNull() {
		guest = guest.With("resource", definition.Attr("resource"))
	}
	if same {
		guest = takeOver(guest, definition, "os.firmware_info", "clock.basis", "clock.adjustment")
	}
	return withoutFormats(withoutOverlays(guest), definition)
}

// standardPartition is where libvirt puts a machine that names no partition.
const standardPartition = "/machine"

// takeOver is the guest with what the definition has at some paths.
func takeOver(guest, definition tree.Value, paths ...string) tree.Value {
	for _, path := range paths {
		if defined := definition.At(path); !tree.Equal(guest.At(path), defined) {
			guest = guest.SetAt(path, defined)
		}
	}
	return guest
}

// unset are those paths that the definition has no value at.
func unset(definition tree.Value, paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return !definition.At(path).IsNull() })
}

// withoutChosenFirmware takes out what libvirt chose for a firmware: the loader
// where the definition only says what kind it is to be, what goes with a loader,
// and the file for its variables. same says that the definition is the one that
// the guest was started with. One of another generation may have another kind:
// then its loader is mapped in another way.
func withoutChosenFirmware(guest, definition tree.Value, same bool) tree.Value {
	kind, loader, has := definition.At("os.firmware"), definition.At("os.loader"), guest.At("os.loader")
	var made []string
	switch {
	case !loader.IsNull(): // the kind says no more than the loader does
		made = []string{"os.firmware"}
	case kind.IsNull(), has.IsNull():
		return guest
	case !same && (kind.Str() == "efi") != (guest.At("os.loader_type").Str() == "pflash"):
		return guest
	default:
		made = append([]string{"os.firmware", "os.loader"}, unset(definition, "features.smm")...)
	}
	return takeOver(guest, definition, append(made, unset(definition,
		"os.loader_type", "os.loader_readonly", "os.loader_secure", "os.loader_stateless", "os.loader_format",
		"os.nv_ram.nv_ram", "os.nv_ram.source", "os.nv_ram.template", "os.nv_ram.format", "os.nv_ram.template_format",
	)...)...)
}

// withoutMadeLabels takes out the labels that libvirt makes for the security
// drivers that the definition says nothing of, and completes those that it leaves
// open in part.
func withoutMadeLabels(guest, definition tree.Value) tree.Value {
	has := guest.Attr("sec_label").Elems()
	if len(has) == 0 {
		return guest
	}
	given := map[string]tree.Value{}
	for _, label := range definition.Attr("sec_label").Elems() {
		given[label.Attr("model").Str()] = label
	}
	var out []tree.Value
	for _, label := range has {
		defined, named := given[label.Attr("model").Str()]
		if open, ok := given[""]; !named && ok { // of the host's first driver, whichever that is
			defined, named = open, open.Attr("type").Str() == label.Attr("type").Str()
		}
		switch {
		case named:
			out = append(out, takeOver(label, defined, unset(defined, "model", "type", "relabel", "label", "image_label")...))
		case label.Attr("type").Str() == "static" || !label.Attr("base_label").IsNull():
			out = append(out, label) // it was defined once
		}
	}
	if len(out) == 0 {
		return guest.With("sec_label", tree.NullValue)
	}
	return guest.With("sec_label", tree.ListValue(out))
}

// withoutFormats shows disks without the format that a start takes for granted:
// an image of a pool whose definition names none is raw in the guest.
func withoutFormats(guest, definition tree.Value) tree.Value {
	unnamed := map[string]bool{}
	for _, disk := range definition.At("devices.disks").Elems() {
		unnamed[disk.At("target.dev").Str()] = disk.At("driver.type").IsNull()
	}
	disks := slices.Clone(guest.At("devices.disks").Elems())
	changed := false
	for i, disk := range disks {
		if unnamed[disk.At("target.dev").Str()] && disk.At("driver.type").Str() == "raw" {
			disks[i], changed = disk.SetAt("driver.type", tree.NullValue), true
		}
	}
	if !changed {
		return guest
	}
	return guest.SetAt("devices.disks", tree.ListValue(disks))
}

// overlay is what libvirt adds to the name of the image of a transient disk, for
// the file that takes the changes until the guest stops.
const overlay = ".TRANSIENT-"

// withoutOverlays shows the images of transient disks as they are defined.
func withoutOverlays(guest tree.Value) tree.Value {
	disks := slices.Clone(guest.At("devices.disks").Elems())
	changed := false
	for i, disk := range disks {
		image, _, found := strings.Cut(disk.At("source.file.file").Str(), overlay)
		if found && !disk.Attr("transient").IsNull() {
			disks[i], changed = disk.SetAt("source.file.file", tree.StringValue(image)), true
			// The overlay has a format of its own.
			if format := disk.At("backing_store.format.type"); !format.IsNull() {
				disks[i] = disks[i].SetAt("driver.type", format)
			}
		}
	}
	if !changed {
		return guest
	}
	return guest.SetAt("devices.disks", tree.ListValue(disks))
}
