package change

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Plan compares and decides; it is a pure function of its input.
func (r *Rules) Plan(in Input) Result {
	p := &planner{Rules: r, in: in}
	if in.Prior.IsNull() {
		planned := p.fresh(in.Type, nil, in.Config)
		return Result{Planned: planned, Unknown: p.out.Unknown}
	}
	p.out.Planned = p.object(in.Type, nil, side{in.Config, in.Prior, in.Baseline, in.Actual, in.Owned, in.Guest}, false)
	if p.out.Planned.IsNull() {
		p.out.Planned = tree.ObjectValue(nil)
	}
	p.follow()
	return p.out
}

type planner struct {
	*Rules
	in     Input
	places map[string]place // of list elements, by path
	out    Result
}

// side holds the values of one node in every tree.
type side struct {
	desired, prior, baseline, actual, owned, guest tree.Value
}

func (s side) attr(name string) side {
	return side{s.desired.Attr(name), s.prior.Attr(name), s.baseline.Attr(name), s.actual.Attr(name), s.owned.Attr(name), s.guest.Attr(name)}
}

// object plans an object attribute by attribute. With strict, a value stands
// in another place of its list than before, so that the prior spelling is not
// open to the plan.
func (p *planner) object(typ *tree.Type, path tree.Path, s side, strict bool) tree.Value {
	planned := map[string]tree.Value{}
	quantities, rest := p.quantities(typ, path)
	for _, q := range quantities {
		planned[q.name], planned[q.unit] = p.quantity(path.Attr(q.name), s, q, strict)
	}
	for _, name := range rest {
		planned[name] = p.node(typ.Attrs[name].Type, path.Attr(name), s.attr(name), strict)
	}
	p.displace(path, s, planned)
	if len(path) > 0 && s.desired.IsNull() && allNull(planned) {
		p.disappears(path, s)
		return tree.NullValue
	}
	return tree.ObjectValue(planned)
}

func allNull(attrs map[string]tree.Value) bool {
	for _, v := range attrs {
		if !v.IsNull() {
			return false
		}
	}
	return true
}

func (p *planner) node(typ *tree.Type, path tree.Path, s side, strict bool) tree.Value {
	pattern := path.Pattern()
	if p.Once != nil && p.Once(pattern) {
		if p.Renewal != nil && !s.desired.IsNull() {
			if leaf := p.Renewal(pattern, s.desired, s.baseline, s.actual); leaf != nil {
				return p.renewed(path, leaf, s)
			}
		}
		if !s.prior.IsNull() {
			return p.once(path, s)
		}
	}
	if s.desired.IsNull() && !s.prior.IsNull() && p.Sticky != nil && p.Sticky(pattern) {
		s.desired = s.baseline
	}
	switch {
	case p.Setting(pattern):
		return s.desired
	case s.desired.IsUnknown():
		p.out.Unknown = append(p.out.Unknown, path)
		return tree.UnknownValue
	case s.desired.IsNull() && s.owned.IsNull():
		return s.prior
	case typ.Kind == tree.Object:
		return p.object(typ, path, s, strict)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		return p.list(typ.Elem, path, s, strict)
	case s.desired.IsNull():
		return p.withdrawn(path, s, "")
	}
	return p.value(path, s, strict)
}

// once plans what acts at creation only: as it is, whatever is written now, unless
// the configuration asks for another object then.
func (p *planner) once(path tree.Path, s side) tree.Value {
	pattern := path.Pattern()
	if leaf, differs := p.undecided(pattern, s); leaf != nil {
		if differs {
			p.out.Unresolved = append(p.out.Unresolved, append(path[:len(path):len(path)], leaf...))
		}
		return s.prior
	}
	unknown := s.desired.HasUnknown()
	switch {
	case s.desired.IsNull():
		return tree.NullValue
	case !unknown && p.equal(pattern, s.desired, s.prior):
	case p.Remakes != nil && p.Remakes(pattern, s.desired):
		p.out.Changes = append(p.out.Changes, Change{Path: path, Kind: Intent, Desired: s.desired, Actual: s.prior, Baseline: s.prior})
		return s.desired
	case !unknown:
		p.out.Ignored = append(p.out.Ignored, path)
	}
	return s.prior
}

// undecided is the leaf by which a value would ask for another object, if that is
// not known yet; differs says that the rest has another value, or may have one.
func (p *planner) undecided(pattern string, s side) (leaf tree.Path, differs bool) {
	if p.Decides == nil {
		return nil, false
	}
	leaf = p.Decides(pattern)
	switch {
	case leaf == nil:
		return nil, false
	case s.desired.IsUnknown():
		return leaf, true
	case !s.desired.Get(leaf).IsUnknown():
		return nil, false
	}
	rest := s.desired.Set(leaf, tree.NullValue)
	return leaf, rest.HasUnknown() || !p.equal(pattern, rest, s.prior)
}

