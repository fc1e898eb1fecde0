package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// address5 is an object with as many attributes as make it worth a reference.
const address5 = `{"attributes": {
	"bus":    {"type": "number", "optional": true, "description": "XML: ` + "`PARENT/@bus`" + `."},
	"slot":   {"type": "number", "optional": true, "description": "XML: ` + "`PARENT/@slot`" + `."},
	"a":      {"type": "string", "optional": true},
	"b":      {"type": "string", "optional": true},
	"c":      {"type": "string", "optional": true}
}, "nesting_mode": "single"}`

func address5At(parent string) string { return strings.ReplaceAll(address5, "PARENT", parent) }

func block(t *testing.T, attributes string) Object {
	t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(`{"attributes": {`+attributes+`}}`), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRender(t *testing.T) {
	got, err := render(block(t, `
		"name":     {"type": "string", "required": true, "description": "Its\n name. XML: `+"`/d/name`"+`."},
		"id":       {"type": "number", "computed": true},
		"autostart":{"type": "bool", "optional": true, "computed": true},
		"password": {"type": "string", "optional": true, "sensitive": true, "write_only": true, "deprecated": true},
		"tags":     {"type": ["list", "string"], "optional": true},
		"devices":  {"optional": true, "description": "XML: `+"`/d/devices`"+`.", "nested_type": {"nesting_mode": "single", "attributes": {
			"disks": {"optional": true, "description": "XML: `+"`/d/devices/disk`"+`.", "nested_type": {"nesting_mode": "list", "attributes": {
				"address": {"optional": true, "description": "XML: `+"`/d/devices/disk/address`"+`.", "nested_type": `+address5At("/d/devices/disk/address")+`},
				"boot":    {"required": true, "type": "number"}}}},
			"nics": {"optional": true, "nested_type": {"nesting_mode": "map", "attributes": {
				"address": {"optional": true, "description": "XML: `+"`/d/devices/nic/address`"+`.", "nested_type": `+address5At("/d/devices/nic/address")+`}}}}
		}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := howToRead + `
- ¹name¹ string, **required**. Its name. XML: ¹/d/name¹.
- ¹autostart¹ boolean
- [¹devices¹](#nested--devices) object. XML: ¹/d/devices¹.
- ¹id¹ number, *read only*
- ¹password¹ string, *sensitive*, *write only*, *deprecated*
- ¹tags¹ list of strings

<a id="nested--devices"></a>
### ¹devices¹

- ¹disks¹ list of objects. XML: ¹disk¹.
  - ¹boot¹ number, **required**
  - <a id="nested--devices--disks--address"></a>¹address¹ object. XML: ¹address¹.
    - ¹a¹ string
    - ¹b¹ string
    - ¹bus¹ number. XML: ¹@bus¹.
    - ¹c¹ string
    - ¹slot¹ number. XML: ¹@slot¹.
- ¹nics¹ map of objects
  - ¹address¹ object. XML: ¹/d/devices/nic/address¹.
    - as [¹devices.disks.address¹](#nested--devices--disks--address)
`
	if want = strings.ReplaceAll(want, "¹", "`"); got != want {
		t.Errorf("rendered:\n%s\nwant:\n%s", got, want)
	}
}

func TestRenderRefersToTheResource(t *testing.T) {
	resource := block(t, `
		"os":     {"optional": true, "description": "How.", "nested_type": {"nesting_mode": "single", "attributes": {"type": {"type": "string", "optional": true, "description": "Which."}}}},
		"status": {"computed": true, "nested_type": {"nesting_mode": "single", "attributes": {"state": {"type": "string", "computed": true, "description": "Word."}}}}`)
	got, err := renderLike(block(t, `
		"name":   {"type": "string", "optional": true, "computed": true, "description": "Its name."},
		"os":     {"computed": true, "description": "How.", "nested_type": {"nesting_mode": "single", "attributes": {"type": {"type": "string", "computed": true}}}},
		"new":    {"computed": true, "nested_type": {"nesting_mode": "single", "attributes": {"x": {"type": "string", "computed": true}}}},
		"status": {"computed": true, "nested_type": {"nesting_mode": "single", "attributes": {"state": {"type": "string", "computed": true, "description": "Word."}}}}`), resource, "libvirt_x")
	if err != nil {
		t.Fatal(err)
	}
	want := howToReadLike + `
- [¹os¹](../resources/x.md#nested--os) object, *read only*. How.
- ¹name¹ string. Its name.
- [¹new¹](#nested--new) object, *read only*
- [¹status¹](#nested--status) object, *read only*

<a id="nested--new"></a>
### ¹new¹

- ¹x¹ string, *read only*

<a id="nested--status"></a>
### ¹status¹

- ¹state¹ string, *read only*. Word.
`
	if want = strings.ReplaceAll(want, "¹", "`"); got != want {
		t.Errorf("rendered:\n%s\nwant:\n%s", got, want)
	}
}

func TestRenderKeepsObjectsApartThatDiffer(t *testing.T) {
	one := address5At("/d/x")
	other := strings.Replace(one, `"type": "number"`, `"type": "string"`, 1)
	got, err := render(block(t, `
		"x": {"optional": true, "description": "XML: `+"`/d/x`"+`.", "nested_type": `+one+`},
		"y": {"optional": true, "description": "XML: `+"`/d/x`"+`.", "nested_type": `+other+`}`))
	if err != nil || strings.Contains(got, "- as [") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestRenderRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, attribute := range []string{
		`"x": {"type": "integer"}`,
		`"x": {"type": ["list"]}`,
		`"x": {"type": ["list", "integer"]}`,
		`"x": {"type": 7}`,
		`"x": {"nested_type": {"nesting_mode": "bag", "attributes": {}}}`,
		`"x": {"nested_type": {"nesting_mode": "single", "attributes": {"y": {"type": "integer"}}}}`,
	} {
		if got, err := render(block(t, attribute)); err == nil {
			t.Errorf("%s is rendered as:\n%s", attribute, got)
		}
	}
}

func TestReadSchema(t *testing.T) {
	raw := []byte(`{"format_version": "1.0", "provider_schemas": {
		"registry.opentofu.org/driftsafe/libvirt": {"provider": {}, "resource_schemas": {"libvirt_x": {"block": {"attributes": {}}}}},
		"registry.opentofu.org/other/libvirt": {}}}`)
	schema, renamed, err := readSchema(raw, "driftsafe/libvirt", "libvirt")
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Collect(maps.Keys(schema.Resources)); !slices.Equal(names, []string{"libvirt_x"}) {
		t.Errorf("resources %q", names)
	}
	if !strings.Contains(string(renamed), `"provider_schemas":{"libvirt":{`) || strings.Contains(string(renamed), "driftsafe") {
		t.Errorf("renamed: %s", renamed)
	}
	for _, bad := range []string{`nonsense`, `{"provider_schemas": {"registry.opentofu.org/other/libvirt": {}}}`, `{"provider_schemas": {"x/driftsafe/libvirt": 7}}`} {
		if _, _, err := readSchema([]byte(bad), "driftsafe/libvirt", "libvirt"); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestFill(t *testing.T) {
	one := &Schema{Resources: map[string]Resource{"libvirt_x": {}}}
	pages := map[string][]byte{"resources/x.md": []byte("before <!-- attributes of resource libvirt_x --> after")}
	if err := fill(pages, one); err != nil || !strings.Contains(string(pages["resources/x.md"]), howToRead) {
		t.Errorf("%v: %s", err, pages)
	}
	for want, tc := range map[string]struct {
		schema *Schema
		page   string
	}{
		"no page has the marker":     {one, "nothing"},
		"belongs to no resource":     {&Schema{}, "<!-- attributes of resource libvirt_gone -->"},
		"the registries take less":   {one, "<!-- attributes of resource libvirt_x -->" + strings.Repeat("x", maxPage)},
		"describe data source libvi": {&Schema{DataSources: one.Resources}, "<!-- attributes of resource libvirt_x -->"},
	} {
		err := fill(map[string][]byte{"p.md": []byte(tc.page)}, tc.schema)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSettle(t *testing.T) {
	docs := filepath.Join(t.TempDir(), "docs")
	pages := map[string][]byte{"index.md": []byte("new"), filepath.Join("resources", "x.md"): []byte("x")}
	if err := settle(docs, pages, true); err == nil || !strings.Contains(err.Error(), "index.md, resources/x.md") {
		t.Errorf("check without any docs: %v", err)
	}
	if _, err := os.Stat(docs); err == nil {
		t.Error("check has written something")
	}
	for path, content := range map[string]string{"index.md": "old", "resources/gone.md": "gone", "design/plan.md": "by hand"} {
		if err := write(filepath.Join(docs, path), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := settle(docs, pages, true); err == nil || !strings.Contains(err.Error(), "index.md, resources/x.md, resources/gone.md") {
		t.Errorf("check of old docs: %v", err)
	}
	if err := settle(docs, pages, false); err != nil {
		t.Fatal(err)
	}
	if err := settle(docs, pages, true); err != nil {
		t.Errorf("check of what was just written: %v", err)
	}
	got, err := readPages(docs)
	if err != nil || string(got["index.md"]) != "new" || got["resources/gone.md"] != nil || string(got["design/plan.md"]) != "by hand" {
		t.Errorf("%v: %q", err, got)
	}
}

func TestRunSaysWhatFails(t *testing.T) {
	top := t.TempDir()
	tofu := filepath.Join(top, "path", "tofu")
	answer := func(script string) {
		t.Helper()
		text := "#!/bin/sh\nif [ \"$1\" = version ]; then echo OpenTofu v1.0.0; exit; fi\n" + script + "\n"
		if err := write(tofu, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(tofu, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Dir(tofu)+":"+os.Getenv("PATH"))
	answer("echo no such provider >&2; exit 1")
	if err := run(t.Context(), top, false); err == nil || !strings.Contains(err.Error(), "no such provider") {
		t.Errorf("the core fails: %v", err)
	}
	answer(`echo '{"provider_schemas": {"registry.opentofu.org/driftsafe/libvirt": {}}}'`)
	if err := run(t.Context(), top, false); err == nil || !strings.Contains(err.Error(), "generate pages") {
		t.Errorf("tfplugindocs is missing: %v", err)
	}
}
