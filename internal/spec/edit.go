package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Edit returns the original document with exactly those places changed in
// which wanted differs from current, the tree that Decode gave for the
// original. Everything else stays as it is, also elements and attributes that
// libvirtxml has never heard of.
//
// It works on three documents: the original, what libvirtxml writes for
// current, and what it writes for wanted. The difference between the last two
// is applied to the first. An error names the element whose difference cannot
// be placed; then nothing must be changed on the host.
func (r *Root) Edit(original string, current, wanted tree.Value) (string, error) {
	doc, err := parse(original)
	if err != nil {
		return "", fmt.Errorf("edit the XML of a %s: %w", r.Name, err)
	}
	wanted = r.choose(current, wanted)
	if err := r.findLost(wanted); err != nil && r.findLost(current) == nil {
		return "", err
	}
	var sides [2]*etree.Document
	for i, t := range []tree.Value{current, wanted} {
		xml, err := r.write(t)
		if err != nil {
			return "", err
		}
		if sides[i], err = parse(xml); err != nil {
			return "", fmt.Errorf("edit the XML of a %s: %w", r.Name, err)
		}
	}
	if err := mergeElement(doc.Root(), sides[0].Root(), sides[1].Root()); err != nil {
		return "", fmt.Errorf("edit the XML of a %s: %w", r.Name, err)
	}
	out, err := doc.WriteToString()
	if err != nil {
		return "", err
	}
	return out, r.kept(current, wanted, out)
}

func parse(xml string) (*etree.Document, error) {
	doc := etree.NewDocument()
	doc.ReadSettings.PreserveCData = true
	if err := doc.ReadFromString(xml); err != nil {
		return nil, err
	}
	if doc.Root() == nil {
		return nil, fmt.Errorf("no root element")
	}
	return doc, nil
}

// mergeElement applies the difference from a to b to o.
func mergeElement(o, a, b *etree.Element) error {
	if same(a, b) {
		return nil
	}
	if o.Tag == "metadata" {
		// Its content is other people's, of any shape, and whole in the tree.
		o.Child = nil
		for _, token := range slices.Clone(b.Copy().Child) { // adding takes it from there
			o.AddChild(token)
		}
		return nil
	}
	mergeAttributes(o, a, b)
	if ta, tb := strings.TrimSpace(a.Text()), strings.TrimSpace(b.Text()); ta != tb {
		o.SetText(b.Text())
	}
	for _, tag := range tagsOf(a, b) {
		if err := mergeChildren(o, childrenOf(o, tag), childrenOf(a, tag), childrenOf(b, tag)); err != nil {
			return err
		}
	}
	return nil
}

func mergeAttributes(o, a, b *etree.Element) {
	for _, attr := range a.Attr {
		if !isNamespace(attr) && attributeOf(b, attr) == nil {
			o.RemoveAttr(attr.FullKey())
		}
	}
	for _, attr := range b.Attr {
		if was := attributeOf(a, attr); !isNamespace(attr) && (was == nil || was.Value != attr.Value) {
			o.CreateAttr(attr.FullKey(), attr.Value)
		}
	}
}

// isNamespace says whether the attribute declares a namespace: prefixes are
// spelling, and belong to the document that uses them.
func isNamespace(attr etree.Attr) bool {
	return attr.Space == "xmlns" || attr.Space == "" && attr.Key == "xmlns"
}

func attributeOf(e *etree.Element, attr etree.Attr) *etree.Attr {
	for i := range e.Attr {
		if e.Attr[i].Key == attr.Key && e.Attr[i].Space == attr.Space {
			return &e.Attr[i]
		}
	}
	return nil
}

// mergeChildren handles the children of one tag. Those of o and a are the
// same elements, as libvirtxml keeps the order within a tag.
func mergeChildren(o *etree.Element, lo, la, lb []*etree.Element) error {
	changed := len(la) != len(lb)
	for i := 0; !changed && i < len(la); i++ {
		changed = !same(la[i], lb[i])
	}
	if !changed {
		return nil
	}
	if len(la) == 0 && len(lb) == 1 && len(lo) == 1 && len(lo[0].ChildElements()) == 0 {
		// An element that says nothing, as the source of an empty drive does.
		return mergeElement(lo[0], etree.NewElement(lb[0].FullTag()), lb[0])
	}
	if len(lo) != len(la) {
		return fmt.Errorf("%s/%s: the definition has %d, of which this version of the provider understands %d; change it by hand (virsh edit) and put the result into the configuration",
			o.GetPath(), append(la, lb...)[0].FullTag(), len(lo), len(la))
	}
	from := align(la, lb)
	placed := make([]*etree.Element, len(lb))
	for j, i := range from {
		if i < 0 {
			placed[j] = lb[j].Copy()
			continue
		}
		placed[j] = lo[i]
		if err := mergeElement(lo[i], la[i], lb[j]); err != nil {
			return err
		}
	}
	place(o, lo, placed)
	return nil
}

