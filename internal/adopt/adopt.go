// Package adopt says what a person would write of an object that lives.
//
// The definition of a machine is long: libvirt writes down what it chose by
// itself (addresses, controllers, a keyboard, the unit KiB), and every standard
// that nobody asked for. After an import, omission changes nothing, so that a
// configuration may leave all of it out. What is to be left out is decided here,
// by tables of rules with their reasons: what libvirt makes again by itself when
// it is given the rest. The corpus of package spec is their test: definitions
// written by hand, and what libvirt made of each.
//
// The package is pure. It reads trees as the provider's own codec gives them and
// returns trees; package main of tools/adopt writes them down.
package adopt

import (
	"regexp"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Essence leaves out of a definition what a person would not write. typ is the
// type of its resource.
type Essence struct {
	root  *spec.Root
	typ   *tree.Type
	rules []rule
}

// Domain is that of domains. emulator is what the host takes by itself.
func Domain(typ *tree.Type, emulator Emulator) *Essence {
	return &Essence{spec.Domain(), typ, domainRules(emulator)}
}

// Network is that of networks.
func Network(typ *tree.Type) *Essence { return &Essence{spec.Network(), typ, networkRules} }

// Pool is that of pools.
func Pool(typ *tree.Type) *Essence { return &Essence{spec.Pool(), typ, poolRules} }

// Volume is that of volumes.
func Volume(typ *tree.Type) *Essence { return &Essence{spec.Volume(), typ, volumeRules} }

// A rule leaves values out. The pattern is a suffix, whole names from a dot on;
// one that begins with "^" is the whole of it.
type rule struct {
	pattern string
	drops   func(place) bool
	reason  string
}

// place is where a value stands.
type place struct {
	value   tree.Value
	beside  tree.Value // the object that has it, or of a list element the list's
	index   int        // of the list element that it is or that it is directly in
	root    tree.Value // the whole definition
	pattern string
}

func always(place) bool { return true }

// is says whether a value is one of these texts.
func is(texts ...string) func(place) bool {
	return func(p place) bool {
		for _, text := range texts {
			if p.value.Kind() == tree.String && p.value.Str() == text {
				return true
			}
		}
		return false
	}
}

func isNumber(numbers ...int64) func(place) bool {
	return func(p place) bool {
		n, whole := p.value.Int()
		for _, number := range numbers {
			if whole && n == number {
				return true
			}
		}
		return false
	}
}

func isEmpty(p place) bool { return p.value.Len() == 0 }

// only says whether an object has no other attributes than these.
func only(v tree.Value, names ...string) bool {
	for _, name := range v.Names() {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return false
		}
	}
	return true
}

// Of returns what is left of a definition, with sizes in the largest unit in
// which they are whole.
func (e *Essence) Of(definition tree.Value) tree.Value {
	left := e.object(e.typ, nil, definition, place{root: definition})
	return e.inLargestUnits(e.typ, nil, left)
}

// object leaves out of an object.
func (e *Essence) object(typ *tree.Type, path tree.Path, v tree.Value, at place) tree.Value {
	out := map[string]tree.Value{}
	for _, name := range v.Names() {
		a := typ.Attrs[name]
		if a == nil || !a.Optional && !a.Required {
			continue // it cannot be written
		}
		here := path.Attr(name)
		p := place{value: v.Attr(name), beside: v, index: at.index, root: at.root, pattern: here.Pattern()}
		if e.drops(p) {
			continue
		}
		left := e.below(a.Type, here, p)
		if emptied(p.value, left) {
			p.value = left
			if !e.speaks(p.pattern) || e.drops(p) {
				continue
			}
		}
		out[name] = left
	}
	return tree.ObjectValue(out)
}

