package domain

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// checkDevice looks for a device of the host. A list without any of the kind
// says nothing: libvirt may not see them at all there.
func (c *bootCheck) checkDevice(ctx context.Context, d deviceNeed) {
	const list = "virsh nodedev-list shows those that are"
	if d.usb != nil {
		plugged, err := c.host.USBDevices(ctx)
		if err != nil || len(plugged) == 0 {
			return
		}
		for _, p := range plugged {
			if isDevice(*d.usb, p) {
				return
			}
		}
		c.say(finding{ref: reference{leaf: d.attribute, value: d.name}, grade: inactive, what: fmt.Sprintf("%s %s is not there", d.noun, d.name), wayOut: "plug it in; " + list},
			"%s %s is not there (plug it in; %s)", d.noun, d.name, list)
		return
	}
	devices, err := c.host.NodeDevices(ctx)
	if err != nil {
		return
	}
	kin := false
	for name := range devices {
		if name == d.node || strings.HasPrefix(name, d.node+"_") && d.family == "" {
			return
		}
		kin = kin || strings.HasPrefix(name, d.family)
	}
	if kin {
		const wayOut = "put it in place, or change the device; " + list
		c.say(finding{ref: reference{leaf: d.attribute, value: d.name}, grade: missing, what: fmt.Sprintf("%s %s is not there", d.noun, d.name), wayOut: wayOut},
			"%s %s is not there (%s)", d.noun, d.name, wayOut)
	}
}

// isDevice compares by vendor and product if they are given, else by place.
func isDevice(wanted, plugged virt.USBDevice) bool {
	if wanted.Vendor != "" {
		return strings.EqualFold(wanted.Vendor, plugged.Vendor) && strings.EqualFold(wanted.Product, plugged.Product)
	}
	return wanted.Bus == plugged.Bus && wanted.Device == plugged.Device
}
