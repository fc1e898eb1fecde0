package spec

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// describe writes the documentation of a field: where it stands in the XML,
// and what it means where that takes more than libvirt's own page says.
func describe(pattern, xml string, typ *tree.Type) string {
	text := meanings[pattern]
	if text == "" {
		text = meanings["*."+pattern[strings.LastIndex(pattern, ".")+1:]]
	}
	if text == "" {
		switch {
		case typ.Kind == tree.Bool && !strings.Contains(xml, "@"):
			text = "Whether the element is there."
		case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
			text = "One entry for each element."
		}
	}
	return strings.TrimSpace(text + " XML: `" + xml + "`.")
}
