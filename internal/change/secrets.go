package change

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// Without returns the tree without the scalars of the selected paths. Records
// in private state are kept this way: no secret is ever in them.
func Without(v tree.Value, selected func(pattern string) bool) tree.Value {
	return replace(v, "", selected, tree.NullValue)
}

// Masked returns the tree with a mark in place of each scalar of the selected
// paths: that there was one is still to be seen.
func Masked(v tree.Value, selected func(pattern string) bool) tree.Value {
	return replace(v, "", selected, tree.StringValue("(sensitive)"))
}

func replace(v tree.Value, pattern string, selected func(string) bool, by tree.Value) tree.Value {
	switch v.Kind() {
	case tree.Object:
		attrs := map[string]tree.Value{}
		for _, name := range v.Names() {
			attrs[name] = replace(v.Attr(name), join(pattern, name), selected, by)
		}
		return tree.ObjectValue(attrs)
	case tree.List:
		elems := make([]tree.Value, 0, v.Len())
		for _, e := range v.Elems() {
			if got := replace(e, pattern+"[]", selected, by); !got.IsNull() {
				elems = append(elems, got)
			}
		}
		return tree.ListValue(elems)
	}
	if selected(pattern) && !v.IsNull() {
		return by
	}
	return v
}

func join(pattern, name string) string {
	if pattern == "" {
		return name
	}
	return pattern + "." + name
}

// Overlay returns into with the scalars of the selected paths as from has
// them. Secrets are not in records; state has those that the host had when it
// was read, so that they are compared all the same.
func (r *Rules) Overlay(from, into tree.Value, selected func(pattern string) bool) tree.Value {
	return r.overlay(from, into, "", selected)
}

func (r *Rules) overlay(from, into tree.Value, pattern string, selected func(string) bool) tree.Value {
	switch {
	case from.Kind() == tree.Object && into.Kind() == tree.Object:
		for _, name := range from.Names() {
			got := r.overlay(from.Attr(name), into.Attr(name), join(pattern, name), selected)
			if !tree.Equal(got, into.Attr(name)) {
				into = into.With(name, got)
			}
		}
		return into
	case from.Kind() == tree.List && into.Kind() == tree.List:
		at := r.match(pattern, from, into)
		elems := append([]tree.Value(nil), into.Elems()...)
		for i, e := range from.Elems() {
			if at[i] >= 0 {
				elems[at[i]] = r.overlay(e, elems[at[i]], pattern+"[]", selected)
			}
		}
		return tree.ListValue(elems)
	case from.IsKnown() && from.Kind() != tree.List && from.Kind() != tree.Object && selected(pattern):
		return from
	}
	return into
}
