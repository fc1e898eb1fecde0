package provider

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// inputs are attributes of an object, by name.
type inputs map[string]string

// good are the inputs of objects that work.
var good = map[string]inputs{
	"cloudinit_disk": {"name": "web", "user_data": seedUser, "meta_data": seedMeta},
	"ignition":       {"name": "web", "content": `{"ignition":{"version":"3.4.0"}}`},
	"combustion":     {"name": "web", "content": "#!/bin/bash\n# combustion: network\necho\n"},
}

// planOf plans a new object with these inputs in another directory.
func planOf(t *testing.T, k storedKind, store string, in inputs) (storedModel, diag.Diagnostics) {
	t.Helper()
	ctx := context.Background()
	data := &Data{}
	data.configure("test:///default", nil, store, nil, "")
	r := &stored{kind: k, settings: data}
	s := k.schema()
	typ := s.Type().TerraformType(ctx)
	values := map[string]tftypes.Value{}
	for name, attr := range typ.(tftypes.Object).AttributeTypes {
		values[name] = tftypes.NewValue(attr, nil)
		if text, ok := in[name]; ok {
			values[name] = tftypes.NewValue(attr, text)
		}
	}
	plan := tfsdk.Plan{Schema: s, Raw: tftypes.NewValue(typ, values)}
	resp := resource.ModifyPlanResponse{Plan: plan}
	r.ModifyPlan(ctx, resource.ModifyPlanRequest{Plan: plan, State: tfsdk.State{Schema: s, Raw: tftypes.NewValue(typ, nil)}}, &resp)
	m := k.model()
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Get(ctx, m)...)
	}
	return m, resp.Diagnostics
}

var storedKinds = []storedKind{cloudinitDiskKind, ignitionKind, combustionKind}

func TestGoodInputs(t *testing.T) {
	for _, k := range storedKinds {
		store := filepath.Join(t.TempDir(), "seeds")
		m, diags := planOf(t, k, store, good[k.typeName])
		if len(diags) > 0 {
			t.Errorf("%s: %v", k.typeName, diags)
			continue
		}
		f := m.common()
		if f.ID.ValueString() != "web" || f.Digest.ValueString() != m.content().Digest().Tagged() || f.Size.ValueInt64() == 0 ||
			f.Path.ValueString() != filepath.Join(store, seed.FileName("web", m.content())) {
			t.Errorf("%s: %+v", k.typeName, f)
		}
	}
}

// badInput is an object with one input that is refused.
type badInput struct {
	typ, says string // what is in the detail: the place, the problem
	attribute string
	value     string
	way       string // out
}

