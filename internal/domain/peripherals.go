package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Small devices that come and go whole: libvirt changes nothing in one that is
// plugged in.

var rngPlug = &plug{
	noun: "rng",
	list: "devices.rngs",
	in:   func(tree.Value, situation) string { return "" },
	seat: func(tree.Value, situation) seat { return express },
}

var watchdogPlug = &plug{
	noun: "watchdog",
	list: "devices.watchdogs",
	in: func(dog tree.Value, _ situation) string {
		if model := dog.Attr("model").Str(); model != "i6300esb" {
			return fmt.Sprintf("A watchdog of the model %q is part of the machine that QEMU builds when the guest starts; i6300esb can be plugged in.", model)
		}
		return ""
	},
	seat: func(tree.Value, situation) seat { return conventional },
}

var inputPlug = &plug{
	noun: "input",
	list: "devices.inputs",
	in: func(input tree.Value, now situation) string {
		switch bus := inputBus(input); {
		case bus == "virtio":
		case bus == "usb" && hasController(now.guest, "usb"):
		case bus == "usb":
			return "The running guest has no USB controller."
		default:
			return fmt.Sprintf("An input on the bus %s is part of the machine that QEMU builds when the guest starts; usb and virtio can be plugged in.", bus)
		}
		return ""
	},
	inherent: isInherent,
	seat: func(input tree.Value, _ situation) seat {
		if inputBus(input) == "virtio" {
			return express
		}
		return noSeat
	},
}

// isInherent says of an input that libvirt puts it into every definition that
// lacks it, and QEMU into every guest: a PC has one mouse and one keyboard on PS/2.
func isInherent(input tree.Value) bool {
	typ := input.Attr("type").Str()
	return (typ == "mouse" || typ == "keyboard") && !input.Attr("bus").IsUnknown() && inputBus(input) == "ps2"
}

// inputBus is the bus of an input, as libvirt chooses it where none is given.
func inputBus(input tree.Value) string {
	switch bus, typ := input.Attr("bus").Str(), input.Attr("type").Str(); {
	case bus != "":
		return bus
	case typ == "mouse", typ == "keyboard":
		return "ps2"
	case typ == "passthrough":
		return "virtio"
	}
	return "usb"
}

var rngAspect, watchdogAspect, inputAspect = rngPlug.aspect(), watchdogPlug.aspect(), inputPlug.aspect()

// plugs are all kinds of devices that come and go.
var plugs = []*plug{
	modulePlug, controllerPlug, diskPlug, interfacePlug, rngPlug, watchdogPlug, inputPlug,
	channelPlug, consolePlug, serialPlug, parallelPlug, graphicsPlug, filesystemPlug, redirDevPlug, shmemPlug, leasePlug,
}
