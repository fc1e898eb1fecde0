package domain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// redirected is a USB port behind a socket, which can keep a log.
const redirected = `redir_devs = [{ bus = "usb", source = { tcp = { mode = "bind", host = "127.0.0.1", service = "0", protocol = { type = "raw" } } } }]`

// piece writes one of extra_xml.
func piece(path, xml string) string { return fmt.Sprintf("{ path = %q, xml = %q }", path, xml) }

func TestAccDomain_extraXML(t *testing.T) {
	core := acctest.Case(t, "XML that the schema has no attribute for is applied, compared, put back, pending on a running guest and withdrawn; what libvirt does not keep is an error, and nothing is changed")
	const off, on = "extra-off", "extra-on"
	forget(t, off, on)
	const root, log = "/domain/os/root", "/domain/devices/redirdev[@type='tcp']/log"
	logged := func(how string) string { return fmt.Sprintf(`<log file="/tmp/redir.log" append="%s"/>`, how) }
	body := func(pieces ...string) string {
		more := ""
		if pieces != nil {
			more = "extra_xml = [" + strings.Join(pieces, ", ") + "]"
		}
		return machine{name: off, off: true, more: more, devices: redirected}.block(t) + machine{name: on, more: more, devices: redirected}.block(t)
	}
	has := func(name string, texts ...string) {
		t.Helper()
		xml := lab.Virsh(t, "dumpxml", "--inactive", name)
		for _, text := range texts {
			if absent, gone := strings.CutPrefix(text, "!"); strings.Contains(xml, absent) == gone {
				t.Errorf("%s: want %s in\n%s", name, text, xml)
			}
		}
	}
	p := project(t, core, body(piece(root, "<root>/dev/one</root>")))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	has(off, "<root>/dev/one</root>")
	guest := lab.Observe(t, on)

	// Another value and another piece, spelt otherwise than libvirt does.
	configure(t, p, body(piece(root, "<root>/dev/two</root>"), piece(log, `<log   append='on' file='/tmp/redir.log' />`)))
	plans(t, tell(t, p), off, "extra_xml["+log+"]: added none", "extra_xml["+root+"].xml: none")
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	has(off, "<root>/dev/two</root>", "<log file='/tmp/redir.log' append='on'/>")
	waits := words(tell(t, p).state(on), "status.pending")
	if got := strings.Join(waits, " "); !containsAll(got, []string{root, log}) {
		t.Errorf("pending on the running guest: %q", got)
	}

	// Somebody edits it.
	edit("/dev/two", "/dev/theirs")(t, off)
	plans(t, tell(t, p), off, "extra_xml["+root+"].xml: none")
	p.Must(0, "apply", "-auto-approve")
	has(off, "<root>/dev/two</root>")

	// What libvirt does not know it drops.
	for _, unknown := range []string{piece("/domain/novel", "<novel/>"), piece("/domain/os/loader2/@x", "1")} {
		configure(t, p, body(piece(root, "<root>/dev/two</root>"), piece(log, logged("on")), unknown))
		out := p.Must(1, "apply", "-auto-approve")
		if !containsAll(out, []string{"extra_xml"}) {
			t.Errorf("the error does not name extra_xml:\n%s", out)
		}
		has(off, "<root>/dev/two</root>", "append='on'")
	}

	// One piece goes, then all.
	configure(t, p, body(piece(root, "<root>/dev/two</root>")))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	has(off, "<root>/dev/two</root>", "!<log file")
	configure(t, p, body())
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	has(off, "!<root>", "!<log file")
	guest.Untouched(t, on)
}

