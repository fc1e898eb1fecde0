package spec

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A quantity is a number with a unit of its own.
type quantity struct {
	amount, unit string // suffixes of patterns
	standard     string // the unit that counts when none is given
}

// quantities are the pairs that do not follow the rule "x and x_unit", and
// the standard units that are not KiB; measured where libvirt 9.0 knows them.
// The sizes of NUMA caches are none: libvirt forgets their unit (1 MiB comes
// back as 1 KiB), so that they are compared to the letter.
// https://libvirt.org/formatdomain.html
var quantities = []quantity{
	{"cell[].memory", "unit", "KiB"},
	{"bandwidths[].value", "unit", "KiB"},
	{"max_size.value", "unit", "bytes"},
	{"cache[].size", "unit", "KiB"},
	{"hugepages[].size", "unit", "KiB"},
	{"space_hard_limit", "space_hard_limit_unit", "bytes"},
	{"space_soft_limit", "space_soft_limit_unit", "bytes"},
	{"granule.size", "unit", "KiB"},
	{"tseg", "tseg_unit", "MiB"},
	{"shmems[].size", "size_unit", "bytes"},
}

// scale is what belongs to a number with a unit.
type scale struct{ unit, standard string }

// Unit names the attribute beside a number that holds its unit, and the unit
// that counts without it.
func (r *Root) Unit(pattern string) (attr, standard string) {
	s := r.scales[pattern]
	return s.unit, s.standard
}

// findScales finds the numbers that have units. A number that libvirtxml has as
// text is none: it is compared to the letter.
func (r *Root) findScales() {
	r.scales, r.amounts = map[string]scale{}, map[string]string{}
	for pattern, f := range r.Fields {
		s := r.scaleOf(pattern)
		at := strings.LastIndex(pattern, ".") + 1
		if s.unit == "" || f.typ.Kind != tree.Number || r.Fields[pattern[:at]+s.unit] == nil {
			continue
		}
		r.scales[pattern] = s
		r.amounts[pattern[:at]+s.unit] = pattern[at:]
	}
}

func (r *Root) scaleOf(pattern string) scale {
	for _, q := range quantities {
		if pattern == q.amount || strings.HasSuffix(pattern, "."+q.amount) {
			return scale{q.unit, q.standard}
		}
	}
	name := pattern[strings.LastIndex(pattern, ".")+1:]
	if r.Name == "volume" || r.Name == "pool" {
		return scale{name + "_unit", "bytes"}
	}
	return scale{name + "_unit", "KiB"}
}

// withoutIdleUnits leaves out units that have no number beside them: an
// element with a unit alone says zero.
func (r *Root) withoutIdleUnits(t tree.Value) tree.Value {
	out := t
	t.Walk(func(p tree.Path, v tree.Value) bool {
		if amount := r.amounts[p.Pattern()]; amount != "" && !t.Get(p[:len(p)-1]).Attr(amount).IsKnown() {
			out = out.Set(p, tree.NullValue)
		}
		return true
	})
	return out
}
