package domain

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// redirDevPlug are the places for USB devices that come from another machine:
// by SPICE from whoever looks at the display, or over the network.
var redirDevPlug = &plug{
	noun: "redirected USB device",
	list: "devices.redir_devs",
	in: func(device tree.Value, now situation) string {
		if bus := device.Attr("bus").Str(); bus != "usb" && bus != "" {
			return fmt.Sprintf("Only USB devices can be redirected into a running guest, not those on the bus %s.", bus)
		}
		return lacks(device, "usb", now)
	},
}

var redirDevAspect = redirDevPlug.aspect()

// redirFilterAspect says which devices may be redirected.
var redirFilterAspect = &aspect{
	name: "filter of redirected USB devices",
	owns: []string{"devices.redir_filters"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "QEMU is told which devices to let in when the guest starts, and libvirt has no call that says it again."
	},
}