func TestAccDomain_extraXMLRefused(t *testing.T) {
	acctest.Case(t, "extra_xml that is wrong is refused before anything is applied: paths, XML, what the schema has, two of one path")
	config := func(pieces ...string) string {
		return machine{name: "extra-bad", off: true, more: "extra_xml = [" + strings.Join(pieces, ", ") + "]"}.config(t)
	}
	refused := func(says string, pieces ...string) resource.TestStep {
		return resource.TestStep{Config: config(pieces...), ExpectError: lab.Says(says)}
	}
	lab.Steps(t,
		refused("Invalid path of extra_xml", piece("os/root", "<root/>")),
		refused("write title", piece("/domain/title", "<title/>")),
		refused("one element <root>", piece("/domain/os/root", "<other/>")),
		refused("Two pieces of extra_xml have one path", piece("/domain/os/root", "<root/>"), piece("/domain/os/root", "<root/>")),
		refused("is incomplete", `{ path = "/domain/os/root" }`),
		refused("did not take extra_xml", piece("/domain/novel", "<novel/>")),
		lab.Apply(config(piece("/domain/os/root", "<root>/dev/x</root>"))),
	)
}

func TestAccDomain_unknownXMLSurvives(t *testing.T) {
	core := acctest.Case(t, "elements of libvirt that the schema does not know, put into the definition by hand, survive 20 kinds of update")
	const name = "unknown"
	forget(t, name)
	for _, dev := range []string{"vda", "vdb"} {
		image(t, name+"-"+dev+".raw")
	}
	base := machine{name: name, off: true, devices: "rngs = [" + rng + "]\n " + redirected}
	p := project(t, core, base.block(t))
	p.Must(0, "apply", "-auto-approve")
	edit("</os>", "<root>/dev/kept</root></os>")(t, name)
	edit("<protocol type='raw'/>", "<protocol type='raw'/><log file='/tmp/kept.log' append='on'/>")(t, name)
	vda, vdb := disk(t, name, "vda", ""), disk(t, name, "vdb", "")
	more := ""
	for i, update := range []struct {
		what  string
		apply func(m *machine)
	}{
		{"title", func(m *machine) { more += "\n title = \"a\"" }},
		{"description", func(m *machine) { more += "\n description = \"b\"" }},
		{"metadata", func(m *machine) { more += "\n metadata = { xml = \"<o:o xmlns:o=\\\"urn:o\\\"/>\" }" }},
		{"memory", func(m *machine) { m.memory = 144 }},
		{"CPUs", func(m *machine) { more += "\n vcpu_placement = \"static\"" }},
		{"CPU model", func(m *machine) { more += "\n cpu = { mode = \"custom\", model = \"qemu64\" }" }},
		{"features", func(m *machine) { more += "\n features = { acpi = true }" }},
		{"clock", func(m *machine) {
			more += "\n clock = { offset = \"utc\", timer = [{ name = \"rtc\", tick_policy = \"catchup\" }] }"
		}},
		{"lifecycle", func(m *machine) { more += "\n on_crash = \"restart\"" }},
		{"autostart", func(m *machine) { more += "\n autostart = true" }},
		{"iothreads", func(m *machine) { more += "\n io_threads = 1" }},
		{"memory tuning", func(m *machine) { more += "\n memory_tune = { hard_limit = 4194304 }" }},
		{"a disk", func(m *machine) { m.devices += "\n disks = [" + vda + "]" }},
		{"another disk", func(m *machine) { m.devices = strings.Replace(m.devices, vda, vda+", "+vdb, 1) }},
		{"a field of a disk", func(m *machine) { m.devices = strings.Replace(m.devices, `cache = "none"`, `cache = "writeback"`, 1) }},
		{"a disk less", func(m *machine) { m.devices = strings.Replace(m.devices, ", "+vdb, "", 1) }},
		{"an interface", func(m *machine) { m.devices += "\n " + nics(name) }},
		{"a field of the rng", func(m *machine) {
			m.devices = strings.Replace(m.devices, `model = "virtio", backend`, `model = "virtio", rate = { bytes = 512 }, backend`, 1)
		}},
		{"another rng behind it", func(m *machine) { m.devices = strings.Replace(m.devices, "}]", "}, "+rng+"]", 1) }},
		{"a watchdog", func(m *machine) { m.devices += "\n watchdogs = [{ model = \"i6300esb\", action = \"none\" }]" }},
		{"memory backing", func(m *machine) { more += "\n memory_backing = { nosharepages = true }" }},
	} {
		update.apply(&base)
		base.more = more
		configure(t, p, base.block(t))
		p.Must(0, "apply", "-auto-approve")
		p.Must(0, "plan", "-detailed-exitcode")
		if xml := lab.Virsh(t, "dumpxml", "--inactive", name); !containsAll(xml, []string{"<root>/dev/kept</root>", "<log file='/tmp/kept.log' append='on'/>"}) {
			t.Fatalf("update %d, %s: what the schema does not know is gone:\n%s", i+1, update.what, xml)
		}
	}
	if _, err := os.Stat(filepath.Join(lab.Host(t).PoolDir(), name+"-vda.raw")); err != nil {
		t.Error(err)
	}
}

