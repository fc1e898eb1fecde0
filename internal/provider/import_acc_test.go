package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// imports writes import blocks for what a person wrote; of gives the id of an
// object, or its identity.
func (w *takeover) imports(heirs []heir, of func(h heir) any) {
	w.t.Helper()
	var b strings.Builder
	for _, h := range heirs {
		switch id := of(h).(type) {
		case string:
			fmt.Fprintf(&b, "import {\n  to = %s\n  id = %q\n}\n", h.address(), id)
		case attrs:
			for name, v := range id {
				fmt.Fprintf(&b, "import {\n  to = %s\n  identity = { %s = %q }\n}\n", h.address(), name, v)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(w.project.Dir(), "imports.tf"), []byte(b.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestAccImport_everyForm(t *testing.T) {
	c := acctest.Case(t, "machines, networks, pools and volumes are imported by every identifier they have, by block, by command and by identity; a sparse configuration plans nothing, nothing is touched, and the first change of a list takes nothing off the machine")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	heirs := w.rewrite(f)
	nameless(t)
	w.observe("field-router", "field-headend")
	places := map[string]heir{}
	for _, h := range f.heirs {
		places[h.address()] = h
	}
	state := func(h heir, name string) string { return fmt.Sprint(places[h.address()].state[name]) }
	name := func(h heir) any {
		if h.typ == "libvirt_volume" {
			return fieldPool + "/" + fmt.Sprint(h.config["name"])
		}
		return h.config["name"]
	}
	uuid := func(h heir) any {
		if h.typ == "libvirt_volume" {
			return state(h, "path")
		}
		return strings.ToUpper(state(h, "uuid"))
	}
	identity := func(h heir) any {
		if h.typ == "libvirt_volume" {
			return attrs{"key": state(h, "key")}
		}
		return attrs{"uuid": state(h, "uuid")}
	}
	forms := map[string]func(heir) any{"name": name, "UUID or path": uuid}
	if c.Name == core.Tofu {
		forms["identity"] = identity
	}
	all := fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy", len(heirs))
	for form, of := range forms {
		w.imports(heirs, of)
		if out := w.project.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, all) {
			t.Errorf("by %s:\n%s", form, out)
		}
	}
	w.untouched("the plans")

	w.imports(nil, name)
	for _, no := range []struct{ address, id, says, forms string }{
		{"libvirt_domain.router", "4711", `There is no domain "4711"`, "the UUID (virsh domuuid NAME) or the name"},
		{"libvirt_domain.router", "qemu:///system/field-router", "There is no domain", "the UUID (virsh domuuid NAME) or the name"},
		{"libvirt_network.lan", fieldPool, "There is no network", "the UUID (virsh net-uuid NAME) or the name"},
		{"libvirt_pool.vault", aUUID, "There is no pool", "the UUID (virsh pool-uuid NAME) or the name"},
		{"libvirt_volume.router", "router.qcow2", "There is no volume", "the key or path (virsh vol-key NAME POOL), or POOL/NAME"},
	} {
		w.project.Refuses([]string{no.says, no.forms}, "import", no.address, no.id)
	}
	w.project.Must(0, "import", "libvirt_domain.headend", aUUID)
	w.project.Must(0, "state", "rm", "libvirt_domain.headend")
	for _, h := range heirs {
		w.project.Must(0, "import", h.address(), fmt.Sprint(name(h)))
	}
	w.empty("after the command")
	w.firstIntent(heirs)
}

// firstIntent names one of two disks alone, and changes it.
func (w *takeover) firstIntent(heirs []heir) {
	w.t.Helper()
	for _, h := range heirs {
		if h.address() == "libvirt_domain.router" {
			h.config["devices"].(attrs)["disks"] = []attrs{{"target": attrs{"dev": "vda"}, "driver": attrs{"cache": "none"}}}
		}
	}
	all := w.heirs
	w.heirs = heirs
	w.writeConfig()
	w.heirs = all
	w.project.Tells([]string{"devices.disks[vda].driver.cache: next_boot", "leave the state, not the machine (1)", "devices.disks[sda]"}, "plan")
	w.untouched("the plan of the first intent")
	out := w.project.Must(0, "apply", "-auto-approve")
	if strings.Contains(out, "removed") {
		w.t.Errorf("something was removed:\n%s", out)
	}
	w.guests["field-router"].Untouched(w.t, "field-router")
	for _, flags := range [][]string{{}, {"--inactive"}} {
		if disks := lab.Virsh(w.t, append([]string{"domblklist", "field-router"}, flags...)...); !strings.Contains(disks, "sda") || !strings.Contains(disks, "vda") {
			w.t.Errorf("a disk is gone %v:\n%s", flags, disks)
		}
	}
	w.project.Must(0, "plan", "-detailed-exitcode")
}

// nameless defines a machine whose name looks like a UUID.
func nameless(t testing.TB) {
	t.Helper()
	defineXML(t, "define", "<domain type='qemu'><name>"+aUUID+"</name><memory>16384</memory><os><type>hvm</type></os></domain>")
	t.Cleanup(func() { lab.Virsh(t, "undefine", aUUID) })
}

func TestAccImport_transient(t *testing.T) {
	c := acctest.Case(t, "a running machine that somebody undefined is imported as it is; the plan defines it again, and the guest does not notice")
	h := lab.Host(t)
	const name = "wanderer"
	defineXML(t, "create", fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os><features><acpi/></features>
<devices><serial type='file'><source path='%s' append='on'/><target port='0'/></serial></devices></domain>`, name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog(name)))
	heirs := []heir{{"libvirt_domain", "it", attrs{"name": name, "type": "qemu"}, nil}}
	w := newTakeover(t, c, heirs)
	t.Cleanup(w.sweep)
	w.imports(heirs, func(heir) any { return name })
	w.observe(name)
	w.project.Tells([]string{"definition: defined again none", "Plan: 1 to import, 0 to add, 1 to change, 0 to destroy"}, "plan")
	w.guests[name].Untouched(t, name)
	w.project.Must(0, "apply", "-auto-approve")
	w.before = w.definitions()
	if w.before["list "+name] == "" {
		t.Error("the machine is not defined")
	}
	w.empty("afterwards")
}
