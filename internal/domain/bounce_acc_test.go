package domain_test

import (
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// matrix are the tables of the bounce matrix, by meaning. A table is one wave
// for each policy.
var matrix = []struct {
	name string
	rows func(t testing.TB) []bounce.Row
}{
	{"text", textRows},
	{"memory", memoryRows},
	{"vcpu", vcpuRows},
	{"machine", machineRows},
	{"devices", deviceRows},
	{"hand", handRows},
}

func TestAccBounce(t *testing.T) {
	for _, table := range matrix {
		for _, policy := range bounce.Policies {
			t.Run(fmt.Sprintf("%s/%s", table.name, policy), func(t *testing.T) {
				core := acctest.Case(t, fmt.Sprintf("the bounce matrix, %s under update.allow = %q: the plan's effect is what happens to the running guest, what waits is listed, every second plan is empty", table.name, policy))
				bounce.Run(t, core, fmt.Sprintf("%s, update.allow = %s", table.name, policy), table.rows(t), policy)
			})
		}
	}
}
