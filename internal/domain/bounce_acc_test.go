package domain_test

import (
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// matrix are the tables of the bounce matrix, by meaning. A table is one wave:
// as many machines at once as it has rows.
var matrix = []struct {
	name string
	rows []func(t testing.TB) []bounce.Row
}{
	{"size", []func(testing.TB) []bounce.Row{textRows, memoryRows, vcpuRows}},
	{"machine", []func(testing.TB) []bounce.Row{machineRows, deviceRows, handRows}},
}

func TestAccBounce(t *testing.T) {
	for _, table := range matrix {
		t.Run(table.name, func(t *testing.T) {
			core := acctest.Case(t, fmt.Sprintf("the bounce matrix, %s: under each update.allow the plan's effect is what happens to the running guest, what waits is listed, every second plan is empty", table.name))
			var rows []bounce.Row
			for _, make := range table.rows {
				rows = append(rows, make(t)...)
			}
			bounce.Run(t, core, table.name, rows, bounce.Policies...)
		})
	}
}
