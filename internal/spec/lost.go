package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What a tree holds and a document cannot: values that libvirtxml has no XML
// for, and two values of which XML takes one. Neither may be lost in silence.

// findLost finds a value that would be lost on its way to the host or back.
func (r *Root) findLost(t tree.Value) (found *ValueError) {
	t.Walk(func(p tree.Path, v tree.Value) bool {
		f := r.Fields[p.Pattern()]
		if found == nil && f != nil && f.Lost != "" && v.Kind() != tree.Object && r.says(f, v) {
			found = &ValueError{p, "this cannot be passed on to libvirt, as " + f.Lost + "; leave it out, and write it into the definition by hand (virsh edit)"}
		}
		return found == nil
	})
	return found
}

// findTwo finds two values that are alternatives.
func (r *Root) findTwo(t tree.Value) (found *ValueError) {
	t.Walk(func(p tree.Path, v tree.Value) bool {
		f := r.Fields[p.Pattern()]
		if found != nil || f == nil || f.Alternatives == nil || !r.says(f, v) {
			return found == nil
		}
		last := len(p) - 1
		for _, name := range f.Alternatives {
			other := t.Get(p[:last]).Attr(name)
			if name > p[last].Attr && r.says(r.Fields[p[:last].Attr(name).Pattern()], other) {
				found = &ValueError{p[:last].Attr(name), fmt.Sprintf("libvirt takes one of %s and %s; remove one", p[last].Attr, name)}
			}
		}
		return found == nil
	})
	return found
}

// Alternatives names the attributes beside a field of which XML takes only one.
func (r *Root) Alternatives(pattern string) []string {
	if f := r.Fields[pattern]; f != nil {
		return f.Alternatives
	}
	return nil
}

// says whether a value stands in the XML: false for an element that is only
// there or not does not. An object without anything in it does.
func (r *Root) says(f *Field, v tree.Value) bool {
	return v.IsKnown() && (v.Kind() == tree.Object || !r.meansAbsent(f.Pattern, v))
}

// choose leaves out of wanted what a newcomer among alternatives takes the place
// of: a source that nobody named and the host has, when another one is asked
// for. The tree that was read has no two of them, and what nobody asked to
// change is in wanted as it was.
func (r *Root) choose(current, wanted tree.Value) tree.Value {
	out := wanted
	wanted.Walk(func(p tree.Path, v tree.Value) bool {
		f := r.Fields[p.Pattern()]
		if f == nil || f.Alternatives == nil || !r.says(f, v) {
			return true
		}
		last := len(p) - 1
		for _, name := range f.Alternatives {
			newcomer := p[:last].Attr(name)
			if r.says(r.Fields[newcomer.Pattern()], wanted.Get(newcomer)) && r.stood(current, p, v, name) {
				out = out.Set(p, tree.NullValue)
			}
		}
		return true
	})
	return out
}

// stood says whether an object of the tree has the value at this place of it, or
// more than that, and not the other attribute. Which element of a list it is
// does not matter: two that agree in this are changed alike.
func (r *Root) stood(current tree.Value, p tree.Path, v tree.Value, other string) (found bool) {
	last := len(p) - 1
	pattern, f := p[:last].Pattern(), r.Fields[p[:last].Attr(other).Pattern()]
	current.Walk(func(at tree.Path, node tree.Value) bool {
		if was := node.Attr(p[last].Attr); at.Pattern() == pattern && !was.IsNull() && covers(was, v) && !r.says(f, node.Attr(other)) {
			found = true
		}
		return !found
	})
	return found
}

// covers says whether an object has all that another one has.
func covers(all, part tree.Value) bool {
	if all.Kind() != tree.Object || part.Kind() != tree.Object {
		return tree.Equal(all, part)
	}
	for _, name := range part.Names() {
		if !covers(all.Attr(name), part.Attr(name)) {
			return false
		}
	}
	return true
}

// alternatives lists the Go fields of a struct of which XML takes one:
// libvirtxml writes and reads them by hand, by what the element says it is.
func alternatives(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("xml") == "-" && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			out = append(out, f)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// noteAlternatives tells the attributes of an object that are alternatives of
// each other.
func (c *compiler) noteAlternatives(t reflect.Type, pattern string) {
	names := slices.Clone(c.table.choices[pattern])
	for _, f := range alternatives(t) {
		if name := attributeName(f.Name); c.info[pattern+name] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		c.info[pattern+name].Alternatives = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	}
}

// kept holds the document that an edit made against the tree that it was made
// for: what it does not hold is named, and then nothing must be changed. What
// libvirtxml already loses of the tree as it was is not asked for.
func (r *Root) kept(current, wanted tree.Value, xml string) error {
	gone, err := r.missing(wanted, xml)
	if err != nil || gone == nil {
		return err
	}
	before, err := r.write(current)
	if err != nil {
		return err
	}
	lost, err := r.missing(current, before)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range gone {
		if !slices.ContainsFunc(lost, func(l tree.Path) bool { return l.Pattern() == p.Pattern() }) {
			names = append(names, p.String())
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("edit the XML of a %s: the definition cannot hold %s beside what else is asked for: another kind of source or device, or a value that it needs is missing", r.Name, strings.Join(names, ", "))
}

// missing lists the leaves of a tree that a document does not hold.
func (r *Root) missing(t tree.Value, xml string) (out []tree.Path, err error) {
	got, err := r.Decode(xml)
	if err != nil {
		return nil, err
	}
	t.Walk(func(p tree.Path, v tree.Value) bool {
		f := r.Fields[p.Pattern()]
		if v.Kind() == tree.Object || f == nil || v.Kind() == tree.List && v.Len() > 0 && v.Elems()[0].Kind() == tree.Object {
			return true
		}
		if is := got.Get(p); !tree.Equal(is, v) && !r.Equal(f.Pattern, is, v) && r.says(f, v) && r.amounts[f.Pattern] == "" {
			out = append(out, p)
		}
		return false
	})
	return out, nil
}
