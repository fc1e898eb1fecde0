package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// lack is what a host cannot build a guest with.
type lack struct {
	attribute string // that asks for it
	what      string // a sentence without its full stop, beginning with a noun
	wayOut    string
}

// lacking asks whether the host has such machines. libvirt's refusals of a
// machine type and of an accelerator have one code, so less and less is asked
// for until it agrees.
func lacking(ctx context.Context, host hostView, o virt.Offer) (lack, bool) {
	err := host.Offers(ctx, o)
	if err == nil {
		return lack{}, false
	}
	emulator := o.Emulator
	if emulator == "" {
		emulator = "the emulator of this host"
	} else if host.Suspect(ctx, emulator) == virt.Gone {
		return lack{"devices.emulator", fmt.Sprintf("emulator %s is gone", emulator), "install it, or change devices.emulator"}, true
	}
	if !virt.HasCode(err, virt.ErrInvalidArg) {
		return lack{}, false
	}
	anyMachine := virt.Offer{Emulator: o.Emulator, Arch: o.Arch, VirtType: o.VirtType}
	if o.Machine != "" && host.Offers(ctx, anyMachine) == nil {
		return lack{"os.type_machine", fmt.Sprintf("machine type %q is not offered by %s", o.Machine, emulator), "change os.type_machine; virsh capabilities lists what is"}, true
	}
	anyMachine.VirtType = ""
	if host.Offers(ctx, anyMachine) == nil {
		return lack{"type", fmt.Sprintf("virtualisation type %q is not offered by this host with %s", o.VirtType, emulator), "change type; virsh capabilities lists what is"}, true
	}
	return lack{}, false
}

// offerOf is what a definition asks of the host.
func offerOf(definition tree.Value) virt.Offer {
	return virt.Offer{
		Emulator: definition.At("devices.emulator").Str(), Arch: definition.At("os.type_arch").Str(),
		Machine: definition.At("os.type_machine").Str(), VirtType: definition.Attr("type").Str(),
	}
}

// refuseUnoffered refuses another machine that the host cannot build.
func (k *Kind) refuseUnoffered(ctx context.Context, wanted, before tree.Value) error {
	if offerOf(wanted) == offerOf(before) {
		return nil
	}
	l, found := lacking(ctx, k.host().View(), offerOf(wanted))
	if !found {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath(l.attribute), Summary: fmt.Sprintf("Domain %q cannot start as configured: %s", wanted.Attr("name").Str(), l.what),
		Detail: fmt.Sprintf("Nothing was changed. The way out: %s.", l.wayOut),
	})
}
