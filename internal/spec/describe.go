package spec

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// describe writes the documentation of a field: what it means, and where it
// stands in the XML.
func describe(pattern, xml string, typ *tree.Type) string {
	text, _ := meaning(rootOf(xml), pattern)
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

// rootOf is the name of the document that a place in the XML belongs to.
func rootOf(xml string) string {
	root, _, _ := strings.Cut(strings.TrimPrefix(xml, "/"), "/")
	return root
}

// meaning finds the text for a field, and the key that it stands under: the
// pattern itself, else the longest end of it that the tables know.
func meaning(root, pattern string) (text, key string) {
	for _, table := range meanings[root] {
		if text = table[pattern]; text != "" {
			return text, pattern
		}
	}
	for rest := pattern; ; {
		for _, table := range meanings[root] {
			if text = table["*."+rest]; text != "" {
				return text, "*." + rest
			}
		}
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return "", ""
		}
		rest = after
	}
}
