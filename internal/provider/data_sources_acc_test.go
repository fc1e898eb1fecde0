package provider_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// managed is what the examples of the data sources ask about: objects that
// another configuration keeps, in the pool and on the network that the host has.
const managed = `
resource "libvirt_volume" "base" {
  name   = "base.qcow2"
  pool   = "default"
  target = { format = { type = "qcow2" } }
  create = { content = { url = "IMAGE" } }
}
resource "libvirt_domain" "router" {
  name        = "router"
  title       = "Of a test"
  type        = "qemu"
  memory      = 128
  memory_unit = "MiB"
  vcpu        = 1
  running     = true
  os          = { type = "hvm", type_machine = "q35" }
  devices = {
    disks      = [{ driver = { type = "qcow2" }, source = { file = { file = libvirt_volume.base.path } }, target = { dev = "vda", bus = "virtio" } }]
    interfaces = [{ source = { network = { network = "default" } }, model = { type = "virtio" } }]
    graphics   = [{ vnc = { auto_port = true, passwd = "hunter2" } }]
    serials    = [{ source = { pty = {} }, target = { port = 0 } }]
  }
}
resource "libvirt_domain" "off" {
  name   = "web-off"
  type   = "qemu"
  memory = 16384
  os     = { type = "hvm", type_machine = "q35" }
}
`

// outputs reads what the last apply of a project gave out.
func outputs(t *testing.T, p *lab.Project) map[string]any {
	t.Helper()
	var all map[string]struct {
		Value any `json:"value"`
	}
	text := p.Must(0, "output", "-json")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string]any{}
	for name, one := range all {
		out[name] = one.Value
	}
	return out
}

