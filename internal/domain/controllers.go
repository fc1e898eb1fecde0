package domain

import (
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// controllerPlug are what other devices sit on. Of all of them libvirt plugs in
// only those for SCSI, and takes out one that nothing sits on. The others are
// the machine itself. libvirt adds the controllers that devices need; one that
// nobody names is nobody's business (floats).
var controllerPlug = &plug{
	noun: "controller",
	list: "devices.controllers",
	in: func(controller tree.Value, _ situation) string {
		if typ := controller.Attr("type").Str(); typ != "scsi" {
			return fmt.Sprintf("libvirt plugs no %s controller in and takes none out while the guest runs, only those for SCSI.", controllerName(typ))
		}
		return ""
	},
	out: func(controller tree.Value, now situation) string {
		if typ := controller.Attr("type").Str(); typ != "scsi" {
			return fmt.Sprintf("libvirt plugs no %s controller in and takes none out while the guest runs, only those for SCSI.", controllerName(typ))
		}
		if at := usedBy(controller, now.guest); at != "" {
			return fmt.Sprintf("The running guest has %s on it.", at)
		}
		return ""
	},
	seat: func(controller tree.Value, _ situation) seat {
		switch model := controller.Attr("model").Str(); {
		case controller.Attr("type").Str() != "scsi":
			return noSeat
		case strings.HasPrefix(model, "virtio"):
			return express
		}
		return conventional
	},
}

var controllerAspect = controllerPlug.aspect()

// usedBy names a device of the guest that sits on a controller for SCSI, "" if
// there is none.
func usedBy(controller, guest tree.Value) string {
	index := whole(controller.Attr("index"))
	for _, disk := range guest.At("devices.disks").Elems() {
		if diskBus(disk) == "scsi" && whole(disk.At("address.drive.controller")) == index {
			return "the disk " + disk.At("target.dev").Str()
		}
	}
	for _, device := range guest.At("devices.hostdevs").Elems() {
		if drive := device.At("address.drive"); !drive.IsNull() && whole(drive.Attr("controller")) == index {
			return "a device of the host"
		}
	}
	return ""
}
