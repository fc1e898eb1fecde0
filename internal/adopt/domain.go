package adopt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Emulator names the program that a host takes for such a machine when nobody
// names one, "" if that is not known.
type Emulator func(arch, machine, virtType string) string

// domainRules are what libvirt adds to a <domain>, and what stays with the
// machine that is there without being written.
func domainRules(emulator Emulator) []rule {
	return slices.Concat(domainTop, domainBoot, domainCPU, deviceRules, []rule{
		{"^devices.emulator", func(p place) bool {
			return p.value.Str() == emulator(p.root.At("os.type_arch").Str(), p.root.At("os.type_machine").Str(), p.root.Attr("type").Str())
		}, "the host takes it for such a machine by itself"},
	})
}

var domainTop = []rule{
	{"^uuid", always, "the import has it; a machine that is made again gets another one"},
	{"^running", always, "unset, the power is left alone"},
	{"^autostart", isFalse, "the standard"},
	{"^metadata", always, "of other tools, which go on to write it"},
	{"^sec_label[]", func(p place) bool {
		return p.value.Attr("type").Str() == "dynamic" && p.value.Attr("base_label").IsNull()
	}, "what libvirt does by itself"},
	{"^resource.partition", is("/machine"), "libvirt's own"},
	{"^on_poweroff", is("destroy"), "measured: said though nobody did"},
	{"^on_reboot", is("restart"), "measured: said though nobody did"},
	{"^on_crash", is("destroy"), "measured: said though nobody did"},
	{"^vcpu_placement", is("static"), "measured: said though nobody did"},
	{"^vcpu_current", func(p place) bool { return tree.Equal(p.value, p.root.Attr("vcpu")) }, "all of them"},
	{"^vcpus", vcpusInOrder, "libvirt lists the CPUs that vcpu_current means"},
	{"^current_memory", sameAsMemory, "measured: all of memory, if nobody says less"},
	{"^current_memory_unit", sameAsMemory, "with current_memory"},
	{"^clock.offset", func(p place) bool { return p.value.Str() == "utc" && only(p.beside, "offset") }, "measured: said though nobody did"},
}

func isFalse(p place) bool { return tree.Equal(p.value, tree.BoolValue(false)) }

func sameAsMemory(p place) bool {
	all := change.Bytes(p.root.Attr("memory"), p.root.Attr("memory_unit"), "KiB")
	return tree.Equal(all, change.Bytes(p.root.Attr("current_memory"), p.root.Attr("current_memory_unit"), "KiB"))
}

// vcpusInOrder says whether the list of CPUs is the one that libvirt makes of
// vcpu_current: the first ones are there.
func vcpusInOrder(p place) bool {
	current, known := p.root.Attr("vcpu_current").Int()
	if !known {
		return true // all of them
	}
	for i, cpu := range p.value.Attr("vcpu").Elems() {
		if (int64(i) < current) != (cpu.Attr("enabled").Str() == "yes") {
			return false
		}
	}
	return true
}

var domainBoot = []rule{
	{"^os.boot_devices", func(p place) bool {
		return p.value.Len() == 1 && p.value.Elems()[0].Attr("dev").Str() == "hd"
	}, "measured: said though nobody did"},
	{"^os.loader", byFirmware, "the firmware is chosen by os.firmware"},
	{"^os.loader_readonly", byFirmware, "likewise"},
	{"^os.loader_type", byFirmware, "likewise"},
	{"^os.loader_secure", byFirmware, "likewise"},
	{"^os.loader_format", byFirmware, "likewise"},
	{"^os.nv_ram", byFirmware, "likewise"},
	{"^os.nv_ram.nv_ram", ownVariables, "libvirt makes the file by the name of the machine"},
}

func byFirmware(p place) bool { return !p.root.At("os.firmware").IsNull() }

// ownVariables says whether a file of UEFI variables has the name that libvirt
// gives it.
func ownVariables(p place) bool {
	rest, found := strings.CutPrefix(p.value.Str(), "/var/lib/libvirt/qemu/nvram/"+p.root.Attr("name").Str()+"_VARS")
	return found && (rest == "" || rest[0] == '.')
}

var domainCPU = []rule{
	{"^cpu.mode", standardCPU, "measured: what libvirt says where no CPU is named"},
	{"^cpu.model", standardCPU, "likewise"},
	{"^cpu.match", func(p place) bool { return standardCPU(p) || p.value.Str() == "exact" }, "measured: said though nobody did"},
	{"^cpu.model_fallback", func(p place) bool { return standardCPU(p) || p.value.Str() == "allow" }, "measured: said though nobody did"},
	{"^cpu.check", func(p place) bool {
		own := "partial"
		if mode := p.root.At("cpu.mode").Str(); mode == "host-passthrough" || mode == "maximum" {
			own = "none"
		}
		return standardCPU(p) || p.value.Str() == own
	}, "measured: what libvirt checks of a CPU of this mode if nobody says"},
	{"^cpu.migratable", func(p place) bool { return p.value.Bool() }, "measured: said of a CPU that is passed through"},
	{"^cpu.topology.dies", isNumber(1), "measured: said though nobody did"},
	{"^cpu.topology.clusters", isNumber(1), "newer versions say it though nobody did"},
	{"^cpu.numa.cell[].id", func(p place) bool { n, whole := p.value.Int(); return whole && n == int64(p.index) }, "cells are numbered in order"},
}

