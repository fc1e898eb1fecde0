package change

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// match says for each element of a which one of b is the same thing, or -1.
// Elements with an identity are matched by it. What has none is matched with
// the closest content that is still free; two elements of different
// identities are never the same.
func (r *Rules) match(pattern string, a, b tree.Value) []int {
	return r.matchWithin(pattern, a, b, nil)
}

// matchWithin is match, where only the given elements of b are free.
func (r *Rules) matchWithin(pattern string, a, b tree.Value, free []bool) []int {
	ea, eb := a.Elems(), b.Elems()
	to := make([]int, len(ea))
	taken := make([]bool, len(eb))
	for j := range taken {
		taken[j] = free != nil && !free[j]
	}
	ka, kb := r.keys(pattern, ea), r.keys(pattern, eb)
	for i := range ea {
		to[i] = -1
		for j := range eb {
			if ka[i] != "" && ka[i] == kb[j] && !taken[j] {
				to[i], taken[j] = j, true
				break
			}
		}
	}
	for i := range ea {
		if to[i] >= 0 {
			continue
		}
		best, score := -1, 0.0
		for j := range eb {
			if taken[j] || ka[i] != "" && kb[j] != "" {
				continue
			}
			if s, fits := r.closeness(pattern+"[]", ea[i], eb[j]); fits && (best < 0 || s > score) {
				best, score = j, s
			}
		}
		if best >= 0 {
			to[i], taken[best] = best, true
		}
	}
	return to
}

func (r *Rules) keys(pattern string, elems []tree.Value) []string {
	keys := make([]string, len(elems))
	for i, e := range elems {
		keys[i] = r.Key(pattern+"[]", e)
	}
	return keys
}

// closeness counts the leaves that two elements agree in, less those they
// differ in. Leaves that only one of them has say nothing. Elements that agree
// in nothing and differ in something do not fit: they are different things.
func (r *Rules) closeness(pattern string, a, b tree.Value) (score float64, fits bool) {
	var agree, differ int
	var walk func(pattern string, a, b tree.Value)
	walk = func(pattern string, a, b tree.Value) {
		switch {
		case !a.IsKnown() || !b.IsKnown():
		case a.Kind() == tree.Object && b.Kind() == tree.Object:
			for _, name := range a.Names() {
				walk(pattern+"."+name, a.Attr(name), b.Attr(name))
			}
		case a.Kind() == tree.List && b.Kind() == tree.List && len(a.Elems()) > 0 && a.Elems()[0].Kind() == tree.Object:
			for i, e := range a.Elems() {
				if i < b.Len() {
					walk(pattern+"[]", e, b.Elems()[i])
				}
			}
		case r.equal(pattern, a, b):
			agree++
		default:
			differ++
		}
	}
	walk(pattern, a, b)
	return float64(agree) - float64(differ)/1024, agree > 0 || differ == 0
}