func badInputs() []badInput {
	large := strings.Repeat("x", seed.MaxContent)
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const disk, ign, script = "cloudinit_disk", "ignition", "combustion"
	return []badInput{
		{disk, "empty", "name", "", "unique on this machine"},
		{disk, "empty", "name", " \t", "unique on this machine"},
		{disk, "none of the headers", "user_data", "hostname: a\n", "put #cloud-config into its first line"},
		{disk, "none of the headers", "user_data", "# cloud-config\nhostname: a\n", "very first line"},
		{disk, "none of the headers", "user_data", "\ufeff#cloud-config\na: 1\n", "byte order mark"},
		{disk, "none of the headers", "user_data", encoded("#cloud-config\na: 1\n"), "base64_encode = false"},
		{disk, "Line 3, column 3: it is not valid YAML", "user_data", "#cloud-config\na: 1\n b: 2\n", "yamlencode()"},
		{disk, "Line 3, column 1", "user_data", "#cloud-config\na:\n\tb: 1\n", "yamlencode()"},
		{disk, "Line 2, column 4: a tab", "user_data", "#cloud-config\na:\tb\n", "spaces"},
		{disk, "Line 2, column 1: what follows the header is not a mapping", "user_data", "#cloud-config\n- a\n", "yamlencode()"},
		{disk, "Line 3, column 1: a second YAML document", "user_data", "#cloud-config\na: 1\n---\nb: 1\n", "Remove the line"},
		{disk, "Line 2, column 4: this tag", "user_data", "#cloud-config\na: !vault b\n", "Remove the tag"},
		{disk, "Line 2, column 6: it contains a NUL byte", "user_data", "#!/bin/sh\necho \x00\n", "Remove it"},
		{disk, "not valid UTF-8", "user_data", "#!/bin/sh\n\xff\n", "base64"},
		{disk, "larger than 10 MiB", "user_data", "#!/bin/sh\n" + large, "fetch large data by itself"},
		{disk, "empty, so it has no instance-id", "meta_data", "", "instance-id ="},
		{disk, "no instance-id", "meta_data", "local-hostname: a\n", "instance-id ="},
		{disk, "Line 1, column 13: its instance-id is empty", "meta_data", "instance-id:\n", "instance-id ="},
		{disk, "Line 1, column 1: it is not a mapping", "meta_data", "- instance-id\n", "instance-id ="},
		{disk, "Line 2, column 4", "meta_data", "instance-id: a\n  b: c\n", "yamlencode()"},
		{disk, "Line 1, column 10: its version", "network_config", "version: 3\n", "version: 2"},
		{disk, "Line 1, column 1: it has no version", "network_config", "ethernets: {}\n", "version: 2"},
		{disk, "Line 1, column 1: version 1 needs a list", "network_config", "version: 1\n", "Add config:"},

		{ign, "empty", "name", "", "unique on this machine"},
		{ign, "it is empty", "content", "", "jsonencode"},
		{ign, "not JSON", "content", "variant: fcos\nversion: 1.5.0\n", "butane"},
		{ign, "not JSON", "content", "#cloud-config\n", "libvirt_cloudinit_disk"},
		{ign, "not JSON", "content", encoded(`{"ignition":{}}`), "base64decode"},
		{ign, "Line 2, column 22: it is not valid JSON", "content", "{\"ignition\":\n  {\"version\":\"3.4.0\",}}", "jsonencode()"},
		{ign, "Line 1, column 13: it is not valid JSON: unexpected end", "content", `{"ignition":`, "jsonencode()"},
		{ign, "Line 1, column 1: it is not a JSON object", "content", "[]", "jsonencode"},
		{ign, "no ignition.version", "content", `{"storage":{}}`, "3.4.0"},
		{ign, "Line 1, column 24: ignition.version is not a text", "content", `{"ignition":{"version":3.4}}`, `"3.4.0"`},
		{ign, "Line 1, column 24: ignition.version is \"3.4\"", "content", `{"ignition":{"version":"3.4"}}`, "three numbers"},
		{ign, "the specification are 2.x and 3.x", "content", `{"ignition":{"version":"4.0.0"}}`, `"3.4.0"`},
		{ign, "ends in .0", "content", `{"ignition":{"version":"3.4.1"}}`, `"3.4.0"`},
		{ign, "Line 1, column 20: it is in version 1", "content", `{"ignitionVersion":1}`, "3.4.0"},
		{ign, "Line 2, column 2: it contains a NUL byte", "content", "{\n \x00}", "Remove it"},
		{ign, "not valid UTF-8", "content", "{\"a\":\"\xff\"}", "base64"},
		{ign, "larger than 10 MiB", "content", `{"a":"` + large + `"}`, "fetch large data by itself"},
		{ign, `neither "raw" nor "iso"`, "format", "qcow2", `"iso"`},

		{script, "empty", "name", "\n", "unique on this machine"},
		{script, "it is empty", "content", "\n", "#!/bin/bash"},
		{script, "for cloud-init", "content", "#cloud-config\na: 1\n", "libvirt_cloudinit_disk"},
		{script, "it is JSON", "content", `{"ignition":{"version":"3.4.0"}}`, "libvirt_ignition"},
		{script, "base64", "content", encoded("#!/bin/sh\necho a\n"), "base64decode"},
		{script, "byte order mark", "content", "\ufeff#!/bin/sh\n", "without it"},
		{script, "Line 1, column 10: its lines end as on Windows", "content", "#!/bin/sh\r\necho\r\n", "replace("},
		{script, "Line 1, column 3: its interpreter", "content", "#!bash\n", "#!/bin/bash"},
		{script, "Line 1, column 1: #! does not stand", "content", "\n#!/bin/sh\n", "Remove what stands before"},
		{script, "Line 2, column 6: it contains a NUL byte", "content", "#!/bin/sh\necho \x00\n", "Remove it"},
		{script, "larger than 10 MiB", "content", "#!/bin/sh\n" + large, "fetch large data by itself"},
		{script, `neither "raw" nor "iso"`, "format", "", `"iso"`},
	}
}

