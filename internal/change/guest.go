package change

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// lag looks at a value that the definition has as the configuration wants it,
// and that the running guest may not have. What can be made so without a
// restart, somebody changed behind the definition: it is drift, and its tier
// decides. All else waits for the next start, and is no change.
func (p *planner) lag(path tree.Path, s side, unit string, equal func(a, b tree.Value) bool) {
	pattern := path.Pattern()
	if p.guest.IsNull() || p.Correctable == nil || p.noise(pattern) || equal(s.desired, s.guest) || p.lagging[path.String()] {
		return
	}
	p.behind(Change{
		Path: path, Unit: unit, Kind: Drift, Live: true,
		Desired: s.desired, Actual: s.guest, Baseline: s.actual, Guest: s.guest,
	})
}

// behind decides about a guest that is not as its definition.
func (p *planner) behind(c Change) {
	if !p.Correctable(c, p.guest) || p.Late != nil && p.Late(c) && !p.policy.Revert {
		return
	}
	h := Held{
		Path: c.Path, Tier: p.Tier(c.Path.Pattern()), Unit: c.Unit, Desired: c.Desired, Actual: c.Actual, Live: true,
		Digest: guestDigest(p.id, c.Path, c.Baseline, c.Actual),
	}
	held := h.Tier == TierLocked || h.Tier == TierModification && !p.released(h.Digest)
	if held && !c.Actual.IsNull() {
		p.out.Held = append(p.out.Held, h)
		return
	}
	p.out.Live = append(p.out.Live, c)
}

// released says whether the user decided that drift is put back.
func (p *planner) released(digest string) bool {
	if p.policy.Approved[digest] {
		p.out.Approved = append(p.out.Approved, digest)
		return true
	}
	return p.policy.Revert
}

// reached says whether the guest has a value that the definition is to get.
func (p *planner) reached(pattern string, desired, guest tree.Value) bool {
	return !p.guest.IsNull() && p.equal(pattern, desired, guest)
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
		if !r.noise(pattern) && !(unasked && named.Get(p).IsNull()) {
			out = append(out, p)
		}
	}
	return out
}

// missingInGuest plans an element that the definition has and the running
// guest has not: a device that somebody took out, or one that waits.
func (p *planner) missingInGuest(path tree.Path, e side) {
	if p.Correctable == nil || p.noise(path.Pattern()) || p.lagging[path.String()] {
		return
	}
	p.behind(Change{Path: path, Kind: Addition, Live: true, Desired: e.desired, Baseline: e.actual})
}

// inGuest finds the elements of the configuration in the running guest: by way
// of the definition, else by their own identity.
func (p *planner) inGuest(pattern string, s side, m matches) []int {
	if p.guest.IsNull() {
		return make([]int, s.desired.Len()) // never read
	}
	fromActual := p.match(pattern, s.actual, s.guest)
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
	return out.to
}

// has says whether the guest has an element with all that the configuration
// says of it.
func (p *planner) has(elem *tree.Type, path tree.Path, desired, guest tree.Value) bool {
	if p.guest.IsNull() || guest.IsNull() || desired.HasUnknown() {
		return false
	}
	d := &differ{Rules: p.Rules, known: true}
	d.object(elem, path, desired, guest)
	return len(d.paths) == 0
}
