package domain_test

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// handRows are what somebody does to the host in between.
func handRows(testing.TB) []bounce.Row {
	grow := bounce.Step{Change: bounce.Fields{"memory": "160"}, Boot: bounce.Leaves{"memory": mib160}, Want: bounce.Waits("memory")}
	pending := bounce.Wants{bounce.AllowNextBoot: {Pending: []string{"memory"}}}
	shrinks := bounce.Wants{bounce.AllowNextBoot: {Effect: "next_boot", Pending: []string{"memory"}}}
	nextBoot := []bounce.Policy{bounce.AllowNextBoot}
	return []bounce.Row{
		{
			Name: "reset-and-power-cycle", Only: nextBoot,
			Steps: []bounce.Step{
				grow,
				{Hand: []string{"reset NAME"}, ByHand: bounce.Reset, Want: pending},
				{Hand: []string{"destroy NAME", "start NAME"}, ByHand: bounce.Cycle, Want: bounce.Wants{bounce.AllowNextBoot: {}}},
			},
			Back: shrinks,
		},
		{
			Name: "restart-what-waits", Only: nextBoot,
			Steps: []bounce.Step{
				grow,
				{
					Change: bounce.Fields{"update.allow": `"restart"`}, Boot: bounce.Leaves{"memory": mib160},
					Guest: memoryMoves(32), Want: bounce.Wants{bounce.AllowNextBoot: bounce.Restart},
				},
			},
			Back: shrinks,
		},
		{
			Name: "autostart-by-hand", Base: bounce.Fields{"autostart": "false"},
			Steps: []bounce.Step{{
				Hand: []string{"autostart NAME"}, Definition: bounce.Leaves{bounce.Autostart: "disable"}, Want: bounce.Always(bounce.None),
			}},
			Back: bounce.Always(bounce.Want{}),
		},
		{
			Name: "setmem-live", Base: balloon("128"),
			Steps: []bounce.Step{
				{
					Hand: []string{"setmem NAME 114688 --live"}, Seen: bounce.Leaves{"currentMemory": mib112},
					Want: bounce.Always(bounce.Want{Pending: []string{"current_memory"}, Held: []string{"current_memory"}}),
				},
				{
					Change: bounce.Fields{"update.drift": `"revert"`}, Live: bounce.Leaves{"currentMemory": mib128},
					Guest: memoryMoves(16), Want: bounce.Always(bounce.Live),
				},
			},
			Back: bounce.Always(bounce.None),
		},
		{
			// An emulated guest cannot give a CPU back, so that nothing can be held
			// or reverted: the CPU goes at the next start.
			Name: "setvcpus-live", Base: bounce.Fields{"vcpu": "2", "vcpu_current": "1"},
			Steps: []bounce.Step{
				{
					Hand: []string{"setvcpus NAME 2 --live"}, Seen: bounce.Leaves{"vcpu/@current": bounce.Absent},
					Want: bounce.Wants{
						bounce.AllowLive: {Pending: []string{"vcpu_current"}}, bounce.AllowNextBoot: {Pending: []string{"vcpu_current"}},
						bounce.AllowRestart: bounce.Restart,
					},
				},
			},
			Back: bounce.Wants{
				bounce.AllowLive: {Pending: []string{"vcpu_current"}}, bounce.AllowNextBoot: {Pending: []string{"vcpu_current"}},
				bounce.AllowRestart: {},
			},
		},
	}
}
