package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// Failures of what is under way: QEMU refuses, or something of the host is taken.

// adds is a change that adds lines to the configuration.
func adds(lines ...string) func(machine) machine {
	return func(m machine) machine {
		m.more += "\n  " + strings.Join(lines, "\n  ")
		return m
	}
}

// without is a change that takes a text out of the lines that were added.
func without(text string) func(machine) machine { return instead(text, "") }

// instead is a change of a text in the lines that were added.
func instead(text, other string) func(machine) machine {
	return func(m machine) machine {
		m.more = strings.Replace(m.more, text, other, 1)
		return m
	}
}

// has is a change of the devices.
func has(devices string) func(machine) machine {
	return func(m machine) machine { m.devices = devices; return m }
}

const mayRestart = `update = { allow = "restart", shutdown = { timeout = 60 } }`

// refusedByQEMU is a definition that libvirt takes and QEMU does not.
const refusedByQEMU = `qemu_commandline = { args = [{ value = "-device" }, { value = "no-such-device" }] }`

func TestAccFailures_definitionThatQEMURejects(t *testing.T) {
	core := acctest.Case(t, "a definition that libvirt accepts and QEMU does not: a restart into it brings the guest back with the old one, a creation leaves a failed machine that the next apply replaces")
	failures{
		on: machine{name: "rejected", more: pluggable + "\n" + mayRestart},
		rows: []failure{
			{what: "restart with an unknown device", change: adds(refusedByQEMU), restarted: true,
				says: []string{`Could not update domain "rejected"`, "no-such-device", `qemu_commandline.args[1].value is "no-such-device"`, "The way out: QEMU on this host has no such device", "and apply again", "The previous definition is in force again"},
				next: without(refusedByQEMU)},
		},
	}.run(t, core)
	creations{
		of: machine{name: "rejected-new", more: pluggable},
		rows: []failure{
			{what: "creation with an unknown device", change: adds(refusedByQEMU), defined: true,
				says: []string{`Could not create domain "rejected-new"`, "which is defined now", "no-such-device", `qemu_commandline.args[1].value is "no-such-device"`, "The way out: QEMU on this host has no such device", "and apply again"}, next: without(refusedByQEMU)},
			{what: "creation with a network that is not there", change: has(`interfaces = [{ source = { network = { network = "failures-net" } }, model = { type = "virtio" } }]`),
				says: []string{`network "failures-net" does not exist`, `devices.interfaces[0].source.network.network is "failures-net"`, "Networks of the host", "default", "The way out: create the network first", "Nothing was changed"},
				mend: func(t testing.TB, _ string) {
					lab.Virsh(t, "net-define", netFile(t, "failures-net"))
					lab.Virsh(t, "net-start", "failures-net")
					t.Cleanup(func() { virsh("net-destroy failures-net", "net-undefine failures-net")(t, "") })
				}},
		},
	}.run(t, core)
}

// Of a definition that waits nobody knows whether it works.
func TestAccFailures_waitingDefinitionThatQEMURejects(t *testing.T) {
	core := acctest.Case(t, "a definition that QEMU does not take waits beside the running guest; the restart that is to bring it fails, and the guest runs again with the definition that it ran before")
	const name = "rejected-later"
	m := machine{name: name, more: pluggable}
	p := project(t, core, m.block(t))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	guest, ran := lab.Observe(t, name), definitions(t, []string{name})[name]
	configure(t, p, adds(refusedByQEMU)(m).block(t))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, name)
	if s := stateOf(t, p, name).Values; at(s, "status.state") != "pending" || len(words(s, "status.pending")) == 0 || len(words(s, "status.boot_problems")) > 0 {
		t.Errorf("status: %v", s["status"])
	}
	r := failure{what: "restart into a definition that had waited", says: []string{"no-such-device", "the guest runs again with the definition that it ran before, which is in force now"}, next: without(refusedByQEMU)}
	m = adds(refusedByQEMU, mayRestart)(m)
	r.attempt(t, p, m)
	if again := lab.Observe(t, name); again.Report().BootID == guest.Report().BootID {
		t.Error("the guest was never down")
	}
	if now := definitions(t, []string{name})[name]; now != ran {
		t.Errorf("the definition differs from what ran:\n%s", difference(ran, now))
	}
	isTrue(t, p)
	r.converge(t, p, m)
	r.report(t, "runs again with what it ran before")
}

