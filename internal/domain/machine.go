package domain

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// machineAspect is the chipset that QEMU builds the guest on, and what it
// emulates. Nothing of it can change under a running guest. An alias (q35, pc)
// stands for the version that libvirt recorded when the domain was defined:
// internal/spec compares the two as equal.
var machineAspect = &aspect{
	name: "machine",
	owns: []string{"os.type", "os.type_machine", "os.type_arch", "type"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "QEMU builds the machine when the guest starts."
	},
}

// followMachine leaves out of a definition what belongs to the chipset that it
// had, where the configuration does not name it: controllers, and the places of
// devices on their buses. libvirt finds others, and refuses those of another
// chipset.
func followMachine(config, before, wanted tree.Value) tree.Value {
	if chipset(before) == chipset(wanted) {
		return wanted
	}
	out := wanted.SetAt("devices.controllers", config.At("devices.controllers"))
	out.Walk(func(p tree.Path, v tree.Value) bool {
		if len(p) == 0 || p[len(p)-1].Attr != "address" || !within(p.Pattern(), "devices") {
			return true
		}
		if !v.Attr("pci").IsNull() && config.Get(p).IsNull() {
			out = out.Set(p, tree.NullValue)
		}
		return false
	})
	return out
}

// chipset is the family of a machine type: its versions have the same buses.
func chipset(definition tree.Value) string {
	name := definition.At("os.type_machine").Str()
	switch {
	case name == "q35", strings.HasPrefix(name, "pc-q35-"):
		return "q35"
	case name == "pc", strings.HasPrefix(name, "pc-"):
		return "pc"
	}
	return name
}
