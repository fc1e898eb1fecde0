package change

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// An amount that libvirt chooses is told in the unit that the plan has, also
// where the plan has none: the core takes no other unit after an apply.
func TestChosenAmountIsToldInThePlannedUnit(t *testing.T) {
	rules := *testRules
	rules.Chosen = func(pattern string) bool { return pattern == "memory" }
	for name, c := range map[string]struct{ planned, actual, want string }{
		"none, and the host's is the standard": {`{'memory':'?'}`, `{'memory':2048,'memory_unit':'KiB'}`, `{'memory':2048}`},
		"none, and the host has another":       {`{'memory':'?'}`, `{'memory':2,'memory_unit':'MiB'}`, `{'memory':2048}`},
		"one of its own":                       {`{'memory':'?','memory_unit':'MiB'}`, `{'memory':2048,'memory_unit':'KiB'}`, `{'memory':2,'memory_unit':'MiB'}`},
		"not known either":                     {`{'memory':'?','memory_unit':'?'}`, `{'memory':2048,'memory_unit':'KiB'}`, `{'memory':2048,'memory_unit':'KiB'}`},
		"the host has nothing":                 {`{'memory':'?'}`, `{}`, `{}`},
	} {
		got := Order{Rules: &rules, Type: testType, Planned: obj(t, c.planned)}.Settle(tree.NullValue, obj(t, c.actual))
		if want := obj(t, c.want); !tree.Equal(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
