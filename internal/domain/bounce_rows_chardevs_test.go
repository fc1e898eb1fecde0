package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// channel writes a channel of the name.
func channel(name string) string {
	return fmt.Sprintf(`{ source = { unix = {} }, target = { virt_io = { name = %q } } }`, name)
}

const (
	virtioConsole = `{ source = { pty = {} }, target = { type = "virtio" } }`
	usbXHCI       = `{ type = "usb", index = 0, model = "qemu-xhci" }`
	pciBridge     = `{ type = "pci", index = 1, model = "pcie-root-port" }, { type = "pci", index = 2, model = "pcie-to-pci-bridge" }`
)

// pcie writes so many ports of PCI Express for devices that come.
func pcie(n int) string {
	_, all, _ := strings.Cut(ports(n), " = ")
	return all
}

func onlyLive() []bounce.Policy { return []bounce.Policy{bounce.AllowLive} }

// channelRows are channels and consoles on virtio.
func channelRows(testing.TB) []bounce.Row {
	const one, two = "org.example.one", "org.example.two"
	live := bounce.Always(bounce.Live)
	return withACPI([]bounce.Row{
		{
			Name: "channel-added", Base: bounce.Fields{"devices.channels": list(channel(one))},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.channels": list(channel(one), channel(two))},
				Live:   bounce.Leaves{"devices/channel[2]/target/@name": two}, Want: live,
			}},
		},
		{
			Name: "channel-removed", Base: bounce.Fields{"devices.channels": list(channel(one), channel(two))},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.channels": list(channel(one))},
				Live:   bounce.Leaves{"devices/channel/target/@name": one, "devices/channel[2]/target/@name": bounce.Absent},
				Want:   live,
			}},
		},
		{
			Name: "channel-source", Base: bounce.Fields{"devices.channels": list(channel(one))},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.channels": list(strings.Replace(channel(one), "unix = {}", "pty = {}", 1))},
				Boot:   bounce.Leaves{"devices/channel/@type": "pty"}, Want: bounce.Waits("devices.channels["+one+"].source.pty", "devices.channels["+one+"].source.unix"),
			}},
		},
		{
			// A controller that libvirt adds to the definition stays there, so that
			// nothing can be taken back.
			Name: "channel-without-controller", Only: onlyLive(),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.channels": list(channel(one))}, Boot: bounce.Leaves{"devices/channel/target/@name": one}, Want: bounce.Waits(),
			}},
		},
		{
			Name: "console-added", Base: bounce.Fields{"devices.channels": list(channel(one))},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.consoles": list(virtioConsole)},
				Live:   bounce.Leaves{"devices/console[2]/target/@type": "virtio"}, Want: live,
			}},
		},
		{
			Name: "console-removed", Base: bounce.Fields{"devices.channels": list(channel(one)), "devices.consoles": list(virtioConsole, virtioConsole)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.consoles": list(virtioConsole)},
				Live:   bounce.Leaves{"devices/console[2]/target/@type": "virtio", "devices/console[3]/target/@type": bounce.Absent}, Want: live,
			}},
		},
	})
}

// serialRows are serial and parallel ports.
func serialRows(t testing.TB) []bounce.Row {
	first := func(name string) string {
		return fmt.Sprintf(`{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }`, lab.Host(t).ConsoleLog(name))
	}
	const (
		usb   = `{ source = { pty = {} }, target = { type = "usb-serial", port = 1 } }`
		pci   = `{ source = { pty = {} }, target = { type = "pci-serial", port = 1 } }`
		isa   = `{ source = { pty = {} }, target = { type = "isa-serial", port = 1 } }`
		port  = `{ source = { null = true }, target = { port = 0 } }`
		other = `{ source = { pty = {} }, target = { port = 0 } }`
	)
	live := bounce.Always(bounce.Live)
	come := func(name, device, controllers string, want bounce.Step) bounce.Row {
		want.Change = bounce.Fields{"devices.serials": list(first(name), device)}
		return bounce.Row{Name: name, Base: bounce.Fields{"devices.controllers": list(controllers)}, Steps: []bounce.Step{want}}
	}
	onUSB, onPCI := bounce.Leaves{"devices/serial[2]/target/@type": "usb-serial"}, bounce.Leaves{"devices/serial[2]/target/@type": "pci-serial"}
	gone := bounce.Leaves{"devices/serial[2]/target/@type": bounce.Absent}
	return withACPI([]bounce.Row{
		come("serial-usb-added", usb, usbXHCI, bounce.Step{Live: onUSB, Want: live}),
		come("serial-pci-added", pci, pciBridge, bounce.Step{Live: onPCI, Want: live}),
		come("serial-isa-added", isa, pciBridge, bounce.Step{Boot: bounce.Leaves{"devices/serial[2]/target/@type": "isa-serial"}, Want: bounce.Waits("devices.serials[1]")}),
		{
			Name: "serial-usb-removed", Base: bounce.Fields{"devices.controllers": list(usbXHCI), "devices.serials": list(first("serial-usb-removed"), usb)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.serials": list(first("serial-usb-removed"))}, Live: gone, Want: live}},
		},
		{
			Name: "serial-pci-removed", Base: bounce.Fields{"devices.controllers": list(pciBridge), "devices.serials": list(first("serial-pci-removed"), pci)},
			Steps: []bounce.Step{{Change: bounce.Fields{"devices.serials": list(first("serial-pci-removed"))}, Live: gone, Want: live}},
		},
		{
			Name: "parallel-added",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.parallels": list(port)}, Boot: bounce.Leaves{"devices/parallel/@type": "null"}, Want: bounce.Waits("devices.parallels[0]"),
			}},
		},
		{
			Name: "parallel-source", Base: bounce.Fields{"devices.parallels": list(port)},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.parallels": list(other)}, Boot: bounce.Leaves{"devices/parallel/@type": "pty"},
				Want: bounce.Waits("devices.parallels[0].source.null", "devices.parallels[0].source.pty"),
			}},
		},
	})
}
