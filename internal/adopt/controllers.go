package adopt

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// controllerRules leave out the controllers that libvirt makes for the devices
// that need one, and the buses of the machine. What is written of one that was
// asked for stays.
var controllerRules = []rule{
	{"^devices.controllers[]", madeByLibvirt, "measured: made for the devices that are on it"},
	{"^devices.controllers[].index", aloneOfItsType, "the first of its type"},
	{"^devices.controllers[].pci.model", func(p place) bool { return standardModel(p.controller()) }, "measured: follows from the model"},
	{"^devices.controllers[].pci.target.chassis", always, "measured: numbered in order"},
	{"^devices.controllers[].pci.target.chassis_nr", always, "measured: numbered in order"},
	{"^devices.controllers[].pci.target.port", always, "measured: follows from the address"},
	{"^devices.controllers[].pci.target.index", always, "measured: numbered in order"},
	{"^devices.controllers[].pci", isEmpty, "follows from the type"},
	{"^devices.controllers[].usb", isEmpty, "follows from the type"},
	{"^devices.controllers[].virt_io_serial", isEmpty, "follows from the type"},
}

// plainPCI are the models of PCI controllers that libvirt makes as it needs
// them, and what QEMU calls them. Those for another NUMA node are made on
// purpose.
var plainPCI = map[string]string{
	"pci-root": "spapr-pci-host-bridge", "pcie-root": "", "pcie-root-port": "pcie-root-port", "pci-bridge": "pci-bridge",
	"dmi-to-pci-bridge": "i82801b11-bridge", "pcie-to-pci-bridge": "pcie-pci-bridge",
}

// standardModel says whether QEMU's model of a PCI controller is the one that
// libvirt takes by itself.
func standardModel(c tree.Value) bool {
	name := c.At("pci.model.name").Str()
	standard, plain := plainPCI[c.Attr("model").Str()]
	return name == "" || !plain || name == standard
}

// controller is the controller that a value is in.
func (p place) controller() tree.Value { return p.element("devices.controllers") }

// madeByLibvirt says whether libvirt makes such a controller unasked: of a
// standard model, and with nothing set.
func madeByLibvirt(p place) bool {
	c := p.value
	if !only(c, "type", "index", "model", "address", "alias", "pci", "usb", "virt_io_serial") {
		return false
	}
	model, machine := c.Attr("model").Str(), p.root.At("os.type_machine").Str()
	switch c.Attr("type").Str() {
	case "pci":
		target := c.At("pci.target")
		_, plain := plainPCI[model]
		return plain && standardModel(c) && only(c.Attr("pci"), "model", "target") && only(target, "chassis", "chassis_nr", "port", "index")
	case "usb":
		return standardUSB(model, machine) && (c.Attr("usb").Len() == 0 || strings.HasPrefix(model, "ich9-"))
	case "scsi":
		return model == "" || model == "lsilogic" || model == "ibmvscsi"
	case "virtio-serial":
		return model == "" && c.Attr("virt_io_serial").Len() == 0
	case "sata", "ide", "fdc", "ccid":
		return true
	}
	return false
}

// standardUSB says whether a machine has such a USB controller when nobody
// asks for one. The family ich9 is what older versions made.
func standardUSB(model, machine string) bool {
	switch model {
	case "", "piix3-uhci", "pci-ohci":
		return true
	case "qemu-xhci":
		return !strings.HasPrefix(machine, "pc-i440fx")
	case "ich9-ehci1", "ich9-uhci1", "ich9-uhci2", "ich9-uhci3":
		return strings.HasPrefix(machine, "pc-q35")
	}
	return false
}

// aloneOfItsType says whether a controller is the first of its type, and there
// is no other one.
func aloneOfItsType(p place) bool {
	if !tree.Equal(p.value, tree.IntValue(0)) {
		return false
	}
	of := 0
	for _, c := range p.root.At("devices.controllers").Elems() {
		if tree.Equal(c.Attr("type"), p.beside.Attr("type")) {
			of++
		}
	}
	return of == 1
}
