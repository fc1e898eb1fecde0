package provider

import (
	"bufio"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// userSchema is the schema as a core sees it: one line for each attribute.
func userSchema(t *testing.T) map[string][]string {
	t.Helper()
	resp, err := NewServer("test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range resp.Diagnostics {
		t.Fatalf("%s: %s", d.Summary, d.Detail)
	}
	out := map[string][]string{}
	collect := func(sort string, all map[string]*tfprotov6.Schema) {
		for name, schema := range all {
			var lines []string
			walkAttributes("", schema.Block.Attributes, func(path, typ, flags string) {
				lines = append(lines, path+"\t"+typ+"\t"+flags)
			})
			out[sort+" "+name] = lines
		}
	}
	collect("resource", resp.ResourceSchemas)
	collect("data", resp.DataSourceSchemas)
	collect("provider", map[string]*tfprotov6.Schema{"libvirt": resp.Provider})
	return out
}

func walkAttributes(prefix string, attrs []*tfprotov6.SchemaAttribute, f func(path, typ, flags string)) {
	for _, a := range attrs {
		var flags []string
		for name, set := range map[string]bool{"required": a.Required, "optional": a.Optional, "computed": a.Computed, "sensitive": a.Sensitive} {
			if set {
				flags = append(flags, name)
			}
		}
		sort.Strings(flags)
		var typ string
		path := prefix + a.Name
		below := path + "."
		switch {
		case a.NestedType == nil:
			json, _ := a.Type.MarshalJSON() //nolint:staticcheck // the only way to the spelling that cores use
			typ = strings.ReplaceAll(strings.Trim(string(json), `"`), ",", ", ")
			if len(typ) > 200 { // all paths of a resource in one value; TestDataSourceTypes compares them
				typ = fmt.Sprintf("one value, sha256 %x", sha256.Sum256(json))
			}
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			typ = "nested:single"
		default:
			typ, below = "nested:list", path+"[]."
		}
		f(path, typ, strings.Join(flags, ","))
		if a.NestedType != nil {
			walkAttributes(below, a.NestedType.Attributes, f)
		}
	}
}

// A line that vanishes or changes its type breaks configurations.
func TestSchemaGolden(t *testing.T) {
	var lines []string
	for name, attrs := range userSchema(t) {
		for _, a := range attrs {
			lines = append(lines, name+"\t"+a)
		}
	}
	sort.Strings(lines)
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "schema.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with: go test ./internal/provider -run TestSchemaGolden -update)", err)
	}
	if got == string(want) {
		return
	}
	have := map[string]bool{}
	for _, l := range lines {
		have[l] = true
	}
	for _, l := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		if !have[l] {
			t.Errorf("gone or changed: %s", l)
		}
	}
	t.Error("the schema differs from testdata/schema.golden; if that is meant, say so in the changelog and run with -update")
}

// Every path and type of the incumbent's resources and data sources is here too,
// so that its configurations work unchanged.
func TestSchemaIsASupersetOfTheIncumbent(t *testing.T) {
	ours := map[string]string{}
	types := map[string]bool{}
	for name, attrs := range userSchema(t) {
		types[name] = true
		for _, a := range attrs {
			path, rest, _ := strings.Cut(a, "\t")
			typ, _, _ := strings.Cut(rest, "\t")
			ours[name+"\t"+path] = typ
		}
	}
	f, err := os.Open(filepath.Join("testdata", "incumbent-schema.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked, absent := 0, map[string]int{}
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		part := strings.Split(scanner.Text(), "\t")
		if strings.HasPrefix(part[0], "#") {
			continue
		}
		if !types[part[0]] {
			absent[part[0]]++
			continue
		}
		checked++
		if got := ours[part[0]+"\t"+part[1]]; got != part[2] {
			t.Errorf("%s %s: the incumbent has %s, we have %q", part[0], part[1], part[2], got)
		}
	}
	for _, want := range []string{
		"resource libvirt_domain", "resource libvirt_network", "resource libvirt_pool", "resource libvirt_volume",
		"resource libvirt_cloudinit_disk", "resource libvirt_ignition", "resource libvirt_combustion",
		"data libvirt_domain_interface_addresses", "data libvirt_node_device_info", "data libvirt_node_devices", "data libvirt_node_info",
	} {
		if !types[want] {
			t.Errorf("there is no %s", want)
		}
	}
	t.Logf("%d paths checked; types not built yet: %v", checked, absent)
}
