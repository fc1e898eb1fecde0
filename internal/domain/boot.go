package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

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
