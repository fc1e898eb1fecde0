package domain

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// bootAspect is what the guest starts from, and in which order. libvirt refuses
// to change the order of a device that is plugged in, and a guest that runs has
// been started.
var bootAspect = &aspect{
	name: "boot",
	owns: []string{
		"os.boot_devices", "os.boot_menu", "os.bios", "os.kernel", "os.initrd", "os.cmdline", "os.dtb",
		"devices.disks[].boot", "devices.interfaces[].boot", "devices.hostdevs[].boot", "devices.redir_devs[].boot", "devices.filesystems[].boot",
	},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "It matters when the guest starts."
	},
}

// followBoot leaves out the list of kinds of devices that libvirt gives every
// definition without an order, where devices get an order: libvirt takes one of
// the two. A list that state has is somebody's, and stays.
func followBoot(planned, wanted tree.Value) tree.Value {
	if !planned.At("os.boot_devices").IsNull() {
		return wanted
	}
	list := wanted.At("os.boot_devices").Elems()
	if len(list) != 1 || list[0].Attr("dev").Str() != "hd" || !hasBootOrder(wanted) {
		return wanted
	}
	return wanted.SetAt("os.boot_devices", tree.NullValue)
}

// hasBootOrder says whether a device has a place in the order of boot.
func hasBootOrder(definition tree.Value) (has bool) {
	definition.Attr("devices").Walk(func(p tree.Path, v tree.Value) bool {
		has = has || strings.HasSuffix(p.Pattern(), "].boot.order") && !v.IsNull()
		return !has
	})
	return has
}
