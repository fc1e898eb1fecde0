package change

import (
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// list plans a list of objects. Its elements are matched by identity in every
// tree; what the list becomes is either exactly the prior one, or one in the
// order and length of the configuration, as the core compares lists by index.
func (p *planner) list(elem *tree.Type, path tree.Path, s side, strict bool) tree.Value {
	m := p.locate(path.Pattern(), s)
	before := len(p.out.Changes)
	mark := p.out
	inPlace := !strict && sameOrder(m.prior, s.prior.Len())
	planned := p.elements(elem, path, s, m, strict)
	removed, left := p.leaving(path, s, m)
	p.out.Changes = append(p.out.Changes, removed...)
	changed := len(p.out.Changes) > before || len(p.out.Unknown) > len(mark.Unknown)
	others := len(left) + len(removed) // of state, that the configuration does not have as far as is known
	drifted := onlyDrift(p.out.Changes[before:], m)
	if s.desired.HasUnknown() && (others > 0 || !inPlace && (drifted || s.desired.Len() <= s.prior.Len())) {
		// With the values known, the prior list may be the answer, or one of
		// another order and length; a plan has to choose now.
		p.out.Undecided = append(p.out.Undecided, path)
	}
	switch {
	case s.desired.IsNull():
		return p.remaining(s, removed)
	case inPlace && others == 0:
		return tree.ListValue(planned)
	case !changed && !strict && !s.prior.IsNull() && !slices.Contains(m.prior, -1):
		// Nothing is to be done here. Holding the list as a whole also holds
		// what only differs in order, spelling or drift.
		p.out.Clashes = mark.Clashes
		return s.prior
	case !strict && len(p.out.Clashes) > len(mark.Clashes) && len(p.out.Unknown) == len(mark.Unknown) && drifted:
		// Nobody asked for a change of this list, and held drift by itself is
		// never an error: the rest waits until that is decided.
		for _, c := range p.out.Changes[before:] {
			p.out.Postponed = append(p.out.Postponed, c.Path)
		}
		p.out.Changes, p.out.Clashes = p.out.Changes[:before], mark.Clashes
		return s.prior
	}
	p.out.Left = append(p.out.Left, left...)
	return tree.ListValue(planned)
}

// onlyDrift says whether all changes of a list put back what somebody did, and
// the list has no element that the last apply did not name.
func onlyDrift(changes []Change, m matches) bool {
	for i, j := range m.prior {
		if j < 0 && m.owned[i] < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(changes, func(c Change) bool { return c.Kind != Drift })
}

// matches says where each element of the configuration is in the other trees,
// and which elements of prior the last apply's configuration named.
type matches struct {
	prior, baseline, actual, owned, guest []int
	ownedPrior                            []bool
}

// locate finds the elements of the configuration in the other trees. Prior,
// baseline and definition know each other by identity; the configuration is
// matched with prior, with the help of what the last configuration was called.
func (p *planner) locate(pattern string, s side) matches {
	m := matches{owned: p.match(pattern, s.desired, s.owned)}
	m.prior, m.ownedPrior = p.inPrior(p.matcher(pattern, s.desired, s.prior), m.owned, s.owned)
	m.actual = p.through(pattern, s, m, s.actual)
	m.baseline = p.through(pattern, s, m, s.baseline)
	m.guest = p.inGuest(pattern, s, m)
	return m
}

// through finds the elements of the configuration in a definition: as prior
// knows them, else by their own identity, else, for one that is missing in
// prior, as the last configuration knew it. Content alone proves nothing here:
// a device of the same kind may be a stranger's.
func (p *planner) through(pattern string, s side, m matches, in tree.Value) []int {
	fromPrior := p.match(pattern, s.prior, in)
	out := p.matcher(pattern, s.desired, in)
	for _, k := range fromPrior {
		if k >= 0 {
			out.taken[k] = true
		}
	}
	for i, j := range m.prior {
		if j >= 0 {
			out.to[i] = fromPrior[j]
		}
	}
	out.byKey()
	fromOwned := p.matchKeys(pattern, s.owned, in)
	for i, o := range m.owned {
		if o >= 0 && fromOwned[o] >= 0 && m.prior[i] < 0 {
			out.pair(i, fromOwned[o])
		}
	}
	return out.to
}

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
	open := p.open(pattern, s)
	for i, d := range s.desired.Elems() {
		here := path.Elem(i, p.called(pattern, s, m, i))
		e := side{d, pick(s.prior, m.prior[i]), pick(s.baseline, m.baseline[i]), pick(s.actual, m.actual[i]), pick(s.owned, m.owned[i]), pick(s.guest, m.guest[i])}
		p.remember(here, e, m.actual[i], m.baseline[i])
		if !e.actual.IsNull() && !p.isSure(pattern, e.actual, s) {
			e.guest = e.actual // it may wait, and nothing says that somebody changed it
		}
		switch {
		case d.IsUnknown():
			p.out.Unknown = append(p.out.Unknown, here)
			planned[i] = d
		case e.actual.IsNull():
			planned[i] = p.missing(elem, here, e)
		case !p.in.Guest.IsNull() && e.guest.IsNull():
			// What differs below it is not drift: the element as a whole is not there.
			p.missingInGuest(here, e)
			e.guest = e.actual
			planned[i] = p.element(elem, here, e, strict || m.prior[i] != i)
		default:
			planned[i] = p.element(elem, here, e, strict || m.prior[i] != i)
		}
		if open && p.label(pattern+"[]", d) == "" {
			planned[i] = p.unsettled(elem, here, d, planned[i])
		}
	}
	return planned
}

// isSure says whether it is certain which device of the running guest an
// element of the definition is: by its identity or its place, or because there
// is no other. What is only alike may be another one.
func (p *planner) isSure(pattern string, e tree.Value, s side) bool {
	return p.label(pattern+"[]", e) != "" || p.Ordered != nil && p.Ordered(pattern) || s.actual.Len() == 1 && s.guest.Len() <= 1
}

// open says whether an unknown value may decide which elements of the list
// are which, as it does where one is compared by content: then none that has no
// identity is sure of what libvirt chose.
func (p *planner) open(pattern string, s side) bool {
	nameless := func(e tree.Value) bool { return p.label(pattern+"[]", e) == "" }
	some := slices.ContainsFunc(s.owned.Elems(), nameless) || slices.ContainsFunc(s.prior.Elems(), nameless)
	return slices.ContainsFunc(s.desired.Elems(), func(d tree.Value) bool { return d.HasUnknown() && (some || nameless(d)) })
}

// element plans an element that the host has. One that the state does not know
// shows what people refer to.
func (p *planner) element(elem *tree.Type, path tree.Path, e side, strict bool) tree.Value {
	planned := p.object(elem, path, e, strict)
	if e.prior.IsNull() {
		return p.sticky(elem, path, p.fresh(elem, path, planned), e.actual)
	}
	return planned
}

// unsettled makes unknown what libvirt chooses.
func (p *planner) unsettled(typ *tree.Type, path tree.Path, desired, v tree.Value) tree.Value {
	for _, name := range v.Names() {
		a := typ.Attrs[name]
		switch here := path.Attr(name); {
		case p.Chosen(here.Pattern()) && !desired.Attr(name).IsKnown():
			v = v.With(name, tree.UnknownValue)
		case a.Type.Kind == tree.Object:
			v = v.With(name, p.unsettled(a.Type, here, desired.Attr(name), v.Attr(name)))
		}
	}
	return v
}

// missing plans an element that the host does not have: a new one, or one
// that somebody removed behind our back.
func (p *planner) missing(elem *tree.Type, path tree.Path, e side) tree.Value {
	kind := Addition
	if !e.owned.IsNull() {
		kind = Drift // the last apply had it
	}
	p.out.Changes = append(p.out.Changes, Change{
		Path: path, Kind: kind, Desired: e.desired, Baseline: e.baseline, Guest: e.guest, Reached: p.has(elem, path, e.desired, e.guest),
	})
	fresh := p.fresh(elem, path, e.desired)
	if e.baseline.IsNull() {
		return fresh
	}
	return p.sticky(elem, path, fresh, e.baseline)
}

// sticky fills what libvirt would choose with what it had chosen: an
// interface that comes back keeps its MAC address.
func (p *planner) sticky(typ *tree.Type, path tree.Path, fresh, was tree.Value) tree.Value {
	if fresh.IsUnknown() && p.Chosen(path.Pattern()) && !was.IsNull() {
		return was
	}
	if typ.Kind != tree.Object || fresh.Kind() != tree.Object {
		return fresh
	}
	for _, name := range fresh.Names() {
		fresh = fresh.With(name, p.sticky(typ.Attrs[name].Type, path.Attr(name), fresh.Attr(name), was.Attr(name)))
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
	onHost := p.match(pattern, s.prior, s.actual)
	running := p.matchWhole(pattern, s.actual, s.guest)
	for j, e := range s.prior.Elems() {
		here := path.Elem(j, p.name(pattern, e, j))
		switch {
		case claimed[j]:
		case m.ownedPrior[j] && onHost[j] >= 0:
			k := onHost[j]
			removed = append(removed, Change{
				Path: here, Kind: Removal, Actual: s.actual.Elems()[k], Guest: pick(s.guest, running[k]),
				Reached: !p.in.Guest.IsNull() && running[k] < 0 && p.isSure(pattern, s.actual.Elems()[k], s),
			})
		case m.ownedPrior[j]:
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

// called is how an element of the configuration is called in messages and in
// the status: as the host knows it, if it has it.
func (p *planner) called(pattern string, s side, m matches, i int) string {
	for _, e := range []tree.Value{pick(s.actual, m.actual[i]), pick(s.prior, m.prior[i]), pick(s.baseline, m.baseline[i]), s.desired.Elems()[i]} {
		if key := p.label(pattern+"[]", e); key != "" {
			return key
		}
	}
	return fmt.Sprint(i)
}

func (p *planner) name(pattern string, e tree.Value, i int) string {
	if key := p.label(pattern+"[]", e); key != "" {
		return key
	}
	return fmt.Sprint(i)
}