// place puts the elements into o in the given order: where the first of their
// tag stood, or at the end. Those of lo that are not among them go.
func place(o *etree.Element, lo, placed []*etree.Element) {
	at := len(o.Child)
	if len(lo) > 0 {
		at = lo[0].Index()
	}
	for i := len(lo) - 1; i >= 0; i-- {
		o.RemoveChildAt(lo[i].Index())
	}
	for i, e := range placed {
		o.InsertChildAt(at+i, e)
	}
}

// align says for each element of b which one of a it was, or -1. Equal
// elements are paired first, in order, then those of the same identity, then
// what is left over, in order.
func align(la, lb []*etree.Element) []int {
	from := make([]int, len(lb))
	taken := make([]bool, len(la))
	for j := range from {
		from[j] = -1
	}
	pair := func(fits func(a, b *etree.Element) bool) {
		for j, b := range lb {
			for i, a := range la {
				if from[j] < 0 && !taken[i] && fits(a, b) {
					from[j], taken[i] = i, true
				}
			}
		}
	}
	pair(same)
	pair(func(a, b *etree.Element) bool {
		ka, kb := identity(a), identity(b)
		return ka != "" && ka == kb
	})
	pair(func(a, b *etree.Element) bool { return identity(a) == "" && identity(b) == "" && alike(a, b) })
	return from
}

// identities are the places, below an element, that tell it from its
// siblings; the first that is there counts.
var identities = map[string][]string{
	"disk":       {"target/@dev"},
	"interface":  {"mac/@address", "alias/@name"},
	"controller": {"@type+@index"},
	"graphics":   {"@type"},
	"feature":    {"@name"},
	"vcpupin":    {"@vcpu"}, "iothreadpin": {"@iothread"}, "iothread": {"@id"},
	"cell": {"@id"}, "host": {"@mac", "@name", "@ip"}, "timer": {"@name"},
}

func identity(e *etree.Element) string {
	places := identities[e.Tag]
	if places == nil {
		places = []string{"alias/@name", "target/@name"}
	}
	for _, place := range places {
		var key []string
		for _, part := range strings.Split(place, "+") {
			child, attr, _ := strings.Cut(part, "@")
			at := e
			if child != "" {
				at = e.SelectElement(strings.TrimSuffix(child, "/"))
			}
			if at != nil && at.SelectAttrValue(attr, "") != "" {
				key = append(key, strings.ToLower(at.SelectAttrValue(attr, "")))
			}
		}
		if len(key) > 0 {
			return strings.Join(key, " ")
		}
	}
	return ""
}

// alike says whether two elements may be the same one, changed: of one type
// and model, as far as they say so.
func alike(a, b *etree.Element) bool {
	for _, key := range []string{"type", "model"} {
		if a.SelectAttrValue(key, "") != b.SelectAttrValue(key, "") {
			return false
		}
	}
	return true
}

// same says whether two elements have the same content: attributes in any
// order, text without the space around it, children in order.
func same(a, b *etree.Element) bool {
	ca, cb := a.ChildElements(), b.ChildElements()
	if qualified(a) != qualified(b) || len(ca) != len(cb) || strings.TrimSpace(a.Text()) != strings.TrimSpace(b.Text()) {
		return false
	}
	if !sameAttributes(a, b) || !sameAttributes(b, a) {
		return false
	}
	for i := range ca {
		if !same(ca[i], cb[i]) {
			return false
		}
	}
	return true
}

func sameAttributes(a, b *etree.Element) bool {
	for _, attr := range a.Attr {
		if isNamespace(attr) {
			continue
		}
		if other := attributeOf(b, attr); other == nil || other.Value != attr.Value {
			return false
		}
	}
	return true
}

// tagsOf lists the tags of the children of both, those of b first, in order.
func tagsOf(a, b *etree.Element) []string {
	var tags []string
	seen := map[string]bool{}
	for _, e := range append(b.ChildElements(), a.ChildElements()...) {
		if key := qualified(e); !seen[key] {
			seen[key] = true
			tags = append(tags, key)
		}
	}
	return tags
}

func qualified(e *etree.Element) string { return e.NamespaceURI() + " " + e.Tag }

func childrenOf(e *etree.Element, tag string) []*etree.Element {
	var out []*etree.Element
	for _, c := range e.ChildElements() {
		if qualified(c) == tag {
			out = append(out, c)
		}
	}
	return out
}
