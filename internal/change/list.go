package change

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// list plans a list of objects. Its elements are matched by identity in every
// tree; what the list becomes is either exactly the prior one, or one in the
// order and length of the configuration, as the core compares lists by index.
func (p *planner) list(elem *tree.Type, path tree.Path, s side, strict bool) tree.Value {
	pattern := path.Pattern()
	m := matches{
		prior: p.match(pattern, s.desired, s.prior), baseline: p.match(pattern, s.desired, s.baseline),
		actual: p.match(pattern, s.desired, s.actual), owned: p.match(pattern, s.desired, s.owned),
	}
	before := len(p.out.Changes)
	mark := p.out
	inPlace := !strict && sameOrder(m.prior, s.prior.Len())
	planned := p.elements(elem, path, s, m, !inPlace)
	removed, left := p.leaving(path, s, m)
	p.out.Changes = append(p.out.Changes, removed...)
	changed := len(p.out.Changes) > before || len(p.out.Unknown) > len(mark.Unknown)
	switch {
	case s.desired.IsNull():
		return p.remaining(s, removed)
	case inPlace && len(left) == 0 && len(removed) == 0:
		return tree.ListValue(planned)
	case !changed && !strict && !s.prior.IsNull():
		// Nothing is to be done here. Holding the list as a whole also holds
		// what only differs in order, spelling or drift.
		p.out.Clashes = mark.Clashes
		return s.prior
	}
	p.out.Left = append(p.out.Left, left...)
	return tree.ListValue(planned)
}

// matches says where each element of the configuration is in the other trees.
type matches struct{ prior, baseline, actual, owned []int }

// sameOrder says whether every element is where it was.
func sameOrder(to []int, priorLen int) bool {
	for i, j := range to {
		if i != j {
			return false
		}
	}
	return len(to) <= priorLen
}

func (p *planner) elements(elem *tree.Type, path tree.Path, s side, m matches, strict bool) []tree.Value {
	pattern := path.Pattern()
	planned := make([]tree.Value, s.desired.Len())
	for i, d := range s.desired.Elems() {
		here := path.Elem(i, p.label(pattern, s, m, i))
		e := side{d, pick(s.prior, m.prior[i]), pick(s.baseline, m.baseline[i]), pick(s.actual, m.actual[i]), pick(s.owned, m.owned[i])}
		if d.IsUnknown() {
			p.out.Unknown = append(p.out.Unknown, here)
			planned[i] = d
			continue
		}
		if e.actual.IsNull() {
			planned[i] = p.missing(elem, here, e)
			continue
		}
		planned[i] = p.object(elem, here, e, strict || m.prior[i] != i)
	}
	return planned
}

// missing plans an element that the host does not have: a new one, or one
// that somebody removed behind our back.
func (p *planner) missing(elem *tree.Type, path tree.Path, e side) tree.Value {
	kind := Addition
	if !e.baseline.IsNull() && !e.owned.IsNull() {
		kind = Drift
	}
	p.out.Changes = append(p.out.Changes, Change{Path: path, Kind: kind, Desired: e.desired, Baseline: e.baseline})
	fresh := p.fresh(elem, path, e.desired)
	if e.baseline.IsNull() {
		return fresh
	}
	return p.sticky(elem, path, fresh, e.baseline)
}

// sticky fills what libvirt would choose with what it had chosen: an
// interface that comes back keeps its MAC address.
func (p *planner) sticky(typ *tree.Type, path tree.Path, fresh, baseline tree.Value) tree.Value {
	if fresh.IsUnknown() && p.Chosen(path.Pattern()) && !baseline.IsNull() {
		return baseline
	}
	if typ.Kind != tree.Object || fresh.Kind() != tree.Object {
		return fresh
	}
	for _, name := range fresh.Names() {
		fresh = fresh.With(name, p.sticky(typ.Attrs[name].Type, path.Attr(name), fresh.Attr(name), baseline.Attr(name)))
	}
	return fresh
}

// leaving finds the elements of state that the configuration does not have.
// What the last apply's configuration named is removed from the host; the
// rest only leaves the state.
func (p *planner) leaving(path tree.Path, s side, m matches) (removed []Change, left []tree.Path) {
	pattern := path.Pattern()
	claimed := make([]bool, s.prior.Len())
	for _, j := range m.prior {
		if j >= 0 {
			claimed[j] = true
		}
	}
	owner := p.match(pattern, s.owned, s.prior)
	owned := make([]bool, s.prior.Len())
	for _, j := range owner {
		if j >= 0 {
			owned[j] = true
		}
	}
	onHost := p.match(pattern, s.prior, s.actual)
	for j, e := range s.prior.Elems() {
		here := path.Elem(j, p.name(pattern, e, j))
		switch {
		case claimed[j]:
		case owned[j] && onHost[j] >= 0:
			removed = append(removed, Change{Path: here, Kind: Removal, Actual: s.actual.Elems()[onHost[j]]})
		case owned[j]:
		default:
			left = append(left, here)
		}
	}
	return removed, left
}

// remaining is the prior list without the removed elements, null if none is
// left: the configuration names the list no more, and never named the others.
func (p *planner) remaining(s side, removed []Change) tree.Value {
	if len(removed) == 0 {
		return s.prior
	}
	gone := map[int]bool{}
	for _, c := range removed {
		gone[c.Path[len(c.Path)-1].Index] = true
	}
	var rest []tree.Value
	for j, e := range s.prior.Elems() {
		if !gone[j] {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return tree.NullValue
	}
	return tree.ListValue(rest)
}

// label is how an element of the configuration is called in messages.
func (p *planner) label(pattern string, s side, m matches, i int) string {
	for _, e := range []tree.Value{s.desired.Elems()[i], pick(s.prior, m.prior[i]), pick(s.actual, m.actual[i]), pick(s.baseline, m.baseline[i])} {
		if key := p.Key(pattern+"[]", e); key != "" {
			return key
		}
	}
	return fmt.Sprint(i)
}

func (p *planner) name(pattern string, e tree.Value, i int) string {
	if key := p.Key(pattern+"[]", e); key != "" {
		return key
	}
	return fmt.Sprint(i)
}

func pick(list tree.Value, i int) tree.Value {
	if i < 0 {
		return tree.NullValue
	}
	return list.Elems()[i]
}
