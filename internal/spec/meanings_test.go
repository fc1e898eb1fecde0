package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Every description must serve a field: one that no field has, or that a
// longer key hides everywhere, is a mistake.
func TestMeaningsAreAlive(t *testing.T) {
	used := map[string]map[string]bool{} // root → key
	for _, root := range []*Root{Domain(), Network(), Pool(), Volume()} {
		used[root.Name] = map[string]bool{}
		for pattern := range root.Fields {
			if _, key := meaning(root.Name, pattern); key != "" {
				used[root.Name][key] = true
			}
		}
	}
	shared := map[string]bool{}
	for root, tables := range meanings {
		for _, table := range tables[:len(tables)-1] {
			for key := range table {
				// Pools and volumes share a table; either may use a key.
				if !used[root][key] && !(root == "pool" && used["volume"][key]) && !(root == "volume" && used["pool"][key] && storageMeanings[key] != "") {
					t.Errorf("%s: no field is described by %q", root, key)
				}
			}
		}
		for key := range sharedMeanings {
			shared[key] = shared[key] || used[root][key]
		}
	}
	for key, alive := range shared {
		if !alive {
			t.Errorf("no field of any document is described by the shared %q", key)
		}
	}
}

// A key stands in one table of a document: of two texts one would be dead.
func TestMeaningsAreUnique(t *testing.T) {
	for root, tables := range meanings {
		seen := map[string]string{}
		for _, table := range tables[:len(tables)-1] {
			for key, text := range table {
				if seen[key] != "" {
					t.Errorf("%s: %q has two descriptions", root, key)
				}
				seen[key] = text
			}
		}
	}
}

func TestMeaningsAreSentences(t *testing.T) {
	for root, tables := range meanings {
		for _, table := range tables {
			for key, text := range table {
				if text != strings.TrimSpace(text) || !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "…") || strings.Count(text, "`")%2 != 0 {
					t.Errorf("%s: the description of %q is no sentence: %q", root, key, text)
				}
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	texts := map[string]string{}
	for _, root := range []*Root{Domain(), Network()} {
		root.Type().Walk(func(pattern string, a *tree.Attribute) { texts[root.Name+" "+pattern] = a.Description })
	}
	for field, want := range map[string]string{
		"domain memory":        "Memory of the guest at its start, in `memory_unit`. XML: `/domain/memory`.",
		"domain features.acpi": domainMeanings["features.acpi"], // the whole pattern before *.acpi
		"network name":         networkMeanings["name"],         // the document's own before the shared one
		"domain devices.disks[].backing_store.source.file.file": blockMeanings["*.source.file.file"],
		"domain devices.hubs[].type":                            "XML: `/domain/devices/hub/@type`.", // nothing is said
	} {
		if !strings.HasPrefix(texts[field], want) {
			t.Errorf("%s is described as %q, want %q", field, texts[field], want)
		}
	}
}
