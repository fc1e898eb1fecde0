package domain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// Namespace is that of the provider's own element in a domain's metadata.
// libvirt keeps it in the definition and copies it into the guest at start,
// whoever starts it: so the guest itself says which definition it runs.
const Namespace = "https://github.com/driftsafe/terraform-provider-libvirt/domain/1"

// prefix is what the element is called by in XML.
const prefix = "driftsafe"

// marker is the content of the element. The zero value says that the provider
// has never changed the domain.
type marker struct {
	Generation int64  // how many changes of the definition the provider has made
	Owner      string // the configuration that manages the domain, "" if none says so
	CPU        string // of a guest: the CPU it was started with, as JSON, if its definition has another one now
}

// element is the marker as XML, with its namespace.
func (m marker) element() string {
	return m.render(prefix+":domain", fmt.Sprintf("xmlns:%s", prefix))
}

// content is the marker as libvirt's metadata call takes it: the namespace is
// an argument of its own there.
func (m marker) content() string { return m.render("domain", "") }

func (m marker) render(tag, namespace string) string {
	e := etree.NewElement(tag)
	if namespace != "" {
		e.CreateAttr(namespace, Namespace)
	}
	e.CreateAttr("generation", strconv.FormatInt(m.Generation, 10))
	if m.Owner != "" {
		e.CreateAttr("owner", m.Owner)
	}
	if m.CPU != "" {
		e.CreateAttr("started-cpu", m.CPU)
	}
	doc := etree.NewDocument()
	doc.SetRoot(e)
	text, err := doc.WriteToString()
	if err != nil {
		panic(err) // writing into memory does not fail
	}
	return text
}

// splitMarker takes the marker out of the elements of a metadata element.
// Elements of other namespaces stay as they are.
func splitMarker(metadata string) (rest string, m marker) {
	if !strings.Contains(metadata, Namespace) {
		return metadata, m
	}
	doc := etree.NewDocument()
	if err := doc.ReadFromString("<metadata>" + metadata + "</metadata>"); err != nil {
		return metadata, m
	}
	for _, e := range doc.Root().ChildElements() {
		if e.NamespaceURI() == Namespace {
			m = readMarker(e)
			doc.Root().RemoveChild(e)
		}
	}
	text, err := doc.WriteToString()
	if err != nil {
		return metadata, m
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "<metadata>"), "</metadata>")
	return strings.TrimSpace(strings.TrimSuffix(text, "<metadata/>")), m
}

func readMarker(e *etree.Element) (m marker) {
	// A marker that somebody edited into nonsense counts as none.
	m.Generation, _ = strconv.ParseInt(e.SelectAttrValue("generation", "0"), 10, 64)
	m.Owner = e.SelectAttrValue("owner", "")
	m.CPU = e.SelectAttrValue("started-cpu", "")
	return m
}

// parseMarker reads the marker by itself, as libvirt's metadata call gives it.
func parseMarker(xml string) marker {
	doc := etree.NewDocument()
	if err := doc.ReadFromString(xml); err != nil || doc.Root() == nil {
		return marker{}
	}
	return readMarker(doc.Root())
}

// joinMarker is the inverse of splitMarker.
func joinMarker(rest string, m marker) string {
	if m == (marker{}) {
		return rest
	}
	return rest + m.element()
}