// What a guest would not do as it reads is refused in the plan, by an error that
// names object, attribute, place and way out, and no file is left.
func TestBadInputs(t *testing.T) {
	kinds := map[string]storedKind{}
	for _, k := range storedKinds {
		kinds[k.typeName] = k
	}
	rows := badInputs()
	if len(rows) < 40 {
		t.Errorf("%d rows", len(rows))
	}
	for i, bad := range rows {
		t.Run(fmt.Sprintf("%d %s %s", i, bad.typ, bad.attribute), func(t *testing.T) {
			k, dir := kinds[bad.typ], t.TempDir()
			in := inputs{bad.attribute: bad.value}
			for name, value := range good[bad.typ] {
				if name != bad.attribute {
					in[name] = value
				}
			}
			_, diags := planOf(t, k, filepath.Join(dir, "seeds"), in)
			if len(diags) != 1 || diags[0].Severity() != diag.SeverityError {
				t.Fatalf("want one error, got %v", diags)
			}
			at, ok := diags[0].(diag.DiagnosticWithPath)
			if !ok || !at.Path().Equal(path.Root(bad.attribute)) {
				t.Errorf("it is not about %s: %v", bad.attribute, diags[0])
			}
			if want := fmt.Sprintf("Invalid %s of %s %q", bad.attribute, k.noun, in["name"]); diags[0].Summary() != want {
				t.Errorf("summary %q, want %q", diags[0].Summary(), want)
			}
			detail := strings.ToLower(diags[0].Detail())
			for _, want := range []string{bad.says, bad.way} {
				if !strings.Contains(detail, strings.ToLower(want)) {
					t.Errorf("%q lacks %q", diags[0].Detail(), want)
				}
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Any other name is a name: none leads out of the store.
func TestNamesThatLookLikePaths(t *testing.T) {
	for _, k := range storedKinds {
		for _, name := range []string{"a/b", "../../etc/passwd", "/etc/passwd", ".", "..", "a\nb", "~", "$HOME", "x?y#z%2F", strings.Repeat("ä", 300)} {
			store := filepath.Join(t.TempDir(), "seeds")
			in := inputs{"name": name}
			for attribute, value := range good[k.typeName] {
				if attribute != "name" {
					in[attribute] = value
				}
			}
			m, diags := planOf(t, k, store, in)
			if diags.HasError() {
				t.Errorf("%s %q: %v", k.typeName, name, diags)
				continue
			}
			if f := m.common(); filepath.Dir(f.Path.ValueString()) != store || f.ID.ValueString() != name {
				t.Errorf("%s %q: %+v", k.typeName, name, f)
			}
		}
	}
}

// What is not known yet is not checked, and not computed.
func TestUnknownText(t *testing.T) {
	r := &stored{kind: ignitionKind, settings: &Data{}}
	m := &ignitionModel{storedText{storedFile: storedFile{Name: types.StringValue("web")}, Content: types.StringUnknown()}}
	if diags := append(r.check(m, nil), r.compute(m, nil)...); len(diags) > 0 || !m.Path.IsUnknown() || !m.Digest.IsUnknown() {
		t.Errorf("%v, %+v", diags, m)
	}
}