// renewed plans what acts once and can be brought about again all the same: as
// it is, if the leaf that the host tells means what is desired, however state or
// configuration spell it.
func (p *planner) renewed(path, leaf tree.Path, s side) tree.Value {
	at := append(path[:len(path):len(path)], leaf...)
	if s.desired.HasUnknown() {
		p.out.Unknown = append(p.out.Unknown, at)
		return s.desired
	}
	before := len(p.out.Changes)
	below := side{s.desired.Get(leaf), s.prior.Get(leaf), s.baseline.Get(leaf), s.actual.Get(leaf), s.owned.Get(leaf), tree.NullValue}
	p.value(at, below, false)
	// What is beside the leaf follows the configuration: a plan that did not know
	// the leaf yet has promised it.
	onlyLeaf := tree.Equal(s.prior.Set(leaf, tree.NullValue), s.desired.Set(leaf, tree.NullValue))
	if len(p.out.Changes) == before && !s.prior.IsNull() && onlyLeaf {
		return s.prior
	}
	return s.desired
}

// value plans a scalar, or a list of scalars, that the configuration names.
func (p *planner) value(path tree.Path, s side, strict bool) tree.Value {
	pattern := path.Pattern()
	if s.desired.HasUnknown() {
		p.out.Unknown = append(p.out.Unknown, path)
		return s.desired
	}
	equal := func(a, b tree.Value) bool { return p.equal(pattern, a, b) }
	if p.applies(pattern, s) {
		equal = func(a, b tree.Value) bool { return p.covers(pattern, a, b, s.owned) }
		if !s.owned.IsNull() && p.covers(pattern, s.owned, s.actual, tree.NullValue) {
			s.baseline = s.actual // of what was ours, nothing was changed
		}
	}
	return p.decide(path, s, "", equal, strict)
}

// applies says whether a path is compared by what the host has of it.
func (p *planner) applies(pattern string, s side) bool {
	if p.Covers == nil {
		return false
	}
	_, applies := p.Covers(pattern, s.desired, s.actual, s.owned)
	return applies
}

// covers says whether a path is one of which the host may have more, and
// whether actual has all of desired and nothing that only owned still has.
func (r *Rules) covers(pattern string, desired, actual, owned tree.Value) bool {
	if r.Covers == nil {
		return false
	}
	covers, applies := r.Covers(pattern, desired, actual, owned)
	return covers && applies
}

// withdrawn plans a scalar that the configuration named and names no more.
func (p *planner) withdrawn(path tree.Path, s side, unit string) tree.Value {
	switch pattern := path.Pattern(); {
	case s.prior.IsNull(), p.equal(pattern, tree.NullValue, s.actual), p.covers(pattern, tree.NullValue, s.actual, s.owned):
		return s.prior // an explicit default, or gone already: nothing changes
	case p.Chosen(pattern), p.Kept != nil && p.Kept(pattern), p.identifies(path):
		// Identities are sticky: a MAC address that the configuration names no
		// more is still the machine's.
		return s.prior
	}
	p.out.Changes = append(p.out.Changes, Change{
		Path: path, Unit: unit, Kind: Withdrawal, Actual: s.actual, Baseline: s.baseline, Guest: s.guest,
		Reached: p.reached(path.Pattern(), tree.NullValue, s.guest),
	})
	return tree.NullValue
}

// decide applies the table of the three-way comparison to a known value.
func (p *planner) decide(path tree.Path, s side, unit string, equal func(a, b tree.Value) bool, strict bool) tree.Value {
	if equal(s.desired, s.actual) {
		p.lag(path, s, unit, equal)
		if !strict && !s.prior.IsNull() && equal(s.desired, s.prior) {
			return s.prior
		}
		return s.desired
	}
	c := Change{
		Path: path, Unit: unit, Kind: Intent, Desired: s.desired, Actual: s.actual, Baseline: s.baseline, Guest: s.guest,
		Reached: !p.in.Guest.IsNull() && equal(s.desired, s.guest),
	}
	switch {
	case p.in.Baseline.IsNull() || equal(s.actual, s.baseline):
	case equal(s.desired, s.baseline):
		c.Kind = Drift
		if p.holds(path, s, unit) {
			if !strict && !s.prior.IsNull() {
				return s.prior
			}
			p.out.Clashes = append(p.out.Clashes, Clash{List: path, Held: p.out.Held[len(p.out.Held)-1]})
			return s.desired
		}
	default:
		c.Kind = Conflict
	}
	p.out.Changes = append(p.out.Changes, c)
	return s.desired
}

