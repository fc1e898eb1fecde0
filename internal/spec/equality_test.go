package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestEqual(t *testing.T) {
	str, null := tree.StringValue, tree.NullValue
	cases := []struct {
		root    *Root
		pattern string
		a, b    tree.Value
		want    bool
	}{
		{Domain(), "devices.interfaces[].mac.address", str("52:54:00:AB:00:01"), str("52:54:00:ab:00:01"), true},
		{Domain(), "devices.interfaces[].mac.address", str("52:54:00:AB:00:01"), str("52:54:00:ab:00:02"), false},
		{Domain(), "os.type_machine", str("q35"), str("pc-q35-7.2"), true},
		{Domain(), "os.type_machine", str("pc-i440fx-7.2"), str("pc"), true},
		{Domain(), "os.type_machine", str("q35"), str("pc"), false},
		{Domain(), "os.type_machine", str("pc"), str("pc-q35-7.2"), false},
		{Domain(), "os.type_machine", str("pc-q35-7.2"), str("pc-q35-7.1"), false},
		{Domain(), "title", str(""), null, true},
		{Domain(), "title", str("x"), null, false},
		{Domain(), "features.acpi", tree.BoolValue(false), null, true},
		{Domain(), "features.acpi", tree.BoolValue(true), null, false},
		{Domain(), "cpu.migratable", tree.BoolValue(false), null, false},
		{Domain(), "block_io_tune.weight", tree.IntValue(0), null, true},
		{Domain(), "block_io_tune.weight", tree.IntValue(5), null, false},
		{Domain(), "devices.disks[].address.pci.slot", tree.IntValue(0), null, false},
		{Domain(), "metadata.xml", str(`<a xmlns="u"> <b/></a>`), str("\n  <a xmlns='u'>\n<b></b></a>"), true},
		{Domain(), "metadata.xml", str(`<a xmlns="u"/>`), str(`<a xmlns="v"/>`), false},
		{Pool(), "target.path", str("/srv/vm/"), str("/srv/vm"), true},
		{Pool(), "target.permissions.mode", str("770"), str("0770"), true},
		{Pool(), "target.permissions.mode", str("770"), str("0777"), false},
		{Network(), "ips[].family", str("ipv4"), null, true},
		{Network(), "ips[].family", str("ipv6"), null, false},
		{Domain(), "title", tree.UnknownValue, tree.UnknownValue, false},
	}
	for _, c := range cases {
		for _, pair := range [][2]tree.Value{{c.a, c.b}, {c.b, c.a}} {
			if got := c.root.Equal(c.pattern, pair[0], pair[1]); got != c.want {
				t.Errorf("%s %s: Equal(%s, %s) = %v", c.root.Name, c.pattern, pair[0], pair[1], got)
			}
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
	for _, s := range samenesses {
		if !alive(s.suffix) {
			t.Errorf("no field ends in %q", s.suffix)
		}
	}
	for _, q := range quantities {
		if !alive(q.amount) {
			t.Errorf("no number ends in %q", q.amount)
		}
	}
}

func TestUnit(t *testing.T) {
	for pattern, want := range map[string]string{
		"memory": "memory_unit KiB", "features.smm.tseg": "tseg_unit MiB", "cpu.numa.cell[].memory": "unit KiB", "vcpu": " ",
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
