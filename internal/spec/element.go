package spec

import (
	"fmt"
	"strings"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Element returns the XML of one element of a list, as the document has it: with
// all that libvirtxml does not know, and with the namespaces that it needs. The
// path is one of the tree that Decode gives for the document, as in
// devices.disks[0].
func (r *Root) Element(xml string, p tree.Path) (string, error) {
	doc, err := parse(xml)
	if err != nil {
		return "", fmt.Errorf("read the XML of a %s: %w", r.Name, err)
	}
	found := elementAt(doc.Root(), r.Fields[p[:len(p)-1].Pattern()], p[len(p)-1].Index)
	if found == nil {
		return "", fmt.Errorf("the XML of the %s has no %s", r.Name, p)
	}
	alone := etree.NewDocument()
	root := found.Copy()
	for e := found.Parent(); e != nil; e = e.Parent() {
		for _, attr := range e.Attr {
			if isNamespace(attr) && attributeOf(root, attr) == nil {
				root.CreateAttr(attr.FullKey(), attr.Value)
			}
		}
	}
	alone.SetRoot(root)
	return alone.WriteToString()
}

func elementAt(root *etree.Element, f *Field, index int) *etree.Element {
	if f == nil {
		return nil
	}
	e := root
	steps := strings.Split(strings.TrimPrefix(f.XML, "/"), "/")[1:]
	for i, tag := range steps {
		children := childrenOf(e, " "+tag) // of no namespace
		at := 0
		if i == len(steps)-1 {
			at = index
		}
		if at < 0 || at >= len(children) {
			return nil
		}
		e = children[at]
	}
	return e
}
