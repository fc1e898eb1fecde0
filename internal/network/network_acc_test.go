package network_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

const lan = "libvirt_network.lan"

// config is a NAT network of the name and subnet; more are further lines.
func config(t testing.TB, name string, subnet int, hosts, more string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf(`
resource "libvirt_network" "lan" {
  name    = %[1]q
  forward = { mode = "nat" }
  ips = [{
    address = "192.168.%[2]d.1"
    prefix  = 24
    dhcp = {
      ranges = [{ start = "192.168.%[2]d.100", end = "192.168.%[2]d.200" }]
      hosts  = [%[3]s]
    }
  }]
  %[4]s
}
`, name, subnet, hosts, more))
}

func attr(name, want string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(lan, name, want)
}

// changes is a step whose plan promises an effect.
func changes(config, effect string, check ...resource.TestCheckFunc) resource.TestStep {
	step := lab.Apply(config, append(check, attr("change.effect", effect))...)
	step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(lan, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(lan, tfjsonpath.New("change").AtMapKey("effect"), knownvalue.StringExact(effect)),
	}
	return step
}

// both asserts that the started network and its definition have, or have not,
// a text.
func both(t testing.TB, name, text string, want bool) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, args := range [][]string{{"net-dumpxml", name}, {"net-dumpxml", name, "--inactive"}} {
			if xml := lab.Virsh(t, args...); strings.Contains(xml, text) != want {
				return fmt.Errorf("%s: %q there: %v\n%s", strings.Join(args, " "), text, !want, xml)
			}
		}
		return nil
	}
}

func TestAccNetwork_lifeCycle(t *testing.T) {
	acctest.Case(t, "a network is created, started, changed entry by entry while it runs, imported and removed")
	const a, b = `{ mac = "52:54:00:77:00:0A", ip = "192.168.77.10", name = "a" }`, `{ mac = "52:54:00:77:00:0b", ip = "192.168.77.11", name = "b" }`
	dns := func(names string) string {
		return fmt.Sprintf(`dns = { host = [{ ip = "192.168.77.10", hostnames = [%s] }] }`, names)
	}
	uuid := ""
	same := resource.TestCheckResourceAttrWith(lan, "uuid", func(v string) error {
		if uuid != "" && v != uuid {
			return fmt.Errorf("the UUID was %s and is %s", uuid, v)
		}
		uuid = v
		return nil
	})
	lab.Steps(t,
		lab.Apply(config(t, "lan", 77, a, ""), same, attr("active", "true"), attr("status.state", "settled"), both(t, "lan", "52:54:00:77:00:0", true)),
		changes(config(t, "lan", 77, a+", "+b, dns(`{ hostname = "a" }`)), "live", same, both(t, "lan", "192.168.77.11", true), both(t, "lan", "<hostname>a</hostname>", true)),
		changes(config(t, "lan", 77, b, dns(`{ hostname = "a" }, { hostname = "alias" }`)), "live", same, both(t, "lan", "192.168.77.10' name", false), both(t, "lan", "<hostname>alias</hostname>", true)),
		changes(config(t, "lan", 77, strings.Replace(b, `"b"`, `"c"`, 1), ""), "live", same, both(t, "lan", "name='c'", true), both(t, "lan", "hostname", false)),
		changes(config(t, "lan", 77, b, "autostart = true"), "live", same, attr("autostart", "true")),
		changes(config(t, "lan", 77, b, "autostart = true\n mtu = { size = 1400 }"), "next_boot", same, attr("status.state", "pending"), attr("status.pending.0", "mtu.size")),
		resource.TestStep{ResourceName: lan, ImportState: true, ImportStateId: "lan", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"change", "status.last_steps", "bridge", "forward", "mac", "ips.0.dhcp", "ips.0.family"}},
	)
}

