package spec

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// withoutIdleUnits leaves out units that have no number beside them: an
// element with a unit alone says zero.
func (r *Root) withoutIdleUnits(t tree.Value) tree.Value {
	amounts := r.amounts()
	out := t
	t.Walk(func(p tree.Path, v tree.Value) bool {
		if amount := amounts[p.Pattern()]; amount != "" && !t.Get(p[:len(p)-1]).Attr(amount).IsKnown() {
			out = out.Set(p, tree.NullValue)
		}
		return true
	})
	return out
}

// amounts names, for the pattern of each unit, the number beside it.
func (r *Root) amounts() map[string]string {
	r.once.Do(func() {
		r.amountOf = map[string]string{}
		for pattern := range r.Fields {
			if unit, _ := r.Unit(pattern); unit != "" {
				at := strings.LastIndex(pattern, ".") + 1
				r.amountOf[pattern[:at]+unit] = pattern[at:]
			}
		}
	})
	return r.amountOf
}
