package domain

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// modulePlug are memory modules. A DIMM comes into a running guest that was
// started with room for it, and leaves it if the guest agrees: it has to move
// what lies in it, and may say no, or nothing. A virtio-mem module comes and
// stays, and how much of it the guest is to use changes at any time.
//
// A module is part of the guest's memory: libvirt counts it in, in guest and
// definition, the moment it comes. A plan has to say both, the module and the
// new total.
var modulePlug = &plug{
	noun: "memory module",
	list: moduleList,
	in: func(module tree.Value, now situation) string {
		switch model := module.Attr("model").Str(); model {
		case "dimm":
			return now.room.take(module, true)
		case virtioMem:
			return now.room.take(module, false)
		default:
			return fmt.Sprintf("A memory module of the model %s waits for the next start; dimm and virtio-mem are those that the provider plugs in.", model)
		}
	},
	out: func(module tree.Value, now situation) string {
		if model := module.Attr("model").Str(); model != "dimm" {
			return fmt.Sprintf("A memory module of the model %s cannot be taken out of a running guest.", model)
		}
		return isDeaf(now.guest)
	},
	seat: func(module tree.Value, _ situation) seat {
		if module.Attr("model").Str() == virtioMem {
			return express
		}
		return noSeat
	},
	field: moduleField,
	stays: func(a *apply) {
		for _, total := range []string{"memory", "current_memory"} {
			a.late = append(a.late, tree.Root.Attr(total)) // the guest has the module still, and counts it
		}
	},
	left: setBalloon,
}

var moduleAspect = modulePlug.aspect()

const (
	moduleList = "devices.memorydevs"
	virtioMem  = "virtio-mem"
)

func moduleField(path string, module tree.Value, c change.Change) string {
	switch {
	case path != "target.requested" && path != "target.requested_unit":
		return "It is told to QEMU when the module is plugged in."
	case module.Attr("model").Str() != virtioMem:
		return "Only of a module of the model virtio-mem can a guest use more or less while it runs."
	case path == "target.requested_unit":
		return ""
	case c.Desired.Num() == nil:
		return "Without a value it is nothing from the next start on."
	case c.Desired.Num().Cmp(new(big.Float).SetInt64(bytesOf(module, "target.size"))) > 0:
		return "The running guest's module is smaller."
	}
	return ""
}

// bytesOf reads the size of something of a memory module, 0 if it is absent.
func bytesOf(module tree.Value, path string) int64 {
	const standard = "KiB"
	bytes := change.Bytes(module.At(path), module.At(path+"_unit"), standard).Num()
	if bytes == nil {
		return 0
	}
	n, _ := bytes.Int64()
	return n
}

// wholeMemory is the memory of a definition in KiB, without what a guest is not
// to use of its virtio-mem modules.
func wholeMemory(definition tree.Value) int64 {
	kib := kibibytes(definition, "memory")
	for _, m := range definition.At("devices.memorydevs").Elems() {
		kib -= (bytesOf(m, "target.size") - usableOf(m)) / 1024
	}
	return kib
}

// moduleRoom is what a running guest has room for: it was started with so many
// slots, and with so much address space beyond the memory that it had.
type moduleRoom struct {
	guest   tree.Value
	counted bool
	slots   int64
	bytes   int64 // up to the maximum
}

func (r *moduleRoom) count() {
	if r.counted {
		return
	}
	r.counted = true
	r.slots = whole(r.guest.Attr("maximum_memory_slots"))
	r.bytes = 1024 * (kibibytes(r.guest, "maximum_memory") - kibibytes(r.guest, "memory"))
	for _, m := range r.guest.At("devices.memorydevs").Elems() {
		if sitsInSlot(m) {
			r.slots--
		}
	}
}

// sitsInSlot says whether a module takes one of the guest's slots.
func sitsInSlot(module tree.Value) bool {
	return slices.Contains([]string{"dimm", "nvdimm"}, module.Attr("model").Str())
}

// take says why there is no room for a module, "" if there is: then it takes it.
func (r *moduleRoom) take(module tree.Value, slot bool) string {
	r.count()
	size := bytesOf(module, "target.size")
	switch cells := r.guest.At("cpu.numa.cell").Elems(); {
	case r.guest.Attr("maximum_memory").IsNull():
		return "The running guest has no room for memory modules: it was started without maximum_memory."
	case len(cells) == 0:
		return "The running guest has no NUMA cell (cpu.numa) that a memory module could belong to."
	case !slices.ContainsFunc(cells, func(c tree.Value) bool {
		return !module.At("target.node").IsNull() && whole(c.Attr("id")) == whole(module.At("target.node"))
	}):
		return "The running guest has no NUMA cell with the number that the module says in target.node."
	case slot && isDeaf(r.guest) != "":
		return isDeaf(r.guest)
	case slot && r.slots < 1:
		return "The running guest has no free slot for a memory module (maximum_memory_slots)."
	case size > r.bytes:
		return fmt.Sprintf("The running guest has room for %d KiB more up to its maximum_memory, and the module has %d KiB.", r.bytes/1024, size/1024)
	}
	if slot {
		r.slots--
	}
	r.bytes -= size
	return ""
}

// usableOf is how much of a module a guest is to use, in bytes.
func usableOf(module tree.Value) int64 {
	if module.Attr("model").Str() == virtioMem {
		return bytesOf(module, "target.requested")
	}
	return bytesOf(module, "target.size")
}

// growWithModules makes a new total of the memory live where it is just what the
// modules bring that are plugged in or taken out, as libvirt counts them in; and
// the balloon where it stays within what the guest is to use of them.
func growWithModules(changes []change.Change, costs []cost, now situation) {
	total, usable := 1024*kibibytes(now.guest, "memory"), 1024*wholeMemory(now.guest)
	modules := false
	for i, c := range changes {
		pattern := c.Path.Pattern()
		switch live := costs[i].class == change.ClassLive; {
		case !live || !within(pattern, moduleList):
			continue
		case pattern == moduleList+"[].target.requested":
			usable += whole(c.Desired) - bytesOf(deviceIn(now.guest, c.Path), "target.requested")
		case pattern == moduleList+"[]" && c.Desired.IsNull():
			total -= bytesOf(c.Actual, "target.size")
			usable -= usableOf(c.Actual)
		case pattern == moduleList+"[]":
			total += bytesOf(c.Desired, "target.size")
			usable += usableOf(c.Desired)
		}
		modules = true
	}
	if !modules {
		return
	}
	for i, c := range changes {
		if c.Desired.Num() == nil || c.Unit == "" {
			continue
		}
		switch c.Path.Pattern() {
		case "memory":
			if whole(c.Desired) == total {
				costs[i] = cost{change.ClassLive, ""}
			}
		case "current_memory":
			if whole(c.Desired) <= usable && hasBalloon(now.guest) {
				costs[i] = cost{change.ClassLive, ""}
			}
		}
	}
}