func shownAs(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Data sources beside a configuration that keeps the objects: what they show, that
// they change nothing, and what they say of what is not there.
func TestAccDataSources(t *testing.T) {
	core := acctest.Case(t, "the examples of the data sources' pages show what is on the host; nothing is changed, no pool is refreshed, no guest is touched, and what is not there is an error that lists what is")
	h := lab.Host(t)
	_, path, _ := strings.Cut(lab.Virsh(t, "pool-dumpxml", "default"), "<path>")
	pool, _, _ := strings.Cut(path, "</path>")
	keeper := lab.StartProject(t, core, lab.Config(t, strings.ReplaceAll(managed, "IMAGE", h.Guest().Disk)), "LIBVIRT_PROTECT=false")
	keeper.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, "router")
	before := lab.Virsh(t, "dumpxml", "router") + lab.Virsh(t, "dumpxml", "--inactive", "router") + lab.Virsh(t, "net-dumpxml", "default") + lab.Virsh(t, "vol-list", "default")

	body := ""
	files, err := filepath.Glob("../../examples/data-sources/*/data-source.tf")
	if err != nil || len(files) != 14 {
		t.Fatalf("examples %q: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body += string(text) + "\n"
	}
	body += `
data "libvirt_domain" "secret" {
  name    = "router"
  secrets = true
}
output "password" {
  value     = data.libvirt_domain.secret.devices.graphics[0].vnc.passwd
  sensitive = true
}
output "without" {
  value     = data.libvirt_domain.router.devices.graphics[0].vnc.passwd == null
  sensitive = true
}
output "port" { value = data.libvirt_domain.router_now.devices.graphics[0].vnc.port }
output "settled" { value = data.libvirt_domain.router.status.settled }
output "of_the_list" { value = [for d in data.libvirt_domains.all.domains : [d.name, d.running]] }
output "nodes" { value = data.libvirt_node_info.host.cpu_cores_total > 0 }
`
	// A file that somebody puts into the pool is there after the pool's next refresh.
	if err := os.WriteFile(filepath.Join(pool, "later.qcow2"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Remove(filepath.Join(pool, "later.qcow2"))
		_, _ = h.Virsh(context.Background(), "pool-start", "default")
		_, _ = h.Virsh(context.Background(), "pool-refresh", "default")
	})
	reader := lab.StartProject(t, core, lab.Config(t, body))
	reader.Must(0, "apply", "-auto-approve")
	reader.Must(0, "plan", "-detailed-exitcode")
	got := outputs(t, reader)
	for name, want := range map[string]string{
		"password": `"hunter2"`, "without": "true", "settled": "true", "of_the_list": `[["router",true],["web-off",false]]`, "nodes": "true",
		"images": `["base.qcow2"]`, "machine_types": `{"web-off":"`, "types": `{"default":"dir"}`, "not_started": "[]", "domain_type": `"`,
		"router": `"running":true`, "base": `"path":"` + pool + `/base.qcow2"`, "cpu_models": `"qemu64"`,
	} {
		if text := shownAs(got[name]); !strings.Contains(text, want) {
			t.Errorf("%s is %s, want %s", name, text, want)
		}
	}
	if port, is := got["port"].(float64); !is || port < 5900 {
		t.Errorf("the guest's display has the port %v", got["port"])
	}
	if text := shownAs(got["router"]); !strings.Contains(text, strings.TrimSpace(macOf(t))) {
		t.Errorf("router is %s, and has no %s", text, macOf(t))
	}
	if text := reader.Must(0, "show"); strings.Contains(text, "hunter2") {
		t.Error("the password is shown")
	}
	after := lab.Virsh(t, "dumpxml", "router") + lab.Virsh(t, "dumpxml", "--inactive", "router") + lab.Virsh(t, "net-dumpxml", "default") + lab.Virsh(t, "vol-list", "default")
	if before != after {
		t.Errorf("the host was changed:\n%s\n%s", before, after)
	}
	for _, c := range []struct {
		data string
		says []string
	}{
		{`data "libvirt_domain" "x" { name = "ruter" }`, []string{`There is no domain "ruter"`, "There are: router, web-off.", "way out"}},
		{`data "libvirt_network" "x" { name = "lan" }`, []string{`There is no network "lan"`, "There are: default."}},
		{`data "libvirt_pool" "x" { name = "vm" }`, []string{`There is no pool "vm"`, "There are: default."}},
		{"data \"libvirt_volume\" \"x\" {\n pool = \"default\"\n name = \"later.qcow2\"\n}", []string{`There is no volume "later.qcow2"`, "There are: base.qcow2.", "virsh pool-refresh"}},
		{"data \"libvirt_volume\" \"x\" {\n pool = \"vm\"\n name = \"a\"\n}", []string{`There is no pool "vm"`, "There are: default."}},
		{`data "libvirt_node_device_info" "x" { name = "pci_9999" }`, []string{`There is no node device "pci_9999"`}},
		{`data "libvirt_domain_interface_addresses" "x" { domain = "ruter" }`, []string{`There is no domain "ruter"`, "There are: router, web-off."}},
		{`data "libvirt_domain_capabilities" "x" { machine = "q53" }`, []string{"The host has no such guests", "q35"}},
		{"data \"libvirt_domain\" \"x\" {}", []string{"Which domain?"}},
	} {
		reader.Write(lab.Config(t, c.data))
		reader.Refuses(c.says, "plan")
	}
	const missing = "This host has no emulated board of a toaster."
	reader.Write(lab.Config(t, `
data "libvirt_domain_capabilities" "host" { virt_type = "qemu" }
data "libvirt_pool" "default" { name = "default" }
resource "libvirt_domain" "never" {
  name = "never"
  type = "qemu"
  lifecycle {
    precondition {
      condition     = data.libvirt_pool.default.active
      error_message = "The pool is not started."
    }
    precondition {
      condition     = contains(data.libvirt_domain_capabilities.host.cpu_models, "toaster")
      error_message = "`+missing+`"
    }
  }
}
`))
	reader.Refuses([]string{"Resource precondition failed", "data.libvirt_domain_capabilities.host", missing}, "apply", "-auto-approve")
	if names := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(names, "never") {
		t.Errorf("a machine was made in spite of its precondition:\n%s", names)
	}
	lab.Virsh(t, "pool-destroy", "default")
	reader.Write(lab.Config(t, "data \"libvirt_volume\" \"x\" {\n pool = \"default\"\n name = \"base.qcow2\"\n}"))
	reader.Refuses([]string{`pool "default" is not started`, "virsh pool-start default"}, "plan")
	reader.Write(lab.Config(t, "data \"libvirt_volumes\" \"x\" {}\ndata \"libvirt_pool\" \"x\" { name = \"default\" }\noutput \"x\" { value = [data.libvirt_volumes.x.names, data.libvirt_pool.x.active] }\n"+
		"data \"libvirt_domain_interface_addresses\" \"off\" { domain = \"web-off\" }\noutput \"off\" { value = data.libvirt_domain_interface_addresses.off.interfaces }"))
	reader.Tells([]string{`Domain "web-off" is off`}, "apply", "-auto-approve")
	if got := outputs(t, reader); shownAs(got["x"]) != "[[],false]" || shownAs(got["off"]) != "[]" {
		t.Errorf("with a stopped pool: %s", shownAs(got))
	}
	lab.Virsh(t, "pool-start", "default")
	guest.Untouched(t, "router")
	keeper.Must(0, "destroy", "-auto-approve")
}

func macOf(t *testing.T) string {
	t.Helper()
	for _, line := range strings.Split(lab.Virsh(t, "domiflist", "router"), "\n") {
		if fields := strings.Fields(line); len(fields) == 5 && strings.Contains(fields[4], ":") {
			return fields[4]
		}
	}
	t.Fatal("the guest has no interface")
	return ""
}
