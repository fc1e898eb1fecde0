package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// shrunk makes a past that fails smaller, as long as it fails in the same way.
func (h past) shrunk(fails func(past) bool) past {
	attempt := func(smaller past) bool {
		if !fails(smaller) {
			return false
		}
		h = smaller
		return true
	}
	for again := true; again; {
		again = false
		for i := len(h.events) - 1; i >= 0; i-- {
			smaller := h
			smaller.events = slices.Delete(slices.Clone(h.events), i, i+1)
			again = attempt(smaller) || again
		}
		for i, which := range []func(*past) *tree.Value{
			func(p *past) *tree.Value { return &p.definition }, func(p *past) *tree.Value { return &p.config },
		} {
			got := shrunkTree(*which(&h), func(v tree.Value) bool {
				if !isWhole(testType, nil, v, i == 0) {
					return false
				}
				smaller := h
				*which(&smaller) = v
				return attempt(smaller)
			})
			again = again || !tree.Equal(got, *which(&h))
		}
		for i := range h.events { // fewer choices of an event: the first seeds
			for seed := range int64(40) {
				if seed >= h.events[i].seed {
					break
				}
				smaller := h
				smaller.events = slices.Clone(h.events)
				smaller.events[i].seed = seed
				if attempt(smaller) {
					again = true
					break
				}
			}
		}
	}
	return h
}

// shrunkTree leaves out of a tree what it can: f says whether a smaller tree
// still does what it is wanted for. It returns the smallest that f accepted.
func shrunkTree(v tree.Value, f func(tree.Value) bool) tree.Value {
	for again := true; again; {
		again = false
		for _, p := range placesOf(v) {
			for _, smaller := range smallerAt(v, p) {
				if f(smaller) {
					v, again = smaller, true
					break
				}
			}
			if again {
				break // the places are others now
			}
		}
	}
	return v
}

// placesOf lists every node of a tree, the largest first.
func placesOf(v tree.Value) (all []tree.Path) {
	v.Walk(func(p tree.Path, _ tree.Value) bool {
		if len(p) > 0 {
			all = append(all, p)
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b tree.Path) int { return len(a) - len(b) })
	return all
}

// smallerAt leaves a node out, and if it is the element of a list, closes the
// gap.
func smallerAt(v tree.Value, p tree.Path) []tree.Value {
	last := p[len(p)-1]
	owner := p[:len(p)-1]
	if last.Attr != "" {
		return []tree.Value{v.Set(p, tree.NullValue)}
	}
	elems := slices.Delete(slices.Clone(v.Get(owner).Elems()), last.Index, last.Index+1)
	return []tree.Value{v.Set(owner, listOf(elems))}
}

// isWhole says whether a tree has what objects are never without.
func isWhole(typ *tree.Type, path tree.Path, v tree.Value, host bool) bool {
	whole := true
	eachPlace(typ, path, v, func(p tree.Path, _ *tree.Type) {
		whole = whole && (!always(p.Pattern(), host) || !v.Get(p).IsNull() || v.Get(p[:len(p)-1]).IsNull())
	})
	return whole
}
