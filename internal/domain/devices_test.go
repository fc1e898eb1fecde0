package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// guestOf reads a guest from the devices of its XML.
func guestWith(t *testing.T, machine, devices string) tree.Value {
	t.Helper()
	guest, err := spec.Domain().Decode(`<domain type="qemu"><name>x</name><os><type arch="x86_64" machine="` + machine + `">hvm</type></os><features><acpi/></features><devices>` + devices + `</devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	return guest
}

const (
	pcieRoot = `<controller type="pci" index="0" model="pcie-root"/>`
	port1    = `<controller type="pci" index="1" model="pcie-root-port"><address type="pci" domain="0" bus="0" slot="2" function="0"/></controller>`
	port2    = `<controller type="pci" index="2" model="pcie-root-port"><address type="pci" domain="0" bus="0" slot="2" function="1"/></controller>`
	fixed3   = `<controller type="pci" index="3" model="pcie-root-port"><target hotplug="off"/></controller>`
	bridge4  = `<controller type="pci" index="4" model="pcie-to-pci-bridge"/>`
	inPort1  = `<rng model="virtio"><backend model="random">/dev/urandom</backend><address type="pci" domain="0" bus="1" slot="0" function="0"/></rng>`
)

// A device goes where both the guest and the definition have room.
func TestPorts(t *testing.T) {
	cases := map[string]struct {
		machine, guest, definition string
		need                       seat
		want                       []place // all that are free, at least these first
		count                      int
	}{
		"both ports":                    {"q35", pcieRoot + port1 + port2, pcieRoot + port1 + port2, express, []place{{bus: 1}, {bus: 2}}, 2},
		"one is taken in the guest":     {"q35", pcieRoot + port1 + port2 + inPort1, pcieRoot + port1 + port2, express, []place{{bus: 2}}, 1},
		"one is promised already":       {"q35", pcieRoot + port1 + port2, pcieRoot + port1 + port2 + inPort1, express, []place{{bus: 2}}, 1},
		"one comes with the next start": {"q35", pcieRoot + port1, pcieRoot + port1 + port2, express, []place{{bus: 1}}, 1},
		"one goes with the next start":  {"q35", pcieRoot + port1 + port2, pcieRoot + port1, express, []place{{bus: 1}}, 1},
		"not for devices that come":     {"q35", pcieRoot + fixed3, pcieRoot + fixed3, express, nil, 0},
		"no slots without a bridge":     {"q35", pcieRoot + port1, pcieRoot + port1, conventional, nil, 0},
		"slots of a bridge":             {"q35", pcieRoot + bridge4, pcieRoot + bridge4, conventional, []place{{bus: 4, slot: 1}, {bus: 4, slot: 2}}, 31},
		"slots of the old chipset":      {"pc", `<controller type="pci" index="0" model="pci-root"/>`, `<controller type="pci" index="0" model="pci-root"/>`, express, []place{{slot: 3}, {slot: 4}}, 29},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newSituation(true, guestWith(t, c.machine, c.guest), guestWith(t, c.machine, c.definition)).ports
			var got []place
			for {
				at, found := p.take(c.need)
				if !found {
					break
				}
				got = append(got, at)
			}
			if len(got) != c.count {
				t.Errorf("%d places %v, want %d", len(got), got, c.count)
			}
			for i, at := range c.want {
				if i >= len(got) || got[i] != at {
					t.Errorf("place %d is not %+v: %v", i, at, got)
				}
			}
		})
	}
}

// What comes and goes is judged by what the running guest has room for.
func TestJudgeDevices(t *testing.T) {
	k := New(nil)
	decode := func(devices string) tree.Value { return guestWith(t, "q35", devices) }
	disk := func(more string) string { return `<disk type="file"><target ` + more + `/></disk>` }
	addition := func(devices string) (out []change.Change) {
		all := decode(devices)
		for _, list := range []string{"disks", "interfaces", "rngs", "watchdogs", "inputs"} {
			for i, e := range all.At("devices." + list).Elems() {
				out = append(out, change.Change{Path: tree.ParsePath("devices."+list).Elem(i, ""), Kind: change.Addition, Desired: e})
			}
		}
		return out
	}
	removal := func(devices string) []change.Change {
		out := addition(devices)
		for i, c := range out {
			out[i].Kind, out[i].Desired, out[i].Actual, out[i].Guest = change.Removal, tree.NullValue, c.Desired, c.Desired
		}
		return out
	}
	nic := func(mac, model string) string {
		return `<interface type="network"><mac address="` + mac + `"/><source network="default"/><model type="` + model + `"/></interface>`
	}
	image := func(dev string) string {
		return `<disk type="file"><source file="/x.raw"/><target dev="` + dev + `" bus="virtio"/></disk>`
	}
	ordered := func(dev string) string {
		return `<disk type="file"><source file="/` + dev + `"/><target dev="` + dev + `" bus="virtio"/><boot order="1"/></disk>`
	}
	unknown := func(changes []change.Change, at string) []change.Change {
		changes[0].Desired = changes[0].Desired.SetAt(at, tree.UnknownValue)
		return changes
	}
	stranger := func(changes []change.Change) []change.Change {
		changes[0].Guest = changes[0].Actual.SetAt("source.file.file", tree.StringValue("/theirs.raw"))
		return changes
	}
	at := func(bus, slot, function, more string) string {
		return `<rng model="virtio"><backend model="random">/dev/urandom</backend><address type="pci" domain="0" bus="` + bus + `" slot="` + slot + `" function="` + function + `"` + more + `/></rng>`
	}
	inRoot, inFixed3, several := at("0", "7", "0", ""), at("3", "0", "0", ""), at("1", "0", "0", ` multifunction="on"`)
	const scsi0 = `<controller type="scsi" index="0" model="virtio-scsi"/>`
	const rng = `<rng model="virtio"><backend model="random">/dev/urandom</backend></rng>`
	bare, roomy := pcieRoot, pcieRoot+port1+port2
	cases := map[string]struct {
		guest   string
		changes []change.Change
		want    string // effects in order; what is not live has a part of the reason after a colon
		reason  string
	}{
		"a disk":                          {roomy, addition(disk(`dev="vdb" bus="virtio"`)), "live", ""},
		"a disk by its name":              {roomy, addition(disk(`dev="vdb"`)), "live", ""},
		"a SATA disk":                     {roomy, addition(disk(`dev="sdb" bus="sata"`)), "next_boot", "cannot plug a disk in on the bus sata"},
		"a SCSI disk":                     {bare + scsi0, addition(disk(`dev="sdb" bus="scsi"`)), "live", ""},
		"a SCSI disk without controller":  {bare, addition(disk(`dev="sdb" bus="scsi"`)), "next_boot", "no SCSI controller with the index 0"},
		"a SCSI disk elsewhere":           {bare + scsi0, addition(`<disk type="file"><target dev="sdb" bus="scsi"/><address type="drive" controller="1"/></disk>`), "next_boot", "with the index 1"},
		"an image that is in use":         {roomy + image(`vda`), append(removal(image(`vda`)), addition(image(`vdb`))...), "next_boot next_boot", "open as disk vda"},
		"an image that is shared":         {roomy + image(`vda`), addition(strings.Replace(image(`vdb`), "<target", "<shareable/><target", 1)), "live", ""},
		"a place in the order of boot":    {roomy + ordered(`vda`), addition(ordered(`vdb`)), "next_boot", "order of boot"},
		"two for one port":                {pcieRoot + port1, append(addition(disk(`dev="vdb" bus="virtio"`)), addition(inPort1)...), "next_boot live", "no free PCI port"},
		"out of the root":                 {roomy + inRoot, removal(inRoot), "next_boot", "devices cannot leave"},
		"out of a fixed port":             {pcieRoot + fixed3 + inFixed3, removal(inFixed3), "next_boot", "devices cannot leave"},
		"one function of several":         {roomy + several, removal(several), "next_boot", "devices cannot leave"},
		"a card on USB":                   {roomy, addition(nic("52:54:00:00:00:01", "usb-net")), "next_boot", "plugged in when the guest starts"},
		"not known yet, but a disk":       {roomy, unknown(addition(disk(`dev="vdb" bus="virtio"`)), "source.file.file"), "live", ""},
		"not known yet, and SATA":         {roomy, unknown(addition(disk(`dev="sdb" bus="sata"`)), "source.file.file"), "next_boot", "bus sata"},
		"not known yet where":             {roomy, unknown(addition(disk(`dev="sdb"`)), "target.bus"), "live", ""},
		"not known at all":                {roomy, []change.Change{{Path: tree.ParsePath("devices.disks[0]"), Kind: change.Addition, Desired: tree.UnknownValue}}, "next_boot", "not known yet"},
		"another disk of this name":       {roomy, stranger(removal(image(`vda`))), "next_boot", "another disk in its place"},
		"a card that waits":               {roomy + nic("52:54:00:00:00:01", "virtio"), []change.Change{{Path: tree.ParsePath("devices.interfaces").Elem(0, "52:54:00:00:00:09").Attr("link").Attr("state"), Kind: change.Intent, Desired: tree.StringValue("down")}}, "next_boot", "at its next start"},
		"a USB disk without a controller": {roomy, addition(disk(`dev="sdb" bus="usb"`)), "next_boot", "no USB controller"},
		"a USB disk":                      {roomy + `<controller type="usb" index="0" model="qemu-xhci"/>`, addition(disk(`dev="sdb" bus="usb"`)), "live", ""},
		"a disk without a port":           {bare, addition(disk(`dev="vdb" bus="virtio"`)), "next_boot", "no free PCI port"},
		"three for two ports":             {roomy, addition(rng + rng + rng), "live live next_boot", "no free PCI port"},
		"an interface":                    {roomy, addition(nic("52:54:00:00:00:01", "virtio")), "live", ""},
		"an old card without a bridge":    {roomy, addition(nic("52:54:00:00:00:01", "e1000")), "next_boot", "no free slot"},
		"an old card":                     {roomy + bridge4, addition(nic("52:54:00:00:00:01", "e1000")), "live", ""},
		"a watchdog":                      {roomy + bridge4, addition(`<watchdog model="i6300esb"/>`), "live", ""},
		"a watchdog of the chipset":       {roomy + bridge4, addition(`<watchdog model="itco"/>`), "next_boot", "part of the machine"},
		"a tablet":                        {roomy + `<controller type="usb" index="0"/>`, addition(`<input type="tablet"/>`), "live", ""},
		"a tablet without USB":            {roomy + `<controller type="usb" model="none"/>`, addition(`<input type="tablet"/>`), "next_boot", "no USB controller"},
		"a keyboard":                      {roomy, addition(`<input type="keyboard"/>`), "none", ""},
		"no keyboard":                     {roomy, removal(`<input type="keyboard" bus="ps2"/>`), "none", ""},
		"a place of its own":              {roomy, addition(inPort1), "live", ""},
		"a place that is taken":           {roomy + inPort1, addition(inPort1), "next_boot", "something else in it"},
		"a place that is not there":       {pcieRoot + port2, addition(inPort1), "next_boot", "no such PCI port"},
		"out":                             {roomy + inPort1, removal(inPort1), "live", ""},
		"out of SATA":                     {roomy, removal(disk(`dev="sdb" bus="sata"`)), "next_boot", "bus sata"},
		"another card in its place":       {roomy, append(removal(nic("52:54:00:00:00:01", "virtio")), addition(nic("52:54:00:00:00:02", "virtio"))...), "live live", ""},
		"one that has to wait":            {bare, append(removal(nic("52:54:00:00:00:01", "virtio")), addition(nic("52:54:00:00:00:02", "virtio"))...), "next_boot next_boot", "together with the arrival"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			guest := decode(c.guest)
			v := k.Judge(kind.Judgement{
				Prior: tree.NullValue.With("name", tree.StringValue("x")).SetAt("status.power", tree.StringValue("running")), Config: tree.NullValue.SetAt("update.allow", tree.StringValue("live")),
				Changes: c.changes, Guest: guest, Definition: guest,
			})
			var got []string
			for _, f := range v.Fields {
				got = append(got, f[strings.LastIndex(f, " ")+1:])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v, want %s", v.Fields, c.want)
			}
			said := false
			for _, r := range v.Refusals {
				said = said || strings.Contains(r.Detail, c.reason)
			}
			if said != (c.reason != "") {
				t.Errorf("refusals %+v, want %q", v.Refusals, c.reason)
			}
		})
	}
}

// A PC without ACPI does not notice what comes and goes.
func TestDeafGuests(t *testing.T) {
	guest := guestWith(t, "q35", pcieRoot+port1)
	for arch, want := range map[string]bool{"x86_64": true, "i686": true, "aarch64": false} {
		deaf := isDeaf(guest.SetAt("features.acpi", tree.NullValue).SetAt("os.type_arch", tree.StringValue(arch)))
		if (deaf != "") != want {
			t.Errorf("%s: %q", arch, deaf)
		}
	}
	if said := isDeaf(guest); said != "" {
		t.Error(said)
	}
}

// What a device is told no more goes with its element: an empty one may be an
// error.
func TestSetField(t *testing.T) {
	guest := tree.NullValue.SetAt("filter_ref.filter", tree.StringValue("x")).SetAt("link.state", tree.StringValue("up"))
	set := func(path string, wanted tree.Value) tree.Value {
		return setField(guest, change.Change{Path: tree.ParsePath("devices.interfaces[0]." + path)}, wanted)
	}
	for name, wanted := range map[string]tree.Value{"absent": tree.NullValue, "empty": tree.NullValue.With("filter_ref", tree.ObjectValue(nil))} {
		if got := set("filter_ref.filter", wanted); !got.Attr("filter_ref").IsNull() || got.At("link.state").Str() != "up" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := set("filter_ref.filter", guest.SetAt("filter_ref.filter", tree.StringValue("y"))); got.At("filter_ref.filter").Str() != "y" {
		t.Error(got)
	}
}
