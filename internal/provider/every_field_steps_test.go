package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// try is one leaf with the objects that it is tried in.
type try struct {
	s            *subject
	l            leaf
	role         role
	none         tree.Value // the object with everything but the leaf
	a, b, zero   tree.Value // values; zero is what XML may not tell from none
	whole, small *tree.Type

	bare   bool   // there is a document without the leaf
	effect string // what the kind says of a change from a to b
}

func (s *subject) try(l leaf) *try {
	obj := s.object(l)
	if obj.Get(l.path[:len(l.path)-1]).IsNull() {
		obj = plant(obj, l.path[:len(l.path)-1], tree.ObjectValue(nil))
	}
	t := &try{
		s: s, l: l, role: s.roleOf(l), none: obj, whole: s.Type(),
		a: s.sample(l.pattern, l.typ, 0), b: s.sample(l.pattern, l.typ, 1), zero: zero(l.typ),
	}
	without := t.with(tree.NullValue)
	t.bare = t.role != lost && !l.required && tree.Equal(without, plant(obj, l.path, tree.NullValue)) && s.holds(without, s.leavesOf(obj)...)
	t.small = narrow(t.whole, t.with(tree.BoolValue(false)), t.with(t.a))
	return t
}

// leavesOf lists the leaves of an object that are in the XML.
func (s *subject) leavesOf(obj tree.Value) (out []leaf) {
	obj.Walk(func(p tree.Path, _ tree.Value) bool {
		if f := s.root.Fields[p.Pattern()]; f != nil && isLeaf(s.leafType(p.Pattern())) {
			out = append(out, leaf{path: p})
			return false
		}
		return true
	})
	return out
}

// with is the object with a value of the leaf. Where the leaf is one of several
// kinds of a device, and no device is without a kind, another one stands in.
func (t *try) with(v tree.Value) tree.Value {
	obj := plant(t.none, t.l.path, v)
	if t.l.typ.Kind != tree.Bool || v.Bool() || t.s.root.Fields[t.l.pattern] == nil || t.s.holds(obj) {
		return obj
	}
	names := t.s.root.Fields[t.l.pattern].Alternatives
	if other := standIns[t.l.pattern]; other != "" {
		names = []string{other}
	}
	for _, name := range names {
		path := append(slices.Clone(t.l.path[:len(t.l.path)-1]), firstPath(name)...)
		standing := tree.ObjectValue(nil)
		if t.s.leafType(path.Pattern()).Kind == tree.Bool {
			standing = tree.BoolValue(true)
		}
		if with := plant(obj, path, standing); t.s.holds(with) {
			return with
		}
	}
	return obj
}

func (t *try) same(a, b tree.Value) bool { return t.s.Rules().Same(t.l.pattern, a, b) }

// says is what a plan says when one object becomes another, of what the
// configuration names.
func (t *try) says(sort change.Kind, from, to, named tree.Value) string {
	switch t.role {
	case unit:
		return fmt.Sprintf("%s %s", sort, t.s.units[t.l.pattern])
	case key:
		return fmt.Sprintf("addition %s; removal %s", t.l.elem(), t.l.elem())
	}
	var said []string
	for _, obj := range []tree.Value{from, to} {
		obj.Walk(func(p tree.Path, _ tree.Value) bool {
			if len(p) == 0 || !isLeaf(t.s.leafType(p.Pattern())) {
				return true
			}
			if !named.Get(p).IsNull() && !t.s.Rules().Same(p.Pattern(), from.Get(p), to.Get(p)) {
				said = append(said, fmt.Sprintf("%s %s", sort, p.Pattern()))
			}
			return false
		})
	}
	slices.Sort(said)
	return strings.Join(slices.Compact(said), "; ")
}

// becomes changes the configuration of a world to have the value, and applies.
func (t *try) becomes(w *world, v tree.Value) (change.Result, error) {
	w.config = t.with(v)
	target := &world{s: t.s}
	if err := target.put(w.config); err != nil {
		return change.Result{}, err
	}
	want, host := t.says(change.Intent, w.actual, target.actual, w.config), target.actual
	switch t.role {
	case setting:
		want = ""
	case once:
		want, host = "ignored "+t.l.path[:1].Pattern(), w.actual
	}
	r, err := w.expect(w.input(), want)
	if err != nil {
		return r, err
	}
	if got := r.Planned.Get(t.l.path); t.role != once && want != "" && !tree.Equal(got, v) {
		return r, fmt.Errorf("planned %s", got)
	}
	if len(r.Changes) > 0 {
		if t.effect, err = w.judged(r); err != nil {
			return r, err
		}
	}
	return r, w.apply(r, host)
}

