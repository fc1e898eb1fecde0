package provider

import (
	"slices"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// spellings are the fields whose values cannot be any text.
var spellings = []struct {
	suffix string
	values []string
	reason string
}{
	{"metadata.xml", []string{`<x:a xmlns:x="u" v="1"/>`, `<x:a xmlns:x="u" v="2"/>`, `<x:a xmlns:x="u" v="3"/>`}, "a list of elements"},
}

// companion is a value without which no document holds a field: what the XML
// is a choice of, or an element that libvirtxml leaves out without it.
type companion struct {
	under  string     // the end of the pattern of an object
	fields []string   // those below it that are concerned; nil: all
	unless []string   // and of these not
	at     string     // the path of the value, from the object on
	value  tree.Value // null: any
	reason string
}

var (
	number = tree.IntValue(1024)
	there  = tree.ObjectValue(nil)
	choice = []string{"file", "block", "dir", "network", "volume", "nvme", "vhost_user", "vhost_vdpa", "ctl"}
)

// diskSources are the places where libvirtxml has the source of a disk.
var diskSources = []string{"disks[].source", "mirror.source", "backing_store.source", "nv_ram.source"}

// companions of domains; the other roots need none.
var companions = func() []companion {
	all := []companion{
		{"", []string{"memory_dump_core"}, nil, "memory", number, "it stands on the element of the number"},
		{"", []string{"maximum_memory_slots"}, nil, "maximum_memory", number, "it stands on the element of the number"},
		{"", []string{"vcpu_placement", "vcpu_cpuset", "vcpu_current"}, nil, "vcpu", number, "it stands on the element of the number"},
		{"devices.interfaces[]", nil, []string{"source"}, "source.user", there, "the type of an interface is that of its source"},
		{"devices.hostdevs[]", nil, []string{"subsys_usb", "subsys_pci", "subsys_scsi", "subsys_scsi_host", "subsys_m_dev", "caps_storage", "caps_misc", "caps_net"}, "subsys_usb", there, "mode and type are those of the source"},
		{"devices.smartcards[]", nil, []string{"host", "host_certs", "passthrough"}, "host", tree.BoolValue(true), "the mode is that of the source"},
		{"devices.audios[]", []string{"id", "timer_period"}, nil, "none", there, "the type is that of the backend"},
		{"devices.crypto[].backend", []string{"queues"}, nil, "built_in", tree.BoolValue(true), "the model is that of the backend"},
		{"devices.inputs[]", []string{"source.ev_dev"}, nil, "type", tree.StringValue("evdev"), "what a source is depends on the type"},
		{"devices.inputs[]", []string{"source.passthrough"}, nil, "type", tree.StringValue("passthrough"), "what a source is depends on the type"},
		{"devices.controllers[]", []string{"pci"}, nil, "type", tree.StringValue("pci"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"usb"}, nil, "type", tree.StringValue("usb"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"virt_io_serial"}, nil, "type", tree.StringValue("virtio-serial"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"xen_bus"}, nil, "type", tree.StringValue("xenbus"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"nvme"}, nil, "type", tree.StringValue("nvme"), "what a controller has depends on the type"},
		{"devices", []string{"iommus"}, nil, "iommu", there, "the list holds those after the first"},
		{"pty", []string{"sec_label"}, nil, "path", tree.NullValue, "left out without it"},
		{"ethernet", []string{"ip"}, nil, "route[].gateway", tree.NullValue, "libvirtxml writes the two together only"},
		{"ethernet", []string{"route"}, nil, "ip[].address", tree.NullValue, "libvirtxml writes the two together only"},
		{"nmdm", nil, nil, "master", tree.NullValue, "both ends, or none"},
		{"nmdm", nil, nil, "slave", tree.NullValue, "both ends, or none"},
		{"unix", []string{"reconnect", "sec_label"}, nil, "path", tree.NullValue, "left out without it"},
	}
	for _, source := range diskSources {
		all = append(all,
			companion{source, nil, choice, "file.file", tree.NullValue, "the type is that of the source"},
			companion{source + ".file", nil, nil, "file", tree.NullValue, "left out without it"},
			companion{source + ".block", nil, nil, "dev", tree.NullValue, "left out without it"},
			companion{source + ".volume", nil, nil, "pool", tree.NullValue, "left out without it"},
		)
	}
	return all
}()

// standIns are kinds of a device that are not alternatives to libvirtxml.
var standIns = map[string]string{
	"devices.smartcards[].host": "passthrough.spice_vmc",
}

// unfelt are the fields whose change nothing that runs feels; "*" is all.
var unfelt = map[string]map[string]string{
	"domain":  {"autostart": "the host reads it when it boots"},
	"network": {"autostart": "the host reads it when it boots", "active": "a network with guests is not stopped"},
	"pool":    {"*": "guests use files, and libvirt reads a pool's definition when it starts it"},
	"volume":  {},
}

// leastCounts is how much there was to try when the test was written. It may
// grow. A field that documents lose, that a plan does not compare any more, or
// that is left out of a step makes one of these smaller.
var leastCounts = map[string]map[string]int{
	"domain": {
		"fields": 3552, "effects": 3428, "role ordinary": 3367, "role key": 26, "role unit": 35,
		"step changed": 3445, "step appears": 3375, "step zero": 3181, "step false": 159, "step drift": 3428,
		"step vanished": 3301, "step withdrawn": 3375, "step omitted": 3417, "step running": 3380, "step refused": 83,
	},
	"network": {
		"fields": 133, "effects": 121, "role ordinary": 110, "role key": 11,
		"step changed": 122, "step appears": 110, "step zero": 106, "step false": 4, "step drift": 121,
		"step vanished": 107, "step withdrawn": 110, "step omitted": 132,
	},
	"pool": {
		"fields": 78, "effects": 55, "role ordinary": 53, "role key": 2, "role measured": 3,
		"step changed": 64, "step appears": 60, "step zero": 51, "step false": 9, "step drift": 55,
		"step vanished": 50, "step withdrawn": 60, "step omitted": 69,
	},
	"volume": {
		"fields": 61, "effects": 34, "role ordinary": 32, "role once": 5, "role unit": 2, "role measured": 2,
		"step changed": 39, "step appears": 36, "step zero": 30, "step false": 4, "step drift": 34,
		"step vanished": 28, "step withdrawn": 36, "step omitted": 47,
	},
}

// checkTables finds rows that serve no field any more.
func checkTables(t *testing.T, s *subject) {
	if s.root != spec.Domain() {
		return
	}
	for _, row := range spellings {
		if s.root.Fields[row.suffix] == nil || row.reason == "" {
			t.Errorf("spellings: there is no field %s", row.suffix)
		}
	}
	for pattern, other := range standIns {
		l := leaf{pattern: pattern, path: firstPath(pattern), typ: tree.BoolType}
		if with := s.try(l).with(tree.BoolValue(false)); !with.Get(l.path[:len(l.path)-1]).At(other).Bool() {
			t.Errorf("standIns: %s does without %s", pattern, other)
		}
	}
	for i, c := range companions {
		if c.reason == "" || !s.needs(i) {
			t.Errorf("companions: every field below %q %v does without %s", c.under, c.fields, c.at)
		}
	}
}

// needs says whether a field has no document without the companion, or none that
// does not say something in its place.
func (s *subject) needs(i int) bool {
	defer func() { s.skip = -1 }()
	s.skip = i
	for _, l := range s.leaves() {
		for n := range l.path {
			above := l.path[:n]
			if !companions[i].concerns(l, above.Pattern()) || s.root.Fields[l.pattern].Lost != "" {
				continue
			}
			at := append(slices.Clone(above), firstPath(companions[i].at)...)
			obj := plant(s.object(l), l.path, s.sample(l.pattern, l.typ, 0))
			if !s.holds(obj, l) || obj.Get(at).IsNull() && !s.without(obj, at) {
				return true
			}
		}
	}
	return false
}

// without says whether a document of the object has nothing at a path.
func (s *subject) without(obj tree.Value, at tree.Path) bool {
	w := &world{s: s}
	return w.put(obj) == nil && w.actual.Get(at).IsNull()
}
