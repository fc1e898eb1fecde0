package change

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// Differences lists the leaves in which two whole definitions mean different
// things; a list element that only one of them has counts as one difference.
func (r *Rules) Differences(typ *tree.Type, a, b tree.Value) []tree.Path {
	d := &differ{Rules: r}
	d.object(typ, nil, a, b)
	return d.paths
}

// Unmet lists the leaves that a plan changes and knows, and that the
// definition does not have: what libvirt accepted and did not do.
func (r *Rules) Unmet(typ *tree.Type, prior, planned, actual tree.Value) []tree.Path {
	d := &differ{Rules: r, known: true}
	d.object(typ, nil, planned, Order{Rules: r, Type: typ, Prior: prior, Planned: planned}.Settle(tree.NullValue, actual))
	return d.paths
}

type differ struct {
	*Rules
	known bool // only what the first tree knows
	paths []tree.Path
}

func (d *differ) node(typ *tree.Type, path tree.Path, a, b tree.Value) {
	pattern := path.Pattern()
	switch {
	case d.Setting(pattern), d.Measured != nil && d.Measured(pattern), d.known && !a.IsKnown(), a.IsNull() && b.IsNull():
	case typ.Kind == tree.Object:
		before := len(d.paths)
		d.object(typ, path, a, b)
		if a.IsNull() != b.IsNull() && len(d.paths) == before && d.isKind(pattern) {
			d.paths = append(d.paths, path)
		}
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		d.list(typ.Elem, path, a, b)
	case d.known && a.HasUnknown():
	case !d.equal(pattern, a, b):
		d.paths = append(d.paths, path)
	}
}

func (d *differ) object(typ *tree.Type, path tree.Path, a, b tree.Value) {
	quantities, rest := d.quantities(typ, path)
	for _, q := range quantities {
		x, y := q.of(a), q.of(b)
		switch {
		case a.Attr(q.name).IsUnknown(), a.Attr(q.unit).IsUnknown(), d.known && x.IsNull():
		case !d.equal(path.Attr(q.name).Pattern(), x, y):
			d.paths = append(d.paths, path.Attr(q.name))
		}
	}
	for _, name := range rest {
		d.node(typ.Attrs[name].Type, path.Attr(name), a.Attr(name), b.Attr(name))
	}
}

func (d *differ) list(elem *tree.Type, path tree.Path, a, b tree.Value) {
	match := d.matchWhole
	if d.known {
		match = d.match
	}
	at := match(path.Pattern(), a, b)
	found := make([]bool, b.Len())
	for i, e := range a.Elems() {
		here := path.Elem(i, d.label(path.Pattern()+"[]", e))
		if at[i] < 0 {
			d.paths = append(d.paths, here)
			continue
		}
		found[at[i]] = true
		d.object(elem, here, e, b.Elems()[at[i]])
	}
	for j, e := range b.Elems() {
		if !found[j] {
			d.paths = append(d.paths, path.Elem(j, d.label(path.Pattern()+"[]", e)))
		}
	}
}
