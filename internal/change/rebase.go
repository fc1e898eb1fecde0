package change

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// Rebase returns the baseline after an apply: the definition as it is now,
// except where it differed from the old baseline before and still does. Drift
// that was held, or that nobody decided about, stays drift; drift that the
// configuration agrees with is none any more.
func (r *Rules) Rebase(typ *tree.Type, desired, baseline, before, after tree.Value) tree.Value {
	if baseline.IsNull() {
		return after
	}
	return r.rebase(typ, nil, history{desired, baseline, before, after})
}

// history holds the values of one node: what the configuration wants, the
// baseline of the last apply, and the definition before and after this one.
type history struct{ desired, baseline, before, after tree.Value }

func (h history) attr(name string) history {
	return history{h.desired.Attr(name), h.baseline.Attr(name), h.before.Attr(name), h.after.Attr(name)}
}

func (r *Rules) rebase(typ *tree.Type, path tree.Path, h history) tree.Value {
	pattern := path.Pattern()
	switch {
	case typ.Kind == tree.Object:
		attrs := map[string]tree.Value{}
		for _, name := range typ.Names() {
			attrs[name] = r.rebase(typ.Attrs[name].Type, path.Attr(name), h.attr(name))
		}
		for _, name := range typ.Names() {
			unit, standard := r.unitOf(typ, path.Attr(name))
			if unit == "" || h.desired.Attr(name).IsNull() {
				continue
			}
			want, is := r.scale(h.desired, name, unit, standard), r.scale(h.after, name, unit, standard)
			if !want.IsNull() && r.equal(path.Attr(name).Pattern(), want, is) {
				attrs[name], attrs[unit] = h.after.Attr(name), h.after.Attr(unit)
			}
		}
		if h.after.IsNull() && allNull(attrs) {
			return tree.NullValue
		}
		return tree.ObjectValue(attrs)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		return r.rebaseList(typ.Elem, path, h)
	case !h.desired.IsNull() && r.equal(pattern, h.desired, h.after):
		return h.after
	case !r.equal(pattern, h.before, h.baseline) && r.equal(pattern, h.after, h.before):
		return h.baseline
	}
	return h.after
}

func (r *Rules) rebaseList(elem *tree.Type, path tree.Path, h history) tree.Value {
	pattern := path.Pattern()
	inBefore, inBaseline := r.match(pattern, h.after, h.before), r.match(pattern, h.after, h.baseline)
	inDesired, wasBefore := r.match(pattern, h.after, h.desired), r.match(pattern, h.baseline, h.before)
	wanted := r.match(pattern, h.baseline, h.desired)
	found := make([]bool, h.baseline.Len())
	var out []tree.Value
	for k, e := range h.after.Elems() {
		old, want := pick(h.baseline, inBaseline[k]), pick(h.desired, inDesired[k])
		switch {
		case inBaseline[k] >= 0:
			found[inBaseline[k]] = true
			out = append(out, r.rebase(elem, path.Elem(k, ""), history{want, old, pick(h.before, inBefore[k]), e}))
		case inBefore[k] < 0, inDesired[k] >= 0:
			out = append(out, e) // the apply added it, or the configuration names it now
		}
	}
	for i, e := range h.baseline.Elems() {
		if !found[i] && wasBefore[i] < 0 && (h.desired.IsNull() || wanted[i] >= 0) {
			out = append(out, e) // it was missing before, and still is
		}
	}
	if len(out) == 0 {
		return tree.NullValue
	}
	return tree.ListValue(out)
}
