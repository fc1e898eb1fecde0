package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// deviceRows are redirected USB devices, shared memory and controllers.
func deviceRows(testing.TB) []bounce.Row {
	const (
		redirected = `{ bus = "usb", source = { tcp = { mode = "bind", host = "127.0.0.1", service = "0" } } }`
		shmem      = `{ name = "lab-one", model = { type = "ivshmem-plain" }, size = 4, size_unit = "M" }`
		another    = `{ name = "lab-two", model = { type = "ivshmem-plain" }, size = 4, size_unit = "M" }`
		scsi       = `{ type = "scsi", index = 0, model = "virtio-scsi" }`
		moreUSB    = `{ type = "usb", index = 1, model = "qemu-xhci" }`
	)
	// All that libvirt would add by itself, so that one more comes last.
	all := strings.Trim(pcie(10), "[]") + ", " + usbXHCI + `, { type = "sata", index = 0 }, { type = "pci", index = 0, model = "pcie-root" }`
	const last = "devices/controller[14]/@model"
	live := bounce.Always(bounce.Live)
	usb := bounce.Fields{"devices.controllers": list(usbXHCI)}
	bridged := bounce.Fields{"devices.controllers": list(pciBridge)}
	return withACPI([]bounce.Row{
		{
			Name: "redirdev-added", Base: usb,
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.redir_devs": list(redirected)}, Live: bounce.Leaves{"devices/redirdev/@bus": "usb"}, Want: live}},
		},
		{
			Name: "redirdev-removed", Base: usb.With("devices.redir_devs", list(redirected, redirected)),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.redir_devs": list(redirected)}, Live: bounce.Leaves{"devices/redirdev/@bus": "usb", "devices/redirdev[2]/@bus": bounce.Absent}, Want: live,
			}},
		},
		{
			Name: "shmem-added", Base: bridged,
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.shmems": list(shmem)}, Live: bounce.Leaves{"devices/shmem/@name": "lab-one"}, Want: live}},
		},
		{
			Name: "shmem-removed", Base: bridged.With("devices.shmems", list(shmem, another)),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.shmems": list(shmem)}, Live: bounce.Leaves{"devices/shmem/@name": "lab-one", "devices/shmem[2]/@name": bounce.Absent}, Want: live,
			}},
		},
		{
			Name: "scsi-controller-added", Base: bounce.Fields{"devices.controllers": list(all)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.controllers": list(all, scsi)}, Live: bounce.Leaves{last: "virtio-scsi"}, Want: live}},
		},
		{
			Name: "scsi-controller-removed", Base: bounce.Fields{"devices.controllers": list(all, scsi)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.controllers": list(all)}, Live: bounce.Leaves{last: bounce.Absent}, Want: live}},
		},
		{
			Name: "usb-controller-added", Base: bounce.Fields{"devices.controllers": list(all)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.controllers": list(all, moreUSB)}, Boot: bounce.Leaves{"devices/controller[13]/@model": "qemu-xhci"}, Want: bounce.Waits("devices.controllers[usb 1]"),
			}},
		},
		{
			Name: "pcie-port-and-virtio-serial-added", Base: bounce.Fields{"devices.controllers": list(all)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.controllers": list(all, `{ type = "pci", index = 11, model = "pcie-root-port" }`, `{ type = "virtio-serial", index = 0 }`)},
				Boot:   bounce.Leaves{"devices/controller[12]/@index": "11", "devices/controller[15]/@type": "virtio-serial"},
				Want:   bounce.Waits("devices.controllers[pci 11]", "devices.controllers[virtio-serial 0]"),
			}},
		},
		{Name: "hostdev-added", Unavailable: "this host has no device of its own to give away; the change waits for the next start"},
	})
}

