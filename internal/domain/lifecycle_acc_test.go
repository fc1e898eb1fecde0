package domain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// state asserts libvirt's state of a domain.
func state(t testing.TB, name, want string) {
	t.Helper()
	if got := strings.TrimSpace(lab.Virsh(t, "domstate", name)); got != want {
		t.Fatalf("domain %s is %s, want %s", name, got, want)
	}
}

const other = "\n" + `resource "libvirt_domain" "other" {
  name = "other"
  type = "qemu"
  memory = 16384
  vcpu = 1
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
}`

func TestAccDomain_protectRefusesDestruction(t *testing.T) {
	acctest.Case(t, "a protected domain is destroyed neither by an omitted block, nor by destroy, nor by taint")
	t.Setenv("LIBVIRT_PROTECT", "true")
	const name = "guarded"
	m := machine{name: name}
	refused := lab.Says(`Refusing to destroy protected domain "guarded"`, `protect = false`, `LIBVIRT_PROTECT=false`)
	explicit := lab.Says(`Refusing to destroy protected domain "guarded"`, "protect = true in its state", `protect = false`)
	var guest *lab.Guest
	untouched := func() { guest.Untouched(t, name) }
	tainted := machine{name: name, more: "protect = true"}
	free := machine{name: name, more: "protect = false"}
	lab.Steps(t,
		lab.Apply(m.config(t), func(*terraform.State) error { guest = lab.Observe(t, name); return nil }),
		resource.TestStep{Config: lab.Config(t, ""), ExpectError: refused},
		// Nothing else of such a plan is applied.
		resource.TestStep{PreConfig: untouched, Config: lab.Config(t, other), ExpectError: refused},
		resource.TestStep{PreConfig: func() {
			untouched()
			if list := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(list, "other") {
				t.Fatalf("another resource of a refused plan was created:\n%s", list)
			}
		}, Config: m.config(t), Destroy: true, ExpectError: refused},
		lab.Apply(tainted.config(t)),
		resource.TestStep{PreConfig: untouched, Config: tainted.config(t), Taint: []string{it}, ExpectError: lab.Says(`Refusing to destroy protected domain "guarded"`, "untaint ADDRESS")},
		resource.TestStep{PreConfig: untouched, Config: tainted.config(t), Destroy: true, ExpectError: explicit},
		resource.TestStep{PreConfig: func() { untouched(); untaint(t) }, RefreshState: true},
		resource.TestStep{Config: free.config(t), ConfigPlanChecks: lab.EmptyAfterwards},
		resource.TestStep{PreConfig: untouched, Config: free.config(t), Destroy: true},
	)
	if list := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(list, name) {
		t.Errorf("the unprotected domain is still there:\n%s", list)
	}
}

// untaint is not offered by the test framework; a refused Delete leaves the
// object tainted, and the next step would only see the same refusal.
func untaint(t testing.TB) {
	t.Helper()
	lab.Core(t, "untaint", it)
}

