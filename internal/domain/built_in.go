package domain

import "github.com/driftsafe/terraform-provider-libvirt/internal/change"

// Devices that a guest has from its start to its end.

// builtIn makes an aspect of devices that wait for the next start, whatever is
// changed of them.
func builtIn(name, reason string, owns ...string) *aspect {
	return &aspect{name: name, owns: owns, rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, reason
	}}
}

const (
	noHotPlug = "libvirt can neither plug such a device in nor take it out nor change it; QEMU builds it in when the guest starts."
	untried   = "libvirt may be able to do it while the guest runs. The provider waits for the next start all the same: nobody has tried it yet on a host that has such a device."
)

// builtInAspects are those that libvirt refuses to touch in a running guest, and
// two that it may not refuse, and that no test could try.
var builtInAspects = []*aspect{
	builtIn("sound", "A sound card can be put into a definition, and not into a running guest: "+noHotPlug, "devices.sounds"),
	builtIn("audio", "QEMU connects the sound of a guest to the host when the guest starts.", "devices.audios"),
	builtIn("video", noHotPlug, "devices.videos"),
	builtIn("tpm", "A TPM holds keys that the firmware uses from the first moment on. "+noHotPlug, "devices.tpms"),
	builtIn("panic device", noHotPlug, "devices.panics"),
	builtIn("hub", noHotPlug, "devices.hubs"),
	builtIn("iommu", "An IOMMU stands between the devices of a guest and its memory, from the start on. "+noHotPlug, "devices.iommus", "devices.iommu"),
	builtIn("smartcard", noHotPlug, "devices.smartcards"),
	builtIn("crypto device", noHotPlug, "devices.crypto"),
	builtIn("nvram", "The memory in which the firmware of a POWER machine keeps its settings is part of the machine.", "devices.nvram"),
	builtIn("pstore", "The firmware tells the guest of its persistent storage for crashes when it boots.", "devices.pstore"),
	builtIn("emulator", "It is the program that the guest runs in.", "devices.emulator"),
	builtIn("vsock", untried, "devices.vsock"),
	builtIn("host device", untried, "devices.hostdevs"),
}