// standardCPU says whether a CPU is that which libvirt writes where nobody asks
// for one: it writes no other one in this way.
func standardCPU(p place) bool {
	cpu := p.root.Attr("cpu")
	return cpu.Attr("mode").Str() == "custom" && cpu.Attr("check").Str() == "none" && cpu.Attr("model_fallback").Str() == "forbid" &&
		slices.Contains([]string{"qemu64", "qemu32", "kvm64", "qemu", "POWER9"}, cpu.Attr("model").Str()) && cpu.Attr("features").IsNull()
}

// deviceRules are what libvirt adds to <devices>, but for controllers.
var deviceRules = slices.Concat(controllerRules, placeRules, diskRules, interfaceRules, consoleRules, displayRules, otherDeviceRules)

// placeRules leave out where a device is. It stays there; a machine that is made
// again gets its devices in the order in which they are written.
var placeRules = []rule{
	{"address", func(p place) bool { return deviceAddress.MatchString(p.pattern) }, "libvirt places devices, and keeps them where they are"},
	{"alias", func(p place) bool { return deviceAlias.MatchString(p.pattern) && p.root.Attr("qemu_override").IsNull() }, "libvirt's own name of a device"},
}

var (
	deviceAddress = regexp.MustCompile(`^devices\.[a-z_]+(\[\])?\.address$`)
	deviceAlias   = regexp.MustCompile(`^devices\.[a-z_]+(\[\])?\.alias$`)
)

var diskRules = []rule{
	{"^devices.disks[].device", is("disk"), "measured: said though nobody did"},
	{"^devices.disks[].driver.name", is("qemu"), "measured: said though nobody did"},
	{"^devices.disks[].driver.type", func(p place) bool { return p.value.Str() == "raw" && noMedium(p.disk().Attr("source")) }, "measured: said of an empty drive"},
	{"^devices.disks[].source", func(p place) bool { return noMedium(p.value) }, "an empty drive"},
	{"^devices.disks[].read_only", func(p place) bool { return p.beside.Attr("device").Str() == "cdrom" }, "measured: said of every CD"},
	{"^devices.disks[].backing_store", plainChain, "the image itself says what it lies over"},
	{"^devices.disks[].mirror", always, "a copy under way"},
	{"^devices.disks[].source.index", always, "a number of the running guest"},
	{"^devices.filesystems[].access_mode", is("passthrough"), "measured: said though nobody did"},
}

// disk is the disk that a value is in.
func (p place) disk() tree.Value { return p.element("devices.disks") }

// noMedium says whether a source is none: an empty drive.
func noMedium(source tree.Value) bool {
	return source.IsNull() || only(source, "file") && source.Attr("file").Len() == 0
}

// element is the one of a list that a value is in.
func (p place) element(list string) tree.Value {
	if all := p.root.At(list).Elems(); p.index < len(all) {
		return all[p.index]
	}
	return tree.NullValue
}

// plainChain says whether a backing store, and what is below it, is no more than
// what the image says itself.
func plainChain(p place) bool {
	plain := true
	p.value.Walk(func(path tree.Path, v tree.Value) bool {
		if v.Kind() != tree.Object && v.Kind() != tree.List {
			name := path[len(path)-1].Attr
			plain = plain && (name == "file" || name == "dev" || name == "type" || name == "index")
		}
		return plain
	})
	return plain
}

var interfaceRules = []rule{
	{"^devices.interfaces[].target.dev", chosenByLibvirt, "libvirt names it anew at each start"},
	{"^devices.interfaces[].source.network.port_id", always, "of the running guest"},
	{"^devices.interfaces[].source.network.bridge", always, "follows from the network"},
}

// chosenByLibvirt says whether a text is one that means "chosen by libvirt".
func chosenByLibvirt(p place) bool {
	return p.value.Str() != "" && spec.Domain().Canonical(p.pattern, p.value.Str()) == ""
}

var consoleRules = []rule{
	{"^devices.consoles[]", firstSerialAgain, "measured: the first serial port, said twice"},
	{"^devices.consoles[].target.port", func(p place) bool { return isIndex(p) || p.beside.Attr("type").Str() != "serial" }, "consoles are numbered in order; one of a serial port has its number"},
	{"^devices.serials[].target.port", isIndex, "ports are numbered in order"},
	{"^devices.parallels[].target.port", isIndex, "ports are numbered in order"},
	{"^devices.serials[].target.type", is("isa-serial", "system-serial", "spapr-vio-serial", "sclp-serial"), "what such a machine has for a serial port"},
	{"^devices.serials[].target.model", always, "measured: follows from the type"},
	{"source.pty.path", chosenByLibvirt, "the kernel numbers terminals anew"},
	{"tty", chosenByLibvirt, "the kernel numbers terminals anew"},
	{"^devices.channels[].source.unix.path", chosenByLibvirt, "libvirt makes it of the machine's name"},
	{"^devices.channels[].source.unix.mode", func(p place) bool { return p.value.Str() == "bind" && chosenOrNone(p) }, "libvirt listens there by itself"},
	{"^devices.channels[].target.virt_io.state", always, "of the running guest"},
}

