package domain_test

import (
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// matrix are the tables of the bounce matrix, by meaning. A table is one wave:
// as many machines at once as it has rows, which is what the size of a table is
// limited by: they all boot at the same time.
var matrix = []struct {
	name string
	rows func(t testing.TB) []bounce.Row
}{
	{"text", textRows},
	{"memory", memoryRows},
	{"vcpu", vcpuRows},
	{"machine", machineRows},
	{"boot", bootRows},
	{"firmware and features", func(t testing.TB) []bounce.Row { return append(firmwareRows(t), featureRows(t)...) }},
	{"plug", plugRows},
	{"disks", diskRows},
	{"interfaces", interfaceRows},
	{"channels", channelRows},
	{"serials", serialRows},
	{"displays", displayRows},
	{"filesystems", filesystemRows},
	{"devices", deviceRows},
	{"modules", moduleRows},
	{"built-in", builtInRows},
	{"hand", handRows},
	{"cpus of the host", cpuRows},
	{"tuning", tuningRows},
	{"tuning at start", tuningAtStartRows},
	{"tuning by hand", tuningByHandRows},
}

func TestAccBounce(t *testing.T) {
	for i, table := range matrix {
		t.Run(table.name, func(t *testing.T) {
			core := acctest.Case(t, fmt.Sprintf("the bounce matrix, %s: under each update.allow the plan's effect is what happens to the running guest, what waits is listed, every second plan is empty", table.name))
			policies := bounce.Policies
			if acctest.Sampled() {
				policies = policies[i%len(policies):][:1] // they take turns
			}
			bounce.Run(t, core, table.name, table.rows(t), policies...)
		})
	}
}
