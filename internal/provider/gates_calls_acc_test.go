package provider

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	helper "github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// watched is a server whose calls to libvirt are seen from its configuration on.
type watched struct {
	tfprotov6.ProviderServer
	data  *Data
	watch func(*virt.Host)
}

func (w *watched) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	resp, err := w.ProviderServer.ConfigureProvider(ctx, req)
	if host := w.data.Host(); host != nil {
		w.watch(host)
	}
	return resp, err
}

func TestAccGates_waiverWritesNothing(t *testing.T) {
	acctest.Case(t, "protect = false on a running guest is an update of effect none without a single write call to libvirt; then destroy works")
	t.Setenv("LIBVIRT_PROTECT", "")
	var recorders []*virttest.Recorder
	factories := map[string]func() (tfprotov6.ProviderServer, error){
		"libvirt": func() (tfprotov6.ProviderServer, error) {
			data := &Data{}
			return &watched{newServer("test", data), data, func(h *virt.Host) { recorders = append(recorders, virttest.Record(h)) }}, nil
		},
	}
	h := lab.Host(t)
	config := func(protect string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_domain" "it" {
  name    = "waived"
  type    = "qemu"
  memory  = 131072
  vcpu    = 1
  running = true
  %s
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
  devices = { serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }] }
}`, protect, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog("waived")))
	}
	writes := func() (n int, calls []virt.Call) {
		for _, r := range recorders {
			n, calls = n+len(r.Calls()), append(calls, r.Writes()...)
		}
		return n, calls
	}
	const it = "libvirt_domain.it"
	var guest *lab.Guest
	effectNone := plancheck.ExpectKnownValue(it, tfjsonpath.New("change").AtMapKey("effect"), knownvalue.StringExact("none"))
	touchesNothing := func(*terraform.State) error {
		guest.Untouched(t, "waived")
		if n, calls := writes(); n == 0 || len(calls) > 0 {
			return fmt.Errorf("%d calls, of which these write: %v", n, calls)
		}
		return nil
	}
	updated := func(protect string, check helper.TestCheckFunc) helper.TestStep {
		return helper.TestStep{
			PreConfig: func() { recorders = nil },
			Config:    config(protect),
			ConfigPlanChecks: helper.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate), effectNone},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			Check: helper.ComposeAggregateTestCheckFunc(check, touchesNothing),
		}
	}
	helper.Test(t, helper.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []helper.TestStep{
			{Config: config(""), Check: func(*terraform.State) error {
				if _, calls := writes(); len(calls) == 0 {
					return fmt.Errorf("the creation was not seen")
				}
				guest = lab.Observe(t, "waived")
				return nil
			}},
			updated("protect = true", helper.TestCheckResourceAttr(it, "protect", "true")),
			{Config: config("protect = true"), Destroy: true, ExpectError: lab.Says(`Refusing to destroy protected domain "waived"`)},
			updated("protect = false", helper.TestCheckResourceAttr(it, "protect", "false")),
			{Config: config("protect = false"), Destroy: true},
		},
	})
}
