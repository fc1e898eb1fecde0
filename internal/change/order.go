package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Order is a plan that is carried out: what it was made from, and what it
// planned. Which element of a list is which was decided when it was made, and
// is decided in the same way here: what a plan says of one device must not
// happen to another.
type Order struct {
	*Rules
	Type    *tree.Type
	Config  tree.Value
	Prior   tree.Value // null for a creation
	Planned tree.Value
	Owned   tree.Value // the configuration of the apply before, as Identify returned it
}

func (o Order) attr(name string) Order {
	o.Type = o.Type.Attrs[name].Type
	o.Config, o.Prior, o.Planned, o.Owned = o.Config.Attr(name), o.Prior.Attr(name), o.Planned.Attr(name), o.Owned.Attr(name)
	return o
}

// pairs says where the elements of one list are in the others.
type pairs struct {
	config, prior, owned []int  // for each planned element: its place there, or -1
	ours                 []bool // of prior: the configuration of the apply before named it
}

// pairs of a planned list. It is the prior one, or what is left of it where
// the configuration has none, or else in the order of the configuration.
func (o Order) pairs(pattern string) pairs {
	held, wanted := tree.Equal(o.Planned, o.Prior), o.Config
	if wanted.IsNull() || wanted.Len() != o.Planned.Len() && !held {
		wanted = o.Planned // nobody but the plan says what is wanted
	}
	inOwned := o.match(pattern, wanted, o.Owned)
	inPrior, ours := o.inPrior(o.matcher(pattern, wanted, o.Prior), inOwned, o.Owned)
	p := pairs{places(o.Planned.Len()), inPrior, inOwned, ours}
	switch {
	case held:
		p.config, p.prior, p.owned = nowhere(o.Planned.Len()), p.config, nowhere(o.Planned.Len())
		for i, j := range inPrior {
			if j >= 0 {
				p.config[j], p.owned[j] = i, inOwned[i]
			}
		}
	case o.Config.IsNull():
		p.prior, p.owned = o.left(ours), nowhere(o.Planned.Len())
	}
	return p
}

// left finds the elements of a planned list that is prior without some of
// ours. Those of others are all there, and some of ours if the host had lost
// them.
func (o Order) left(ours []bool) []int {
	to, i, spare := nowhere(o.Planned.Len()), 0, o.Planned.Len()
	for _, our := range ours {
		if !our {
			spare--
		}
	}
	for j, e := range o.Prior.Elems() {
		if i == len(to) {
			break
		}
		if ours[j] {
			if spare <= 0 || !tree.Equal(o.Planned.Elems()[i], e) {
				continue
			}
			spare--
		}
		to[i] = j
		i++
	}
	return to
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func nowhere(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// elem is the order for one element of a planned list.
func (o Order) elem(i int, p pairs) Order {
	out := o
	out.Type = o.Type.Elem
	out.Planned, out.Config = o.Planned.Elems()[i], pick(o.Config, p.config[i])
	out.Prior, out.Owned = pick(o.Prior, p.prior[i]), pick(o.Owned, p.owned[i])
	return out
}

// Settle returns the state after an apply: what Project does, but what the plan
// did not change is as the plan says, even if the host moved in the meantime.
// The core insists on it, and the next refresh tells. before is the definition
// that the apply began with, null for a creation.
func (o Order) Settle(before, after tree.Value) tree.Value {
	return (&projector{settle: true}).node(nil, view{o, before, after})
}

// Identify returns the configuration with the identities that its list
// elements have got: an interface without a MAC address gets the one that the
// host gave it. Kept as Owned, it tells the elements of the next configuration
// from each other. state is what Settle returned.
func (o Order) Identify(state tree.Value) tree.Value { return o.identify(nil, state) }

func (o Order) identify(path tree.Path, state tree.Value) tree.Value {
	config := o.Config
	switch {
	case config.Kind() == tree.Object && o.Type.Kind == tree.Object:
		for _, name := range config.Names() {
			if o.Type.Attrs[name] != nil {
				config = config.With(name, o.attr(name).identify(path.Attr(name), state.Attr(name)))
			}
		}
	case config.Kind() == tree.List && o.Type.Kind == tree.List && o.Type.Elem.Kind == tree.Object:
		p := o.pairs(path.Pattern())
		elems := slices.Clone(config.Elems())
		for at, i := range p.config {
			if i >= 0 && i < len(elems) {
				here := path.Elem(i, "")
				elems[i] = o.elem(at, p).identify(here, pick(state, at))
				elems[i] = o.withChosen(o.Type.Elem, here, elems[i], pick(state, at))
			}
		}
		return tree.ListValue(elems)
	}
	return config
}

// withChosen adds to an element what libvirt chose for it.
func (r *Rules) withChosen(typ *tree.Type, path tree.Path, elem, state tree.Value) tree.Value {
	for _, name := range state.Names() {
		a := typ.Attrs[name]
		switch here := path.Attr(name); {
		case a == nil:
		case r.Chosen(here.Pattern()) && elem.Attr(name).IsNull():
			elem = elem.With(name, state.Attr(name))
		case a.Type.Kind == tree.Object:
			if got := r.withChosen(a.Type, here, elem.Attr(name), state.Attr(name)); got.Len() > 0 {
				elem = elem.With(name, got)
			}
		}
	}
	return elem
}
