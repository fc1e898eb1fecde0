package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Patch returns the definition that a plan asks for: actual with exactly those
// places changed in which planned differs from prior. List elements that the
// plan drops are removed only if the configuration of the apply before named
// them. Unknown values change nothing.
func (o Order) Patch(actual tree.Value) tree.Value { return o.patch(nil, actual) }

func (o Order) patch(path tree.Path, actual tree.Value) tree.Value {
	switch {
	case o.Setting(path.Pattern()), o.Planned.IsUnknown(), tree.Equal(o.Prior, o.Planned):
		return actual
	case o.Type.Kind == tree.Object:
		out := actual
		if out.IsNull() {
			if o.Planned.Known().IsNull() {
				return actual
			}
			out = tree.ObjectValue(nil)
		}
		quantities, rest := o.quantities(o.Type, path)
		for _, name := range rest {
			got := o.attr(name).patch(path.Attr(name), actual.Attr(name))
			if !tree.Equal(got, out.Attr(name)) {
				out = out.With(name, got)
			}
		}
		for _, q := range quantities {
			out = q.patch(o.Prior, o.Planned, out)
		}
		if o.Planned.IsNull() && out.Len() == 0 {
			return tree.NullValue
		}
		return out
	case o.Type.Kind == tree.List && o.Type.Elem.Kind == tree.Object:
		list, _ := o.patchList(path, actual)
		return listOf(list)
	}
	return o.Planned
}

// patch gives a changed number the unit that the plan gives it: none means
// the standard unit, whatever stands on the host. A number that is only told in
// another unit stays as the host has it.
func (q quantity) patch(prior, planned, out tree.Value) tree.Value {
	amount, unit := planned.Attr(q.name), planned.Attr(q.unit)
	left := amount.IsUnknown() || unit.IsUnknown() || tree.Equal(prior.Attr(q.name), amount) && tree.Equal(prior.Attr(q.unit), unit)
	if was := q.of(prior); !left && !(tree.Equal(was, q.of(planned)) && !was.IsNull()) && !(amount.IsNull() && prior.Attr(q.name).IsNull()) {
		out = out.With(q.name, amount).With(q.unit, unit)
	}
	if out.Attr(q.name).IsNull() {
		out = out.With(q.unit, tree.NullValue)
	}
	return out
}

// patchList changes the elements that the plan changes, drops those it
// removes, and appends those it adds. What state does not know stays. at is
// the place of each planned element.
func (o Order) patchList(path tree.Path, actual tree.Value) (list []tree.Value, at []int) {
	pattern := path.Pattern()
	p := o.pairs(pattern)
	onHost := o.match(pattern, o.Prior, actual)
	out := slices.Clone(actual.Elems())
	kept, known := make([]bool, o.Prior.Len()), map[int]bool{}
	for _, k := range onHost {
		known[k] = true
	}
	// A planned element that state did not know may be one that the host has: a
	// foreign device that the configuration names by its identity.
	adopted := o.matchKeys(pattern, o.Planned, actual)
	at = nowhere(o.Planned.Len())
	for i, e := range o.Planned.Elems() {
		if j := p.prior[i]; j >= 0 {
			kept[j], at[i] = true, onHost[j]
		} else if k := adopted[i]; k >= 0 && !known[k] {
			at[i] = k
		}
		one := o.elem(i, p)
		if at[i] < 0 {
			one.Prior, one.Planned, at[i] = tree.NullValue, e.Known(), len(out)
			out = append(out, tree.NullValue)
		}
		out[at[i]] = one.patch(path.Elem(i, ""), out[at[i]])
	}
	drop := map[int]bool{}
	for j := range kept {
		if !kept[j] && p.ours[j] && onHost[j] >= 0 {
			drop[onHost[j]] = true
		}
	}
	now := make([]int, len(out))
	for k, e := range out {
		now[k] = len(list)
		if !drop[k] {
			list = append(list, e)
		}
	}
	for i := range at {
		at[i] = now[at[i]]
	}
	return list, at
}

// listOf is null for no elements: the XML has no empty lists.
func listOf(elems []tree.Value) tree.Value {
	if len(elems) == 0 {
		return tree.NullValue
	}
	return tree.ListValue(elems)
}
