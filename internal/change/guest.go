package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// lag looks at a value that the definition has as the configuration wants it,
// and that the running guest may not have. What can be made so without a
// restart, somebody changed behind the definition: it is drift, and its tier
// decides. All else waits for the next start, and is no change.
func (p *planner) lag(path tree.Path, s side, unit string, equal func(a, b tree.Value) bool) {
	pattern := path.Pattern()
	if p.in.Guest.IsNull() || p.Correctable == nil || p.noise(pattern) || equal(s.desired, s.guest) || p.lags(path) {
		return
	}
	p.behind(Change{
		Path: path, Unit: unit, Kind: Drift, Live: true,
		Desired: s.desired, Actual: s.guest, Baseline: s.actual, Guest: s.guest,
	})
}

// lags says whether the guest was late in a path at the end of the last apply.
func (p *planner) lags(path tree.Path) bool {
	return len(p.in.Lagging) > 0 && p.in.Lagging[p.inDefinition(path).String()]
}

// behind decides about a guest that is not as its definition.
func (p *planner) behind(c Change) {
	if !p.Correctable(c, p.in.Guest) || p.Late != nil && p.Late(c) && !p.in.Policy.Revert {
		return
	}
	h := Held{
		Path: c.Path, Tier: p.Tier(c.Path.Pattern()), Unit: c.Unit, Desired: c.Desired, Actual: c.Actual, Live: true,
		Digest: guestDigest(p.in.Object, p.inBaseline(c.Path), c.Baseline, c.Actual),
	}
	held := h.Tier == TierLocked || h.Tier == TierModification && !p.released(h.Digest)
	if held && c.Kind != Addition {
		p.out.Held = append(p.out.Held, h)
		return
	}
	p.out.Live = append(p.out.Live, c)
}

// released says whether the user decided that drift is put back.
func (p *planner) released(digest string) bool {
	if p.in.Policy.Approved[digest] {
		p.out.Approved = append(p.out.Approved, digest)
		return true
	}
	return p.in.Policy.Revert
}

// reached says whether the guest has a value that the definition is to get.
func (p *planner) reached(pattern string, desired, guest tree.Value) bool {
	return !p.in.Guest.IsNull() && p.equal(pattern, desired, guest)
}

func (r *Rules) noise(pattern string) bool { return r.Noise != nil && r.Noise(pattern) }

// Waiting lists the paths in which a running guest is not as its definition.
// What moves by itself in a guest, or only follows another path that waits,
// counts where named, the configuration, has it.
func (r *Rules) Waiting(typ *tree.Type, definition, guest, named tree.Value) []tree.Path {
	if guest.IsNull() {
		return nil
	}
	var out []tree.Path
	follow := map[string]bool{}
	all := r.Differences(typ, definition, guest)
	for _, p := range all {
		if r.Follows != nil {
			for _, f := range r.Follows(p.Pattern()) {
				follow[f] = true
			}
		}
	}
	for _, p := range all {
		pattern := p.Pattern()
		unasked := follow[pattern] || r.Floats != nil && r.Floats(pattern)
		if !r.noise(pattern) && !(unasked && r.Find(named, p).IsNull()) {
			out = append(out, p)
		}
	}
	return out
}

// Lagging lists the paths in which a guest is late after an apply, of those in
// which it waits: not where the drift of the guest is held, which somebody else
// made, and that stays drift however many applies pass. But where an apply moved
// the definition, this one, by changes, or one before, by was, the guest is late
// also if it could be made so now: the configuration lets it wait. What a guest
// moves by itself is late only if an apply moved it.
func (r *Rules) Lagging(waiting []tree.Path, was map[string]bool, changes []Change, held []Held) (late []tree.Path) {
	moved, kept := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		moved[c.Path.String()] = true
	}
	for _, h := range held {
		kept[h.Path.String()] = h.Live
	}
	for _, p := range waiting {
		text := p.String()
		if was[text] || moved[text] || !kept[text] && (r.Floats == nil || !r.Floats(p.Pattern())) {
			late = append(late, p)
		}
	}
	return late
}

// missingInGuest plans an element that the definition has and the running
// guest has not: a device that somebody took out, or one that waits.
func (p *planner) missingInGuest(path tree.Path, e side) {
	if p.Correctable == nil || p.noise(path.Pattern()) || p.lags(path) {
		return
	}
	p.behind(Change{Path: path, Kind: Addition, Live: true, Desired: e.desired, Baseline: e.actual})
}

