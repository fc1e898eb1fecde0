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
	return r.project(typ, nil, shape, actual)
}

func (r *Rules) project(typ *tree.Type, path tree.Path, shape, actual tree.Value) tree.Value {
	pattern := path.Pattern()
	switch {
	case shape.IsNull(), len(path) > 0 && r.Setting(pattern):
		return shape
	case shape.IsUnknown():
		return actual
	case typ.Kind == tree.Object:
		return r.projectObject(typ, path, shape, actual)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		elems := []tree.Value{}
		at := r.match(pattern, shape, actual)
		for i, e := range shape.Elems() {
			if at[i] >= 0 {
				elems = append(elems, r.project(typ.Elem, path.Elem(i, ""), e, actual.Elems()[at[i]]))
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
	return actual
}

func (r *Rules) projectObject(typ *tree.Type, path tree.Path, shape, actual tree.Value) tree.Value {
	attrs := map[string]tree.Value{}
	for _, name := range shape.Names() {
		a := typ.Attrs[name]
		if a == nil {
			continue
		}
		attrs[name] = r.project(a.Type, path.Attr(name), shape.Attr(name), actual.Attr(name))
	}
	for _, name := range shape.Names() {
		r.projectQuantity(typ, path, name, shape, actual, attrs)
	}
	if allNull(attrs) && shape.Len() > 0 && len(path) > 0 && actual.IsNull() {
		return tree.NullValue
	}
	return tree.ObjectValue(attrs)
}

// projectQuantity keeps a number and its unit together: both as state spells
// them if they mean the same, else both as the host does.
func (r *Rules) projectQuantity(typ *tree.Type, path tree.Path, name string, shape, actual tree.Value, attrs map[string]tree.Value) {
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
