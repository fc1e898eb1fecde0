package change

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Project returns the state of an object: from the definition on the host, the
// paths that shape has. Shape is the prior state at a read, the planned state
// after an apply. A value that means the same keeps the spelling of shape; an
// unknown one, or one that differs, is the host's; what the host has no more
// is null, and a list element that is gone leaves its list.
func (r *Rules) Project(typ *tree.Type, shape, actual tree.Value) tree.Value {
	return (&projector{Rules: r}).node(typ, nil, tree.NullValue, shape, actual)
}

// Settle is Project after an apply: what the plan did not change is as the
// plan says, even if the host moved in the meantime. The core insists on it,
// and the next refresh tells.
func (r *Rules) Settle(typ *tree.Type, prior, planned, actual tree.Value) tree.Value {
	return (&projector{Rules: r, settle: true}).node(typ, nil, prior, planned, actual)
}

type projector struct {
	*Rules
	settle bool
}

func (r *projector) node(typ *tree.Type, path tree.Path, prior, shape, actual tree.Value) tree.Value {
	pattern := path.Pattern()
	switch {
	case shape.IsNull(), len(path) > 0 && r.Setting(pattern):
		return shape
	case r.settle && !prior.IsNull() && tree.Equal(prior, shape) && !shape.HasUnknown():
		return shape
	case shape.IsUnknown():
		return actual
	case typ.Kind == tree.Object:
		return r.object(typ, path, prior, shape, actual)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		elems := []tree.Value{}
		at, was := r.match(pattern, shape, actual), r.match(pattern, shape, prior)
		for i, e := range shape.Elems() {
			if at[i] >= 0 {
				elems = append(elems, r.node(typ.Elem, path.Elem(i, ""), pick(prior, was[i]), e, actual.Elems()[at[i]]))
			}
		}
		if len(elems) == 0 && shape.Len() > 0 {
			return tree.NullValue
		}
		return tree.ListValue(elems)
	case shape.HasUnknown():
		return actual
	case r.equal(pattern, shape, actual):
		return shape
	}
	if r.Covers != nil {
		if covers, applies := r.Covers(pattern, shape, actual, tree.NullValue); applies && covers {
			return shape
		}
	}
	return actual
}

func (r *projector) object(typ *tree.Type, path tree.Path, prior, shape, actual tree.Value) tree.Value {
	attrs := map[string]tree.Value{}
	for _, name := range shape.Names() {
		a := typ.Attrs[name]
		if a == nil {
			continue
		}
		attrs[name] = r.node(a.Type, path.Attr(name), prior.Attr(name), shape.Attr(name), actual.Attr(name))
	}
	for unit := range r.unitsOf(typ, path) {
		if shape.Attr(unit).IsKnown() {
			attrs[unit] = shape.Attr(unit) // a unit of nothing stays as it is spelt
		}
	}
	for _, name := range shape.Names() {
		if !r.settle || !tree.Equal(prior.Attr(name), shape.Attr(name)) {
			r.quantity(typ, path, name, shape, actual, attrs)
		}
	}
	if allNull(attrs) && shape.Len() > 0 && len(path) > 0 && actual.IsNull() {
		return tree.NullValue
	}
	return tree.ObjectValue(attrs)
}

// quantity keeps a number and its unit together: both as state spells
// them if they mean the same, else both as the host does.
func (r *projector) quantity(typ *tree.Type, path tree.Path, name string, shape, actual tree.Value, attrs map[string]tree.Value) {
	unit, standard := r.unitOf(typ, path.Attr(name))
	if unit == "" || !shape.Attr(name).IsKnown() {
		return
	}
	want := r.scale(shape, name, unit, standard)
	if !want.IsNull() && r.equal(path.Attr(name).Pattern(), want, r.scale(actual, name, unit, standard)) {
		attrs[name], attrs[unit] = shape.Attr(name), shape.Attr(unit)
		if attrs[unit].IsUnknown() {
			attrs[unit] = actual.Attr(unit)
		}
		return
	}
	attrs[name], attrs[unit] = actual.Attr(name), actual.Attr(unit)
}
