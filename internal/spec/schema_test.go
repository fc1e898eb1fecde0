package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestAttributeName(t *testing.T) {
	for field, want := range map[string]string{
		"MaximumMemory": "maximum_memory", "IOThreadIDs": "io_thread_i_ds", "NVRam": "nv_ram", "NVRAM": "nvram",
		"SubsysPCI": "subsys_pci", "VEPA8021QBG": "vepa8021qbg", "IPs": "ips", "SRVs": "sr_vs", "S390PV": "s390pv",
		"QEMUCommandline": "qemu_commandline", "HyperV": "hyper_v", "GIDs": "gi_ds",
	} {
		if got := attributeName(field); got != want {
			t.Errorf("attributeName(%s) = %s, want %s", field, got, want)
		}
	}
}

// Every override must still name a field: a dead row hides a mistake.
func TestOverridesAreAlive(t *testing.T) {
	for _, root := range []struct {
		r     *Root
		table *overrides
	}{{Domain(), domainOverrides}, {Network(), networkOverrides}, {Pool(), poolOverrides}, {Volume(), volumeOverrides}} {
		for _, row := range root.table.rows {
			one := &overrides{rows: []override{{row.suffix, YesNo, row.reason}}}
			alive := false
			for pattern := range root.r.Fields {
				alive = alive || one.flags(pattern).Has(YesNo)
			}
			if !alive {
				t.Errorf("%s: no field ends in %q", root.r.Name, row.suffix)
			}
			if row.reason == "" {
				t.Errorf("%s: the override of %q has no reason", root.r.Name, row.suffix)
			}
		}
	}
}

// Every leaf can be written and read back: no attribute is decoration.
func TestEveryLeafRoundTrips(t *testing.T) {
	for _, root := range []*Root{Domain(), Network(), Pool(), Volume()} {
		leaves, lost := 0, 0
		root.Type().Walk(func(pattern string, a *tree.Attribute) {
			if a.Type.Kind == tree.Object || a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object {
				return
			}
			leaves++
			v, path := sample(a.Type), samplePath(pattern)
			want := plant(tree.NullValue, path, v)
			if strings.HasPrefix(pattern, "devices.iommus[]") {
				want = want.SetAt("devices.iommu", tree.ObjectValue(nil))
			}
			got := viaStruct(t, root, want)
			if !tree.Equal(got.Get(path), v) {
				lost++
				t.Errorf("%s %s: wrote %s, read %s", root.Name, pattern, v, got.Get(path))
			}
		})
		t.Logf("%s: %d leaves", root.Name, leaves)
	}
}

func sample(typ *tree.Type) tree.Value {
	switch typ.Kind {
	case tree.Bool:
		return tree.BoolValue(true)
	case tree.Number:
		return tree.IntValue(7)
	case tree.List:
		return tree.ListValue([]tree.Value{sample(typ.Elem), sample(typ.Elem)})
	}
	return tree.StringValue("value")
}

// samplePath leads through element 0 of every list of the pattern.
func samplePath(pattern string) tree.Path {
	return tree.ParsePath(strings.ReplaceAll(pattern, "[]", "[0]"))
}

// plant sets a value and makes the list elements on the way.
func plant(v tree.Value, p tree.Path, leaf tree.Value) tree.Value {
	if len(p) == 0 {
		return leaf
	}
	if p[0].Attr != "" {
		return v.With(p[0].Attr, plant(v.Attr(p[0].Attr), p[1:], leaf))
	}
	return tree.ListValue([]tree.Value{plant(tree.ObjectValue(nil), p[1:], leaf)})
}

func viaStruct(t *testing.T, root *Root, v tree.Value) tree.Value {
	t.Helper()
	doc := reflect.New(root.obj.goType)
	if err := root.obj.encode(v, doc.Elem(), nil); err != nil {
		t.Fatal(err)
	}
	return root.obj.decode(doc.Elem())
}
