package domain

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Another chipset has other buses: only the places that the configuration names
// stay, of the devices that it names them for.
func TestFollowMachine(t *testing.T) {
	k := New(nil)
	str, num := tree.StringValue, tree.IntValue
	at := func(slot int64) tree.Value { return tree.NullValue.SetAt("pci.slot", num(slot)) }
	nic := func(mac string, slot int64) tree.Value {
		return tree.NullValue.SetAt("mac.address", str(mac)).With("address", at(slot))
	}
	rng := func(device string, slot int64) tree.Value {
		return tree.NullValue.SetAt("backend.random", str(device)).With("address", at(slot))
	}
	list := func(elems ...tree.Value) tree.Value { return tree.ListValue(elems) }
	drive := tree.NullValue.SetAt("target.dev", str("sda")).SetAt("address.drive.unit", num(1))
	before := tree.NullValue.SetAt("os.type_machine", str("pc-q35-7.2")).
		SetAt("devices.controllers", list(tree.NullValue.With("type", str("pci")).With("address", at(9)))).
		SetAt("devices.interfaces", list(nic("a", 1), nic("b", 2))).SetAt("devices.rngs", list(rng("/dev/random", 3), rng("/dev/urandom", 4))).
		SetAt("devices.mem_balloon.address", at(5)).SetAt("devices.disks", list(drive))
	// The configuration has them in another order, and does not say where each is.
	config := tree.NullValue.SetAt("os.type_machine", str("pc")).
		SetAt("devices.interfaces", list(nic("b", 2), tree.NullValue.SetAt("mac.address", str("a")))).
		SetAt("devices.rngs", list(rng("/dev/urandom", 4), tree.NullValue.SetAt("backend.random", str("/dev/random"))))

	got := k.followMachine(config, before, before.SetAt("os.type_machine", str("pc")))
	for path, want := range map[string]tree.Value{
		"devices.controllers": tree.NullValue, "devices.mem_balloon.address.pci": tree.NullValue, "devices.disks[0].address.drive.unit": num(1),
		"devices.interfaces[0].address.pci": tree.NullValue, "devices.interfaces[1].address.pci.slot": num(2), "devices.interfaces[0].mac.address": str("a"),
		"devices.rngs[0].address.pci": tree.NullValue, "devices.rngs[1].address.pci.slot": num(4),
	} {
		if !tree.Equal(got.At(path), want) {
			t.Errorf("%s is %s, want %s", path, got.At(path), want)
		}
	}
	newer := before.SetAt("os.type_machine", str("pc-q35-8.0"))
	if got := k.followMachine(config, before, newer); !tree.Equal(got, newer) {
		t.Errorf("another version has the same buses, and yet: %s", got)
	}
}

// What follows another chipset is not listed as waiting of its own, but where
// the configuration names it.
func TestPlacesFollowTheMachine(t *testing.T) {
	k := New(nil)
	str, num := tree.StringValue, tree.IntValue
	machine := func(kind string, slot int64) tree.Value {
		return tree.NullValue.SetAt("os.type_machine", str(kind)).SetAt("devices.mem_balloon.address.pci.slot", num(slot)).
			SetAt("devices.interfaces", tree.ListValue([]tree.Value{tree.NullValue.SetAt("mac.address", str("a")).SetAt("address.pci.slot", num(slot))}))
	}
	const nic = "devices.interfaces[a].address.pci.slot"
	named := tree.NullValue.SetAt("devices.interfaces", machine("", 2).At("devices.interfaces"))
	for what, tc := range map[string]struct {
		guest, named tree.Value
		want         []string
	}{
		"another machine":                          {machine("pc", 1), tree.NullValue, []string{"os.type_machine"}},
		"another machine, and a place that is set": {machine("pc", 1), named, []string{nic, "os.type_machine"}},
		"other places on the same machine":         {machine("q35", 1), tree.NullValue, []string{nic, "devices.mem_balloon.address.pci.slot"}},
	} {
		var got []string
		for _, p := range k.rules.Waiting(k.typ, machine("q35", 2), tc.guest, tc.named) {
			got = append(got, p.String())
		}
		if !sameTexts(got, tc.want) {
			t.Errorf("%s: waiting %q, want %q", what, got, tc.want)
		}
	}
}

// State knows every place of an imported machine. A plan for another chipset
// promises none of them that the configuration does not name, and the core
// accepts it.
func TestPlanOfAnotherChipset(t *testing.T) {
	k := New(nil)
	str, num := tree.StringValue, tree.IntValue
	nic := func(mac string) tree.Value {
		return tree.NullValue.SetAt("mac.address", str(mac)).SetAt("address.pci.slot", num(3))
	}
	host := tree.NullValue.With("name", str("a")).SetAt("os.type_machine", str("pc-q35-7.2")).SetAt("devices.mem_balloon.address.pci.slot", num(1)).
		SetAt("devices.controllers", tree.ListValue([]tree.Value{tree.NullValue.With("type", str("pci")).SetAt("address.pci.slot", num(2))})).
		SetAt("devices.interfaces", tree.ListValue([]tree.Value{nic("a"), nic("b")}))
	config := tree.NullValue.With("name", str("a")).SetAt("os.type_machine", str("pc")).
		SetAt("devices.interfaces", tree.ListValue([]tree.Value{tree.NullValue.SetAt("mac.address", str("a")), nic("b")}))
	planned := k.rules.Plan(change.Input{Type: k.typ, Config: config, Prior: host, Baseline: host, Actual: host}).Planned
	for path, want := range map[string]tree.Value{
		"devices.mem_balloon.address.pci.slot": tree.UnknownValue, "devices.interfaces[0].address.pci.slot": tree.UnknownValue, "devices.interfaces[1].address.pci.slot": num(3),
	} {
		if got := planned.At(path); !tree.Equal(got, want) {
			t.Errorf("%s is planned as %s, want %s", path, got, want)
		}
	}
	for _, no := range change.Expressible(k.typ, host, config, planned) {
		t.Errorf("the core refuses the plan: %s", no)
	}
}
