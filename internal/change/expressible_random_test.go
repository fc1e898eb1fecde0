package change

import (
	"fmt"
	"math/rand"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// choices decides what a random call is: a source of random numbers, or the
// input of a fuzz target.
type choices interface{ Intn(n int) int }

var _ choices = (*rand.Rand)(nil)

func chance(c choices, percent int) bool { return c.Intn(100) < percent }

func oneOf[T any](c choices, of ...T) T { return of[c.Intn(len(of))] }

// randomType makes an object type of two to five attributes.
func randomType(c choices, depth int) *tree.Type {
	var attrs []*tree.Attribute
	for i := range 2 + c.Intn(4) {
		a := &tree.Attribute{Name: fmt.Sprint("a", i), Optional: true, Computed: true, Type: randomAttrType(c, depth)}
		switch c.Intn(8) {
		case 0:
			a.Required, a.Optional, a.Computed = true, false, false
		case 1, 2:
			a.Computed = false
		case 3:
			a.Optional = false
		}
		attrs = append(attrs, a)
	}
	return tree.ObjectOf(attrs...)
}

func randomAttrType(c choices, depth int) *tree.Type {
	kinds := 8
	if depth == 0 {
		kinds = 5
	}
	switch c.Intn(kinds) {
	case 0:
		return tree.BoolType
	case 1:
		return tree.NumberType
	case 2:
		return tree.ListOf(tree.StringType)
	case 3:
		return oneOf(c, tree.StringType, tree.StringType, tree.ListOf(tree.ListOf(tree.NumberType)))
	case 4:
		return tree.StringType
	case 5:
		return randomType(c, depth-1)
	}
	return tree.ListOf(randomType(c, depth-1))
}

// randomCall makes a prior state, a configuration that is often close to it,
// and a plan made of both.
func randomCall(c choices, typ *tree.Type) planCall {
	g := &callMaker{choices: c, wild: oneOf(c, 0, 8, 30, 40)}
	call := planCall{typ: typ}
	if !chance(c, 12) {
		call.prior = g.value(typ, false)
	}
	if call.config = g.value(typ, true); chance(c, 70) {
		call.config = g.changed(typ, call.prior, true)
	}
	if call.config = g.written(typ, call.config); call.config.IsUnknown() {
		call.config = tree.ObjectValue(nil) // attributes are unknown, never a whole object
	}
	call.planned = g.object(typ, call.prior, call.config)
	switch c.Intn(200) {
	case 0:
		call.config = tree.NullValue
	case 1:
		call.planned = tree.NullValue
	case 2:
		call.config, call.planned = tree.NullValue, tree.NullValue
	}
	return call
}

type callMaker struct {
	choices
	wild int  // percent of the plan's nodes that no planner should plan so
	full bool // no element of a list is null
}

var randomScalars = map[tree.Kind][]tree.Value{
	tree.Bool:   {tree.BoolValue(false), tree.BoolValue(true)},
	tree.Number: {tree.IntValue(0), tree.IntValue(1), tree.UintValue(1 << 63), mustNumber("0.1"), mustNumber("2.5")},
	tree.String: {tree.StringValue(""), tree.StringValue("a"), tree.StringValue("b"), tree.StringValue("é"), tree.StringValue("MiB")},
}

func mustNumber(s string) tree.Value {
	v, err := tree.ParseNumber(s)
	if err != nil {
		panic(err)
	}
	return v
}

// value makes a value that is not null.
func (g *callMaker) value(typ *tree.Type, unknown bool) tree.Value {
	if unknown && chance(g, 8) {
		return tree.UnknownValue
	}
	switch typ.Kind {
	case tree.Object:
		v := tree.ObjectValue(nil)
		for _, name := range g.some(typ) {
			v = v.With(name, g.value(typ.Attrs[name].Type, unknown))
		}
		return v
	case tree.List:
		elems := make([]tree.Value, g.Intn(4))
		for i := range elems {
			elems[i] = g.elem(typ.Elem, unknown)
		}
		return tree.ListValue(elems)
	}
	return oneOf(g, randomScalars[typ.Kind]...)
}

func (g *callMaker) elem(typ *tree.Type, unknown bool) tree.Value {
	null := 5
	if typ.Kind == tree.Object {
		null = 1
	}
	if !g.full && chance(g, null) {
		return tree.NullValue
	}
	return g.value(typ, unknown)
}

// some chooses attributes: most of a small type, a few of a large one.
func (g *callMaker) some(typ *tree.Type) []string {
	names := typ.Names()
	if len(names) > 8 {
		few := make([]string, g.Intn(5))
		for i := range few {
			few[i] = oneOf(g, names...)
		}
		return few
	}
	return slices.DeleteFunc(names, func(string) bool { return chance(g, 25) })
}

// changed makes another value out of one: as people edit configurations.
func (g *callMaker) changed(typ *tree.Type, v tree.Value, unknown bool) tree.Value {
	switch {
	case chance(g, 8):
		return g.value(typ, unknown)
	case typ.Kind == tree.Object:
		names := append(v.Names(), g.some(typ)...)
		for _, name := range names {
			switch {
			case chance(g, 10):
				v = v.With(name, tree.NullValue)
			case chance(g, 35):
				v = v.With(name, g.changed(typ.Attrs[name].Type, v.Attr(name), unknown))
			}
		}
		return v.With("", tree.NullValue) // an object, if it was null
	case v.IsNull():
		return g.value(typ, unknown)
	case typ.Kind == tree.List:
		return tree.ListValue(g.reordered(typ.Elem, v.Elems(), func(e tree.Value) tree.Value {
			if chance(g, 60) || e.IsNull() {
				return e
			}
			return g.changed(typ.Elem, e, unknown)
		}))
	case chance(g, 50):
		return v
	}
	return g.value(typ, unknown)
}

// reordered copies a list, each element through f, now and then longer,
// shorter or in another order.
func (g *callMaker) reordered(typ *tree.Type, elems []tree.Value, f func(tree.Value) tree.Value) []tree.Value {
	out := make([]tree.Value, len(elems))
	for i, e := range elems {
		out[i] = f(e)
	}
	switch at := g.Intn(len(out) + 1); g.Intn(8) {
	case 0:
		return slices.Insert(out, at, g.elem(typ, false))
	case 1:
		if at < len(out) {
			return slices.Delete(out, at, at+1)
		}
	case 2:
		if at < len(out) {
			out[0], out[at] = out[at], out[0]
		}
	}
	return out
}

// written takes out of a configuration, mostly, what only the provider sets.
func (g *callMaker) written(typ *tree.Type, v tree.Value) tree.Value {
	switch {
	case v.Kind() == tree.Object:
		for _, name := range v.Names() {
			a := typ.Attrs[name]
			if a.Computed && !a.Optional && !chance(g, 10) {
				v = v.With(name, tree.NullValue)
				continue
			}
			v = v.With(name, g.written(a.Type, v.Attr(name)))
		}
	case v.Kind() == tree.List && typ.Elem.Kind == tree.Object:
		elems := make([]tree.Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = g.written(typ.Elem, e)
		}
		return tree.ListValue(elems)
	}
	return v
}

// object plans an object attribute by attribute.
func (g *callMaker) object(typ *tree.Type, prior, config tree.Value) tree.Value {
	if !config.IsKnown() {
		return config
	}
	v := config
	names := append(prior.Names(), config.Names()...)
	if chance(g, 20) {
		names = append(names, g.some(typ)...)
	}
	for _, name := range names {
		v = v.With(name, g.attribute(typ.Attrs[name], prior.Attr(name), config.Attr(name)))
	}
	return v
}

func (g *callMaker) attribute(a *tree.Attribute, prior, config tree.Value) tree.Value {
	nested := a.Type.Kind == tree.Object || a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object
	switch {
	case chance(g, g.wild):
		return oneOf(g, tree.NullValue, tree.UnknownValue, prior, emptyOf(a.Type), g.value(a.Type, true), g.value(a.Type, true))
	case config.IsNull() && !a.Computed:
		return config
	case config.IsNull():
		return oneOf(g, prior, prior, prior, tree.NullValue, tree.UnknownValue, g.value(a.Type, true))
	case !prior.IsNull() && chance(g, 15):
		return prior
	case !nested || config.IsUnknown() || chance(g, 15):
		return config
	case a.Type.Kind == tree.Object:
		return g.object(a.Type, prior, config)
	}
	i := -1
	return tree.ListValue(g.plannedElems(a.Type.Elem, config.Elems(), func(e tree.Value) tree.Value {
		// An element is held with what it was at its own place or, as
		// identities have it, at another.
		if i++; prior.Len() > 0 && chance(g, 10) {
			return g.object(a.Type.Elem, oneOf(g, prior.Elems()...), e)
		}
		return g.object(a.Type.Elem, pick(prior, i), e)
	}))
}

func (g *callMaker) plannedElems(typ *tree.Type, elems []tree.Value, f func(tree.Value) tree.Value) []tree.Value {
	if chance(g, g.wild) {
		return g.reordered(typ, elems, f)
	}
	out := make([]tree.Value, len(elems))
	for i, e := range elems {
		out[i] = f(e)
	}
	return out
}

func emptyOf(typ *tree.Type) tree.Value {
	switch typ.Kind {
	case tree.Object:
		return tree.ObjectValue(nil)
	case tree.List:
		return tree.ListValue(nil)
	}
	return tree.NullValue
}