// moduleRows are memory modules.
func moduleRows(testing.TB) []bounce.Row {
	const (
		dimm    = `{ model = "dimm", target = { size = 128, size_unit = "MiB", node = 0 } }`
		large   = `{ model = "dimm", target = { size = 1024, size_unit = "MiB", node = 0 } }`
		mib192  = "196608"
		mib256  = "262144"
		request = "devices/memory/target/requested"
	)
	elastic := func(requested string) string {
		return `{ model = "virtio-mem", target = { size = 128, size_unit = "MiB", node = 0, block = 2, block_unit = "MiB", requested = ` + requested + `, requested_unit = "MiB" } }`
	}
	room := bounce.Fields{
		"maximum_memory": "512", "maximum_memory_unit": `"MiB"`, "maximum_memory_slots": "2", "devices.controllers": pcie(10),
		"cpu.numa": `{ cell = [{ id = 0, cpus = "0", memory = 131072, unit = "KiB" }] }`,
	}
	live := bounce.Always(bounce.Live)
	return withACPI([]bounce.Row{
		{
			Name: "dimm-added", Base: room,
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "256", "devices.memorydevs": list(dimm)},
				Live:   bounce.Leaves{"devices/memory/@model": "dimm", "memory": mib256, "currentMemory": mib256}, Guest: memoryMoves(128), Want: live,
			}},
		},
		{
			Name: "dimm-removed", Base: room.With("memory", "256").With("devices.memorydevs", list(dimm)),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "128", "devices.memorydevs": "[]"},
				Live:   bounce.Leaves{"devices/memory/@model": bounce.Absent, "memory": mib128, "currentMemory": mib128}, Want: live,
				Guest: func(_, now host.Report) bool { return now.MemKiB < 128<<10 },
			}},
		},
		{
			Name: "dimm-too-large", Base: room, Only: onlyLive(),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "1152", "devices.memorydevs": list(large)}, Boot: bounce.Leaves{"devices/memory/@model": "dimm"}, Want: bounce.Waits(),
			}},
		},
		{
			Name: "virtio-mem-added", Base: room,
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "256", "devices.memorydevs": list(elastic("64"))},
				Live:   bounce.Leaves{"devices/memory/@model": "virtio-mem", request: "65536", "memory": mib256, "currentMemory": mib192}, Guest: memoryMoves(64), Want: live,
			}},
			// It comes, and does not leave.
			Back: bounce.Waits("devices.memorydevs[0]", "memory"),
		},
		{
			Name: "virtio-mem-requested", Base: room.With("memory", "256").With("current_memory", "160").With("current_memory_unit", `"MiB"`).With("devices.memorydevs", list(elastic("32"))),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"current_memory": "192", "devices.memorydevs": list(elastic("64"))}, Live: bounce.Leaves{request: "65536", "currentMemory": mib192}, Guest: memoryMoves(32), Want: live,
			}},
		},
	})
}

// builtInRows are devices that a guest has from its start to its end.
func builtInRows(t testing.TB) []bounce.Row {
	waits := func(name, list, device, leaf, value string, paths ...string) bounce.Row {
		// With ports to spare: libvirt would add some, and leave them there.
		return bounce.Row{Name: name, Base: bounce.Fields{"devices.controllers": pcie(10)}, Steps: []bounce.Step{{
			Change: bounce.Fields{list: device}, Boot: bounce.Leaves{leaf: value}, Want: bounce.Waits(paths...),
		}}}
	}
	smartcard := waits("smartcard-added", "devices.smartcards", `[{ passthrough = { tcp = { mode = "bind", host = "127.0.0.1", service = "0" } } }]`,
		"devices/smartcard/@mode", "passthrough", "devices.smartcards[0]")
	smartcard.Base["devices.controllers"] = list(usbXHCI, `{ type = "ccid", index = 0 }`)
	balloon := waits("balloon-model", "devices.mem_balloon", `{ model = "virtio-non-transitional" }`, "devices/memballoon/@model", "virtio-non-transitional", "devices.mem_balloon.model")
	balloon.Base["devices.mem_balloon"] = `{ model = "virtio" }`
	audio := waits("audio-to-file", "devices.audios", fmt.Sprintf(`[{ id = 1, file = { path = %q } }]`, t.TempDir()+"/out.wav"), "devices/audio/@type", "file", "devices.audios[1].file.path", "devices.audios[1].none")
	audio.Base["devices.audios"] = `[{ id = 1, none = {} }]`
	usb := waits("usb-model", "devices.controllers", list(`{ type = "usb", index = 0, model = "qemu-xhci" }`), "devices/controller/@model", "qemu-xhci", "devices.controllers[usb 0].model")
	usb.Base = bounce.Fields{"os.type_machine": `"pc"`, "devices.controllers": list(`{ type = "usb", index = 0, model = "piix3-uhci" }`)}
	return withACPI([]bounce.Row{
		smartcard, balloon, audio, usb,
		waits("iommu-added", "devices.iommu", `{ model = "intel" }`, "devices/iommu/@model", "intel", "devices.iommu.model"),
		waits("sound-added", "devices.sounds", `[{ model = "ich9" }]`, "devices/sound/@model", "ich9", "devices.sounds[0]"),
		waits("video-added", "devices.videos", `[{ model = { type = "virtio", heads = 1, primary = "yes" } }]`, "devices/video/model/@type", "virtio", "devices.videos[0]"),
		waits("panic-added", "devices.panics", `[{ model = "isa" }]`, "devices/panic/@model", "isa", "devices.panics[0]"),
		waits("hub-added", "devices.hubs", `[{ type = "usb" }]`, "devices/hub/@type", "usb", "devices.hubs[0]"),
		{Name: "vsock-added", Unavailable: "this host has no /dev/vhost-vsock; the change waits for the next start"},
		waits("tpm-added", "devices.tpms", `[{ model = "tpm-crb", backend = { emulator = { version = "2.0" } } }]`, "devices/tpm/@model", "tpm-crb", "devices.tpms[0]"),
	})
}
