package domain

import (
	"context"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// checkSave compares a saved guest with the definition: the next start resumes
// the guest as it was, and so brings back what has been changed since.
//
// libvirt tells a definition in two forms, of which the one for another host
// lacks devices that the saved guest has, and the other has some that it lacks.
// What differs from one form only is such a device.
func (k *Kind) checkSave(ctx context.Context, c *bootCheck, s *sight) {
	text, err := s.dom.ManagedSaveXML(ctx)
	if err != nil {
		return
	}
	saved, err := spec.Domain().Decode(text)
	if err != nil {
		return
	}
	text, err = s.dom.XML(ctx, virt.XMLSecure|virt.XMLInactive|virt.XMLMigratable)
	if err != nil {
		return
	}
	migratable, err := spec.Domain().Decode(text)
	if err != nil {
		return
	}
	_, mark := splitMarker(saved.At("metadata.xml").Str())
	then := sight{marker: s.marker, guestMarker: mark}
	saved, migratable = unmarked(then.asDefined(saved, migratable)), unmarked(migratable)
	differs := map[string]bool{}
	for _, p := range k.differences(saved, migratable) {
		differs[p] = true
	}
	var paths []string
	for _, p := range k.differences(saved, unmarked(s.raw)) {
		if differs[p] {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return
	}
	slices.Sort(paths)
	const few = 3
	more := ""
	if len(paths) > few {
		paths, more = paths[:few], ", …"
	}
	c.say(finding{}, "a managed save would bring back an older definition at the next start, which differs in %s%s (virsh managedsave-remove %s drops it, with what the guest had in its memory)",
		strings.Join(paths, ", "), more, word(s.name))
}

// unmarked is a definition without the provider's own mark, which counts the
// changes and is none.
func unmarked(definition tree.Value) tree.Value {
	rest, _ := splitMarker(definition.At("metadata.xml").Str())
	return definition.SetAt("metadata.xml", textOrNull(rest))
}

// differences are those that a start does not make by itself, and that nobody
// need know of: the balloon of a guest moves all the time.
func (k *Kind) differences(a, b tree.Value) []string {
	var out []string
	for _, p := range k.rules.Differences(k.typ, a, b) {
		if !isNoise(p.Pattern()) && !floats(p.Pattern()) {
			out = append(out, p.String())
		}
	}
	return out
}
