package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Project returns the state of an object: from the definition on the host, the
// paths that shape has. Shape is the prior state at a read, the planned state
// after an apply. A value that means the same keeps the spelling of shape; an
// unknown one, or one that differs, is the host's; what the host has no more
// is null, and a list element that is gone leaves its list.
func (r *Rules) Project(typ *tree.Type, shape, actual tree.Value) tree.Value {
	return (&projector{}).node(nil, view{Order: Order{Rules: r, Type: typ, Planned: shape}, actual: actual})
}

// Shape returns the shape of a read: what state holds, and unknown what the
// configuration of the last apply named and state has lost. A value that went
// from the host and came back is seen again this way. Elements of lists that
// state lost stay lost; the plan finds them.
func (r *Rules) Shape(typ *tree.Type, state, owned tree.Value) tree.Value {
	return r.shape(typ, nil, state, owned)
}

func (r *Rules) shape(typ *tree.Type, path tree.Path, state, owned tree.Value) tree.Value {
	switch {
	case owned.IsNull() || len(path) > 0 && r.Setting(path.Pattern()):
	case typ.Kind == tree.Object && owned.Kind() == tree.Object:
		for _, name := range owned.Names() {
			if a := typ.Attrs[name]; a != nil {
				if got := r.shape(a.Type, path.Attr(name), state.Attr(name), owned.Attr(name)); !got.IsNull() {
					state = state.With(name, got)
				}
			}
		}
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		elems := slices.Clone(state.Elems())
		for i, j := range r.match(path.Pattern(), state, owned) {
			if j >= 0 {
				elems[i] = r.shape(typ.Elem, path.Elem(i, ""), elems[i], owned.Elems()[j])
			}
		}
		if len(elems) > 0 {
			return tree.ListValue(elems)
		}
	case state.IsNull():
		return tree.UnknownValue
	}
	return state
}

type projector struct{ settle bool }

// view holds the values of one node: those of the order, of which Planned is
// the shape, and the definition before and now.
type view struct {
	Order
	before, actual tree.Value
}

func (v view) attr(name string) view {
	return view{v.Order.attr(name), v.before.Attr(name), v.actual.Attr(name)}
}

func (r *projector) node(path tree.Path, v view) tree.Value {
	pattern, shape := path.Pattern(), v.Planned
	switch {
	case shape.IsNull(), len(path) > 0 && v.Setting(pattern):
		return shape
	case r.settle && !v.Prior.IsNull() && tree.Equal(v.Prior, shape) && !shape.HasUnknown():
		return shape
	case shape.IsUnknown():
		return v.actual
	case v.Type.Kind == tree.Object:
		return r.object(path, v)
	case v.Type.Kind == tree.List && v.Type.Elem.Kind == tree.Object:
		return r.list(path, v)
	case shape.HasUnknown():
		return v.actual
	case v.equal(pattern, shape, v.actual), v.covers(pattern, shape, v.actual, tree.NullValue):
		return shape
	}
	return v.actual
}

func (r *projector) object(path tree.Path, v view) tree.Value {
	attrs := map[string]tree.Value{}
	for _, name := range v.Planned.Names() {
		if v.Type.Attrs[name] != nil {
			attrs[name] = r.node(path.Attr(name), v.attr(name))
			if !r.settle && isEmpty(attrs[name]) && v.replaced(path.Attr(name), v.actual) {
				attrs[name] = tree.NullValue
			}
		}
	}
	quantities, _ := v.quantities(v.Type, path)
	for _, q := range quantities {
		if !r.settle || !q.sameIn(v.Prior, v.Planned) {
			r.quantity(q, path, v, attrs)
		}
	}
	if allNull(attrs) && v.Planned.Len() > 0 && len(path) > 0 && v.actual.IsNull() {
		return tree.NullValue
	}
	return tree.ObjectValue(attrs)
}

// list finds the planned elements in the definition by way of what it was
// asked to be: one that the plan added is none that was there before, however
// much it is like it.
func (r *projector) list(path tree.Path, v view) tree.Value {
	pattern := path.Pattern()
	p := v.pairs(pattern)
	to := v.match(pattern, v.Planned, v.actual)
	if r.settle {
		asked, at := v.patchList(path, v.before)
		there := v.matchWhole(pattern, tree.ListValue(asked), v.actual)
		for i, k := range at {
			to[i] = there[k]
		}
	}
	wasAt := v.matchWhole(pattern, v.actual, v.before)
	elems := []tree.Value{}
	for i := range v.Planned.Elems() {
		if j := to[i]; j >= 0 {
			elems = append(elems, r.node(path.Elem(i, ""), view{v.elem(i, p), pick(v.before, wasAt[j]), v.actual.Elems()[j]}))
		}
	}
	if len(elems) == 0 && v.Planned.Len() > 0 {
		return tree.NullValue
	}
	return tree.ListValue(elems)
}

// quantity keeps a number and its unit together: both as state spells
// them if they mean the same, else both as the host does.
func (r *projector) quantity(q quantity, path tree.Path, v view, attrs map[string]tree.Value) {
	amount, unit := v.Planned.Attr(q.name), v.Planned.Attr(q.unit)
	switch want := q.of(v.Planned); {
	case amount.IsNull():
		attrs[q.unit] = unit
	case amount.IsUnknown() && !unit.IsUnknown():
		// libvirt chose the amount; the unit is the plan's, also where that is none.
		attrs[q.unit] = unit
		if told := inUnit(q.of(v.actual), unit, q.standard); !told.IsNull() {
			attrs[q.name] = told
		}
	case !want.IsNull() && !amount.IsUnknown() && v.equal(path.Attr(q.name).Pattern(), want, q.of(v.actual)):
		attrs[q.name], attrs[q.unit] = amount, unit
		if unit.IsUnknown() {
			attrs[q.unit] = v.actual.Attr(q.unit)
		}
	default:
		attrs[q.name], attrs[q.unit] = v.actual.Attr(q.name), v.actual.Attr(q.unit)
	}
}