func TestAccDomain_unknownXMLSurvivesLive(t *testing.T) {
	core := acctest.Case(t, "elements of libvirt that the schema does not know, in a running guest and its definition, survive every kind of live update, and the guest is not touched")
	const name = "unknown-live"
	forget(t, name)
	for _, dev := range []string{"vda", "vdb"} {
		image(t, name+"-"+dev+".raw")
	}
	log := fmt.Sprintf("<log file='%s/%s.log' append='on'/>", lab.Host(t).PoolDir(), name)
	t.Cleanup(func() { _ = os.Remove(lab.Host(t).PoolDir() + "/" + name + ".log") })
	vda, vdb := disk(t, name, "vda", ""), disk(t, name, "vdb", "")
	limited := strings.Replace(vda, "}, source", "}, io_tune = { total_iops_sec = 500 }, source", 1)
	card := func(state string) string {
		return fmt.Sprintf(`interfaces = [{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = "default" } }, link = { state = %q } }]`, macOf(name, 1), state)
	}
	more := pluggable + "\n update = { allow = \"live\" }"
	devices := []string{ports(8), redirected, card("up"), disks(vda), "rngs = [" + rng + ", " + rng + "]"}
	body := func(off bool) string {
		return machine{name: name, off: off, more: more, devices: strings.Join(devices, "\n ")}.block(t)
	}
	p := project(t, core, body(true))
	p.Must(0, "apply", "-auto-approve")
	edit("</os>", "<root>/dev/kept</root></os>")(t, name)
	edit("<protocol type='raw'/>", "<protocol type='raw'/>"+log)(t, name)
	configure(t, p, body(false))
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	for _, update := range []struct {
		what  string
		apply func()
		has   string // what the guest has after it, and did not have before; ! for the other way round
	}{
		{"title", func() { more += "\n title = \"live\"" }, "<title>live</title>"},
		{"metadata", func() { more += "\n metadata = { xml = \"<o:o xmlns:o=\\\"urn:o\\\"/>\" }" }, "urn:o"},
		{"the balloon", func() { more += "\n current_memory = 112\n current_memory_unit = \"MiB\"" }, "<currentMemory unit='KiB'>114688<"},
		{"lifecycle", func() { more += "\n on_crash = \"restart\"" }, "<on_crash>restart<"},
		{"a link", func() { devices[2] = card("down") }, "<link state='down'/>"},
		{"limits of a disk", func() { devices[3] = disks(limited) }, "<total_iops_sec>500<"},
		{"a disk comes", func() { devices[3] = disks(limited, vdb) }, "-vdb.raw"},
		{"a disk goes, and an rng", func() { devices[3], devices[4] = disks(limited), "rngs = ["+rng+"]" }, "!-vdb.raw"},
	} {
		update.apply()
		configure(t, p, body(false))
		had := lab.Virsh(t, "dumpxml", name)
		p.Must(0, "apply", "-auto-approve")
		p.Must(0, "plan", "-detailed-exitcode")
		for _, args := range [][]string{{"dumpxml", name}, {"dumpxml", "--inactive", name}} {
			xml := lab.Virsh(t, args...)
			if !containsAll(xml, []string{"<root>/dev/kept</root>", log}) {
				t.Fatalf("%s, %v: what the schema does not know is gone:\n%s", update.what, args, xml)
			}
			text, goes := strings.CutPrefix(update.has, "!")
			if strings.Contains(had, text) != goes || strings.Contains(xml, text) == goes {
				t.Errorf("%s, %v: the guest had\n%s\nand has\n%s", update.what, args, had, xml)
			}
		}
	}
	guest.Untouched(t, name)
}
