package spec

import (
	"strings"
	"testing"
)

const placeSample = `<domain><os><type>hvm</type><root>/dev/vda</root></os><devices>
  <disk type="file"><target dev="vda"/><driver name="qemu"/></disk>
  <disk type="file"><target dev="vdb"/><driver name="qemu" novel="on"/></disk>
  <rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
  <x:own xmlns:x="u">text</x:own>
</devices></domain>`

func TestPlaceReads(t *testing.T) {
	for text, want := range map[string]string{
		"/domain/os/root": "<root>/dev/vda</root>",
		"/domain/devices/disk[target/@dev='vdb']/driver/@novel":  "on",
		`/domain/devices/disk[target/@dev="vdb"]/driver`:         `<driver name="qemu" novel="on"/>`,
		"/domain/devices/disk[2]/target/@dev":                    "vdb",
		"/domain/devices/disk[@type='file'][1]/target/@dev":      "vda",
		"/domain/devices/rng[backend='/dev/urandom']/@model":     "virtio",
		"/domain/devices/x:own":                                  `<x:own xmlns:x="u">text</x:own>`,
		"/domain/devices/disk[target/@dev='vdc']/driver/@novel":  "",
		"/domain/devices/disk[target/@dev='vda']/driver/@novel":  "",
		"/domain/devices/disk[missing/@dev='vda']/driver/@novel": "",
		"/domain/devices/disk[target/@none='vda']/driver/@novel": "",
		"/domain/devices/disk[target/@dev='v/a1']/driver/@novel": "",
	} {
		p, err := Domain().ParsePlace(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, found, err := p.Read(placeSample)
		if err != nil || got != want || found != (want != "") || p.String() != text {
			t.Errorf("%s: %q, %v, %v", text, got, found, err)
		}
	}
	p, _ := Domain().ParsePlace("/domain/devices/disk")
	if _, _, err := p.Read(placeSample); err == nil || !strings.Contains(err.Error(), "is 2 elements") {
		t.Errorf("two disks: %v", err)
	}
	if _, _, err := p.Read("<"); err == nil {
		t.Error("broken XML has no error")
	}
}

func TestPlaceWrites(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		place, was, becomes string
		value               *string
		fails               string
	}{
		"another value":            {"/domain/os/root", "<root>/dev/vda</root>", "<root>/dev/vdb</root>", text("<root>/dev/vdb</root>"), ""},
		"a new element":            {"/domain/devices/rng/backend/log", "/dev/urandom<", `/dev/urandom<log file="x"/><`, text(`<log file="x"/>`), ""},
		"an element goes":          {"/domain/os/root", "<root>/dev/vda</root>", "", nil, ""},
		"an attribute":             {"/domain/devices/disk[1]/driver/@novel", `<driver name="qemu"/>`, `<driver name="qemu" novel="off"/>`, text("off"), ""},
		"an attribute goes":        {"/domain/devices/disk[2]/driver/@novel", ` novel="on"`, "", nil, ""},
		"nothing to go":            {"/domain/devices/disk[7]/driver/@novel", "", "", nil, ""},
		"nothing around it":        {"/domain/devices/disk[7]/driver/@novel", "", "", text("on"), "0 elements to put it into"},
		"too much around it":       {"/domain/devices/disk/driver/@novel", "", "", text("on"), "2 elements to put it into"},
		"too many of it":           {"/domain/devices/disk", "", "", text("<disk/>"), "is 2 elements"},
		"what is no XML at a tree": {"/domain/os/root", "", "", text("<"), "/domain/os/root"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Domain().ParsePlace(c.place)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Write(placeSample, c.value)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			if want := strings.Replace(placeSample, c.was, c.becomes, 1); err != nil || !SameXML(got, want) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	p, _ := Domain().ParsePlace("/domain/os/root")
	if _, err := p.Write("<", nil); err == nil {
		t.Error("broken XML has no error")
	}
}

func TestParsePlaceRefuses(t *testing.T) {
	for _, text := range []string{
		"", "os/root", "/network/ip", "/domain", "/domain/", "/domain/@id", "/domain/os/@a/b", "/domain/os/root[", "/domain/os/root[a]", "/domain/os/root[0]",
		"/domain/os//root", "/domain/os/@a[1]", "/domain/os/root[a='b]", "/domain/os/ro ot",
	} {
		if p, err := Domain().ParsePlace(text); err == nil {
			t.Errorf("%q is taken: %+v", text, p)
		}
	}
}

// What the schema says is not said in two ways.
func TestAttributeFor(t *testing.T) {
	for text, want := range map[string]string{
		"/domain/devices/disk[1]/driver/@cache": "devices.disks[].driver.cache",
		"/domain/devices/disk[1]/driver":        "devices.disks[].driver",
		"/domain/memory":                        "memory",
		"/domain/os/root":                       "",
		"/domain/devices/rng/backend/log":       "",
		"/domain/devices/disk[1]/driver/@novel": "",
	} {
		p, err := Domain().ParsePlace(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Domain().AttributeFor(p); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
