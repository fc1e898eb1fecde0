package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	lab.Main(m, func() tfprotov6.ProviderServer { return provider.NewServer("test") })
}

// testDriver is libvirt's own host without a hypervisor: one domain, one network
// and one pool, in the memory of this process.
const testDriver = "test:///default"

func TestIdentifier(t *testing.T) {
	for text, want := range map[string]string{
		"web":                  "web",
		"Web-Front.End 2":      "web_front_end_2",
		"1st machine":          "domain_1st_machine",
		"été":                  "t",
		"über":                 "ber",
		"машина":               "domain",
		"--":                   "domain",
		"${x}":                 "x",
		"a__b":                 "a_b",
		"trailing!":            "trailing",
		strings.Repeat("x", 9): "xxxxxxxxx",
	} {
		if got := identifier(text, "domain"); got != want {
			t.Errorf("identifier(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	var objects []*object
	for _, h := range []handle{
		{kind: kindDomain, name: "web"}, {kind: kindDomain, name: "Web"}, {kind: kindDomain, name: "web!"}, {kind: kindNetwork, name: "web"},
		{kind: kindVolume, pool: "a", name: "disk.qcow2"}, {kind: kindVolume, pool: "a", name: "disk.raw"},
		{kind: kindVolume, pool: "b", name: "disk.raw"}, {kind: kindVolume, pool: "b", name: "v1.2"},
	} {
		objects = append(objects, &object{handle: h})
	}
	label(objects)
	want := []string{"web", "web_2", "web_3", "web", "disk", "disk_raw", "b_disk_raw", "v1_2"}
	for i, o := range objects {
		if o.label != want[i] {
			t.Errorf("%s is called %q, want %q", o.selector(), o.label, want[i])
		}
	}
}

func TestSelectors(t *testing.T) {
	web, image := handle{kind: kindDomain, name: "web"}, handle{kind: kindVolume, pool: "default", name: "web.qcow2"}
	for _, row := range []struct {
		text    string
		chooses []handle
		refused string
	}{
		{"domain/web", []handle{web}, ""},
		{"domain/*", []handle{web}, ""},
		{"volume/default/*.qcow2", []handle{image}, ""},
		{"volume/*/*", []handle{image}, ""},
		{"network/web", nil, ""},
		{"volume/web.qcow2", nil, "names no pool"},
		{"web", nil, "chooses nothing"},
		{"machine/web", nil, "chooses nothing"},
		{"domain/", nil, "chooses nothing"},
		{"domain/[", nil, "is no pattern"},
	} {
		s, err := parseSelector(row.text)
		if row.refused != "" {
			if err == nil || !strings.Contains(err.Error(), row.refused) {
				t.Errorf("%s: %v, want %q", row.text, err, row.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.text, err)
		}
		for _, h := range []handle{web, image} {
			want := len(row.chooses) > 0 && row.chooses[0] == h
			if s.chooses(h) != want {
				t.Errorf("%s chooses %s: %v, want %v", row.text, h.selector(), !want, want)
			}
		}
	}
}

// TestRun adopts the domain that libvirt's test driver has (it gives no definition
// of networks and pools), and shows that nothing is
// overwritten.
func TestRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "infra")
	o := options{uri: testDriver, out: dir, chosen: []string{"domain/*"}}
	var out bytes.Buffer
	if err := run(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	domains := contents(t, filepath.Join(dir, "domains.tf"))
	for _, want := range []string{`resource "libvirt_domain" "test" {`, `name   = "test"`, `memory = 8`} {
		if !strings.Contains(strings.Join(strings.Fields(domains), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("domains.tf does not have %q:\n%s", want, domains)
		}
	}
	imports := contents(t, filepath.Join(dir, "imports.tf"))
	if want := "to = libvirt_domain.test"; !strings.Contains(imports, want) {
		t.Errorf("imports.tf does not have %q:\n%s", want, imports)
	}
	for _, name := range []string{"providers.tf", "domains.tf", "imports.tf"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s, which may hold secrets, is not for this user alone: %v, %v", name, info.Mode(), err)
		}
	}
	before := contents(t, filepath.Join(dir, "imports.tf"))
	if err := os.Remove(filepath.Join(dir, "providers.tf")); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), o, &out); err == nil || !strings.Contains(err.Error(), "is there already, and nothing was written") {
		t.Errorf("over its own files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "providers.tf")); err == nil || contents(t, filepath.Join(dir, "imports.tf")) != before {
		t.Error("something was written though a file was there")
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestList shows what is printed without a choice, and that nothing is written.
func TestList(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), options{uri: testDriver}, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "domain/test\n") || !strings.Contains(got, "network/default\n") || !strings.Contains(got, "pool/default-pool\n") {
		t.Errorf("the list is:\n%s", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"domain/test"}, "-out is missing"},
		{[]string{"-all"}, "-out is missing"},
		{[]string{"-out", "x", "test"}, "chooses nothing"},
	} {
		if _, err := parse(row.args, io.Discard); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want %q", row.args, err, row.want)
		}
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "none")
	err := run(context.Background(), options{uri: testDriver, out: dir, chosen: []string{"domain/nobody"}}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `has nothing that "domain/nobody" chooses`) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made for nothing")
	}
}

// TestNeverWrites shows that the connection refuses to change anything.
func TestNeverWrites(t *testing.T) {
	r := open(testDriver)
	defer func() { _ = r.close() }()
	if _, err := r.DefineNetwork(context.Background(), "<network><name>x</name></network>"); err == nil || !strings.Contains(err.Error(), "changes nothing") {
		t.Errorf("a definition: %v", err)
	}
	dom, err := r.LookupDomainByName(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := dom.SetAutostart(context.Background(), true); err == nil || !strings.Contains(err.Error(), "changes nothing") {
		t.Errorf("autostart: %v", err)
	}
}

func text(s string) tree.Value { return tree.StringValue(s) }

func obj(pairs ...any) tree.Value {
	attrs := map[string]tree.Value{}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			attrs[pairs[i].(string)] = text(v)
		case int:
			attrs[pairs[i].(string)] = tree.IntValue(int64(v))
		case tree.Value:
			attrs[pairs[i].(string)] = v
		}
	}
	return tree.ObjectValue(attrs)
}

func list(elems ...tree.Value) tree.Value { return tree.ListValue(elems) }
