package provider

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	c := acctest.Case(t, "machines, networks, pools and volumes are imported by every identifier they have, by block, by command and by identity; a sparse configuration plans nothing, nothing is touched, and the first changes of lists take no disk, interface or host of a network away")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	heirs := w.rewrite(f)
	nameless(t)
	twoOfEach(t)
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
	for i, h := range heirs {
		id := name
		if i%2 == 1 { // one machine so, and one so; volumes likewise
			id = uuid
		}
		w.project.Must(0, "import", h.address(), fmt.Sprint(id(h)))
	}
	for address, id := range map[string]func(heir) any{"libvirt_network.lan": uuid, "libvirt_pool.vault": name} {
		w.project.Must(0, "state", "rm", address)
		w.project.Must(0, "import", address, fmt.Sprint(id(places[address])))
	}
	w.empty("after the command")
	w.firstIntent(heirs)
}

// twoOfEach gives the network of the field a second host of its DHCP server and two
// of its DNS server.
func twoOfEach(t testing.TB) {
	t.Helper()
	for section, xml := range map[string]string{
		"ip-dhcp-host": "<host mac='52:54:00:91:07:03' name='printer' ip='10.91.7.3'/>",
		"dns-host":     "<host ip='10.91.7.2'><hostname>headend</hostname><hostname>www</hostname></host>",
	} {
		lab.Virsh(t, "net-update", fieldNetwork, "add-last", section, xml, "--live", "--config")
	}
	lab.Virsh(t, "net-update", fieldNetwork, "add-last", "dns-host", "<host ip='10.91.7.3'><hostname>printer</hostname></host>", "--live", "--config")
}

// intent has the configuration name one of two disks, of two interfaces, of two
// DHCP hosts and of two DNS hosts, and want something of each.
func (w *takeover) intent(heirs []heir, cache, link, name string) {
	w.t.Helper()
	for _, h := range heirs {
		switch h.address() {
		case "libvirt_domain.router":
			h.config["devices"] = attrs{
				"disks":      []attrs{{"target": attrs{"dev": "vda"}, "driver": attrs{"cache": cache}}},
				"interfaces": []attrs{{"mac": attrs{"address": "52:54:00:91:07:01"}, "link": attrs{"state": link}}},
			}
		case "libvirt_network.lan":
			h.config["ips"] = []attrs{{"address": "10.91.7.1", "prefix": 24, "dhcp": attrs{
				"hosts": []attrs{{"mac": "52:54:00:91:07:02", "name": name, "ip": "10.91.7.2"}},
			}}}
			h.config["dns"] = attrs{"host": []attrs{{"ip": "10.91.7.2", "hostnames": []attrs{{"hostname": name}}}}}
		}
	}
	all := w.heirs
	w.heirs = heirs
	w.writeConfig()
	w.heirs = all
}

// firstIntent changes one element of lists that were imported whole: the others
// leave the state, and stay where they are.
func (w *takeover) firstIntent(heirs []heir) {
	w.t.Helper()
	w.intent(heirs, "none", "down", "head")
	w.project.Tells([]string{"devices.disks[vda].driver.cache: next_boot"}, "plan")
	w.project.Tells([]string{"leave the state, not the machine (2)", "devices.disks[sda]", "devices.interfaces["}, "plan")
	w.project.Tells([]string{"leave the state, not the machine (4)", "dns.host[10.91.7.2].hostnames[www]", "dns.host[10.91.7.3]", "ips[10.91.7.1].dhcp.hosts[52:54:00:91:07:03]"}, "plan")
	w.untouched("the plan of the first intent")
	w.applyIntent("down", "head")
	w.intent(heirs, "none", "up", "headend")
	w.applyIntent("up", "headend")
}

// applyIntent applies what intent has written, and looks whether all that it does
// not name is still on the machine and in the network, running and defined.
func (w *takeover) applyIntent(link, name string) {
	w.t.Helper()
	out := w.project.Must(0, "apply", "-auto-approve")
	for _, other := range []string{"devices.disks[sda]: ", "dns.host[10.91.7.2].hostnames[www]: ", "dns.host[10.91.7.3]: ", "dhcp.hosts[52:54:00:91:07:03]: "} {
		if strings.Contains(out, other) {
			w.t.Errorf("%s is changed:\n%s", other, out)
		}
	}
	for _, guest := range slices.Sorted(maps.Keys(w.guests)) {
		w.guests[guest].Untouched(w.t, guest)
	}
	has := func(of, text string, parts ...string) {
		w.t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				w.t.Errorf("%s has no %s:\n%s", of, part, text)
			}
		}
	}
	other := between(w.before["list field-router"], "</interface>", "<source")
	for _, flags := range [][]string{{}, {"--inactive"}} {
		virsh := func(command, object string) string {
			return lab.Virsh(w.t, append([]string{command, object}, flags...)...)
		}
		has("field-router", virsh("domblklist", "field-router"), "vda", "router.qcow2", "sda", "router-seed.iso")
		nics := virsh("domiflist", "field-router")
		has("field-router", nics, "52:54:00:91:07:01", between(other, "<mac address='", "'"), "virtio", "e1000e")
		if strings.Count(nics, ":91:07:01") != 1 || strings.Count(nics, "52:54:00:") != 2 {
			w.t.Errorf("field-router has other interfaces:\n%s", nics)
		}
		has("field-router", virsh("dumpxml", "field-router"), "<link state='"+link+"'/>")
		has(fieldNetwork, virsh("net-dumpxml", fieldNetwork),
			"<host mac='52:54:00:91:07:02' name='"+name+"' ip='10.91.7.2'/>", "<host mac='52:54:00:91:07:03' name='printer' ip='10.91.7.3'/>",
			"<range start='10.91.7.10' end='10.91.7.99'/>", "<hostname>"+name+"</hostname>", "<hostname>www</hostname>", "<hostname>printer</hostname>", "<host ip='10.91.7.3'>")
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
