package domain

import (
	"strings"
	"sync"

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
func (k *Kind) followMachine(config, before, wanted tree.Value) tree.Value {
	if chipset(before) == chipset(wanted) {
		return wanted
	}
	out := wanted.SetAt("devices.controllers", config.At("devices.controllers"))
	out.Walk(func(p tree.Path, v tree.Value) bool {
		if len(p) == 0 || !isPlace(p.Pattern()) {
			return true
		}
		if !v.Attr("pci").IsNull() && k.rules.Counterpart(config, wanted, p).IsNull() {
			out = out.Set(p, tree.NullValue)
		}
		return false
	})
	return out
}

// isPlace says whether a pattern is the place of a device on its bus.
func isPlace(pattern string) bool {
	return within(pattern, "devices") && strings.HasSuffix(pattern, ".address")
}

// places are the patterns of what libvirt finds anew on another chipset: the
// PCI addresses of devices, part by part.
var places = sync.OnceValue(func() (all []string) {
	resourceType().Walk(func(pattern string, a *tree.Attribute) {
		address, _, found := strings.Cut(pattern, ".pci.")
		if found && isPlace(address) && a.Type.Kind != tree.Object {
			all = append(all, pattern)
		}
	})
	return all
})

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
