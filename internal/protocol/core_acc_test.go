package protocol_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func factories(m *protocol.Machines) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){"test": func() (tfprotov6.ProviderServer, error) {
		return protocol.NewMachineServer(m), nil
	}}
}

const twoDisks = `disks = [{ dev = "vda", size = 10.5 }, { dev = "vdb", parts = [{ label = "data" }, {}] }]`

// machineHCL is a machine beside a resource and a data source, so that one
// configuration uses both servers.
func machineHCL(name string, memory int, lines string) string {
	return fmt.Sprintf(`
provider "test" {
  uri = "test:///default"
}
resource "test_plain" "p" {
  text = "beside"
}
resource "test_machine" "m" {
  name   = %q
  memory = %d
  %s
}
data "test_machine" "d" {
  name = test_machine.m.name
}
`, name, memory, lines)
}

// isEmpty adds to a step that the plan after it is empty.
func isEmpty(step resource.TestStep) resource.TestStep {
	step.ConfigPlanChecks.PostApplyPostRefresh = []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	return step
}

func action(step resource.TestStep, want plancheck.ResourceActionType) resource.TestStep {
	step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{plancheck.ExpectResourceAction("test_machine.m", want)}
	return step
}

func TestAccServer_life(t *testing.T) {
	acctest.Case(t, "A resource over trees is created, updated, imported, replaced and destroyed beside a framework resource.")
	m := protocol.NewMachines()
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(m),
		CheckDestroy: func(*terraform.State) error {
			if len(m.Store) > 0 {
				return fmt.Errorf("the host still has %v", m.Store)
			}
			return nil
		},
		Steps: []resource.TestStep{
			isEmpty(action(resource.TestStep{
				Config: machineHCL("web", 512, twoDisks+"\n boot = {}\n tags = []"),
				Check: resource.ComposeAggregateTestCheckFunc(
					resource.TestCheckResourceAttr("test_machine.m", "uuid", "uuid-of-web"),
					resource.TestCheckResourceAttr("test_machine.m", "disks.0.size", "10.5"),
					resource.TestCheckResourceAttr("test_machine.m", "disks.1.parts.#", "2"),
					resource.TestCheckResourceAttr("test_machine.m", "tags.#", "0"),
					resource.TestCheckResourceAttr("data.test_machine.d", "uuid", "uuid-of-web"),
					resource.TestCheckResourceAttr("test_plain.p", "text", "beside"),
				),
			}, plancheck.ResourceActionCreate)),
			isEmpty(action(resource.TestStep{
				PreConfig: func() { m.Store["web"] = m.Store["web"].With("memory", tree.IntValue(4096)) },
				Config:    machineHCL("web", 1024, twoDisks+"\n boot = { menu = { timeout = 18446744073709551615 } }\n tags = [test_plain.p.text]"),
				Check: resource.ComposeAggregateTestCheckFunc(
					resource.TestCheckResourceAttr("test_machine.m", "boot.menu.timeout", "18446744073709551615"),
					func(*terraform.State) error {
						if got := m.Store["web"].Attr("memory"); !tree.Equal(got, tree.IntValue(1024)) {
							return fmt.Errorf("the host has memory %s", got)
						}
						return nil
					},
				),
			}, plancheck.ResourceActionUpdate)),
			{ResourceName: "test_machine.m", ImportState: true, ImportStateId: "web", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{ResourceName: "test_machine.m", ImportState: true, ImportStateId: "nobody", ExpectError: regexp.MustCompile("no machine nobody")},
			{Config: machineHCL("web", 1024, "boot = {\n order = 1\n menu = {}\n }"), ExpectError: regexp.MustCompile("Order and menu exclude each other")},
			isEmpty(action(resource.TestStep{
				Config: machineHCL("db", 1024, twoDisks),
				Check:  resource.TestCheckResourceAttr("test_machine.m", "uuid", "uuid-of-db"),
			}, plancheck.ResourceActionDestroyBeforeCreate)),
			isEmpty(action(resource.TestStep{
				PreConfig: func() { delete(m.Store, "db") },
				Config:    machineHCL("db", 1024, twoDisks),
			}, plancheck.ResourceActionCreate)),
		},
	})
}

// TestAccServer_hold shows what the drift semantics rest on: both cores accept
// the prior list for one that the configuration shortens, alone and beside a
// change elsewhere.
func TestAccServer_hold(t *testing.T) {
	acctest.Case(t, "A nested list is planned as it was while the configuration names fewer elements, alone and beside a change.")
	m := protocol.NewMachines()
	hasDisks := func(n int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if got := m.Store["web"].Attr("disks").Len(); got != n {
				return fmt.Errorf("the host has %d disks, want %d", got, n)
			}
			return nil
		}
	}
	oneDisk := `disks = [{ dev = "vdb" }]`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(m),
		Steps: []resource.TestStep{
			isEmpty(resource.TestStep{Config: machineHCL("web", 512, twoDisks+"\n tags = [\"hold\"]"), Check: hasDisks(2)}),
			isEmpty(action(resource.TestStep{Config: machineHCL("web", 512, oneDisk+"\n tags = [\"hold\"]"), Check: hasDisks(2)}, plancheck.ResourceActionNoop)),
			isEmpty(action(resource.TestStep{Config: machineHCL("web", 1024, oneDisk+"\n tags = [\"hold\"]"), Check: hasDisks(2)}, plancheck.ResourceActionUpdate)),
			isEmpty(action(resource.TestStep{Config: machineHCL("web", 1024, oneDisk+"\n tags = [\"let go\"]"), Check: hasDisks(1)}, plancheck.ResourceActionUpdate)),
		},
	})
}

func TestAccServer_refusals(t *testing.T) {
	acctest.Case(t, "A plan can refuse a destroy, a failed apply keeps the state, and a panic is an ordinary error.")
	m := protocol.NewMachines()
	reset := func() { m.OnPlan, m.OnApply = nil, nil }
	config := machineHCL("web", 512, twoDisks)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(m),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() {
					m.OnPlan = func(req protocol.PlanRequest) (resp protocol.PlanResponse) {
						resp.Planned = req.Proposed
						if req.IsDestroy() {
							resp.Diagnostics.AddError(nil, "machine "+req.Prior.Attr("name").Str()+" is protected", "Set protect = false.")
						}
						return resp
					}
				},
				Config: config, Destroy: true, ExpectError: regexp.MustCompile("machine web is protected"),
			},
			{
				PreConfig: func() {
					reset()
					m.OnApply = func(protocol.ApplyRequest) protocol.ApplyResponse { panic("out of luck") }
				},
				Config: machineHCL("web", 1024, twoDisks), ExpectError: regexp.MustCompile("out of luck"),
			},
			{
				PreConfig: func() {
					m.OnApply = func(req protocol.ApplyRequest) (resp protocol.ApplyResponse) {
						resp.Diagnostics.AddError(nil, "machine web: cannot", "The host is away.")
						return resp
					}
				},
				Config: machineHCL("web", 1024, twoDisks), ExpectError: regexp.MustCompile("The host is away"),
			},
			isEmpty(action(resource.TestStep{
				PreConfig: reset,
				Config:    config,
				Check:     resource.TestCheckResourceAttr("test_machine.m", "uuid", "uuid-of-web"),
			}, plancheck.ResourceActionNoop)),
		},
	})
}
