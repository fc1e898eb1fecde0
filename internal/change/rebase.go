package change

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// Rebase returns the baseline after an apply: the definition as it is now,
// except where it differed from the old baseline before and still does. desired
// is the configuration with identities, null if the apply is not complete. Drift
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
		quantities, rest := r.quantities(typ, path)
		for _, name := range rest {
			attrs[name] = r.rebase(typ.Attrs[name].Type, path.Attr(name), h.attr(name))
		}
		for _, q := range quantities {
			from := h.after
			bytes := history{q.of(h.desired), q.of(h.baseline), q.of(h.before), q.of(h.after)}
			if r.undecided(path.Attr(q.name).Pattern(), bytes) {
				from = h.baseline
			}
			attrs[q.name], attrs[q.unit] = from.Attr(q.name), from.Attr(q.unit)
		}
		if allNull(attrs) && (h.after.IsNull() || h.after.Len() > 0 && h.baseline.IsNull()) {
			return tree.NullValue // all that is in it, if anything, is undecided
		}
		return tree.ObjectValue(attrs)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		return r.rebaseList(typ.Elem, path, h)
	case r.undecided(pattern, h):
		return h.baseline
	}
	return h.after
}

// undecided says whether a value was drift before an apply, and still is.
func (r *Rules) undecided(pattern string, h history) bool {
	if !h.desired.IsNull() && r.equal(pattern, h.desired, h.after) {
		return false
	}
	return !r.equal(pattern, h.before, h.baseline) && r.equal(pattern, h.after, h.before)
}

// rebaseList keeps the order of the old baseline, as the digest of held drift
// in an element without identity has its place there.
func (r *Rules) rebaseList(elem *tree.Type, path tree.Path, h history) tree.Value {
	pattern := path.Pattern()
	inAfter, inBefore := r.matchWhole(pattern, h.baseline, h.after), r.matchWhole(pattern, h.after, h.before)
	wasBefore, wanted := r.matchWhole(pattern, h.baseline, h.before), r.match(pattern, h.baseline, h.desired)
	inDesired := r.match(pattern, h.after, h.desired)
	agreed := make([]bool, h.after.Len())
	var out []tree.Value
	for i, e := range h.baseline.Elems() {
		switch k := inAfter[i]; {
		case k >= 0:
			agreed[k] = true
			out = append(out, r.rebase(elem, path.Elem(k, ""), history{pick(h.desired, inDesired[k]), e, pick(h.before, inBefore[k]), h.after.Elems()[k]}))
		case wasBefore[i] < 0 && (h.desired.IsNull() || wanted[i] >= 0):
			out = append(out, e) // it was missing before, and still is
		}
	}
	for k, e := range h.after.Elems() {
		if !agreed[k] && (inBefore[k] < 0 || inDesired[k] >= 0) {
			out = append(out, e) // the apply added it, or the configuration names it now
		}
	}
	return listOf(out)
}
