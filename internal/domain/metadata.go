package domain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// metadataAspect is the elements of other namespaces. Each is written into
// the running guest by its namespace; those that nobody changes stay.
var metadataAspect = &aspect{
	name: "metadata",
	owns: []string{"metadata"},
	rule: func(change.Change, situation) (change.Class, string) { return change.ClassLive, "" },
	live: func(ctx context.Context, a *apply) error {
		was, err := metadataElements(a.before.running().At("metadata.xml").Str())
		if err != nil {
			return err
		}
		defined, err := metadataElements(a.before.definition.At("metadata.xml").Str())
		if err != nil {
			return err
		}
		now, err := metadataElements(a.wanted.At("metadata.xml").Str())
		if err != nil {
			return err
		}
		writes, left := metadataWrites(defined, now, was, a.corrects("metadata"))
		if left {
			a.late = append(a.late, tree.Root.Attr("metadata").Attr("xml"))
		}
		for _, w := range writes {
			if err := a.setGuestElement(ctx, w.uri, w.now, w.was); err != nil {
				return err
			}
		}
		return nil
	},
}

// metadataWrite is the element of one namespace that the running guest gets.
type metadataWrite struct {
	uri      string
	now, was metadataElement
}

// metadataWrites are the namespaces that are written into a running guest: those
// that change from the definition as it was to the one that is wanted, and all in
// which the guest differs if that is what is corrected. left says that the guest
// has others still than are wanted: what somebody wrote into it alone.
func metadataWrites(defined, wanted, guest map[string]metadataElement, corrects bool) (writes []metadataWrite, left bool) {
	same := func(x, y map[string]metadataElement, uri string) bool {
		e, inX := x[uri]
		f, inY := y[uri]
		return inX == inY && spec.SameXML(e.xml, f.xml)
	}
	uris := map[string]bool{}
	for _, side := range []map[string]metadataElement{wanted, guest} {
		for uri := range side {
			uris[uri] = true
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(uris)) {
		now, stays := wanted[uri]
		_, ours := defined[uri]
		switch {
		case same(wanted, guest, uri):
		case !stays && !ours, !corrects && same(defined, wanted, uri):
			left = true
		case stays:
			writes = append(writes, metadataWrite{uri, now, guest[uri]})
		default:
			writes = append(writes, metadataWrite{uri, metadataElement{prefix: guest[uri].prefix}, guest[uri]})
		}
	}
	return writes, left
}

// coversMetadata compares by namespace: an element of a namespace that the
// configuration does not name is somebody else's, unless the configuration
// named it once.
func coversMetadata(pattern string, desired, actual, owned tree.Value) (covers, applies bool) {
	if pattern != "metadata.xml" {
		return false, false
	}
	want, errWant := metadataElements(desired.Str())
	have, errHave := metadataElements(actual.Str())
	once, errOnce := metadataElements(owned.Str())
	if errWant != nil || errHave != nil || errOnce != nil {
		return false, false
	}
	for uri, e := range want {
		if h, there := have[uri]; !there || !spec.SameXML(h.xml, e.xml) {
			return false, true
		}
	}
	for uri := range once {
		if _, wanted := want[uri]; !wanted {
			if _, there := have[uri]; there {
				return false, true
			}
		}
	}
	return true, true
}

// sameMetadata compares by namespace: libvirt appends what it writes into a
// running guest, so that guest and definition have an order each.
func sameMetadata(a, b tree.Value) bool {
	x, errX := metadataElements(a.Str())
	y, errY := metadataElements(b.Str())
	return errX == nil && errY == nil && maps.EqualFunc(x, y, func(e, f metadataElement) bool { return spec.SameXML(e.xml, f.xml) })
}

// mergeMetadata is the metadata that an update asks for: the planned elements,
// and of those on the host the ones that nobody took out of the configuration.
func mergeMetadata(onHost, planned, owned string) (string, error) {
	have, err := metadataElements(onHost)
	if err != nil {
		return "", err
	}
	want, err := metadataElements(planned)
	if err != nil {
		return "", err
	}
	once, err := metadataElements(owned)
	if err != nil {
		return "", err
	}
	merged := planned
	for _, uri := range slices.Sorted(maps.Keys(have)) {
		_, wanted := want[uri]
		_, dropped := once[uri]
		if !wanted && !dropped {
			merged += have[uri].whole
		}
	}
	return merged, nil
}

type metadataElement struct{ prefix, xml, whole string }

// metadataElements reads a list of elements by their namespaces.
func metadataElements(text string) (map[string]metadataElement, error) {
	doc := etree.NewDocument()
	if err := doc.ReadFromString("<metadata>" + text + "</metadata>"); err != nil {
		return nil, fmt.Errorf("read metadata.xml: %w", err)
	}
	out := map[string]metadataElement{}
	for _, e := range doc.Root().ChildElements() {
		uri := e.NamespaceURI()
		p := e.Space
		if p == "" {
			p = e.Tag
		}
		all := etree.NewDocument()
		all.SetRoot(e.Copy())
		whole, err := all.WriteToString()
		if err != nil {
			return nil, err
		}
		one := etree.NewDocument()
		one.SetRoot(bare(e.Copy(), e.Space))
		xml, err := one.WriteToString()
		if err != nil {
			return nil, err
		}
		out[uri] = metadataElement{p, xml, whole}
	}
	return out, nil
}

// bare takes the namespace off an element and what is in it: libvirt's
// metadata call takes the namespace as an argument and puts it on itself, and
// refuses an element that has it already.
func bare(e *etree.Element, space string) *etree.Element {
	for _, attr := range append([]etree.Attr(nil), e.Attr...) {
		if attr.Space == "xmlns" && attr.Key == space || attr.Space == "" && attr.Key == "xmlns" && space == "" {
			e.RemoveAttr(attr.FullKey())
		}
	}
	if e.Space == space {
		e.Space = ""
	}
	for _, child := range e.ChildElements() {
		bare(child, space)
	}
	return e
}

// setGuestElement writes the element of one namespace; an empty one removes it.
func (a *apply) setGuestElement(ctx context.Context, uri string, e, was metadataElement) error {
	write := func(xml string) func(context.Context) error {
		return func(ctx context.Context) error {
			return a.before.dom.SetMetadata(ctx, virt.MetadataElement, xml, e.prefix, uri, virt.AffectLive)
		}
	}
	return a.try(ctx, write(e.xml), write(was.xml))
}

// validateMetadata finds XML that libvirt would drop or refuse.
func validateMetadata(config tree.Value) []kind.Problem {
	v := config.At("metadata.xml")
	if !v.IsKnown() {
		return nil
	}
	path := tree.Root.Attr("metadata").Attr("xml")
	refuse := func(detail string) []kind.Problem {
		return []kind.Problem{{Path: path, Summary: "metadata.xml cannot be kept by libvirt", Detail: detail}}
	}
	doc := etree.NewDocument()
	if err := doc.ReadFromString("<metadata>" + v.Str() + "</metadata>"); err != nil {
		return refuse(fmt.Sprintf("It is not well-formed XML: %v.", err))
	}
	seen := map[string]bool{}
	for _, e := range doc.Root().ChildElements() {
		switch uri := e.NamespaceURI(); {
		case uri == "":
			return refuse(fmt.Sprintf("The element %s has no namespace: write xmlns=\"…\" or a prefix of your own.", e.Tag))
		case uri == Namespace:
			return refuse(fmt.Sprintf("The namespace %s is the provider's own.", Namespace))
		case seen[uri]:
			return refuse(fmt.Sprintf("Two elements have the namespace %s; libvirt keeps one for each.", uri))
		default:
			seen[uri] = true
		}
	}
	return nil
}