// holds says whether drift in a path stays as it is, and notes it.
func (p *planner) holds(path tree.Path, s side, unit string) bool {
	tier := p.Tier(path.Pattern())
	if tier == TierRoutine || tier == TierAddition || s.actual.IsNull() {
		// What is missing is added again, and said: a plan that leaves it away is
		// none that the core accepts.
		return false
	}
	h := Held{Path: path, Tier: tier, Unit: unit, Desired: s.desired, Actual: s.actual, Digest: DriftDigest(p.in.Object, p.inBaseline(path), s.baseline, s.actual)}
	if tier == TierModification && p.released(h.Digest) {
		return false
	}
	p.out.Held = append(p.out.Held, h)
	return true
}

// quantity plans a number together with its unit.
func (p *planner) quantity(path tree.Path, s side, q quantity, strict bool) (amount, unit tree.Value) {
	was, is := s.attr(q.name), s.attr(q.unit)
	bytes := side{q.of(s.desired), q.of(s.prior), q.of(s.baseline), q.of(s.actual), was.owned, q.of(s.guest)}
	switch {
	case was.desired.IsNull() && was.owned.IsNull():
		return p.idle(was.prior, is, q)
	case was.desired.IsNull():
		if got := p.withdrawn(path, bytes, "bytes"); got.IsNull() {
			return got, is.desired
		}
		return was.prior, is.prior
	case was.desired.IsUnknown() || is.desired.IsUnknown():
		p.out.Unknown = append(p.out.Unknown, path)
		return was.desired, is.desired
	}
	held := len(p.out.Held)
	got := p.decide(path, bytes, "bytes", func(a, b tree.Value) bool { return p.equal(path.Pattern(), a, b) }, strict)
	spelt := is.desired.IsNull() || !is.prior.IsNull() // the core accepts no prior null for what is configured
	if !bytes.prior.IsNull() && !strict && tree.Equal(got, bytes.prior) {
		if spelt {
			return was.prior, is.prior
		}
		if len(p.out.Held) > held {
			p.out.Clashes = append(p.out.Clashes, Clash{List: path, Held: p.out.Held[held]})
		}
	}
	if is.desired.IsNull() && !strict && factorOf(is.prior.Str()) == factorOf(q.standard) {
		return was.desired, is.prior
	}
	return was.desired, is.desired
}

// idle plans a number that the configuration does not name. A unit that it
// gives to no number says nothing of the host; a number that state knows is told
// in it, where state had none.
func (p *planner) idle(amount tree.Value, unit side, q quantity) (tree.Value, tree.Value) {
	if !unit.prior.IsNull() || unit.desired.IsNull() {
		return amount, unit.prior
	}
	if told := inUnit(Bytes(amount, tree.NullValue, q.standard), unit.desired, q.standard); !told.IsNull() {
		amount = told
	}
	return amount, unit.desired
}

// fresh plans an object that is new: what the configuration says, and unknown
// what libvirt will choose.
func (p *planner) fresh(typ *tree.Type, path tree.Path, desired tree.Value) tree.Value {
	switch {
	case desired.IsUnknown():
		p.out.Unknown = append(p.out.Unknown, path)
		return desired
	case desired.IsNull() && p.Chosen(path.Pattern()):
		return tree.UnknownValue
	case typ.Kind == tree.Object && (!desired.IsNull() || p.choosesBelow(typ, path)):
		attrs := map[string]tree.Value{}
		for name, a := range typ.Attrs {
			attrs[name] = p.fresh(a.Type, path.Attr(name), desired.Attr(name))
		}
		return tree.ObjectValue(attrs)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object && !desired.IsNull():
		elems := make([]tree.Value, desired.Len())
		for i, e := range desired.Elems() {
			elems[i] = p.fresh(typ.Elem, path.Elem(i, p.label(path.Pattern()+"[]", e)), e)
		}
		return tree.ListValue(elems)
	}
	if desired.HasUnknown() {
		p.out.Unknown = append(p.out.Unknown, path)
	}
	return desired
}

// choosesBelow says whether libvirt chooses a direct attribute of the object
// when the whole object is absent (an interface's mac.address).
func (p *planner) choosesBelow(typ *tree.Type, path tree.Path) bool {
	if len(path) == 0 {
		return true
	}
	for name, a := range typ.Attrs {
		if a.Type.Kind != tree.Object && a.Type.Kind != tree.List && p.Chosen(path.Attr(name).Pattern()) {
			return true
		}
	}
	return false
}

// equal is equality by meaning: to the letter, or as the rules say. Absent,
// false for an element that is only there or not, and empty mean the same
// where the rules say so.
func (r *Rules) equal(pattern string, a, b tree.Value) bool {
	return tree.Equal(a, b) || r.Equal(pattern, a, b)
}

// Same says whether two values of a path mean the same. An element of a list
// is taken as a whole: it is the same if both are there, or none.
func (r *Rules) Same(pattern string, a, b tree.Value) bool {
	if a.Kind() == tree.Object || b.Kind() == tree.Object {
		return a.IsNull() == b.IsNull()
	}
	return r.equal(pattern, a, b)
}