// drifted lets somebody change the host behind a settled world, and puts it back
// as the tier of the leaf says.
func (t *try) drifted(w *world, to tree.Value) error {
	settled, config := *w, w.config
	if err := w.put(t.with(to)); err != nil {
		return err
	}
	if t.same(settled.actual.Get(t.l.path), w.actual.Get(t.l.path)) {
		*w = settled
		return nil // no document tells the two from each other
	}
	w.refresh()
	want, host := t.says(change.Drift, settled.actual, w.actual, config), settled.actual
	switch {
	case t.role == key:
		want, host = "drift "+t.l.elem(), t.both(settled.actual, w.actual)
	case t.anonymous() && !w.actual.Get(t.l.path).IsNull():
		want, host = "drift "+t.l.elem(), t.both(settled.actual, w.actual)
	}
	pattern := t.l.pattern
	if number := t.s.units[pattern]; number != "" {
		pattern = number
	}
	tier := t.s.Rules().Tier(pattern)
	in := w.input()
	if holds := tier == change.TierModification || tier == change.TierLocked; holds && !strings.HasSuffix(want, "[]") && !w.actual.Get(t.l.path).IsNull() {
		r, err := w.expect(in, strings.ReplaceAll(want, "drift ", "held "+tier.String()+" "))
		switch {
		case err != nil:
			return err
		case !tree.Equal(r.Planned, w.state):
			return fmt.Errorf("what is held is planned otherwise than it is; %s", w.shown(r))
		case tier == change.TierLocked:
			in.Policy.Approved = map[string]bool{r.Held[0].Digest: true}
			_, err := w.expect(in, told(r))
			*w = settled
			return err
		}
		in.Policy.Approved = map[string]bool{"another": true}
		if _, err := w.expect(in, told(r)); err != nil {
			return err
		}
		in.Policy.Approved = map[string]bool{}
		for _, h := range r.Held {
			in.Policy.Approved[h.Digest] = true
		}
	}
	r, err := w.expect(in, want)
	if err != nil {
		return err
	}
	if err := w.apply(r, host); err != nil {
		return err
	}
	w.config = config
	return w.put(settled.actual)
}

// anonymous says whether the leaf is all that its list element has: an element
// with another value is then another element.
func (t *try) anonymous() bool {
	if !strings.Contains(t.l.pattern, "[]") {
		return false
	}
	elem := t.l.path
	for elem[len(elem)-1].Attr != "" {
		elem = elem[:len(elem)-1]
	}
	bare := true
	t.none.Get(elem).Walk(func(_ tree.Path, v tree.Value) bool {
		bare = bare && (v.Kind() == tree.Object || v.Kind() == tree.List)
		return bare
	})
	return bare && !t.s.ordered(t.l.elem())
}

// both is an object with the innermost element of one and of another.
func (t *try) both(mine, stranger tree.Value) tree.Value {
	i := len(t.l.path) - 1
	for t.l.path[i].Attr != "" {
		i--
	}
	list := t.l.path[:i]
	return stranger.Set(list, tree.ListValue(append(slices.Clone(stranger.Get(list).Elems()), mine.Get(list).Elems()...)))
}

// withdrawn takes the leaf out of the configuration.
func (t *try) withdrawn(w *world) error {
	rules, pattern := t.s.Rules(), t.l.pattern
	was := w.config
	w.config = t.with(tree.NullValue)
	target := &world{s: t.s}
	if err := target.put(w.config); err != nil {
		return err
	}
	want, host := t.says(change.Withdrawal, w.actual, target.actual, was), target.actual
	kept := rules.Chosen(pattern) || rules.Kept != nil && rules.Kept(pattern)
	switch {
	case t.role == setting, t.role == once, t.role != unit && kept:
		want, host = "", w.actual
	case t.role == unit:
		// The number stays, and counts in the standard unit from now on.
		want = strings.ReplaceAll(want, "withdrawal ", "intent ")
	}
	r, err := w.expect(w.input(), want)
	if err != nil {
		return err
	}
	if t.role != unit && !kept && !r.Planned.Get(t.l.path).IsNull() {
		return fmt.Errorf("planned %s", r.Planned.Get(t.l.path))
	}
	if t.role != setting && kept && t.role != unit && !tree.Equal(r.Planned.Get(t.l.path), w.state.Get(t.l.path)) {
		return fmt.Errorf("what is kept is planned as %s", r.Planned.Get(t.l.path))
	}
	return w.apply(r, host)
}

// omitted never names the leaf: whatever the host makes of it, no plan does
// anything, and a change of something else leaves it alone.
func (t *try) omitted() error {
	start := t.with(tree.NullValue)
	if !t.bare {
		start = t.with(t.a)
	}
	w, err := t.s.settled(t.small, start)
	if err != nil {
		return err
	}
	w.config = plant(t.none, t.l.path, tree.NullValue)
	w.owned = tree.NullValue
	for _, v := range []tree.Value{t.a, t.b} {
		if err := w.put(t.with(v)); err != nil {
			return err
		}
		w.state = t.s.Rules().Project(t.small, t.with(v), w.actual) // an import shows it
		if t.s.Rules().Sticky != nil && t.s.Rules().Sticky(t.l.pattern) {
			w.baseline = w.actual
		}
		if err := w.quiet("the host got " + v.String()); err != nil {
			return err
		}
	}
	return nil
}
