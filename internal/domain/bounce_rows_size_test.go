package domain_test

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// MiB in the KiB of libvirt's XML.
const (
	mib112 = "114688"
	mib120 = "122880"
	mib128 = "131072"
	mib144 = "147456"
	mib160 = "163840"
)

// memoryMoves says that the guest manages so many MiB more than before, or
// less. A larger machine needs a little more for itself.
func memoryMoves(mib int64) func(before, now host.Report) bool {
	return func(before, now host.Report) bool {
		off := now.MemKiB - before.MemKiB - mib<<10
		return -4<<10 < off && off < 4<<10
	}
}

func cpusAre(n int) func(before, now host.Report) bool {
	return func(_, now host.Report) bool { return now.CPUs == n }
}

// balloon is a machine of 128 MiB whose guest has mib of them.
func balloon(mib string) bounce.Fields {
	return bounce.Fields{"current_memory": mib, "current_memory_unit": `"MiB"`}
}

func memoryRows(testing.TB) []bounce.Row {
	return []bounce.Row{
		{
			Name: "balloon-down", Base: balloon("128"),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"current_memory": "112"}, Live: bounce.Leaves{"currentMemory": mib112},
				Guest: memoryMoves(-16), Want: bounce.Always(bounce.Live),
			}},
		},
		{
			Name: "balloon-up", Base: balloon("112"),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"current_memory": "128"}, Live: bounce.Leaves{"currentMemory": mib128},
				Guest: memoryMoves(16), Want: bounce.Always(bounce.Live),
			}},
		},
		{
			Name: "memory-up",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "160"}, Boot: bounce.Leaves{"memory": mib160, "currentMemory": mib160},
				Guest: memoryMoves(32), Want: bounce.Waits("memory"),
			}},
		},
		{
			Name: "memory-down", Base: bounce.Fields{"memory": "160"},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "128"}, Boot: bounce.Leaves{"memory": mib128, "currentMemory": mib128},
				Guest: memoryMoves(-32), Want: bounce.Waits("memory"),
			}},
		},
		{
			Name: "memory-up-balloon-beyond", Base: balloon("120"),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "160", "current_memory": "144"}, Boot: bounce.Leaves{"memory": mib160, "currentMemory": mib144},
				Guest: memoryMoves(24), Want: bounce.Waits("memory", "current_memory"),
			}},
		},
		{
			Name: "memory-up-balloon-within", Base: balloon("112"),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"memory": "160", "current_memory": "128"},
				Live:   bounce.Leaves{"currentMemory": mib128}, Boot: bounce.Leaves{"memory": mib160},
				Guest: memoryMoves(16), Want: bounce.Waits("memory"),
			}},
		},
		{
			Name: "title-and-memory",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"title": `"Grows at its next start"`, "memory": "160"},
				Live:   bounce.Leaves{"title": "Grows at its next start"}, Boot: bounce.Leaves{"memory": mib160}, Want: bounce.Waits("memory"),
			}},
		},
	}
}

// unplugged is what taking out a CPU does. An emulated guest lets go of it
// without QEMU telling libvirt, and dies when the next one is plugged in, so
// that here it waits for the next start.
var unplugged = bounce.Waits("vcpu_current")

func vcpuRows(testing.TB) []bounce.Row {
	oneOfTwo := bounce.Fields{"vcpu": "2", "vcpu_current": "1"}
	allPlugged := bounce.Leaves{"vcpu/@current": bounce.Absent} // libvirt's way of saying it
	plug := bounce.Step{Change: bounce.Fields{"vcpu_current": "2"}, Live: allPlugged, Guest: cpusAre(2), Want: bounce.Always(bounce.Live)}
	return []bounce.Row{
		{Name: "vcpu-current-up", Base: oneOfTwo, Steps: []bounce.Step{plug}, Back: unplugged},
		{
			Name: "vcpu-current-down", Base: oneOfTwo,
			Steps: []bounce.Step{plug, {
				Change: bounce.Fields{"vcpu_current": "1"}, Boot: bounce.Leaves{"vcpu/@current": "1"}, Guest: cpusAre(1), Want: unplugged,
			}},
			// It is what it was at first, and the guest may still wait for it.
			Back: bounce.Wants{bounce.AllowNextBoot: {Pending: []string{"vcpu_current"}}, bounce.AllowRestart: {}},
		},
		{
			Name: "vcpu-current-down-at-boot", Base: bounce.Fields{"vcpu": "2", "vcpu_current": "2"},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"vcpu_current": "1"}, Boot: bounce.Leaves{"vcpu/@current": "1"}, Guest: cpusAre(1), Want: bounce.Waits("vcpu_current"),
			}},
			// A guest that was restarted with one can be given the other.
			Back: bounce.Wants{bounce.AllowNextBoot: bounce.None, bounce.AllowRestart: bounce.Live},
		},
		{
			Name: "vcpu-up",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"vcpu": "2"}, Boot: bounce.Leaves{"vcpu": "2"}, Guest: cpusAre(2), Want: bounce.Waits("vcpu"),
			}},
		},
		{
			Name: "vcpu-down", Base: bounce.Fields{"vcpu": "2"},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"vcpu": "1"}, Boot: bounce.Leaves{"vcpu": "1"}, Guest: cpusAre(1), Want: bounce.Waits("vcpu"),
			}},
		},
		{
			Name: "vcpu-current-and-cpu-model", Base: oneOfTwo.With("cpu.mode", `"custom"`).With("cpu.model", `"qemu64"`),
			Steps: []bounce.Step{{
				Change: bounce.Fields{"vcpu_current": "2", "cpu.model": `"kvm64"`},
				Live:   allPlugged, Boot: bounce.Leaves{"cpu/model": "kvm64"}, Guest: cpusAre(2), Want: bounce.Waits("cpu.model"),
			}},
			Back: bounce.Wants{bounce.AllowNextBoot: {Effect: "next_boot", Pending: []string{"vcpu_current"}}, bounce.AllowRestart: bounce.Restart},
		},
	}
}
