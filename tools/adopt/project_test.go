package main

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// machine is a domain with one disk, one interface and a display that has a
// password.
func machine(name, file string) *object {
	essence := obj("name", name, "type", "kvm", "memory", 2, "memory_unit", "GiB", "vcpu", 1,
		"os", obj("type", "hvm", "type_machine", "pc-q35-7.2"),
		"devices", obj(
			"disks", list(obj("source", obj("file", obj("file", file)), "target", obj("dev", "vda"))),
			"interfaces", list(obj("source", obj("network", obj("network", "lan")), "mac", obj("address", "52:54:00:00:00:01"))),
			"graphics", list(obj("vnc", obj("passwd", "Geheim 7"))),
		))
	return &object{handle: handle{kind: kindDomain, name: name, id: "uuid-of-" + name}, whole: essence, essence: essence}
}

func volume(pool, name string, more ...any) *object {
	essence := obj(append([]any{"name", name, "pool", pool, "capacity", 1, "capacity_unit", "GiB"}, more...)...)
	path := "/srv/" + pool + "/" + name
	return &object{handle: handle{kind: kindVolume, pool: pool, name: name, id: path, path: path}, whole: essence, essence: essence}
}

func written(t *testing.T, p *project) map[string]string {
	t.Helper()
	files, err := p.files()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[f.name] = string(f.text)
	}
	return out
}

func expect(t *testing.T, file, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is:\n%s\nwant:\n%s", file, got, want)
	}
}

