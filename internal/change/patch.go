package change

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Patch returns the definition that a plan asks for: actual with exactly those
// places changed in which planned differs from prior. List elements that the
// plan drops are removed only if owned says that the configuration of the last
// apply named them. Unknown values change nothing.
func (r *Rules) Patch(typ *tree.Type, prior, planned, actual, owned tree.Value) tree.Value {
	return r.patch(typ, nil, prior, planned, actual, owned)
}

func (r *Rules) patch(typ *tree.Type, path tree.Path, prior, planned, actual, owned tree.Value) tree.Value {
	switch {
	case r.Setting(path.Pattern()), planned.IsUnknown(), tree.Equal(prior, planned):
		return actual
	case typ.Kind == tree.Object:
		out := actual
		if out.IsNull() {
			if planned.Known().IsNull() {
				return actual
			}
			out = tree.ObjectValue(nil)
		}
		units := r.unitsOf(typ, path)
		for _, name := range typ.Names() {
			if units[name] {
				continue // changes with its number only
			}
			got := r.patch(typ.Attrs[name].Type, path.Attr(name), prior.Attr(name), planned.Attr(name), actual.Attr(name), owned.Attr(name))
			if !tree.Equal(got, out.Attr(name)) {
				out = out.With(name, got)
			}
		}
		out = r.patchUnits(typ, path, prior, planned, actual, out)
		if planned.IsNull() && out.Len() == 0 {
			return tree.NullValue
		}
		return out
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		return r.patchList(typ.Elem, path, prior, planned, actual, owned)
	}
	return planned
}

// patchUnits gives every changed number the unit that the plan gives it: none
// means the standard unit, whatever stands on the host. A number that is only
// told in another unit stays as the host has it.
func (r *Rules) patchUnits(typ *tree.Type, path tree.Path, prior, planned, actual, out tree.Value) tree.Value {
	for name := range typ.Attrs {
		unit, standard := r.unitOf(typ, path.Attr(name))
		amount, word := planned.Attr(name), planned.Attr(unit)
		switch was := r.scale(prior, name, unit, standard); {
		case unit == "":
		case amount.IsUnknown() || word.IsUnknown() || tree.Equal(prior.Attr(name), amount) && tree.Equal(prior.Attr(unit), word):
		case !was.IsNull() && tree.Equal(was, r.scale(planned, name, unit, standard)):
			out = out.With(name, actual.Attr(name)).With(unit, actual.Attr(unit))
		case !amount.IsNull():
			out = out.With(name, amount).With(unit, word)
		}
		if unit != "" && out.Attr(name).IsNull() {
			out = out.With(unit, tree.NullValue)
		}
	}
	return out
}

// patchList changes the elements that the plan changes, drops those it
// removes, and appends those it adds. What state does not know stays.
func (r *Rules) patchList(elem *tree.Type, path tree.Path, prior, planned, actual, owned tree.Value) tree.Value {
	pattern := path.Pattern()
	onHost := r.match(pattern, prior, actual)
	wasAt := r.match(pattern, planned, prior)
	ownedAt := r.match(pattern, prior, owned)
	out := append([]tree.Value(nil), actual.Elems()...)
	kept := make([]bool, prior.Len())
	known := map[int]bool{}
	for _, k := range onHost {
		known[k] = true
	}
	// A planned element that state did not know may be one that the host has: a
	// foreign device that the configuration names by its identity.
	adopted := r.matchKeys(pattern, planned, actual)
	var added []tree.Value
	for i, e := range planned.Elems() {
		was, own, at := tree.NullValue, tree.NullValue, -1
		if j := wasAt[i]; j >= 0 {
			kept[j], was, own, at = true, prior.Elems()[j], pick(owned, ownedAt[j]), onHost[j]
		} else if k := adopted[i]; k >= 0 && !known[k] {
			at = k
		}
		if at < 0 {
			added = append(added, r.patch(elem, path.Elem(i, ""), tree.NullValue, e.Known(), tree.NullValue, tree.NullValue))
			continue
		}
		out[at] = r.patch(elem, path.Elem(i, ""), was, e, out[at], own)
	}
	drop := map[int]bool{}
	for j := range kept {
		if !kept[j] && ownedAt[j] >= 0 && onHost[j] >= 0 {
			drop[onHost[j]] = true
		}
	}
	var rest []tree.Value
	for k, e := range out {
		if !drop[k] {
			rest = append(rest, e)
		}
	}
	if rest = append(rest, added...); len(rest) == 0 {
		return tree.NullValue
	}
	return tree.ListValue(rest)
}
