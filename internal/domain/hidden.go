package domain

import (
	"context"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// In the form that libvirt would send to another host it leaves out what every
// libvirt makes by itself: the sound that goes nowhere, and the standard USB
// controller of a PC. Where only one of guest and definition has that, and the
// other has something else in its place, they differ in one device, and none of
// them lacks any.

// hidden are the lists of such devices.
var hidden = []string{"devices.audios", "devices.controllers"}

// withHidden gives guest and definition what each leaves out and the other has in
// another form.
func (s *sight) withHidden(ctx context.Context, guest, definition tree.Value) (tree.Value, tree.Value, error) {
	full := guest
	if hides(guest, definition) {
		xml, err := s.dom.XML(ctx, virt.XMLSecure)
		if err != nil {
			return guest, definition, err
		}
		if full, err = spec.Domain().Decode(xml); err != nil {
			return guest, definition, err
		}
	}
	return withHidden(guest, definition, full), withHidden(definition, guest, s.raw), nil
}

// hides says whether a side may have left out a device that the other has.
func hides(side, other tree.Value) bool {
	return slices.ContainsFunc(hidden, func(list string) bool {
		return slices.ContainsFunc(other.At(list).Elems(), func(e tree.Value) bool { return likeIn(side, list, e).IsNull() })
	})
}

// withHidden gives a side the devices that it leaves out, and that the other has
// in another form. full is the side with all of them.
func withHidden(side, other, full tree.Value) tree.Value {
	for _, list := range hidden {
		for _, e := range other.At(list).Elems() {
			if !likeIn(side, list, e).IsNull() {
				continue
			}
			if there := likeIn(full, list, e); !there.IsNull() {
				devices := append(slices.Clone(side.At(list).Elems()), there.With("alias", tree.NullValue))
				side = side.SetAt(list, tree.ListValue(devices))
			}
		}
	}
	return side
}

// likeIn is the device of a list that has the identity of another one, null if
// there is none.
func likeIn(in tree.Value, list string, e tree.Value) tree.Value {
	key := keysOf(list+"[]", e)[0]
	for _, device := range in.At(list).Elems() {
		if key != "" && keysOf(list+"[]", device)[0] == key {
			return device
		}
	}
	return tree.NullValue
}