// occupied is another guest of the host that has what a machine wants.
func occupied(t *testing.T, devices string) (start, stop action) {
	t.Helper()
	const name = "occupant"
	lab.Virsh(t, "define", definition(t, `<domain type='qemu'><name>occupant</name><memory unit='MiB'>32</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices>`+devices+`</devices></domain>`))
	forget(t, name)
	return virsh("start " + name), virsh("destroy " + name)
}

func TestAccFailures_hotPlugHalfWay(t *testing.T) {
	core := acctest.Case(t, "an update of five things, one of which is refused after three others were made, is taken back whole: in the definition and in the guest, a disk that had come leaves again")
	const name = "half-plugged"
	var seen *events
	image(t, name+"-vdb.raw")
	start, stop := occupied(t, fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vda' bus='virtio'/></disk>`, image(t, name+"-vdc.raw")))
	disk := func(dev string) string {
		return fmt.Sprintf(`{ driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = %q, bus = "virtio" } }`,
			lab.Host(t).PoolDir()+"/"+name+"-"+dev+".raw", dev)
	}
	m := machine{name: name, vcpu: 2, more: pluggable + "\n current_memory = 128\n current_memory_unit = \"MiB\"\n vcpu_current = 1", devices: ports(8) + "\n disks = []"}
	five := func(m machine) machine {
		m.more = pluggable + "\n title = \"after\"\n current_memory = 112\n current_memory_unit = \"MiB\"\n vcpu_current = 2"
		m.devices = ports(8) + "\n" + disks(disk("vdb"), disk("vdc"))
		return m
	}
	failures{on: m, rows: []failure{
		{what: "the second of two disks is locked by another guest", change: five, mend: stop,
			prepare: func(t testing.TB, name string) { start(t, name); seen = watch(t) },
			says: []string{`Could not update domain "half-plugged"`, "plug devices.disks[vdc] in", "lock", `devices.disks[vdc].source.file.file is "` + lab.Host(t).PoolDir() + "/" + name + `-vdc.raw"`,
				"The way out: another guest or program has the file open; stop it, or choose another file, and apply again", "The previous definition is in force again, and what ran runs"},
			also: func(t testing.TB, name string) {
				// Title, balloon and vdb came, in this order, and then went.
				seen.inOrder(t, name, "metadata-change", "device-added", "device-removed", "metadata-change")
				seen.inOrder(t, name, "balloon-change", "device-removed")
				if n := seen.count(name, "device-added"); n != 1 {
					t.Errorf("%d devices came into the guest, want vdb alone", n)
				}
				xml := lab.Virsh(t, "dumpxml", name)
				for _, part := range []string{"-vdb.raw", "-vdc.raw", "<title>after"} {
					if strings.Contains(xml, part) {
						t.Errorf("the guest still has %s:\n%s", part, xml)
					}
				}
				if !strings.Contains(xml, "<currentMemory unit='KiB'>131072<") || !strings.Contains(xml, "current='1'") {
					t.Errorf("balloon and CPUs are not as before:\n%s", xml)
				}
			}},
	}}.run(t, core)
}

// A network filter that needs what nobody gives cannot be put to work.
func TestAccFailures_interfaceHalfWay(t *testing.T) {
	core := acctest.Case(t, "an interface that gets another network and a filter that cannot be put to work stays in its network, on the host too")
	const name = "half-moved"
	lab.Virsh(t, "nwfilter-define", definition(t, `<filter name='failures-filter' chain='ipv4'><rule action='drop' direction='in'><ip srcipaddr='$NOBODY_GIVES_IT'/></rule></filter>`))
	lab.Virsh(t, "net-define", netFile(t, "failures-other"))
	lab.Virsh(t, "net-start", "failures-other")
	t.Cleanup(func() {
		virsh("net-destroy failures-other", "net-undefine failures-other", "nwfilter-undefine failures-filter")(t, "")
	})
	nic := func(network, more string) string {
		return fmt.Sprintf(`interfaces = [{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = %q } }%s }]`, macOf(name, 1), network, more)
	}
	both := nic("failures-other", `, filter_ref = { filter = "failures-filter" }, link = { state = "down" }`)
	titled := func(m machine) machine { m = has(both)(m); m.more += "\n title = \"after\""; return m }
	var seen *events
	failures{on: machine{name: name, more: pluggable, devices: nic("default", "")}, rows: []failure{
		{what: "the filter needs a variable", change: titled,
			prepare: func(t testing.TB, _ string) { seen = watch(t) }, next: has(nic("failures-other", `, link = { state = "down" }`)),
			says: []string{`Could not update domain "half-moved"`, "change devices.interfaces[" + macOf(name, 1) + "]", "failed to add new filter rules",
				"devices.interfaces[" + macOf(name, 1) + `].filter_ref.filter is "failures-filter"`, "The way out: give the filter what it asks for (filter_ref.parameters; libvirt's log on the host tells what), or choose another one, and apply again", "The previous definition is in force again"},
			also: func(t testing.TB, name string) {
				seen.inOrder(t, name, "metadata-change", "metadata-change") // the title came and went
				xml := lab.Virsh(t, "dumpxml", name)
				tap := between(xml, "<target dev='", "'")
				link, err := lab.Host(t).Exec(context.Background(), "ip", "link", "show", "master", "virbr0")
				if err != nil || !strings.Contains(link, tap) || strings.Contains(xml, "failures-") || strings.Contains(xml, "<title>") || strings.Contains(xml, "state='down'") {
					t.Errorf("%q is not in the bridge of its network (%v): %s\n%s", tap, err, link, xml)
				}
			}},
	}}.run(t, core)
}

// between is the text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

func TestAccFailures_portsInUse(t *testing.T) {
	core := acctest.Case(t, "a display and a serial port on a port of the host that another guest has: a creation leaves a failed machine, a restart brings the guest back")
	start, stop := occupied(t, `<graphics type='vnc' port='5999' listen='127.0.0.1'/>
<serial type='tcp'><source mode='bind' host='127.0.0.1' service='7777'/><protocol type='raw'/></serial>`)
	const portTaken = "The way out: something on the host has that port already; end what listens there, or choose another port, and apply again"
	const display = `graphics = [{ vnc = { port = 5999, auto_port = false, listen = "127.0.0.1" } }]`
	listens := func(m machine) machine {
		m.serials = `, { source = { tcp = { mode = "bind", host = "127.0.0.1", service = "7777" } }, protocol = { type = "raw" }, target = { port = 1 } }`
		return m
	}
	creations{of: machine{name: "port-new", more: pluggable}, rows: []failure{
		{what: "creation with a VNC port that is in use", change: has(display), prepare: start, mend: stop, defined: true,
			says: []string{`Could not create domain "port-new"`, "which is defined now", "5999", "devices.graphics[0].vnc.port is 5999", portTaken}},
		{what: "creation with a serial port on a TCP port that is in use", change: listens, prepare: start, mend: stop, defined: true,
			says: []string{`Could not create domain "port-new"`, "which is defined now", "in use", `devices.serials[1].source.tcp.service is "7777"`, portTaken}},
	}}.run(t, core)
	failures{on: machine{name: "port-old", more: pluggable + "\n" + mayRestart}, rows: []failure{
		{what: "restart with a VNC port that is in use", change: has(display), prepare: start, mend: stop, restarted: true,
			says: []string{`Could not update domain "port-old"`, "port-old with its new definition", "5999", "devices.graphics[0].vnc.port is 5999", portTaken, "The previous definition is in force again"}},
		{what: "restart with a serial port on a TCP port that is in use", change: listens, prepare: start, mend: stop, restarted: true,
			says: []string{`Could not update domain "port-old"`, "port-old with its new definition", "in use", `devices.serials[1].source.tcp.service is "7777"`, portTaken, "The previous definition is in force again"}},
	}}.run(t, core)
}

// full makes a directory on a file system of its own that takes so many files and
// no more, and returns what makes room in it.
func full(t *testing.T, name string, files int) (dir string, room action) {
	t.Helper()
	dir = filepath.Join(lab.Host(t).Dir(), name)
	inside := func(command ...string) {
		if _, err := lab.Host(t).Exec(context.Background(), command[0], command[1:]...); err != nil {
			t.Error(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	inside("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=8M,nr_inodes=%d", files+1), "full", dir)
	t.Cleanup(func() {
		inside("umount", "--lazy", dir)
		_ = os.Remove(dir)
	})
	return dir, func(testing.TB, string) { inside("mount", "-o", "remount,nr_inodes=100", dir) }
}

func TestAccFailures_diskFull(t *testing.T) {
	core := acctest.Case(t, "a disk of the host that is full when the guest is started: for the log of a serial port, and, when it is plugged in, for what is written to a transient disk")
	const makeRoom = "The way out: make room on that file system of the host, or choose another place, and apply again"
	logs, roomForLogs := full(t, "full-logs", 0)
	images, roomForImages := full(t, "full-images", 1)
	image := filepath.Join(images, "disk.raw")
	logged := func(dir string) func(machine) machine {
		return func(m machine) machine {
			m.serials = fmt.Sprintf(`, { source = { file = { path = "%s/log" } }, target = { port = 1 } }`, dir)
			return m
		}
	}
	transient := has(ports(4) + fmt.Sprintf("\n"+`disks = [{ driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } }, target = { dev = "vda", bus = "virtio" }, transient = {} }]`, image))
	makeImage := func(t testing.TB, _ string) {
		if _, err := lab.Host(t).Exec(context.Background(), "truncate", "-s", "1M", image); err != nil {
			t.Fatal(err)
		}
	}
	moreLogs, roomForMore := full(t, "full-more-logs", 0)
	creations{of: machine{name: "full-new", more: pluggable}, rows: []failure{
		{what: "creation with no room for a log", change: logged(logs), mend: roomForLogs, defined: true,
			says: []string{`Could not create domain "full-new"`, "which is defined now", "full-logs/log", "No space left on device", `devices.serials[1].source.file.path is "` + logs + `/log"`, makeRoom}},
	}}.run(t, core)
	failures{on: machine{name: "full-old", more: pluggable + "\n" + mayRestart, devices: ports(4) + "\n disks = []"}, rows: []failure{
		{what: "restart with no room for a log", change: logged(moreLogs), mend: roomForMore, restarted: true,
			says: []string{`Could not update domain "full-old"`, "full-old with its new definition", "No space left on device", `devices.serials[1].source.file.path is "` + moreLogs + `/log"`, makeRoom, "The previous definition is in force again"}},
		{what: "a transient disk is plugged in, with no room for what is written to it", change: transient, prepare: makeImage, mend: roomForImages,
			says: []string{`Could not update domain "full-old"`, "plug devices.disks[vda] in", "No space left on device", `devices.disks[vda].source.file.file is "` + image + `"`, makeRoom, "The previous definition is in force again, and what ran runs"}},
	}}.run(t, core)
}

func TestAccFailures_powerButton(t *testing.T) {
	core := acctest.Case(t, "a guest that does not hear the power button is not restarted: it is untouched when the time is up and when the user gives up, and stopped hard only if the configuration says so")
	const name, slow, quick = "deaf", `shutdown = { timeout = 20 }`, `shutdown = { timeout = 3 }`
	restart := func(m machine) machine {
		m.more += "\n cpu = { mode = \"maximum\" }\n destroy = { shutdown = { timeout = 1 } }"
		return m
	}
	failures{on: machine{name: name, cmdline: "guest.nopower=1 ", more: pluggable + "\n update = { allow = \"restart\", " + slow + " }"}, rows: []failure{
		{what: "the user gives up while the guest is asked to shut down", change: restart, next: without(`cpu = { mode = "maximum" }`),
			interrupt: 6 * time.Second,
			says:      []string{"Could not update domain \"deaf\"", "context canceled", "asked to shut down, runs still, and may go down later"}},
		{what: "the guest does not shut down in time", change: func(m machine) machine { return instead(slow, quick)(restart(m)) },
			next: instead("timeout = 3", "timeout = 3, force = true"),
			says: []string{"Could not update domain \"deaf\"", "did not shut down within 3s", "Shut it down by hand", "update.shutdown.force", "what ran runs"},
			then: map[string]string{"status.power": "running"}},
	}}.run(t, core)
}
