package spec_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

var documents = map[string]func() libvirtxml.Document{
	"domain":  func() libvirtxml.Document { return &libvirtxml.Domain{} },
	"network": func() libvirtxml.Document { return &libvirtxml.Network{} },
	"pool":    func() libvirtxml.Document { return &libvirtxml.StoragePool{} },
	"volume":  func() libvirtxml.Document { return &libvirtxml.StorageVolume{} },
}

// TestCorpusCoverage tells how much of each root the corpus shows: of the
// fields of libvirtxml's structs, each counted once, and of the places that
// they have in the tree, where a character device's file counts again for each
// kind of device. What is missing goes to the files CORPUS_MISSING.KIND if that
// is set in the environment.
func TestCorpusCoverage(t *testing.T) {
	for _, k := range kinds {
		fields, places := map[string]bool{}, map[string]bool{}
		for _, name := range readable(t, k) {
			xml := corpusFile(t, k.name, name)
			v, err := k.root().Decode(xml)
			if err != nil {
				t.Fatal(err)
			}
			notePlaces(v, "", places)
			doc := documents[k.name]()
			if err := doc.Unmarshal(xml); err != nil {
				t.Fatal(err)
			}
			noteFields(reflect.ValueOf(doc), fields)
		}
		shown := func(what string, all []string, used map[string]bool) (missing []string) {
			missing = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return used[s] })
			if len(missing) == len(all) {
				t.Errorf("%s: the corpus shows nothing", k.name)
			}
			t.Logf("%s: %d of %d %s have a value in at least one dump, %.1f %%", k.name, len(all)-len(missing), len(all), what,
				100*float64(len(all)-len(missing))/float64(len(all)))
			return missing
		}
		all := map[string]bool{}
		listFields(reflect.TypeOf(documents[k.name]()).Elem(), all, map[reflect.Type]bool{})
		missing := shown("fields of libvirtxml", keys(all), fields)
		missing = append(missing, shown("leaves of the tree", leaves(k.root().Type()), places)...)
		if file := os.Getenv("CORPUS_MISSING"); file != "" {
			if err := os.WriteFile(file+"."+k.name, []byte(strings.Join(missing, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// notePlaces notes the patterns of all scalars in v.
func notePlaces(v tree.Value, pattern string, used map[string]bool) {
	switch v.Kind() {
	case tree.List:
		for _, e := range v.Elems() {
			notePlaces(e, pattern+"[]", used)
		}
	case tree.Object:
		for _, name := range v.Names() {
			notePlaces(v.Attr(name), strings.TrimPrefix(pattern+"."+name, "."), used)
		}
	case tree.Null, tree.Unknown:
	default:
		used[strings.TrimSuffix(pattern, "[]")] = true
	}
}

// leaves lists the patterns of all scalars and lists of scalars of a type.
func leaves(typ *tree.Type) (patterns []string) {
	typ.Walk(func(pattern string, a *tree.Attribute) {
		if a.Type.Kind != tree.Object && (a.Type.Kind != tree.List || a.Type.Elem.Kind != tree.Object) {
			patterns = append(patterns, pattern)
		}
	})
	return patterns
}

// noteFields notes the fields that are not zero, as Struct.Field.
func noteFields(v reflect.Value, used map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			noteFields(v.Elem(), used)
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFields(v.Index(i), used)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				used[fieldName(v.Type(), i)] = true
				noteFields(v.Field(i), used)
			}
		}
	}
}

func listFields(t reflect.Type, all map[string]bool, seen map[reflect.Type]bool) {
	switch {
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		listFields(t.Elem(), all, seen)
	case t.Kind() == reflect.Struct && !seen[t]:
		seen[t] = true
		for i := range t.NumField() {
			if t.Field(i).Name != "XMLName" {
				all[fieldName(t, i)] = true
				listFields(t.Field(i).Type, all, seen)
			}
		}
	}
}

func fieldName(t reflect.Type, i int) string { return t.Name() + "." + t.Field(i).Name }

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
