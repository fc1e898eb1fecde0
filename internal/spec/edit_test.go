package spec

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

const editSample = `<domain type="qemu" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">
  <name>web</name>
  <newthing level="3"><deep/></newthing>
  <memory unit="KiB">1024</memory>
  <vcpu placement="static" future="yes">2</vcpu>
  <devices>
    <disk type="file" device="disk" novel="1"><source file="/a" fancy="x"/><target dev="vda" bus="virtio"/></disk>
    <disk type="file" device="disk"><source file="/b"/><target dev="vdb" bus="virtio"/></disk>
    <interface type="network"><mac address="52:54:00:00:00:01"/><source network="lan"/></interface>
    <interface type="network"><mac address="52:54:00:00:00:02"/><source network="lan"/><odd/></interface>
    <gizmo/>
    <rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
    <rng model="virtio"><backend model="random">/dev/urandom</backend><keepme/></rng>
  </devices>
  <qemu:commandline><qemu:arg value="-foo"/></qemu:commandline>
</domain>`

func edited(t *testing.T, change func(tree.Value) tree.Value) string {
	t.Helper()
	current, err := Domain().Decode(editSample)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Domain().Edit(editSample, current, change(current))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// without drops element i of a list.
func without(v tree.Value, path string, i int) tree.Value {
	elems := v.At(path).Elems()
	return v.SetAt(path, tree.ListValue(append(append([]tree.Value(nil), elems[:i]...), elems[i+1:]...)))
}

func TestEdit(t *testing.T) {
	cases := map[string]struct {
		change       func(tree.Value) tree.Value
		was, becomes string // one replacement in the sample; both "" for no change
	}{
		"nothing": {change: func(v tree.Value) tree.Value { return v }},
		"memory": {
			change: func(v tree.Value) tree.Value { return v.SetAt("memory", tree.IntValue(2048)) },
			was:    `>1024<`, becomes: `>2048<`,
		},
		"vcpu keeps an unknown attribute": {
			change: func(v tree.Value) tree.Value { return v.SetAt("vcpu", tree.IntValue(4)) },
			was:    `>2</vcpu>`, becomes: `>4</vcpu>`,
		},
		"first disk keeps unknown parts": {
			change: func(v tree.Value) tree.Value {
				return v.SetAt("devices.disks[0].source.file.file", tree.StringValue("/c"))
			},
			was: `file="/a"`, becomes: `file="/c"`,
		},
		"first interface goes": {
			change: func(v tree.Value) tree.Value { return without(v, "devices.interfaces", 0) },
			was:    `<interface type="network"><mac address="52:54:00:00:00:01"/><source network="lan"/></interface>`, becomes: "",
		},
		"unset": {
			change: func(v tree.Value) tree.Value { return v.SetAt("vcpu_placement", tree.NullValue) },
			was:    ` placement="static"`, becomes: "",
		},
		"qemu argument": {
			change: func(v tree.Value) tree.Value {
				return v.SetAt("qemu_commandline.args[0].value", tree.StringValue("-bar"))
			},
			was: `-foo`, becomes: `-bar`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := strings.Replace(editSample, c.was, c.becomes, 1)
			if c.was != "" && want == editSample {
				t.Fatalf("the case's %q is not in the sample", c.was)
			}
			got := edited(t, c.change)
			w, _ := parse(want)
			g, _ := parse(got)
			if !same(g.Root(), w.Root()) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestEditAddsAndReorders(t *testing.T) {
	got := edited(t, func(v tree.Value) tree.Value {
		d := v.At("devices.disks").Elems()
		extra := d[0].SetAt("target.dev", tree.StringValue("vdc")).SetAt("source.file.file", tree.StringValue("/z"))
		return v.SetAt("devices.disks", tree.ListValue([]tree.Value{d[1], extra, d[0]})).
			SetAt("description", tree.StringValue("hello"))
	})
	order := []string{`dev="vdb"`, `dev="vdc"`, `fancy="x"`, `dev="vda"`, "<description>hello</description>"}
	at := 0
	for _, part := range order {
		i := strings.Index(got[at:], part)
		if i < 0 {
			t.Fatalf("%s is missing or out of place in\n%s", part, got)
		}
		at += i
	}
}

func TestEditReplacesMetadataWhole(t *testing.T) {
	doc := strings.Replace(editSample, "<newthing", `<metadata><x:a xmlns:x="u"><x:v/><x:z/></x:a></metadata><newthing`, 1)
	current, err := Domain().Decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	const want = `<x:a xmlns:x="u"><x:w/><x:v/><x:z/></x:a><y:b xmlns:y="w"/><z:c xmlns:z="v"/>`
	out, err := Domain().Edit(doc, current, current.SetAt("metadata.xml", tree.StringValue(want)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Domain().Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if !equalFragments(got.At("metadata.xml").Str(), want) || !strings.Contains(out, "<newthing") {
		t.Errorf("got %s", out)
	}
}

func TestEditRefusesWhatItCannotPlace(t *testing.T) {
	// libvirtxml reads one <memory>; a second one is beyond it.
	doc := strings.Replace(editSample, `<memory unit="KiB">`, `<memory unit="KiB">9</memory><memory unit="KiB">`, 1)
	current, err := Domain().Decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Domain().Edit(doc, current, current.SetAt("memory", tree.IntValue(5)))
	if err == nil || !strings.Contains(err.Error(), "memory") || !strings.Contains(err.Error(), "virsh edit") {
		t.Errorf("got %v, want a refusal that names the element and the way out", err)
	}
}

// An empty drive has a source that says nothing: something is inserted into it,
// and what the element has beside stays.
func TestEditFillsAnEmptyDrive(t *testing.T) {
	const was = `<domain type="qemu"><name>x</name><devices><disk type="file" device="cdrom"><source index="2" novel="1"/><target dev="sda"/></disk></devices></domain>`
	current, err := Domain().Decode(was)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Domain().Edit(was, current, current.SetAt("devices.disks[0].source.file.file", tree.StringValue("/cd.iso")))
	if err != nil || !strings.Contains(got, `<source index="2" novel="1" file="/cd.iso"/>`) {
		t.Errorf("got %s, %v", got, err)
	}
}
