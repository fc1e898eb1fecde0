package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// lack is what a host cannot build a guest with.
type lack struct {
	attribute, value string // that asks for it
	what             string // a sentence without its full stop, beginning with a noun
	wayOut           string
	choice           choice
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
		return lack{"devices.emulator", o.Emulator, fmt.Sprintf("emulator %s is gone", emulator), "install it, or change devices.emulator", nil}, true
	}
	if !virt.HasCode(err, virt.ErrInvalidArg) {
		return lack{}, false
	}
	anyMachine := virt.Offer{Emulator: o.Emulator, Arch: o.Arch, VirtType: o.VirtType}
	if o.Machine != "" && host.Offers(ctx, anyMachine) == nil {
		return lack{"os.type_machine", o.Machine, fmt.Sprintf("machine type %q is not offered by %s", o.Machine, emulator), "change os.type_machine; virsh capabilities lists what is", someMachine(o)}, true
	}
	anyMachine.VirtType = ""
	if host.Offers(ctx, anyMachine) == nil {
		return lack{"type", o.VirtType, fmt.Sprintf("virtualisation type %q is not offered by this host with %s", o.VirtType, emulator), "change type; virsh capabilities lists what is", nil}, true
	}
	return lack{}, false
}
