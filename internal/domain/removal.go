package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// withoutItsConsole drops the first console where the last serial port goes.
// libvirt shows the first serial port a second time as the first console, and
// from a console that is left it makes the port again.
func withoutItsConsole(config, before, wanted tree.Value) tree.Value {
	consoles := wanted.At("devices.consoles").Elems()
	gone := before.At("devices.serials").Len() > 0 && wanted.At("devices.serials").Len() == 0
	if !gone || len(consoles) == 0 || !config.At("devices.consoles").IsNull() {
		return wanted
	}
	if on := consoles[0].At("target.type").Str(); on != "serial" && on != "" {
		return wanted
	}
	rest := tree.NullValue
	if len(consoles) > 1 {
		rest = tree.ListValue(consoles[1:])
	}
	return wanted.SetAt("devices.consoles", rest)
}

// withoutRemnants drops single devices of which only the place on a bus is left,
// as libvirt chose it, after all that makes the device was withdrawn.
func withoutRemnants(before, wanted tree.Value) tree.Value {
	for device, essence := range map[string]string{"devices.vsock": "cid", "devices.iommu": "model"} {
		if !before.At(device+"."+essence).IsNull() && wanted.At(device+"."+essence).Len() == 0 && wanted.At(device+"."+essence).Str() == "" {
			wanted = wanted.SetAt(device, tree.NullValue)
		}
	}
	return wanted
}

// warnAboutReturned says which devices the update took out of the definition
// and libvirt put in again, as it does with some that every machine has.
func (a *apply) warnAboutReturned(after *sight) {
	added := a.k.rules.Strangers(a.k.typ, after.definition, a.wanted)
	for _, c := range a.update.Changes {
		if c.Kind != change.Removal || len(added) == 0 {
			continue
		}
		list := c.Path[:len(c.Path)-1]
		others := map[string]bool{}
		for _, p := range a.k.rules.Strangers(a.k.typ, after.definition, tree.NullValue.Set(list, tree.ListValue([]tree.Value{c.Actual}))) {
			others[p.String()] = true
		}
		for _, p := range added {
			if p[:len(p)-1].String() == list.String() && !others[p.String()] {
				a.warnings = append(a.warnings, a.returned(c.Path, list))
			}
		}
	}
}

func (a *apply) returned(device, list tree.Path) kind.Problem {
	return kind.Problem{
		Path: list, Summary: fmt.Sprintf("%s of domain %q came back", device, a.before.name),
		Detail: "It was taken out of the definition, and libvirt put it in again by itself: another device needs it, or every machine of this kind has it. It leaves the state and stays on the machine.",
	}
}
