package change

import (
	"sort"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// match says for each element of a which one of b is the same thing, or -1.
// Elements with an identity are matched by it. What has none is matched by
// content, the closest pairs first; two elements of different identities are
// never the same.
func (r *Rules) match(pattern string, a, b tree.Value) []int {
	m := r.matcher(pattern, a, b)
	m.byKey()
	m.byContent()
	return m.to
}

// matchKeys is match by identity alone.
func (r *Rules) matchKeys(pattern string, a, b tree.Value) []int {
	m := r.matcher(pattern, a, b)
	m.byKey()
	return m.to
}

// matcher pairs the elements of two lists, step by step.
type matcher struct {
	r       *Rules
	pattern string
	a, b    []tree.Value
	ka, kb  [][]string
	to      []int  // for each of a: its partner in b, or -1
	taken   []bool // of b
}

func (r *Rules) matcher(pattern string, a, b tree.Value) *matcher {
	m := &matcher{r: r, pattern: pattern, a: a.Elems(), b: b.Elems()}
	m.ka, m.kb = r.keys(pattern, m.a), r.keys(pattern, m.b)
	m.to, m.taken = make([]int, len(m.a)), make([]bool, len(m.b))
	for i := range m.to {
		m.to[i] = -1
	}
	if r.Ordered != nil && r.Ordered(pattern) {
		for i := range min(len(m.a), len(m.b)) {
			m.pair(i, i)
		}
	}
	return m
}

func (r *Rules) keys(pattern string, elems []tree.Value) [][]string {
	keys := make([][]string, len(elems))
	for i, e := range elems {
		keys[i] = r.Keys(pattern+"[]", e)
	}
	return keys
}

func (m *matcher) pair(i, j int) {
	if m.to[i] < 0 && !m.taken[j] {
		m.to[i], m.taken[j] = j, true
	}
}

// sameKey compares by the first identity that both elements have.
func sameKey(a, b []string) (same, decided bool) {
	for i := range a {
		if i < len(b) && a[i] != "" && b[i] != "" {
			return a[i] == b[i], true
		}
	}
	return false, false
}

func (m *matcher) byKey() {
	for i := range m.a {
		for j := range m.b {
			if same, _ := sameKey(m.ka[i], m.kb[j]); same {
				m.pair(i, j)
			}
		}
	}
}

// byContent pairs what is left and has no identity to compare by: the pairs
// that agree most come first. Among equals it is the place that counts: where
// nothing came or went, an element is the one at its own index, else the order
// is kept.
func (m *matcher) byContent() {
	type candidate struct {
		i, j  int
		score float64
	}
	var all []candidate
	for i := range m.a {
		for j := range m.b {
			if m.to[i] >= 0 || m.taken[j] {
				continue
			}
			if _, decided := sameKey(m.ka[i], m.kb[j]); decided {
				continue
			}
			if score, fits := m.r.closeness(m.pattern+"[]", m.a[i], m.b[j]); fits {
				all = append(all, candidate{i, j, score})
			}
		}
	}
	placed := len(m.a) == len(m.b)
	sort.SliceStable(all, func(x, y int) bool {
		if a, b := all[x], all[y]; a.score != b.score {
			return a.score > b.score
		}
		return placed && all[x].i == all[x].j && all[y].i != all[y].j
	})
	for _, c := range all {
		m.pair(c.i, c.j)
	}
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

// label is what a person calls an element: its first identity, "" if it has
// none.
func (r *Rules) label(pattern string, elem tree.Value) string {
	for _, key := range r.Keys(pattern, elem) {
		if key != "" {
			return key
		}
	}
	return ""
}

// Identify returns the configuration of an apply with the identities that its
// list elements have got: an interface without a MAC address gets the one that
// the host gave it. Kept as Owned, it tells the elements of the next
// configuration from each other.
func (r *Rules) Identify(typ *tree.Type, config, planned, state tree.Value) tree.Value {
	return r.identify(typ, nil, config, planned, state)
}

func (r *Rules) identify(typ *tree.Type, path tree.Path, config, planned, state tree.Value) tree.Value {
	switch {
	case config.Kind() == tree.Object && typ.Kind == tree.Object:
		for _, name := range config.Names() {
			if a := typ.Attrs[name]; a != nil {
				got := r.identify(a.Type, path.Attr(name), config.Attr(name), planned.Attr(name), state.Attr(name))
				config = config.With(name, got)
			}
		}
	case config.Kind() == tree.List && typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		pattern := path.Pattern()
		at := r.match(pattern, config, state)
		if planned.Len() == config.Len() && state.Len() == config.Len() && r.inOrder(pattern, config, state) {
			for i := range at {
				at[i] = i
			}
		}
		elems := make([]tree.Value, config.Len())
		for i, e := range config.Elems() {
			elems[i] = r.identify(typ.Elem, path.Elem(i, ""), e, pick(planned, i), pick(state, at[i]))
			elems[i] = r.withChosen(typ.Elem, path.Elem(i, ""), elems[i], pick(state, at[i]))
		}
		return tree.ListValue(elems)
	}
	return config
}

// inOrder says whether two lists of one length may be the same, element by
// element.
func (r *Rules) inOrder(pattern string, a, b tree.Value) bool {
	for i, e := range a.Elems() {
		other := b.Elems()[i]
		if same, decided := sameKey(r.Keys(pattern+"[]", e), r.Keys(pattern+"[]", other)); decided && !same {
			return false
		}
		if _, fits := r.closeness(pattern+"[]", e, other); !fits {
			return false
		}
	}
	return true
}

// withChosen adds to an element what libvirt chose for it.
func (r *Rules) withChosen(typ *tree.Type, path tree.Path, elem, state tree.Value) tree.Value {
	for _, name := range state.Names() {
		a := typ.Attrs[name]
		switch here := path.Attr(name); {
		case a == nil:
		case r.Chosen(here.Pattern()) && elem.Attr(name).IsNull():
			elem = elem.With(name, state.Attr(name))
		case a.Type.Kind == tree.Object:
			if got := r.withChosen(a.Type, here, elem.Attr(name), state.Attr(name)); got.Len() > 0 {
				elem = elem.With(name, got)
			}
		}
	}
	return elem
}

func pick(list tree.Value, i int) tree.Value {
	if i < 0 || i >= list.Len() {
		return tree.NullValue
	}
	return list.Elems()[i]
}