// inGuest finds the elements of the configuration in the running guest: by way
// of the definition, else by their own identity.
func (p *planner) inGuest(pattern string, s side, m matches) []int {
	if p.in.Guest.IsNull() {
		return make([]int, s.desired.Len()) // never read
	}
	fromActual := p.matchWhole(pattern, s.actual, s.guest)
	out := p.matcher(pattern, s.desired, s.guest)
	for _, k := range fromActual {
		if k >= 0 {
			out.taken[k] = true
		}
	}
	for i, j := range m.actual {
		if j >= 0 {
			out.to[i] = fromActual[j]
		}
	}
	for i := range out.to {
		if m.actual[i] >= 0 && out.to[i] < 0 {
			out.ka[i] = nil // the definition has it, and the guest does not
		}
	}
	out.byKey()
	// One without an identity that only the definition has lost is in the guest
	// still, and known there by what it is.
	// So is one that an apply has taken out of the definition, and that comes back
	// before the guest's next start.
	late := p.allLate(pattern, s.guest, out.taken)
	out.byContentOf(func(i int) bool { return m.actual[i] < 0 && (m.owned[i] >= 0 || late) })
	return out.to
}

// allLate says whether an apply has left in the guest all elements of a list
// that are not taken: none of them is a stranger's.
func (p *planner) allLate(pattern string, guest tree.Value, taken []bool) bool {
	list := tree.ParsePath(pattern)
	for j, e := range guest.Elems() {
		if !taken[j] && !p.in.Lagging[list.Elem(j, p.label(pattern+"[]", e)).String()] {
			return false
		}
	}
	return true
}

// has says whether the guest has an element with all that the configuration
// says of it.
func (p *planner) has(elem *tree.Type, path tree.Path, desired, guest tree.Value) bool {
	if p.in.Guest.IsNull() || guest.IsNull() || desired.HasUnknown() {
		return false
	}
	d := &differ{Rules: p.Rules, known: true}
	d.object(elem, path, desired, guest)
	return len(d.paths) == 0
}

// Find returns the node of a tree at a path of another one: elements of lists
// are found by the identity that the path shows, else by their place.
func (r *Rules) Find(v tree.Value, p tree.Path) tree.Value {
	for i, step := range p {
		if step.Attr != "" || step.Key == "" {
			v = v.Get(p[i : i+1])
			continue
		}
		found := tree.NullValue
		for _, e := range v.Elems() {
			if r.label(p[:i+1].Pattern(), e) == step.Key {
				found = e
			}
		}
		v = found
	}
	return v
}

// Counterpart returns the node of a configuration that speaks of the one at a
// path of a definition that has all that the configuration says: elements of
// lists are the same by their identity, else by their content, wherever they
// stand.
func (r *Rules) Counterpart(config, definition tree.Value, p tree.Path) tree.Value {
	for i, step := range p {
		if step.Attr != "" {
			config, definition = config.Attr(step.Attr), definition.Attr(step.Attr)
			continue
		}
		config, definition = pick(config, slices.Index(r.match(p[:i].Pattern(), config, definition), step.Index)), pick(definition, step.Index)
	}
	return config
}

// Strangers lists the elements of the lists of a definition that are in none
// of the others.
func (r *Rules) Strangers(typ *tree.Type, in tree.Value, others ...tree.Value) []tree.Path {
	return r.strangers(typ, nil, in, others)
}

func (r *Rules) strangers(typ *tree.Type, path tree.Path, in tree.Value, others []tree.Value) (out []tree.Path) {
	switch {
	case in.Kind() == tree.Object && typ.Kind == tree.Object:
		for _, name := range in.Names() {
			if a := typ.Attrs[name]; a != nil {
				below := make([]tree.Value, len(others))
				for i, o := range others {
					below[i] = o.Attr(name)
				}
				out = append(out, r.strangers(a.Type, path.Attr(name), in.Attr(name), below)...)
			}
		}
	case in.Kind() == tree.List && typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		known := make([]bool, in.Len())
		for _, o := range others {
			for i, j := range r.match(path.Pattern(), in, o) {
				known[i] = known[i] || j >= 0
			}
		}
		for i, e := range in.Elems() {
			if !known[i] {
				out = append(out, path.Elem(i, r.label(path.Pattern()+"[]", e)))
			}
		}
	}
	return out
}