func TestAccNetwork_driftIsSeenAndMended(t *testing.T) {
	acctest.Case(t, "a network that somebody stopped, took off autostart or edited is seen as such and mended; one that was imported stopped stays stopped")
	cfg := config(t, "drifty", 78, "", "autostart = true")
	stopped := config(t, "drifty", 78, "", "autostart = true\n active = false")
	file := t.TempDir() + "/n.xml"
	if err := os.WriteFile(file, []byte(`<network><name>asleep</name><ip address='192.168.79.1' prefix='24'/></network>`), 0o644); err != nil {
		t.Fatal(err)
	}
	drift := func(step resource.TestStep, args ...[]string) resource.TestStep {
		step.PreConfig = func() {
			for _, a := range args {
				lab.Virsh(t, a...)
			}
		}
		return step
	}
	lab.Steps(t,
		lab.Apply(cfg),
		drift(changes(cfg, "none", attr("active", "true"), attr("autostart", "true")), []string{"net-destroy", "drifty"}, []string{"net-autostart", "drifty", "--disable"}),
		drift(lab.Apply(cfg), []string{"net-update", "drifty", "add", "dns-host", "<host ip='192.168.78.9'><hostname>foreign</hostname></host>", "--live", "--config"}),
		changes(stopped, "none", attr("active", "false"), func(*terraform.State) error {
			if xml := lab.Virsh(t, "net-dumpxml", "drifty", "--inactive"); !strings.Contains(xml, "foreign") {
				return fmt.Errorf("an entry that somebody else made is gone:\n%s", xml)
			}
			return nil
		}),
		// Unset, it is kept as last agreed: stopped.
		lab.Apply(cfg, attr("active", "false")),
	)
	lab.Virsh(t, "net-define", file)
	asleep := lab.Config(t, "resource \"libvirt_network\" \"lan\" {\n name = \"asleep\"\n}")
	empty := []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	lab.Steps(t,
		resource.TestStep{Config: asleep, ResourceName: lan, ImportState: true, ImportStateId: "asleep", ImportStatePersist: true},
		resource.TestStep{Config: asleep, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: empty, PostApplyPostRefresh: empty}, Check: attr("active", "false")},
	)
}

func TestAccNetwork_refusals(t *testing.T) {
	acctest.Case(t, "a network is not renamed, not taken over, not removed while protected, and not cut off under its guests")
	t.Setenv("LIBVIRT_PROTECT", "true")
	cfg := config(t, "busy", 80, "", "")
	free := config(t, "busy", 80, "", "protect = false")
	off := config(t, "busy", 80, "", "protect = false\n active = false")
	file := t.TempDir() + "/d.xml"
	h := lab.Host(t)
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`<domain type='qemu'><name>user</name><memory unit='MiB'>128</memory><os><type machine='q35'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os>
<devices><interface type='network'><source network='busy'/><mac address='52:54:00:80:00:01'/></interface></devices></domain>`, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline)), 0o644); err != nil {
		t.Fatal(err)
	}
	attached := lab.Says(`network "busy"`, "running guests are attached", "user (52:54:00:80:00:01)")
	lab.Steps(t,
		resource.TestStep{Config: config(t, "default", 81, "", ""), ExpectError: lab.Says(`Network "default" exists already`, "import ADDRESS")},
		lab.Apply(cfg),
		resource.TestStep{Config: config(t, "other", 80, "", ""), ExpectError: lab.Says(`Cannot rename network "busy"`)},
		resource.TestStep{Config: lab.Config(t, ""), ExpectError: lab.Says(`Refusing to destroy protected network "busy"`)},
		lab.Apply(free),
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "create", file) }, Config: free, Destroy: true, ExpectError: attached},
		resource.TestStep{Config: off, ExpectError: attached},
		resource.TestStep{PreConfig: func() {
			if list := lab.Virsh(t, "net-list", "--name"); !strings.Contains(list, "busy") {
				t.Fatalf("the network was stopped:\n%s", list)
			}
			lab.Virsh(t, "destroy", "user")
		}, Config: free},
		resource.TestStep{Config: config(t, "busy", 80, `{ mac = "not a mac", ip = "192.168.80.5" }`, "protect = false"), ExpectError: lab.Says(`Could not update network "busy"`, "not a mac")},
		lab.Apply(free),
	)
}
