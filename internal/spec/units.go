package spec

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

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