// TestProject shows a whole configuration: references, a local for what is
// shared, a variable for a secret, and how it is laid out.
func TestProject(t *testing.T) {
	net := &object{handle: handle{kind: kindNetwork, name: "lan", id: "uuid-of-lan"}, essence: obj("name", "lan")}
	pool := &object{handle: handle{kind: kindPool, name: "images", id: "uuid-of-images"}, essence: obj("name", "images", "type", "dir", "target", obj("path", "/srv/images"))}
	got := written(t, compose([]*object{
		net, pool, volume("images", "base.qcow2"),
		volume("images", "web.qcow2", "backing_store", obj("path", "/srv/images/base.qcow2")),
		machine("web", "/srv/images/web.qcow2"), machine("db", "/srv/other/db.qcow2"),
	}, "qemu:///system", "qemu:///system"))
	expect(t, "locals.tf", got["locals.tf"], `locals {
  machine_type = "pc-q35-7.2"
}
`)
	expect(t, "volumes.tf", got["volumes.tf"], `resource "libvirt_volume" "base" {
  name          = "base.qcow2"
  pool          = libvirt_pool.images.name
  capacity      = 1
  capacity_unit = "GiB"
}

resource "libvirt_volume" "web" {
  name          = "web.qcow2"
  pool          = libvirt_pool.images.name
  capacity      = 1
  capacity_unit = "GiB"
  backing_store = { path = libvirt_volume.base.path }
}
`)
	web, _, _ := strings.Cut(got["domains.tf"], "\n\nresource \"libvirt_domain\" \"db\"")
	expect(t, "domains.tf", web, `resource "libvirt_domain" "web" {
  name        = "web"
  type        = "kvm"
  memory      = 2
  memory_unit = "GiB"
  vcpu        = 1
  os          = { type = "hvm", type_machine = local.machine_type }

  devices = {
    disks = [
      {
        source = { file = { file = libvirt_volume.web.path } }
        target = { dev = "vda" }
      },
    ]
    interfaces = [
      {
        mac    = { address = "52:54:00:00:00:01" }
        source = { network = { network = libvirt_network.lan.name } }
      },
    ]
    graphics = [
      { vnc = { passwd = var.web_passwd } },
    ]
  }
}`)
	if !strings.Contains(got["domains.tf"], `file = "/srv/other/db.qcow2"`) {
		t.Errorf("a file that is no adopted volume is not written as it is:\n%s", got["domains.tf"])
	}
	for name, text := range got {
		if strings.Contains(text, "Geheim") {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
		if strings.Contains(text, "null\n") && name != "variables.tf" {
			t.Errorf("%s holds a null:\n%s", name, text)
		}
	}
	if !strings.Contains(got["variables.tf"], "variable \"web_passwd\" {\n  type      = string\n  sensitive = true\n  default   = null\n}") {
		t.Errorf("variables.tf is:\n%s", got["variables.tf"])
	}
	if !strings.HasPrefix(got["imports.tf"], "# These act once: after the apply, this file can go.\n\nimport {\n  to = libvirt_network.lan\n  id = \"uuid-of-lan\"\n}\n\nimport {\n") {
		t.Errorf("imports.tf is:\n%s", got["imports.tf"])
	}
}

// TestVolumesByName shows references to a volume by pool and name, and to the
// pool alone if the volume is not adopted.
func TestVolumesByName(t *testing.T) {
	m := machine("web", "/x")
	m.essence = m.essence.SetAt("devices.disks", list(
		obj("source", obj("volume", obj("pool", "images", "volume", "web.qcow2"))),
		obj("source", obj("volume", obj("pool", "images", "volume", "other.qcow2"))),
		obj("source", obj("volume", obj("pool", "strange", "volume", "web.qcow2")))))
	pool := &object{handle: handle{kind: kindPool, name: "images"}, essence: obj("name", "images", "type", "dir")}
	got := strings.Join(strings.Fields(written(t, compose([]*object{pool, volume("images", "web.qcow2"), m}, "qemu:///system", "qemu:///system"))["domains.tf"]), " ")
	for _, want := range []string{
		`pool = libvirt_volume.web.pool volume = libvirt_volume.web.name`,
		`pool = libvirt_pool.images.name volume = "other.qcow2"`,
		`pool = "strange" volume = "web.qcow2"`,
	} {
		if !strings.Contains(strings.ReplaceAll(got, ",", ""), want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestURIWithCredentials shows that they are not written.
func TestURIWithCredentials(t *testing.T) {
	got := written(t, compose([]*object{machine("web", "/x")}, "qemu+tcp://admin:hunter2@host/system", "qemu+tcp://***@host/system"))
	for name, text := range got {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s holds the password:\n%s", name, text)
		}
	}
	if !strings.Contains(got["providers.tf"], "uri = var.uri") || !strings.Contains(got["variables.tf"], `variable "uri"`) {
		t.Errorf("the URI is no variable:\n%s%s", got["providers.tf"], got["variables.tf"])
	}
}

// TestTexts shows that texts come back as they are, whatever the language makes
// of them.
func TestTexts(t *testing.T) {
	o := machine("web", "/x")
	o.essence = obj("name", `a "b" ${c} %{ d } \ e`+"\nf", "type", "kvm")
	got := written(t, compose([]*object{o}, "qemu:///system", "qemu:///system"))["domains.tf"]
	if want := `"a \"b\" $${c} %%{ d } \\ e\nf"`; !strings.Contains(got, want) {
		t.Errorf("%s is not in:\n%s", want, got)
	}
}

// TestDifferences shows what is said of a plan that does more than import.
func TestDifferences(t *testing.T) {
	p := compose([]*object{machine("web", "/x"), machine("db", "/y")}, "qemu:///system", "qemu:///system")
	got, err := p.differences([]byte(`{"resource_changes": [
	  {"address": "libvirt_domain.web", "change": {"actions": ["update"], "importing": {"id": "uuid-of-web"},
	    "before": {"name": "web", "memory": 1024, "title": null, "passwd": "a", "devices": {"disks": [{"dev": "vda"}, {"dev": "vdb"}]}, "change": null},
	    "after": {"name": "web", "memory": 2048, "title": "x", "passwd": "b", "devices": {"disks": [{"dev": "vda"}]}, "change": {"effect": "live"}},
	    "after_unknown": {"status": true, "devices": {"disks": [{"serial": true}]}}, "before_sensitive": {"passwd": true}, "after_sensitive": {"passwd": true}}},
	  {"address": "libvirt_domain.db", "change": {"actions": ["create"], "before": null, "after": {"name": "db"}}}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"libvirt_domain.web: update",
		`  devices.disks[0].serial: absent on the host, not known before the apply in the plan`,
		`  devices.disks[1].dev: "vdb" on the host, absent in the plan`,
		`  memory: 1024 on the host, 2048 in the plan`,
		`  passwd: (sensitive) on the host, (sensitive) in the plan`,
		`  title: absent on the host, "x" in the plan`,
		"libvirt_domain.db: create",
		`  name: absent on the host, "db" in the plan`,
		"libvirt_domain.db: not imported",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the differences are:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	none, err := p.differences([]byte(`{"resource_changes": [
	  {"address": "libvirt_domain.web", "change": {"actions": ["no-op"], "before": {"a": 1}, "after": {"a": 1}, "importing": {"id": "x"}}},
	  {"address": "libvirt_domain.db", "change": {"actions": ["no-op"], "before": {"a": 1}, "after": {"a": 1}, "importing": {"id": "x"}}}]}`))
	if err != nil || len(none) > 0 {
		t.Errorf("imports alone: %v, %v", none, err)
	}
}

func TestNamespaces(t *testing.T) {
	got := namespaces(`<a:x xmlns:a="urn:a"><b:y xmlns:b="urn:b"/></a:x><a:z xmlns:a="urn:a"/><c xmlns="urn:c"/>`)
	if strings.Join(got, " ") != "urn:a urn:c" {
		t.Errorf("%v", got)
	}
	if namespaces("") != nil {
		t.Error("nothing has namespaces")
	}
}

// What the host has in its metadata is text in a comment, whatever it contains.
func TestRemarksStayComments(t *testing.T) {
	o := machine("web", "/srv/web.qcow2")
	o.whole = o.whole.SetAt("metadata.xml", tree.StringValue(`<x:y xmlns:x="urn:a&#10;data &quot;external&quot; &quot;e&quot; { program = [] }&#13;&#x2028;"/>`))
	got := written(t, compose([]*object{o}, "qemu:///system", "qemu:///system"))["domains.tf"]
	if want := `# What other tools keep in its metadata stays theirs: urn:a\ndata "external" "e" { program = [] }\r\u2028.` + "\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the text is\n%s\nwant it to begin with\n%s", got, want)
	}
}