func TestAccDomain_importIsQuiet(t *testing.T) {
	acctest.Case(t, "a running, hand-made machine is imported by name and by UUID; the plan of a sparse configuration is empty and nothing is touched")
	const name = "handmade"
	h := lab.Host(t)
	xml := fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
<title>by hand</title><metadata><x:site xmlns:x="urn:x" rack="7"/></metadata>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os>
<devices><serial type='file'><source path='%s' append='on'/></serial>
<interface type='network'><mac address='52:54:00:AA:00:01'/><source network='default'/><model type='virtio'/></interface>
<interface type='network'><mac address='52:54:00:AA:00:02'/><source network='default'/><model type='virtio'/></interface>
<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices></domain>`,
		name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog(name))
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	lab.Virsh(t, "start", name)
	lab.Virsh(t, "autostart", name)
	guest := lab.Observe(t, name)
	before := lab.Virsh(t, "dumpxml", "--inactive", "--security-info", name)
	uuid := strings.TrimSpace(lab.Virsh(t, "domuuid", name))
	sparse := lab.Config(t, fmt.Sprintf(`
resource "libvirt_domain" "it" {
  name = %q
  type = "qemu"
  memory = 0.125
  memory_unit = "GiB"
  os = { type_machine = "q35" }
  devices = {
    interfaces = [
      { mac = { address = "52:54:00:aa:00:02" }, source = { network = { network = "default" } } },
      { mac = { address = "52:54:00:AA:00:01" } },
    ]
  }
}`, name))
	sparse = strings.Replace(sparse, "memory = 0.125\n  memory_unit = \"GiB\"", "memory = 131072", 1)
	empty := plancheck.ExpectEmptyPlan()
	lab.Steps(t,
		lab.Apply(lab.Config(t, "")),
		resource.TestStep{Config: sparse, ResourceName: it, ImportState: true, ImportStateId: "no-such-machine", ExpectError: lab.Says(`There is no domain "no-such-machine"`, "virsh list --all")},
		resource.TestStep{Config: sparse, ResourceName: it, ImportState: true, ImportStateId: name, ImportStatePersist: true},
		resource.TestStep{Config: sparse, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{empty}, PostApplyPostRefresh: []plancheck.PlanCheck{empty}},
			Check: resource.ComposeAggregateTestCheckFunc(attr("uuid", uuid), attr("title", "by hand"), attr("autostart", "true"), attr("devices.interfaces.#", "2"), attr("devices.rngs.#", "1"),
				attr("status.generation", "0"), attr("status.started", "true"))},
		resource.TestStep{Config: sparse, ResourceName: it, ImportState: true, ImportStateId: uuid, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "uuid"},
		resource.TestStep{PreConfig: func() {
			guest.Untouched(t, name)
			if after := lab.Virsh(t, "dumpxml", "--inactive", "--security-info", name); after != before {
				t.Fatalf("the definition changed from\n%s\nto\n%s", before, after)
			}
		}, Config: sparse, PlanOnly: true},
	)
}

func TestAccDomain_failedStartIsTriedAgain(t *testing.T) {
	acctest.Case(t, "a domain whose first start fails is in state, and the next apply works although it is protected")
	t.Setenv("LIBVIRT_PROTECT", "true")
	const name = "stillborn"
	dir := lab.Host(t).PoolDir() + "/stillborn" // which only a start looks for
	m := machine{name: name, devices: fmt.Sprintf(`channels = [{ source = { file = { path = "%s/log" } }, target = { virt_io = { name = "log" } } }]`, dir)}
	free := m
	free.more = "protect = false"
	lab.Steps(t,
		resource.TestStep{Config: m.config(t), ExpectError: lab.Says(`Could not create domain "stillborn"`, "which is defined now", dir)},
		resource.TestStep{PreConfig: func() {
			state(t, name, "shut off")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}, Config: m.config(t), ConfigPlanChecks: lab.EmptyAfterwards, Check: attr("status.power", "running")},
		resource.TestStep{Config: free.config(t)},
	)
}

func TestAccDomain_refusals(t *testing.T) {
	acctest.Case(t, "what cannot be done is refused before anything is touched: taking over a name, renaming a running guest, definitions that libvirt rejects")
	const name = "stubborn"
	m := machine{name: name}
	renamed, machineType := machine{name: "renamed"}, m
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte(`<domain type='qemu'><name>taken</name><memory>16384</memory><os><type>hvm</type></os></domain>`), 0o644); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	defer lab.Virsh(t, "undefine", "taken")
	var guest *lab.Guest
	before := ""
	untouched := func() {
		t.Helper()
		guest.Untouched(t, name)
		if after := lab.Virsh(t, "dumpxml", "--inactive", name); after != before {
			t.Fatalf("the definition changed from\n%s\nto\n%s", before, after)
		}
	}
	bogus := strings.Replace(machineType.config(t), `type_machine = "q35"`, `type_machine = "no-such-machine"`, 1)
	lab.Steps(t,
		resource.TestStep{Config: bogus, ExpectError: lab.Says(`Domain "stubborn" cannot start as configured`, `machine type "no-such-machine" is not offered by`)},
		resource.TestStep{Config: machine{name: "taken", off: true}.config(t), ExpectError: lab.Says(`Domain "taken" exists already`, "import ADDRESS")},
		lab.Apply(m.config(t), func(*terraform.State) error {
			guest = lab.Observe(t, name)
			before = lab.Virsh(t, "dumpxml", "--inactive", name)
			return nil
		}),
		resource.TestStep{Config: renamed.config(t), ExpectError: lab.Says(`Cannot change name of the running domain "stubborn"`, "-refresh=false")},
		resource.TestStep{PreConfig: untouched, Config: bogus, ExpectError: lab.Says(`Domain "stubborn" cannot start as configured`, `machine type "no-such-machine" is not offered by`, "change os.type_machine", "Nothing was changed")},
		resource.TestStep{PreConfig: untouched, Config: m.config(t), PlanOnly: true},
		resource.TestStep{Config: machine{name: name, more: `title = "two\nlines"`}.config(t), ExpectError: lab.Says("A title has one line")},
		resource.TestStep{Config: machine{name: name, more: `metadata = { xml = "<bare/>" }`}.config(t), ExpectError: lab.Says("metadata.xml cannot be kept", "has no namespace")},
		resource.TestStep{Config: m.config(t), PlanOnly: true},
	)
}

func TestAccDomain_renameWhileOff(t *testing.T) {
	acctest.Case(t, "a domain that is off is renamed, and keeps UUID and autostart")
	var uuid string
	lab.Steps(t,
		lab.Apply(machine{name: "before", off: true, more: "autostart = true"}.config(t), resource.TestCheckResourceAttrWith(it, "uuid", func(v string) error { uuid = v; return nil })),
		lab.Apply(machine{name: "after", off: true, more: "autostart = true"}.config(t), func(*terraform.State) error {
			if got := strings.TrimSpace(lab.Virsh(t, "domuuid", "after")); got != uuid {
				return fmt.Errorf("the UUID was %s and is %s", uuid, got)
			}
			if info := lab.Virsh(t, "dominfo", "after"); !strings.Contains(info, "Autostart:      enable") {
				return fmt.Errorf("autostart is lost:\n%s", info)
			}
			return nil
		}),
	)
}

func TestAccDomain_goneAndUnreachable(t *testing.T) {
	acctest.Case(t, "only libvirt's own word takes a domain out of the state: undefined is gone, unreachable is an error")
	m := machine{name: "elsewhere", off: true}
	config := m.config(t)
	unreachable := strings.Replace(config, "libvirt-sock", "no-such-socket", 1)
	lab.Steps(t,
		lab.Apply(config),
		resource.TestStep{Config: unreachable, ExpectError: lab.Says(`Could not read domain "elsewhere"`, "no-such-socket")},
		resource.TestStep{Config: unreachable, Destroy: true, ExpectError: lab.Says(`Could not read domain "elsewhere"`)},
		resource.TestStep{Config: config, PlanOnly: true},
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "undefine", "elsewhere") }, Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(it, plancheck.ResourceActionCreate)}}},
	)
}

func TestAccDomain_destroyRefusesLoss(t *testing.T) {
	acctest.Case(t, "a domain with a snapshot or a managed save is not destroyed, and the message lists what would be lost")
	const name = "keeper"
	lab.Virsh(t, "vol-create-as", "default", "keeper.qcow2", "1M", "--format", "qcow2")
	defer lab.Virsh(t, "vol-delete", "keeper.qcow2", "default")
	m := machine{name: name, off: true, devices: `disks = [{ source = { volume = { pool = "default", volume = "keeper.qcow2" } }, driver = { name = "qemu", type = "qcow2" }, target = { dev = "vda", bus = "virtio" } }]`}
	lab.Steps(t,
		lab.Apply(m.config(t)),
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "snapshot-create-as", name, "precious") }, Config: m.config(t), Destroy: true,
			ExpectError: lab.Says(`Refusing to destroy domain "keeper"`, `snapshot "precious"`, "virsh snapshot-delete keeper precious")},
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "snapshot-delete", name, "precious")
			lab.Virsh(t, "start", name)
			lab.Virsh(t, "managedsave", name)
		}, Config: m.config(t), Destroy: true, ExpectError: lab.Says(`Refusing to destroy domain "keeper"`, "managed save")},
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "managedsave-remove", name) }, Config: m.config(t), Destroy: true},
	)
}

func TestAccDomain_undefinedWhileRunning(t *testing.T) {
	acctest.Case(t, "a guest that somebody undefined is reported, and the plan defines it again without touching it")
	const name = "orphan"
	m := machine{name: name}
	var guest *lab.Guest
	lab.Steps(t,
		lab.Apply(m.config(t), func(*terraform.State) error { guest = lab.Observe(t, name); return nil }),
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "undefine", name) }, RefreshState: true, ExpectNonEmptyPlan: true,
			Check: resource.ComposeAggregateTestCheckFunc(attr("status.persistent", "false"), attr("status.state", "degraded"))},
		lab.Apply(m.config(t), attr("status.persistent", "true"), attr("change.effect", "none"), attr("change.fields.0", "definition: defined again none"), func(*terraform.State) error { guest.Untouched(t, name); return nil }),
	)
}

func TestAccDomain_waitForIP(t *testing.T) {
	acctest.Case(t, "creation waits for an address; a timeout is a warning and leaves the machine untainted")
	nic := func(wait string) string {
		return fmt.Sprintf(`interfaces = [{ source = { network = { network = "default" } }, model = { type = "virtio" }, wait_for_ip = { %s } }]`, wait)
	}
	m := machine{name: "waiter", devices: nic(`timeout = 120, source = "lease"`)}
	short := machine{name: "impatient", devices: nic(`timeout = 1, source = "agent"`)}
	lab.Steps(t,
		lab.Apply(m.config(t), func(*terraform.State) error {
			if out := lab.Virsh(t, "domifaddr", "waiter"); !strings.Contains(out, "ipv4") {
				return fmt.Errorf("no address though the creation waited:\n%s", out)
			}
			return nil
		}),
	)
	lab.Steps(t, lab.Apply(short.config(t), attr("status.power", "running")))
}
