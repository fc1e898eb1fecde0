package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

type equalCase struct {
	root    *Root
	pattern string
	a, b    tree.Value
	want    bool
}

func equalCases() []equalCase {
	d, n, p := Domain(), Network(), Pool()
	str, num, null, no := tree.StringValue, tree.IntValue, tree.NullValue, tree.BoolValue(false)
	cases := []equalCase{
		{d, "title", str(""), null, true},
		{d, "title", str("x"), null, false},
		{d, "title", tree.UnknownValue, tree.UnknownValue, false},
		{d, "features.acpi", no, null, true},
		{d, "features.acpi", tree.BoolValue(true), null, false},
		{d, "cpu.migratable", no, null, false},
		{d, "block_io_tune.weight", num(0), null, true},
		{d, "block_io_tune.weight", num(5), null, false},
		{d, "devices.disks[].address.pci.slot", num(0), null, false},
		{d, "devices.hostdevs[].managed", no, null, false},
		{d, "devices.interfaces[].managed", no, null, true},
		{n, "forward.managed", no, null, true},

		{d, "os.type_machine", str("q35"), str("pc-q35-7.2"), true},
		{d, "os.type_machine", str("pc-i440fx-7.2"), str("pc"), true},
		{d, "os.type_machine", str("q35"), str("pc"), false},
		{d, "os.type_machine", str("pc"), str("pc-q35-7.2"), false},
		{d, "os.type_machine", str("pc-q35-7.2"), str("pc-q35-7.1"), false},
		{d, "metadata.xml", str(`<a xmlns="u"> <b/></a>`), str("\n  <a xmlns='u'>\n<b></b></a>"), true},
		{d, "metadata.xml", str(`<a xmlns="u"/>`), str(`<a xmlns="v"/>`), false},
		{d, "devices.controllers[].model", str("auto"), str("lsilogic"), true},
		{d, "devices.controllers[].model", str("virtio-scsi"), str("lsilogic"), false},
		{d, "devices.controllers[].model", str("auto"), null, false},

		{d, "devices.mem_balloon.stats.period", num(0), null, true},
		{d, "devices.mem_balloon.stats.period", num(5), null, false},
		{d, "devices.rngs[].rate.period", num(0), null, true},
		{d, "devices.interfaces[].coalesce.rx.frames.max", num(0), null, true},
		{d, "cpu_tune.period", num(100000), null, true},
		{d, "cpu_tune.period", num(90000), null, false},
		{d, "cpu_tune.global_period", num(100000), null, true},
		{d, "cpu_tune.global_period", num(100001), null, false},
		{d, "cpu_tune.emulator_period", null, num(100000), true},
		{d, "cpu_tune.emulator_period", null, num(50000), false},
		{d, "cpu_tune.io_thread_period", null, num(100000), true},
		{d, "cpu_tune.io_thread_period", num(100000), num(50000), false},
		{d, "cpu_tune.quota", num(unlimited), null, true},
		{d, "cpu_tune.quota", num(unlimited), num(-1), true},
		{d, "cpu_tune.emulator_quota", num(unlimited), num(-1), true},
		{d, "cpu_tune.io_thread_quota", null, num(-1), true},
		{d, "cpu_tune.io_thread_quota", null, num(unlimited), true},
		{d, "cpu_tune.io_thread_quota", null, num(1000), false},
		{d, "cpu_tune.global_quota", num(unlimited), num(-1), true},
		{d, "cpu_tune.global_quota", num(50000), null, false},
		{d, "cpu_tune.quota", num(unlimited), num(unlimited - 1), false},
		{d, "cpu_tune.period", num(unlimited), null, false},

		{d, "memory", num(1e9), num(976563 * 1024), true},
		{d, "memory", num(1e9), num(976562 * 1024), false},
		{d, "memory", num(1e9), num(976564 * 1024), false},
		{d, "memory", num(1024), num(2048), false},
		{d, "devices.filesystems[].space_hard_limit", num(1e9), num(976563 * 1024), false},
		{d, "devices.interfaces[].mtu.size", num(1e9), num(976563 * 1024), false},
	}
	for _, port := range []string{"vnc.port", "vnc.web_socket", "spice.port", "spice.tls_port", "rdp.port"} {
		cases = append(cases, equalCase{d, "devices.graphics[]." + port, num(-1), null, true}, equalCase{d, "devices.graphics[]." + port, num(5900), null, false})
	}
	// Texts: two that mean the same, and one that does not.
	for _, c := range []struct {
		root            *Root
		pattern         string
		one, two, other string
	}{
		{d, "devices.interfaces[].mac.address", "52:54:0:AB:00:01", "52:54:00:ab:00:01", "52:54:00:ab:00:02"},
		{d, "devices.interfaces[].mac.address", "fast", "FAST", "slow"},
		{n, "mac.address", "52:54:00:AB:00:01", "52:54:00:ab:00:01", "52:54:00:ab:00:1f"},
		{n, "ips[].dhcp.hosts[].mac", "52:54:0:AB:C:2", "52:54:00:ab:0c:02", "52:54:00:ab:c0:02"},
		{d, "uuid", "C0DE0001-0000-4000-8000-0000000000FF", "c0de00010000400080000000000000ff", "c0de0001-0000-4000-8000-0000000000fe"},
		{d, "gen_id", "C0DE0001-0000-4000-8000-0000000000FF", "c0de0001-0000-4000-8000-0000000000ff", "c0de0001-0000-4000-8000-0000000000fe"},
		{d, "devices.interfaces[].virtual_port.params.open_v_switch.interface_id", "09B11C53-8B5C-4EEB-8F00-D84EAA0AAA4F", "09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4f", "09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4e"},
		{d, "devices.interfaces[].virtual_port.params.vepa8021qbg.instance_id", "09B11C53-8B5C-4EEB-8F00-D84EAA0AAA4F", "09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4f", "09b11c53-8b5c-4eeb-8f00-d84eaa0aaa4e"},
		{p, "target.permissions.mode", "770", "0770", "0777"},
		{p, "target.permissions.mode", "x", "x", "y"},
		{d, "devices.filesystems[].fmode", "755", "0755", "0750"},
		{d, "devices.filesystems[].dmode", "755", "0755", "0750"},
		{p, "target.path", "/srv//vm/", "/srv/vm", "/srv/vm2"},
		{p, "source.dir.path", "/exp//x/", "/exp/x", "/exp/y"},
		{p, "source.dir.path", "/a/../b", "/a/../b", "/b"},
		{Volume(), "backing_store.path", "/srv//a", "/srv/a", "/srv/b"},
		{d, "devices.disks[].source.file.file", "/srv/./a", "/srv/a", "/srv/l/../a"},
		{d, "devices.disks[].address.pci.multi_function", "ON", "on", "off"},
		{d, "devices.hostdevs[].subsys_usb.source.vendor.id", "4660", "0x1234", "0x1235"},
		{d, "devices.hostdevs[].subsys_usb.source.product.id", "0xBEEF", "0xbeef", "beef"},
		{d, "vcpu_cpuset", "3,0-1", "0-1,3", "0,3"},
		{d, "cpu_tune.vcpu_pin[].cpu_set", "1-4,^2", "1,3-4", "1-4"},
		{d, "cpu_tune.vcpu_pin[].cpu_set", "1-4,^2-3", "1-4,^2-3", "1,4"},
		{d, "cpu_tune.vcpu_pin[].cpu_set", "x", "x", "y"},
		{d, "cpu_tune.vcpu_sched[].vcpus", "0-1,^1", "0", "1"},
		{d, "cpu_tune.io_thread_sched[].io_threads", "1,2", "1-2", "1"},
		{d, "cpu.numa.cell[].cpus", "0, 1", "0-1", "0-2"},
		{d, "numa_tune.memory.nodeset", "0,1,2", "0-2", "0-1"},
		{d, "devices.memorydevs[].source.node_mask", "0,1", "0-1", "0"},
		{n, "ips[].address", "2001:DB8:CA2:0002:0::1", "2001:db8:ca2:2::1", "2001:db8:ca2:2::2"},
		{n, "ips[].dhcp.hosts[].ip", "2001:DB8::0005", "2001:db8::5", "2001:db8::6"},
		{n, "dns.host[].ip", "2001:DB8::0005", "2001:db8::5", "2001:db8::6"},
		{n, "dns.forwarders[].addr", "2001:DB8:0:0::1", "2001:db8::1", "192.0.2.1"},
		{n, "routes[].address", "2001:DB8:Ca2:3::", "2001:db8:ca2:3::", "2001:db8:ca2:4::"},
		{n, "routes[].gateway", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{n, "ips[].dhcp.ranges[].start", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{n, "ips[].dhcp.ranges[].end", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{n, "forward.nat.addresses[].start", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{n, "forward.nat.addresses[].end", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{d, "devices.interfaces[].ip[].address", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{d, "devices.interfaces[].route[].address", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{d, "devices.interfaces[].route[].gateway", "2001:DB8::2", "2001:db8::2", "2001:db8::3"},
		{d, "devices.interfaces[].target.dev", "vnet7", "vnet12", "tap0"},
		{d, "devices.interfaces[].target.dev", "macvtap0", "", "tap0"},
		{d, "devices.serials[].source.pty.path", "/dev/pts/4", "", "/dev/ttyS0"},
		{d, "devices.consoles[].tty", "/dev/pts/4", "/dev/pts/5", "/dev/tty"},
		{d, "devices.channels[].source.unix.path", "/var/lib/libvirt/qemu/channel/target/domain-1-p/org.qemu", "/run/libvirt/qemu/channel/3-p/org.qemu", "/run/agent.sock"},
		{d, "devices.interfaces[].link.state", "up", "", "down"},
		{n, "ips[].family", "ipv4", "", "ipv6"},
		{n, "routes[].family", "ipv4", "", "ipv6"},
		{n, "ips[].dhcp.ranges[].lease.unit", "minutes", "", "hours"},
		{n, "domain.register", "no", "", "yes"},
		{n, "ipv6", "no", "", "yes"},
		{n, "port_groups[].default", "no", "", "yes"},
		{d, "devices.disks[].driver.cache", "default", "", "none"},
		{d, "devices.disks[].target.tray", "closed", "", "open"},
		{d, "devices.disks[].source.network.hosts[].transport", "tcp", "", "rdma"},
		{d, "devices.serials[].protocol.type", "raw", "", "telnet"},
		{d, "devices.graphics[].spice.default_mode", "any", "", "secure"},
		{d, "devices.videos[].driver.vga_conf", "io", "", "on"},
		{d, "numa_tune.memory.placement", "static", "", "auto"},
		{d, "cpu.numa.cell[].caches[].policy", "none", "", "writeback"},
		{p, "target.permissions.owner", "-1", "", "0"},
		{p, "target.permissions.group", "-1", "", "0"},
		{p, "source.host[].port", "0", "", "2049"},
	} {
		cases = append(cases,
			equalCase{c.root, c.pattern, str(c.one), str(c.two), true}, equalCase{c.root, c.pattern, str(c.one), str(c.other), false})
		if c.two == "" {
			cases = append(cases, equalCase{c.root, c.pattern, str(c.one), null, true}, equalCase{c.root, c.pattern, null, str(c.other), false})
		}
	}
	return cases
}

func TestEqual(t *testing.T) {
	for _, c := range equalCases() {
		if c.root.Fields[c.pattern] == nil {
			t.Errorf("%s has no field %s", c.root.Name, c.pattern)
		}
		for _, pair := range [][2]tree.Value{{c.a, c.b}, {c.b, c.a}} {
			if got := tree.Equal(c.a, c.b) || c.root.Equal(c.pattern, pair[0], pair[1]); got != c.want && !c.a.IsUnknown() {
				t.Errorf("%s %s: Equal(%s, %s) = %v", c.root.Name, c.pattern, pair[0], pair[1], got)
			}
		}
	}
	if Domain().Equal("title", tree.UnknownValue, tree.UnknownValue) {
		t.Error("unknown equals unknown")
	}
}

// Every row of the tables is shown by a case, what it makes equal and what not.
func TestEveryRowIsShown(t *testing.T) {
	shown := func(suffix string, value tree.Value) {
		same, other := false, false
		for _, c := range equalCases() {
			if !endsIn(c.pattern, suffix) || tree.Equal(c.a, c.b) {
				continue
			}
			about := value.IsNull() || tree.Equal(c.a, value) || tree.Equal(c.b, value)
			same, other = same || c.want && about, other || !c.want
		}
		if !same || !other && value.Kind() == tree.String {
			t.Errorf("no case shows what %s %s makes equal, and what not", suffix, value)
		}
	}
	for _, row := range spellings {
		shown(row.suffix, tree.NullValue)
	}
	for _, row := range standards {
		shown(row.suffix, row.value)
	}
	for _, row := range pairs {
		shown(row.suffix, tree.NullValue)
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range [][3]string{
		{"devices.interfaces[].mac.address", "52:54:0:AB:C:1", "52:54:00:ab:0c:01"},
		{"devices.interfaces[].target.dev", "vnet7", ""},
		{"name", "Web", "Web"},
	} {
		if got := Domain().Canonical(c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: got %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// A row of the table that no field ends in hides a mistake.
func TestSamenessesAndQuantitiesAreAlive(t *testing.T) {
	alive := func(suffix string) bool {
		for _, r := range []*Root{Domain(), Network(), Pool(), Volume()} {
			for pattern := range r.Fields {
				if pattern == suffix || strings.HasSuffix(pattern, "."+suffix) {
					return true
				}
			}
		}
		return false
	}
	row := func(suffix, reason string) {
		if !alive(suffix) || reason == "" {
			t.Errorf("no field ends in %q, or there is no reason: %q", suffix, reason)
		}
	}
	for _, s := range spellings {
		row(s.suffix, s.reason)
	}
	for _, s := range standards {
		row(s.suffix, s.reason)
	}
	for _, s := range pairs {
		row(s.suffix, s.reason)
	}
	for _, q := range quantities {
		if !alive(q.amount) {
			t.Errorf("no number ends in %q", q.amount)
		}
		found := false
		for _, r := range []*Root{Domain(), Network(), Pool(), Volume()} {
			for pattern := range r.Fields {
				unit, standard := r.Unit(pattern)
				found = found || endsIn(pattern, q.amount) && unit == q.unit && standard == q.standard
			}
		}
		if !found {
			t.Errorf("%s has not the unit %s", q.amount, q.unit)
		}
	}
}

func TestUnit(t *testing.T) {
	for pattern, want := range map[string]string{
		"memory": "memory_unit KiB", "features.smm.tseg": "tseg_unit MiB", "cpu.numa.cell[].memory": "unit KiB", "vcpu": " ",
		"features.tcg.tb_cache": "tb_cache_unit KiB", "cpu_tune.cache_tune[].cache[].size": "unit KiB", "cpu.numa.interconnects.bandwidths[].value": "unit KiB",
		"cpu.numa.cell[].caches[].size.value": " ", "devices.pstore.size": "size_unit KiB", "devices.shmems[].size": "size_unit bytes",
	} {
		attr, standard := Domain().Unit(pattern)
		if attr+" "+standard != want {
			t.Errorf("%s: got %q %q", pattern, attr, standard)
		}
	}
	if attr, standard := Volume().Unit("capacity"); attr != "capacity_unit" || standard != "bytes" {
		t.Errorf("capacity: got %q %q", attr, standard)
	}
}
