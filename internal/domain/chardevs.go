package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Character devices: channels, consoles, serial and parallel ports. Those that
// sit on a bus which takes devices while the guest runs come and go; a port of
// the old kind is part of the machine. None changes while it is plugged in: QEMU
// opens the other end, a file, a socket or a terminal, when the device comes.

var channelPlug = &plug{
	noun: "channel",
	list: "devices.channels",
	in: func(channel tree.Value, now situation) string {
		if channel.At("target.virt_io").IsNull() {
			return "Only a channel on virtio can be plugged in; QEMU sets this kind up when the guest starts."
		}
		return lacks(channel, "virtio-serial", now)
	},
}

var consolePlug = &plug{
	noun: "console",
	list: "devices.consoles",
	in: func(console tree.Value, now situation) string {
		switch typ := console.At("target.type").Str(); typ {
		case "virtio":
			return lacks(console, "virtio-serial", now)
		case "", "serial":
			return "This console is a serial port, which is part of the machine that QEMU builds when the guest starts; one of the type virtio can be plugged in."
		default:
			return fmt.Sprintf("A console of the type %s is part of the machine that QEMU builds when the guest starts; one of the type virtio can be plugged in.", typ)
		}
	},
}

var serialPlug = &plug{
	noun: "serial port",
	list: "devices.serials",
	in: func(serial tree.Value, now situation) string {
		switch typ := serial.At("target.type").Str(); typ {
		case "pci-serial":
			return lacks(serial, "", now)
		case "usb-serial":
			return lacks(serial, "usb", now)
		case "":
			return "The serial ports of a machine are built in by QEMU when the guest starts; those of the types pci-serial and usb-serial can be plugged in."
		default:
			return fmt.Sprintf("A serial port of the type %s is built in by QEMU when the guest starts; those of the types pci-serial and usb-serial can be plugged in.", typ)
		}
	},
	seat: func(serial tree.Value, _ situation) seat {
		if serial.At("target.type").Str() == "pci-serial" {
			return conventional
		}
		return noSeat
	},
}

var parallelPlug = &plug{
	noun: "parallel port",
	list: "devices.parallels",
	in: func(tree.Value, situation) string {
		return "A parallel port is part of the machine that QEMU builds when the guest starts."
	},
}

// lacks says what a running guest lacks of that which a character device
// needs: a controller, "" for none, and what its other end is part of.
func lacks(device tree.Value, controller string, now situation) string {
	if controller != "" && !hasController(now.guest, controller) {
		return fmt.Sprintf("The running guest has no %s controller.", controllerName(controller))
	}
	source := device.Attr("source")
	for attr, display := range map[string]string{"spice_vmc": "spice", "spice_port": "spice", "dbus": "dbus"} {
		if other := source.Attr(attr); other.IsNull() || other.Kind() == tree.Bool && !other.Bool() {
			continue
		}
		if !hasDisplay(now.guest, display) {
			return fmt.Sprintf("Its other end is part of a display of the kind %s, which the running guest has not.", display)
		}
	}
	return ""
}

// withConsolesCounted gives the consoles of a running guest the numbers that they
// have in its definition: their places. libvirt counts them when it reads a
// definition, in which the first serial port may not be among them yet, and the
// guest keeps what was counted then.
func withConsolesCounted(guest tree.Value) tree.Value {
	for i := range guest.At("devices.consoles").Elems() {
		guest = guest.Set(tree.ParsePath("devices.consoles").Elem(i, "").Attr("target").Attr("port"), tree.IntValue(int64(i)))
	}
	return guest
}

// controllerName is how people write the type of a controller.
func controllerName(typ string) string {
	if typ == "usb" {
		return "USB"
	}
	return typ
}

var channelAspect, consoleAspect, serialAspect, parallelAspect = channelPlug.aspect(), consolePlug.aspect(), serialPlug.aspect(), parallelPlug.aspect()
