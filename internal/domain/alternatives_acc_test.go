package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccDomain_importThenAnotherKindOfSource(t *testing.T) {
	acctest.Case(t, "after an import, another kind of source or backend takes the place of the one that nobody wrote down, also where it is not known before the apply")
	const name = "switched"
	image := lab.Host(t).PoolDir() + "/switched.raw"
	lab.Virsh(t, "vol-create-as", "default", "switched.raw", "8M", "--format", "raw")
	t.Cleanup(func() { lab.Virsh(t, "vol-delete", "switched.raw", "--pool", "default") })
	lab.Virsh(t, "define", definition(t, `<domain type='qemu'><name>switched</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='`+image+`'/><target dev='vda' bus='virtio'/></disk>
<interface type='network'><mac address='52:54:00:a1:7e:01'/><source network='default'/><model type='virtio'/></interface>
<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices></domain>`))
	config := func(devices ...string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "terraform_data" "later" {
  input            = { network = "default" }
  triggers_replace = %q
}
resource "libvirt_domain" "it" {
  name = %q
  type = "qemu"
  devices = {
    %s
  }
}`, strings.Join(devices, " "), name, strings.Join(devices, "\n    ")))
	}
	nic := func(source string) string {
		return `interfaces = [{ mac = { address = "52:54:00:a1:7e:01" }, source = { ` + source + ` } }]`
	}
	disk := func(source string) string {
		return `disks = [{ target = { dev = "vda" }, source = { ` + source + ` } }]`
	}
	has := func(part, gone string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, part) || strings.Contains(xml, gone) {
				return fmt.Errorf("want %s, and not %s, in\n%s", part, gone, xml)
			}
			return nil
		}
	}
	empty := []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	network, bridge := "<source network='default'/>", "<source bridge='virbr0'/>"
	const later = `network = terraform_data.later.output`
	// Nothing but that it is there tells a user network from others.
	replaced := lab.Apply(config(nic("user = {}")), has("<interface type='user'>", bridge))
	replaced.PreConfig = func() {
		xml := lab.Virsh(t, "dumpxml", "--inactive", name)
		lab.Virsh(t, "define", definition(t, strings.Replace(xml, "<interface type='user'>", "<interface type='bridge'>"+bridge, 1)))
	}
	lab.Steps(t,
		resource.TestStep{Config: config(), ResourceName: it, ImportState: true, ImportStateId: name, ImportStatePersist: true},
		resource.TestStep{Config: config(), ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: empty}, Check: has(network, bridge)},
		lab.Apply(config(nic("user = {}")), has("<interface type='user'>", network), attr("change.fields.0", "devices.interfaces[52:54:00:a1:7e:01].source.user: none")),
		replaced,
		lab.Apply(config(nic(`bridge = { bridge = "virbr0" }`)), has(bridge, network)),
		lab.Apply(config(nic(later)), has(network, bridge)),
		lab.Apply(config(nic(later), disk(`volume = { pool = terraform_data.later.output.network, volume = "switched.raw" }`)), has("<source pool='default' volume='switched.raw'/>", "<source file=")),
		lab.Apply(config(nic(later), disk(`file = { file = "`+image+`" }`), `rngs = [{ backend = { built_in = true } }]`), has("<backend model='builtin'/>", "/dev/urandom")),
	)
}
