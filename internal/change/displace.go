package change

import (
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// displace takes out of a planned object what gives way to another one: of some
// attributes, as the kinds of a source, the host has one, and the one that the
// configuration names takes the place of one that nobody named. While it is not
// known whether it is there, nobody knows of the others.
func (p *planner) displace(path tree.Path, s side, planned map[string]tree.Value) {
	for _, name := range s.desired.Names() {
		here, v := path.Attr(name), s.desired.Attr(name)
		if v.Kind() != tree.Object && p.equal(here.Pattern(), tree.NullValue, v) {
			continue // it says that it is not there
		}
		for _, other := range p.alternatives(here.Pattern()) {
			switch {
			case !s.desired.Attr(other).IsNull():
			case !v.IsUnknown():
				planned[other] = tree.NullValue
			case !planned[other].IsNull():
				planned[other] = tree.UnknownValue
			}
		}
		appears := p.isKind(here.Pattern()) && s.prior.Attr(name).IsNull() && s.actual.Attr(name).IsNull()
		if v.Kind() == tree.Object && (appears || p.replaced(here, s.actual)) && !p.changes(here) {
			p.appears(here, s.attr(name))
		}
	}
}

func (r *Rules) alternatives(pattern string) []string {
	if r.Alternatives == nil {
		return nil
	}
	return r.Alternatives(pattern)
}

// isKind says whether a path is one of several kinds, or a mark, so that an
// object there says something even with nothing in it.
func (r *Rules) isKind(pattern string) bool {
	return len(r.alternatives(pattern)) > 0 || r.isMark(pattern)
}

func (r *Rules) isMark(pattern string) bool { return r.Present != nil && r.Present(pattern) }

// disappears notes that an object is withdrawn of which nothing is said but that
// it is there.
func (p *planner) disappears(path tree.Path, s side) {
	if !p.isMark(path.Pattern()) || s.actual.IsNull() || p.changes(path) {
		return
	}
	p.out.Changes = append(p.out.Changes, Change{
		Path: path, Kind: Withdrawal, Actual: s.actual, Baseline: s.baseline, Guest: s.guest, Reached: !p.in.Guest.IsNull() && s.guest.IsNull(),
	})
}

func isEmpty(v tree.Value) bool { return v.Kind() == tree.Object && v.Len() == 0 }

// replaced says whether an object has another kind than the one at the path. It
// is asked where nothing but its place says that a kind is there: some of these
// no document can tell.
func (r *Rules) replaced(path tree.Path, in tree.Value) bool {
	if !in.Attr(path[len(path)-1].Attr).IsNull() {
		return false
	}
	last := path[:len(path)-1]
	return slices.ContainsFunc(r.alternatives(path.Pattern()), func(other string) bool {
		v := in.Attr(other)
		return v.Kind() == tree.Object || !r.equal(last.Attr(other).Pattern(), tree.NullValue, v)
	})
}

// changes says whether the plan changes something in the object at a path, or
// may do so.
func (p *planner) changes(path tree.Path) bool {
	within := path.String() + "."
	return slices.ContainsFunc(p.out.Changes, func(c Change) bool { return strings.HasPrefix(c.Path.String(), within) }) ||
		slices.ContainsFunc(p.out.Unknown, func(u tree.Path) bool { return strings.HasPrefix(u.String(), within) })
}

// appears notes a kind of which nothing is said but that it is there, as in
// source = { user = {} }: else the plan would change something and not say so.
func (p *planner) appears(path tree.Path, s side) {
	c := Change{Path: path, Kind: Intent, Desired: s.desired, Baseline: s.baseline, Guest: s.guest, Reached: !s.guest.IsNull()}
	if !s.baseline.IsNull() {
		c.Kind = Drift
	}
	p.out.Changes = append(p.out.Changes, c)
}
