package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
)

func TestMain(m *testing.M) {
	lab.Main(m, func() tfprotov6.ProviderServer { return provider.NewServer("test") })
}

// examples lists the directories that hold a whole configuration.
func examples(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob("../../examples/*/main.tf")
	if err != nil || len(found) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	dirs := make([]string, len(found))
	for i, f := range found {
		dirs[i] = filepath.Dir(f)
	}
	return dirs
}

func TestAccExamples(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			core := acctest.Case(t, "the example applies, a second plan is empty with and without a refresh, a third after an apply that does nothing, and everything goes again")
			h := lab.Host(t)
			p := lab.NewProject(t, core, dir, "LIBVIRT_PROTECT=false", "XDG_STATE_HOME="+t.TempDir(), "TF_VAR_uri="+h.URI(),
				"TF_VAR_image="+h.Guest().Disk, "TF_VAR_domain_type=qemu", "TF_VAR_pool_path="+t.TempDir()+"/pool")
			p.Must(0, "apply", "-auto-approve")
			guests := map[string]*lab.Guest{}
			for _, name := range strings.Fields(lab.Virsh(t, "list", "--name")) {
				guests[name] = lab.Observe(t, name)
			}
			p.Must(0, "plan", "-detailed-exitcode")
			p.Must(0, "plan", "-detailed-exitcode", "-refresh=false")
			p.Must(0, "apply", "-auto-approve")
			p.Must(0, "plan", "-detailed-exitcode")
			for name, guest := range guests {
				guest.Untouched(t, name)
			}
			p.Must(0, "destroy", "-auto-approve")
			if list := strings.TrimSpace(lab.Virsh(t, "list", "--all", "--name")); list != "" {
				t.Errorf("left behind:\n%s", list)
			}
		})
	}
}

// The examples of the resources' pages, together: what one names, another
// makes. What no throwaway host can do is written otherwise, each with its
// reason.
func TestAccResourceExamples(t *testing.T) {
	core := acctest.Case(t, "the examples of the resources' pages apply, a second plan is empty with and without a refresh, a third after an apply that does nothing")
	h, dir := lab.Host(t), t.TempDir()
	instead := []struct{ text, by, reason string }{
		{`type        = "kvm"`, `type = "qemu"`, "no KVM"},
		{`resource "libvirt_domain" "web" {`, "resource \"libvirt_domain\" \"web\" {\n depends_on = [libvirt_volume.web, libvirt_volume.web_seed]", "its page has no volumes"},
		{`"host-passthrough"`, `"maximum"`, "needs KVM"},
		{"memory      = 2\n  memory_unit = \"GiB\"\n", "memory = 256\n memory_unit = \"MiB\"\n", "saves memory"},
		{"https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2", h.Guest().Disk, "no internet"},
		{"https://download.opensuse.org/tumbleweed/appliances/openSUSE-MicroOS.x86_64-kvm-and-xen.qcow2", h.Guest().Disk, "no internet"},
		{"/srv/images/fedora-coreos-qemu.x86_64.qcow2", h.Guest().Disk, "no such image"},
		{`{ pool = "images", volume = "builder.qcow2" }`, `{ pool = "default", volume = libvirt_volume.debian.name }`, "no such image"},
		{"capacity      = 20\n", "capacity = 1\n", "saves space"},
		{"capacity      = 100\n", "capacity = 1\n", "saves space"},
		{"/srv/machines", t.TempDir() + "/machines", "a directory of the test"},
	}
	files, err := filepath.Glob("../../examples/resources/*/resource.tf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	used := make([]bool, len(instead))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for i, r := range instead {
			used[i] = used[i] || strings.Contains(text, r.text)
			text = strings.ReplaceAll(text, r.text, r.by)
		}
		if i := strings.Index(text, "# A volume group"); i >= 0 {
			text = text[:i] // the host has none
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(filepath.Dir(file))+".tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, u := range used {
		if !u {
			t.Errorf("no example has %q any more", instead[i].text)
		}
	}
	head := "terraform {\n required_providers {\n libvirt = { source = \"driftsafe/libvirt\" }\n }\n}\nprovider \"libvirt\" {\n uri = \"" + h.URI() + "\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "provider.tf"), []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	p := lab.NewProject(t, core, dir, "LIBVIRT_PROTECT=false", "XDG_STATE_HOME="+t.TempDir())
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "plan", "-detailed-exitcode", "-refresh=false")
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "destroy", "-auto-approve")
}

// The configuration of an example is complete: nothing in it is for this
// repository alone.
func TestExamplesNameTheProvider(t *testing.T) {
	for _, dir := range examples(t) {
		text, err := os.ReadFile(filepath.Join(dir, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `source = "driftsafe/libvirt"`) {
			t.Errorf("%s does not say where the provider comes from", dir)
		}
	}
}