// below leaves out of what is in a value.
func (e *Essence) below(typ *tree.Type, path tree.Path, p place) tree.Value {
	switch {
	case typ.Kind == tree.Object:
		return e.object(typ, path, p.value, p)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		elems := []tree.Value{}
		for i, elem := range p.value.Elems() {
			here := path.Elem(i, "")
			in := place{value: elem, beside: p.beside, index: i, root: p.root, pattern: here.Pattern()}
			if e.drops(in) {
				continue
			}
			elems = append(elems, e.object(typ.Elem, here, elem, in))
		}
		return tree.ListValue(elems)
	}
	return p.value
}

// emptied says whether there was something in a value, and nothing is left.
func emptied(was, left tree.Value) bool {
	return (was.Kind() == tree.Object || was.Kind() == tree.List) && was.Len() > 0 && left.Len() == 0
}

// speaks says whether an object means something though nothing is in it: which
// of several alternatives it is.
func (e *Essence) speaks(pattern string) bool {
	return len(e.root.Alternatives(pattern)) > 0
}

func (e *Essence) drops(p place) bool {
	f := e.root.Fields[p.pattern]
	if f != nil && f.Lost != "" {
		return true // no configuration can hold it
	}
	switch p.value.Kind() {
	case tree.Bool, tree.Number, tree.String:
		if f != nil && !alwaysWritten[p.pattern] && e.root.Equal(p.pattern, p.value, tree.NullValue) {
			return true // it means the same as nothing
		}
	default:
	}
	for i := range e.rules {
		if r := &e.rules[i]; r.covers(p.pattern) && r.drops(p) {
			return true
		}
	}
	return false
}

// alwaysWritten are values that may mean the same as nothing and say more where
// they are written.
var alwaysWritten = map[string]bool{"name": true, "type": true, "pool": true}

func (r *rule) covers(pattern string) bool {
	if whole, anchored := strings.CutPrefix(r.pattern, "^"); anchored {
		return pattern == whole
	}
	return pattern == r.pattern || strings.HasSuffix(pattern, "."+r.pattern)
}

// inLargestUnits writes sizes as people do: 2 GiB, and not 2097152 KiB.
func (e *Essence) inLargestUnits(typ *tree.Type, path tree.Path, v tree.Value) tree.Value {
	switch v.Kind() {
	case tree.Object:
		out := v
		for _, name := range v.Names() {
			if a := typ.Attrs[name]; a != nil {
				out = out.With(name, e.inLargestUnits(a.Type, path.Attr(name), v.Attr(name)))
			}
		}
		for _, name := range v.Names() {
			unit, standard := e.root.Unit(path.Attr(name).Pattern())
			if unit != "" && typ.Attrs[unit] != nil && v.Attr(name).Kind() == tree.Number {
				amount, in := largest(v.Attr(name), v.Attr(unit), standard)
				out = out.With(name, amount).With(unit, in)
			}
		}
		return out
	case tree.List:
		if typ.Elem.Kind != tree.Object {
			return v
		}
		elems := make([]tree.Value, v.Len())
		for i, elem := range v.Elems() {
			elems[i] = e.inLargestUnits(typ.Elem, path.Elem(i, ""), elem)
		}
		return tree.ListValue(elems)
	default:
		return v
	}
}

// units are those that people write, the largest first.
var units = []string{"TiB", "GiB", "MiB", "KiB"}

// largest returns an amount in the largest unit in which it is whole. Without a
// unit it is in the standard one.
func largest(amount, unit tree.Value, standard string) (tree.Value, tree.Value) {
	bytes := change.Bytes(amount, unit, standard)
	if unit.Str() == standard {
		unit = tree.NullValue
	}
	if n, whole := bytes.Int(); !whole || n == 0 {
		return amount, unit
	}
	for _, u := range units {
		if in := change.InUnit(bytes, tree.StringValue(u), standard); !in.IsNull() {
			if u == standard {
				return in, tree.NullValue
			}
			return in, tree.StringValue(u)
		}
	}
	return amount, unit
}

// matches says whether a text is of the form.
func matches(form string) func(place) bool {
	re := regexp.MustCompile(form)
	return func(p place) bool { return re.MatchString(p.value.Str()) }
}
