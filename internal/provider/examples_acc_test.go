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
