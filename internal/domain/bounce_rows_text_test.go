package domain_test

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// textRows are what no guest notices.
func textRows(testing.TB) []bounce.Row {
	return []bounce.Row{
		{
			Name: "autostart-on", Base: bounce.Fields{"autostart": "false"},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"autostart": "true"}, Definition: bounce.Leaves{bounce.Autostart: "enable"}, Want: bounce.Always(bounce.None),
			}},
		},
		{
			Name: "title-and-description",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"title": `"A title"`, "description": `"Two\nlines"`},
				Live:   bounce.Leaves{"title": "A title", "description": "Two\nlines"}, Want: bounce.Always(bounce.Live),
			}},
		},
		{
			Name: "metadata-element",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"metadata.xml": `"<x:site xmlns:x=\"urn:x\" rack=\"7\"/>"`},
				Live:   bounce.Leaves{"metadata/x:site/@rack": "7"}, Want: bounce.Always(bounce.Live),
			}},
		},
	}
}
