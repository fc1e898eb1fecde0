package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
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

	made map[string]made // by value, see host

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
		made: map[string]made{},
		a:    s.sample(l.pattern, l.typ, 0), b: s.sample(l.pattern, l.typ, 1), zero: zero(l.typ),
	}
	without := t.with(tree.NullValue)
	t.bare = t.role != lost && !l.required && tree.Equal(without, plant(obj, l.path, tree.NullValue)) && s.holds(without, s.leavesOf(obj)...)
	t.small = narrow(t.whole, t.with(tree.BoolValue(false)), t.with(t.a), plant(s.base, s.beside, t.a))
	return t
}

// made is an object with a value, and what a host makes of it.
type made struct {
	obj, decoded, actual tree.Value
	xml                  string
	err                  error
}

// host makes a host have the object with a value.
func (t *try) host(v tree.Value) made {
	m, there := t.made[v.String()]
	if there {
		return m
	}
	m.obj = t.with(v)
	w := &world{s: t.s}
	m.err = w.put(m.obj)
	m.xml, m.decoded, m.actual = w.xml, w.decoded, w.actual
	t.made[v.String()] = m
	return m
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
	if t.role == unit {
		return fmt.Sprintf("%s %s", sort, t.s.units[t.l.pattern])
	}
	if t.role == key {
		return fmt.Sprintf("addition %s; removal %s", t.l.elem(), t.l.elem())
	}
	var said []string
	for _, obj := range []tree.Value{from, to} {
		obj.Walk(func(p tree.Path, v tree.Value) bool {
			if len(p) == 0 || !isLeaf(t.s.leafType(p.Pattern())) {
				// A kind of which nothing is said is told by its place.
				isKind := v.Kind() == tree.Object && v.Len() == 0 && t.s.root.Alternatives(p.Pattern()) != nil
				if isKind && from.Get(p).IsNull() && !named.Get(p).IsNull() {
					said = append(said, fmt.Sprintf("%s %s", sort, p.Pattern()))
				}
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
func (t *try) becomes(w *world, v tree.Value) error {
	target := t.host(v)
	if target.err != nil {
		return target.err
	}
	w.config = target.obj
	want, host := t.says(change.Intent, w.actual, target.actual, w.config), target.actual
	if t.role == setting {
		want = ""
	}
	if t.role == once {
		want, host = "ignored "+t.l.path[:1].Pattern(), w.actual
	}
	if want == "" && t.role != setting && tree.Equal(v, t.b) {
		return fmt.Errorf("%s and %s count as equal", t.a, v)
	}
	r, err := w.expect(w.input(), want)
	if err != nil {
		return err
	}
	if got := r.Planned.Get(t.l.path); t.role != once && want != "" && !tree.Equal(got, v) {
		return fmt.Errorf("planned %s", got)
	}
	if len(r.Changes) > 0 {
		effect, err := w.judged(r)
		if err != nil {
			return err
		}
		if t.effect == "" {
			t.effect = effect
		}
	}
	return w.apply(r, host)
}

// refused asks for a value that no document holds: the refusal must come before
// anything is written, and name the field.
func (t *try) refused() error {
	var value *spec.ValueError
	if _, err := t.s.root.Encode(t.with(t.a)); !errors.As(err, &value) || value.Path.Pattern() != t.l.pattern {
		return fmt.Errorf("encoded as if it could be held: %w", err)
	}
	bare := plant(tree.NullValue, t.l.path, t.a)
	xml, err := t.s.root.Encode(t.s.base)
	if err != nil {
		return err
	}
	if got, err := t.s.root.Edit(xml, t.s.base, bare); !errors.As(err, &value) || value.Path.Pattern() != t.l.pattern {
		return fmt.Errorf("an edit makes %s: %w", got, err)
	}
	return nil
}

// drifted lets somebody change the host behind a settled world, and puts it back
// as the tier of the leaf says.
func (t *try) drifted(w *world, to tree.Value) error {
	settled := *w
	if err := w.become(t.host(to)); err != nil {
		return err
	}
	if t.same(settled.actual.Get(t.l.path), w.actual.Get(t.l.path)) {
		return fmt.Errorf("%s and %s count as equal", t.a, to)
	}
	w.refresh()
	want, host := t.says(change.Drift, settled.actual, w.actual, w.config), settled.actual
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
	*w = settled
	return nil
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
	target := t.host(tree.NullValue)
	if target.err != nil {
		return target.err
	}
	w.config = target.obj
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
// anything, and a change of something else leaves it as the host has it.
func (t *try) omitted() error {
	if top := t.l.path[0].Attr; t.role == reported && t.s.Rules().Setting(top) {
		if !slices.Contains(computed, top) {
			return fmt.Errorf("no configuration can hold %s, and a plan compares it", top)
		}
		return nil
	}
	start := t.host(tree.NullValue)
	if !t.bare {
		start = t.host(t.a)
	}
	w, err := t.s.settled(t.small, start)
	if err != nil {
		return err
	}
	w.config, w.owned = plant(t.none, t.l.path, tree.NullValue), tree.NullValue
	for _, v := range []tree.Value{t.a, t.b} {
		if err := w.become(t.host(v)); err != nil {
			return err
		}
		w.state = t.s.Rules().Project(t.small, t.host(v).obj, w.actual) // an import shows it
		if sticky := t.s.Rules().Sticky; sticky != nil && sticky(t.l.pattern) {
			w.baseline = w.actual
		}
		if err := w.quiet("the host got " + v.String()); err != nil {
			return err
		}
	}
	beside := t.s.beside.Pattern()
	if beside == t.l.pattern || t.s.units[t.l.pattern] == beside || !t.reads() {
		return nil
	}
	value := t.s.sample(beside, t.s.leafType(beside), 1)
	w.config = plant(w.config, t.s.beside, value)
	r, err := w.expect(w.input(), "intent "+beside)
	if err != nil {
		return err
	}
	return w.apply(r, plant(w.actual, t.s.beside, value))
}

// reads says whether a configuration without the leaf may stand beside a host
// that has it: not so where another kind stands in for it.
func (t *try) reads() bool { return t.role != reported && t.role != measured && !t.l.required }

// running compares with a guest that is otherwise than its definition: one that
// has already what the configuration asks for, and one that is late.
func (t *try) running() error {
	w, err := t.s.settled(t.small, t.host(t.a))
	if err != nil {
		return err
	}
	b := t.host(t.b)
	w.config = b.obj
	in := w.input()
	in.Guest = b.actual
	r, err := w.expect(in, t.says(change.Intent, w.actual, b.actual, b.obj))
	if err != nil || b.err != nil {
		return errors.Join(err, b.err)
	}
	for _, c := range r.Changes {
		if !c.Reached {
			return fmt.Errorf("the guest has it, and %s %s does not know", c.Kind, c.Path)
		}
	}
	// A guest that runs is not off already.
	if effect, err := w.judged(r); err != nil || effect != "none" && t.effect != "refused" && t.effect != "shutdown" && t.effect != "replace" {
		return fmt.Errorf("the guest has it, and the effect is %s; %w", effect, err)
	}
	if w, err = t.s.settled(t.small, b); err != nil {
		return err
	}
	in = w.input()
	in.Guest = t.host(t.a).actual
	late, noise := t.s.Rules().Plan(in), t.s.Rules().Noise
	behind := t.effect == "live" && !noise(t.l.pattern)
	if got := told(late); strings.HasPrefix(got, "guest ") != behind || !behind && got != "" {
		return fmt.Errorf("the guest is late, a change is %s, and the plan says %q", t.effect, got)
	}
	return nil
}
