package domain_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// behind is a step before which somebody else changes the host.
func behind(t testing.TB, step resource.TestStep, commands ...[]string) resource.TestStep {
	step.PreConfig = func() {
		for _, c := range commands {
			lab.Virsh(t, c...)
		}
	}
	return step
}

func TestAccDomain_heldDriftStaysHeld(t *testing.T) {
	acctest.Case(t, "memory that somebody changed is held, also through an apply of something else, until the configuration says how it is to be")
	const name = "held"
	m := machine{name: name, off: true}
	titled := machine{name: name, off: true, more: `title = "unrelated"`}
	reverted := machine{name: name, off: true, more: "title = \"unrelated\"\n update = { drift = \"revert\" }"}
	memory := func(mib int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, fmt.Sprintf("<memory unit='KiB'>%d</memory>", mib<<10)) {
				return fmt.Errorf("the memory is not %d MiB:\n%s", mib, xml)
			}
			return nil
		}
	}
	held := behind(t, resource.TestStep{Config: m.config(t), ConfigPlanChecks: lab.EmptyAfterwards, Check: memory(96)},
		[]string{"setmaxmem", name, "96M", "--config"})
	lab.Steps(t,
		lab.Apply(m.config(t), memory(128)),
		held,
		lab.Apply(titled.config(t), memory(96)),
		lab.Apply(titled.config(t), memory(96)),
		lab.Apply(reverted.config(t), memory(128)),
	)
}

func TestAccDomain_startedByHandIsProtected(t *testing.T) {
	acctest.Case(t, "a machine that was defined only, and that somebody started, is as protected as any other")
	t.Setenv("LIBVIRT_PROTECT", "true")
	m := machine{name: "byhand", off: true}
	m.more = ""
	config := strings.Replace(m.config(t), "running     = false", "", 1)
	free := strings.Replace(config, "vcpu        = 1", "vcpu = 1\n protect = false", 1)
	refused := lab.Says(`Refusing to destroy protected domain "byhand"`)
	lab.Steps(t,
		lab.Apply(config, attr("status.started", "false")),
		resource.TestStep{Config: lab.Config(t, ""), ExpectError: refused},
		behind(t, resource.TestStep{Config: lab.Config(t, ""), ExpectError: refused}, []string{"start", "byhand"}),
		behind(t, resource.TestStep{Config: lab.Config(t, ""), ExpectError: refused}, []string{"destroy", "byhand"}),
		resource.TestStep{Config: free},
	)
}

func TestAccDomain_otherHostIsAnError(t *testing.T) {
	acctest.Case(t, "another daemon's 'no such domain' does not take a machine out of the state")
	config := machine{name: "here", off: true}.config(t)
	other := regexp.MustCompile(`uri = "[^"]*"`).ReplaceAllString(config, `uri = "test:///default"`)
	lab.Steps(t,
		lab.Apply(config),
		resource.TestStep{Config: other, ExpectError: lab.Says(`Domain "here" is on another host`, "the state was kept")},
		resource.TestStep{Config: config, PlanOnly: true},
	)
}

func TestAccDomain_interfacesKeepTheirAddresses(t *testing.T) {
	acctest.Case(t, "interfaces without a MAC address keep theirs when others come, go, move, or change their network")
	const name = "nics"
	lab.Virsh(t, "net-define", netFile(t, "second"))
	defer lab.Virsh(t, "net-undefine", "second")
	nics := func(networks ...string) string {
		parts := make([]string, len(networks))
		for i, n := range networks {
			parts[i] = fmt.Sprintf(`{ source = { network = { network = %q } }, model = { type = "virtio" } }`, n)
		}
		return machine{name: name, off: true, devices: "interfaces = [" + strings.Join(parts, ", ") + "]"}.config(t)
	}
	var macs []string
	remember := func(s *terraform.State) error {
		macs = nil
		r := s.RootModule().Resources[it].Primary.Attributes
		for i := 0; r[fmt.Sprintf("devices.interfaces.%d.mac.address", i)] != ""; i++ {
			macs = append(macs, r[fmt.Sprintf("devices.interfaces.%d.mac.address", i)])
		}
		return nil
	}
	// kept asserts which of the remembered addresses are at which places; -1 is
	// a new one.
	kept := func(places ...int) resource.TestCheckFunc {
		return func(s *terraform.State) error {
			before := macs
			if err := remember(s); err != nil {
				return err
			}
			if len(macs) != len(places) {
				return fmt.Errorf("%d interfaces, want %d", len(macs), len(places))
			}
			seen := map[string]bool{}
			for i, p := range places {
				if p >= 0 && macs[i] != before[p] {
					return fmt.Errorf("interface %d has %s; before: %v, now %v", i, macs[i], before, macs)
				}
				if seen[macs[i]] {
					return fmt.Errorf("two interfaces have %s", macs[i])
				}
				seen[macs[i]] = true
				if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, macs[i]) {
					return fmt.Errorf("the definition lacks %s", macs[i])
				}
			}
			return nil
		}
	}
	lab.Steps(t,
		lab.Apply(nics("default", "default", "second"), remember),
		lab.Apply(nics("default", "second", "second"), kept(0, 1, 2)),
		lab.Apply(nics("default", "second", "second", "default"), kept(0, 1, 2, -1)),
		lab.Apply(nics("second", "second", "default"), kept(1, 2, 0)),
		lab.Apply(nics("second"), kept(0)),
		lab.Apply(nics("default"), kept(0)),
	)
}

