package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What no document holds is refused where somebody asks for it, and names its
// place; where a definition has it already, other changes go on.
func TestLostValuesAreRefused(t *testing.T) {
	const path = "devices.disks[0].backing_store.source.nvme.pci.namespace"
	v := plant(tree.NullValue, tree.ParsePath(path), tree.IntValue(1))
	_, err := Domain().Encode(v)
	var ve *ValueError
	if !errors.As(err, &ve) || ve.Path.String() != path || !strings.Contains(ve.Reason, "no type nvme") {
		t.Errorf("got %v", err)
	}
	const xml = `<domain><name>a</name></domain>`
	named := func(v tree.Value, name string) tree.Value { return v.With("name", tree.StringValue(name)) }
	if _, err := Domain().Edit(xml, named(tree.NullValue, "a"), named(v, "a")); !errors.As(err, &ve) {
		t.Errorf("an edit that adds it: got %v", err)
	}
	if got, err := Domain().Edit(xml, named(v, "a"), named(v, "b")); err != nil || !strings.Contains(got, "<name>b</name>") {
		t.Errorf("an edit beside it: got %s, %v", got, err)
	}
}

// A row of the table must still name a place that documents lose.
func TestLostRowsAreAlive(t *testing.T) {
	for _, row := range domainOverrides.lost {
		one, alive := &overrides{lost: []lost{row}}, 0
		for pattern, f := range Domain().Fields {
			if one.lostReason(pattern) == "" {
				continue
			}
			alive++
			if f.Lost != row.reason {
				t.Errorf("%s: another row says %q", pattern, f.Lost)
			}
		}
		if alive == 0 || row.reason == "" {
			t.Errorf("%q names %d fields, for the reason %q", row.suffix, alive, row.reason)
		}
	}
}

// Which attributes exclude each other comes from libvirtxml; a new one is looked
// at by somebody, and one that vanishes too.
func TestAlternatives(t *testing.T) {
	for pattern, want := range map[string]string{
		"devices.rngs[].backend.egd":                   "built_in random",
		"devices.channels[].target.xen":                "guest_fwd virt_io",
		"devices.graphics[].vnc":                       "dbus desktop egl_headless rdp sdl spice",
		"devices.hostdevs[].subsys_pci":                "caps_misc caps_net caps_storage subsys_m_dev subsys_scsi subsys_scsi_host subsys_usb",
		"devices.crypto[].backend.lkcf":                "built_in",
		"devices.interfaces[].virtual_port.params.any": "mido_net open_v_switch vepa8021qbg vn_tag8011qbh",
		"devices.serials[].source.udp.bind_host":       "",
		"devices.disks[].target":                       "",
		"devices.smartcards[].host_certs":              "host passthrough",
		"launch_security.sev":                          "s390pv sevsnp tdx",
	} {
		f := Domain().Fields[pattern]
		if f == nil {
			t.Errorf("there is no field %s", pattern)
		} else if got := strings.Join(f.Alternatives, " "); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
	for object := range domainOverrides.choices {
		if Domain().Fields[strings.TrimSuffix(object, "[].")] == nil {
			t.Errorf("there is no object %s", object)
		}
	}
	groups := 0
	for _, r := range []*Root{Domain(), Network(), Pool(), Volume()} {
		for pattern, f := range r.Fields {
			for _, name := range f.Alternatives {
				if r.Fields[pattern[:strings.LastIndex(pattern, ".")+1]+name] == nil {
					t.Errorf("%s %s: there is no %s beside it", r.Name, pattern, name)
				}
				groups++
			}
		}
	}
	if groups < 1000 {
		t.Errorf("only %d pairs of alternatives are left", groups)
	}
}

func TestTwoAlternativesAreRefused(t *testing.T) {
	set := func(paths ...string) tree.Value {
		v := tree.NullValue
		for _, p := range paths {
			v = plant(v, tree.ParsePath(p), tree.StringValue("x"))
		}
		return v
	}
	_, err := Domain().Encode(set("os.nv_ram.source.file.file", "os.nv_ram.source.block.dev"))
	var ve *ValueError
	if !errors.As(err, &ve) || ve.Path.String() != "os.nv_ram.source.file" || !strings.Contains(ve.Reason, "one of block and file") {
		t.Errorf("got %v", err)
	}
	// An element that is not there is no second one.
	v := set("os.nv_ram.source.vhost_user.dev.path").SetAt("os.nv_ram.source.vhost_user.vc", tree.BoolValue(false))
	if _, err := Domain().Encode(v); err != nil {
		t.Error(err)
	}
}

// An edit that the document cannot hold is an error that names what would be
// lost, and not a document without it.
func TestEditRefusesWhatTheDocumentCannotHold(t *testing.T) {
	const xml = `<domain><devices><serial type="pty"><target port="0"/></serial></devices></domain>`
	current, err := Domain().Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	for _, paths := range [][]string{{"source.file.path", "source.dev.path"}, {"source.nmdm.slave"}} {
		wanted := current
		for _, p := range paths {
			wanted = wanted.SetAt("devices.serials[0]."+p, tree.StringValue("/a"))
		}
		if got, err := Domain().Edit(xml, current, wanted); err == nil || !strings.Contains(err.Error(), "serials[0]."+paths[0]) {
			t.Errorf("%v: got %s, %v", paths, got, err)
		}
	}
}

// What is there is not lost either because of what goes.
func TestEditRefusesWhatWouldTakeSomethingAlong(t *testing.T) {
	const xml = `<domain><devices><serial type="nmdm"><source master="/a" slave="/b"/></serial></devices></domain>`
	current, err := Domain().Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Domain().Edit(xml, current, current.SetAt("devices.serials[0].source.nmdm.slave", tree.NullValue))
	if err == nil || !strings.Contains(err.Error(), "serials[0].source.nmdm.master") {
		t.Errorf("got %s, %v", got, err)
	}
}

// The kind of a source that nobody named gives way to one that is asked for,
// in its element and in no other.
func TestEditChoosesTheNewcomer(t *testing.T) {
	const xml = `<domain><devices><serial type="pty"><target port="0"/></serial><serial type="pty"><target port="1"/></serial>
<interface type="network"><mac address="52:54:00:00:00:01"/><source network="lan"/></interface></devices></domain>`
	current, err := Domain().Decode(xml)
	if err != nil {
		t.Fatal(err)
	}
	wanted := current.SetAt("devices.serials[1].source.file.path", tree.StringValue("/a")).
		SetAt("devices.interfaces[0].source.bridge.bridge", tree.StringValue("br0"))
	got, err := Domain().Edit(xml, current, wanted)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Domain().Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"devices.serials[0].source": "{pty = {}}", "devices.serials[1].source": `{file = {path = "/a"}}`,
		"devices.interfaces[0].source": `{bridge = {bridge = "br0"}}`,
	} {
		if is := after.At(path).String(); is != want {
			t.Errorf("%s: got %s, want %s", path, is, want)
		}
	}
}