func chosenOrNone(p place) bool {
	path := p.beside.Attr("path").Str()
	return path == "" || spec.Domain().Canonical("devices.channels[].source.unix.path", path) == ""
}

func isIndex(p place) bool {
	n, whole := p.value.Int()
	return whole && n == int64(p.index)
}

// firstSerialAgain says whether a console is the first serial port, which
// libvirt lists there too.
func firstSerialAgain(p place) bool {
	serials := p.root.At("devices.serials").Elems()
	port := p.value.At("target.port")
	return p.index == 0 && len(serials) > 0 && p.value.At("target.type").Str() == "serial" &&
		(port.IsNull() || tree.Equal(port, tree.IntValue(0))) && tree.Equal(p.value.Attr("source"), serials[0].Attr("source"))
}

var displayRules = []rule{
	{"^devices.graphics[].vnc.port", automatic, "libvirt chooses it"},
	{"^devices.graphics[].spice.port", automatic, "libvirt chooses it"},
	{"^devices.graphics[].spice.tls_port", automatic, "libvirt chooses it"},
	{"^devices.graphics[].rdp.port", automatic, "libvirt chooses it"},
	{"auto_port", isFalse, "follows from the port"},
	{"^devices.graphics[].vnc.listeners", listensThere, "measured: listen, said twice"},
	{"^devices.graphics[].spice.listeners", listensThere, "measured: listen, said twice"},
	{"^devices.graphics[].rdp.listeners", listensThere, "measured: listen, said twice"},
	{"^devices.graphics[].vnc.connected", always, "of the running guest"},
	{"^devices.graphics[].spice.connected", always, "of the running guest"},
	{"^devices.graphics[].vnc.socket", func(p place) bool { return p.beside.Attr("listeners").Len() > 0 }, "measured: of the listener, said twice"},
	{"^devices.audios", func(p place) bool {
		only1 := p.value.Len() == 1 && only(p.value.Elems()[0], "id", "none", "spice")
		return only1 && p.value.Elems()[0].Attr("none").Len() == 0 && p.value.Elems()[0].Attr("spice").Len() == 0
	}, "measured: said though nobody did"},
	{"^devices.videos[].model.heads", isNumber(1), "measured: said though nobody did"},
	{"^devices.videos[].model.primary", func(p place) bool { return p.index == 0 && p.value.Str() == "yes" }, "the first one is"},
	{"^devices.videos[].model.vram", isNumber(16384, 65536), "measured: the standard"},
	{"^devices.videos[].model.ram", isNumber(65536), "measured: the standard"},
	{"^devices.videos[].model.vga_mem", isNumber(16384), "measured: the standard"},
}

func automatic(p place) bool { return p.beside.Attr("auto_port").Bool() }

// listensThere says whether the list of listeners says no more than listen.
func listensThere(p place) bool {
	if p.value.Len() != 1 {
		return p.value.Len() == 0
	}
	listener := p.value.Elems()[0]
	listen := p.beside.Attr("listen")
	return listener.Len() == 0 || only(listener, "address") && only(listener.Attr("address"), "address") &&
		tree.Equal(listener.At("address.address"), listen)
}

var otherDeviceRules = []rule{
	{"^devices.inputs[]", func(p place) bool {
		return p.value.Attr("bus").Str() == "ps2" && (p.value.Attr("type").Str() == "mouse" || p.value.Attr("type").Str() == "keyboard")
	}, "measured: part of the machine"},
	{"^devices.inputs[].source", isEmpty, "measured: said though nobody did"},
	{"^devices.hubs[]", func(p place) bool { return only(p.value, "type", "address", "alias") }, "measured: made when the ports of a controller do not suffice"},
	{"^devices.mem_balloon", func(p place) bool {
		return only(p.value, "model", "address", "alias") && strings.HasPrefix(p.value.Attr("model").Str(), "virtio")
	}, "measured: every machine has one"},
	{"^devices.watchdogs[]", func(p place) bool {
		return p.value.Attr("model").Str() == "itco" && only(p.value, "model", "action", "alias") && p.value.Attr("action").Str() == "reset"
	}, "newer versions say it of every q35"},
	{"^devices.watchdogs[].action", is("reset"), "measured: said though nobody did"},
	{"^devices.panics[].model", is("isa"), "measured: the standard"},
	{"^devices.vsock.model", is("virtio"), "measured: the standard"},
	{"^devices.vsock.cid.address", func(p place) bool { return p.beside.Attr("auto").Str() == "yes" }, "chosen at each start"},
	{"^devices.hostdevs[].managed", isFalse, "measured: said though nobody did"},
	{"^devices.hostdevs[].subsys_m_dev.display", is("off"), "measured: said though nobody did"},
}