func netFile(t testing.TB, name string) string {
	t.Helper()
	file := t.TempDir() + "/n.xml"
	if err := os.WriteFile(file, []byte("<network><name>"+name+"</name></network>"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAccDomain_importThenEdit(t *testing.T) {
	acctest.Case(t, "after an import, a change of memory, CPU mode or metadata takes what follows from it along, and foreign metadata stays")
	file := t.TempDir() + "/d.xml"
	xml := `<domain type='qemu'><name>edited</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<metadata><l:libosinfo xmlns:l="http://libosinfo.org/xmlns/libvirt/domain/1.0"><l:os id="x"/></l:libosinfo></metadata>
<os><type arch='x86_64' machine='q35'>hvm</type></os><cpu mode='custom' match='exact'><model fallback='allow'>qemu64</model></cpu>
<devices><interface type='network'><source network='default'/></interface></devices></domain>`
	if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	config := func(more string) string {
		return lab.Config(t, "resource \"libvirt_domain\" \"it\" {\n name = \"edited\"\n type = \"qemu\"\n "+more+"\n}\n")
	}
	has := func(parts ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			xml := lab.Virsh(t, "dumpxml", "--inactive", "edited")
			for _, p := range parts {
				if !strings.Contains(xml, p) {
					return fmt.Errorf("%s is missing in\n%s", p, xml)
				}
			}
			return nil
		}
	}
	empty := []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	const mine = `metadata = { xml = "<m:mine xmlns:m=\"urn:mine\"><m:b/><m:a/></m:mine>" }`
	const turned = `metadata = { xml = "<m:mine xmlns:m=\"urn:mine\"><m:a/><m:b/><m:c/></m:mine>" }`
	lab.Steps(t,
		resource.TestStep{Config: config(""), ResourceName: it, ImportState: true, ImportStateId: "edited", ImportStatePersist: true},
		resource.TestStep{Config: config(""), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: empty, PostApplyPostRefresh: empty}},
		lab.Apply(config("memory = 98304"), has("<memory unit='KiB'>98304<", "<currentMemory unit='KiB'>98304<")),
		lab.Apply(config("memory = 98304\n cpu = { mode = \"maximum\" }"), has("mode='maximum'")),
		lab.Apply(config("memory = 98304\n "+mine), has("libosinfo", "<m:b/>")),
		lab.Apply(config("memory = 98304\n "+turned), has("libosinfo", "<m:c/>")),
		lab.Apply(config("memory = 98304"), has("libosinfo")),
		lab.Apply(config(`devices = { interfaces = [{ mac = { address = "52:54:00:ed:17:01" }, source = { network = { network = "default" } } }] }`), has("52:54:00:ed:17:01")),
		resource.TestStep{Config: config("devices = { interfaces = [null] }"), ExpectError: lab.Says("devices.interfaces[0] is null")},
		resource.TestStep{Config: config(""), PlanOnly: true, ExpectNonEmptyPlan: true},
	)
}

func TestAccDomain_settledIsTrue(t *testing.T) {
	acctest.Case(t, "a guest with many kinds of devices is settled after its start, and not after the guest or the definition was changed by hand")
	const name = "settled"
	m := machine{name: name, devices: `
    disks = [
      { device = "cdrom", target = { dev = "sda", bus = "sata" } },
      { source = { volume = { pool = "default", volume = "settled.qcow2" } }, driver = { name = "qemu", type = "qcow2" }, target = { dev = "vda", bus = "virtio" } },
    ]
    interfaces = [
      { mac = { address = "52:54:00:5e:77:1e" }, source = { network = { network = "default" } }, model = { type = "virtio" } },
      { source = { user = {} }, model = { type = "virtio" } },
    ]
    graphics    = [{ vnc = { auto_port = true, passwd = "canary" } }]
    videos      = [{ model = { type = "virtio" } }]
    channels    = [{ source = { unix = {} }, target = { virt_io = { name = "org.qemu.guest_agent.0" } } }]
    rngs        = [{ model = "virtio", backend = { random = "/dev/urandom" } }]
    sounds      = [{ model = "ich9" }]
    inputs      = [{ type = "tablet", bus = "usb" }]
    mem_balloon = { model = "virtio", stats = { period = 5 } }`}
	lab.Virsh(t, "vol-create-as", "default", "settled.qcow2", "1M", "--format", "qcow2")
	defer lab.Virsh(t, "vol-delete", "settled.qcow2", "default")
	config := m.config(t)
	refresh := func(check ...resource.TestCheckFunc) resource.TestStep {
		return resource.TestStep{RefreshState: true, Check: resource.ComposeAggregateTestCheckFunc(check...)}
	}
	lab.Steps(t,
		lab.Apply(config, attr("status.settled", "true"), attr("status.state", "settled"), attr("status.pending.#", "0")),
		behind(t, refresh(attr("status.settled", "false"), attr("status.pending.#", "1")), []string{"domif-setlink", name, "52:54:00:5e:77:1e", "down"}),
		behind(t, refresh(attr("status.settled", "false"), attr("status.pending.#", "2")), []string{"desc", name, "--config", "edited by hand"}),
	)
}

func TestAccDomain_preflight(t *testing.T) {
	acctest.Case(t, "a disk gets the format of its volume, a wrong format and a missing network are refused before anything is touched")
	const name = "checked"
	lab.Virsh(t, "vol-create-as", "default", "checked.qcow2", "1M", "--format", "qcow2")
	defer lab.Virsh(t, "vol-delete", "checked.qcow2", "default")
	path := lab.Host(t).PoolDir() + "/checked.qcow2"
	disk := func(driver, source string) string {
		return machine{name: name, off: true, devices: fmt.Sprintf(`disks = [{ %s source = %s, target = { dev = "vda", bus = "virtio" } }]`, driver, source)}.config(t)
	}
	volume, file := `{ volume = { pool = "default", volume = "checked.qcow2" } }`, fmt.Sprintf(`{ file = { file = %q } }`, path)
	raw := `driver = { name = "qemu", type = "raw" },`
	isQcow2 := func(*terraform.State) error {
		if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !strings.Contains(xml, "type='qcow2'") {
			return fmt.Errorf("the disk is not qcow2:\n%s", xml)
		}
		return nil
	}
	nonet := machine{name: name, off: true, devices: `interfaces = [{ source = { network = { network = "nonet" } } }]`}.config(t)
	refused := lab.Says("Disk vda is qcow2, not raw", "Nothing was changed", `Set driver.type to "qcow2"`)
	lab.Steps(t,
		resource.TestStep{Config: disk(raw, volume), ExpectError: refused},
		resource.TestStep{Config: nonet, ExpectError: lab.Says(`cannot start as configured: network "nonet" does not exist`, "Networks of the host", "libvirt_network.x.name", "Nothing was changed")},
		lab.Apply(disk("", volume), isQcow2),
		resource.TestStep{Config: disk(raw, volume), ExpectError: refused},
		lab.Apply(disk("", file), isQcow2),
		resource.TestStep{Config: nonet, ExpectError: lab.Says(`network "nonet" does not exist`)},
		lab.Apply(disk("", file), isQcow2),
	)
}

func TestAccDomain_gonePlanIsNoDeadEnd(t *testing.T) {
	core := acctest.Case(t, "a saved plan for a machine that has vanished fails, and the next plan simply creates it, protected or not")
	dir := t.TempDir()
	write := func(dir, title string) {
		config := strings.Replace(machine{name: "vanished", off: true, more: fmt.Sprintf("title = %q", title)}.config(t), lab.Source(), "driftsafe/libvirt", 1)
		if err := os.WriteFile(dir+"/main.tf", []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, "a")
	p := lab.NewProject(t, core, dir)
	p.Must(0, "apply", "-auto-approve")
	write(p.Dir(), "b")
	p.Must(0, "plan", "-out=saved")
	lab.Virsh(t, "undefine", "vanished")
	if out := p.Must(1, "apply", "saved"); !lab.Says(`domain "`, "does not exist").MatchString(out) {
		t.Errorf("got %s", out)
	}
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	lab.Virsh(t, "undefine", "vanished")
}
