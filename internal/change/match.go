package change

import (
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

// matchWhole is match for two definitions: what only one of two elements has
// counts against them. Where one of the trees says only a part, it does not.
func (r *Rules) matchWhole(pattern string, a, b tree.Value) []int {
	m := r.matcher(pattern, a, b)
	m.whole = true
	m.byKey()
	m.byContent()
	return m.to
}

// Pairs says for each element of a list of one definition which one of the
// same list of another definition is the same thing, or -1.
func (r *Rules) Pairs(pattern string, a, b tree.Value) []int { return r.matchWhole(pattern, a, b) }

// Partners says for each element of a list of a configuration which one of the
// same list of a definition it speaks of, or -1.
func (r *Rules) Partners(pattern string, config, definition tree.Value) []int {
	return r.match(pattern, config, definition)
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
	whole   bool   // see matchWhole
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

// byContent pairs what is left and has no identity to compare by, so that as
// much as possible agrees. Among equals it is the place that counts: where
// nothing came or went, an element is the one at its own index, else the first
// ones are taken, in their order.
func (m *matcher) byContent() { m.byContentOf(func(int) bool { return true }) }

// byContentOf is byContent for some of the elements of a.
func (m *matcher) byContentOf(some func(i int) bool) {
	var rows, cols []int
	for i := range m.a {
		if m.to[i] < 0 && some(i) {
			rows = append(rows, i)
		}
	}
	for j := range m.b {
		if !m.taken[j] {
			cols = append(cols, j)
		}
	}
	if len(rows) == 0 || len(cols) == 0 {
		return
	}
	likeness := make([][]float64, len(rows))
	for x, i := range rows {
		likeness[x] = make([]float64, len(cols))
		for y, j := range cols {
			if _, decided := sameKey(m.ka[i], m.kb[j]); !decided {
				likeness[x][y] = m.likeness(i, j)
			}
		}
	}
	for x, y := range assign(likeness) {
		if y >= 0 {
			m.pair(rows[x], cols[y])
		}
	}
}

// inPrior matches a wanted list with prior: by identity; by way of the last
// configuration, whose elements have got identities; by content; and what is
// left over on both sides in its order, if it was the configuration's. inOwned
// says where the wanted elements are in the last configuration; ours, which of
// prior it named.
func (r *Rules) inPrior(m *matcher, inOwned []int, owned tree.Value) (to []int, ours []bool) {
	ownedAt := r.match(m.pattern, owned, tree.ListValue(m.b))
	m.byKey()
	for i, o := range inOwned {
		if o >= 0 && ownedAt[o] >= 0 {
			if _, decided := sameKey(m.ka[i], m.kb[ownedAt[o]]); !decided {
				m.pair(i, ownedAt[o])
			}
		}
	}
	m.byContent()
	ours = make([]bool, len(m.b))
	for _, j := range ownedAt {
		if j >= 0 {
			ours[j] = true
		}
	}
	for i := range m.a {
		for j := range m.b {
			if _, decided := sameKey(m.ka[i], m.kb[j]); ours[j] && !decided {
				m.pair(i, j)
			}
		}
	}
	return m.to, ours
}

// likeness says how much two elements have in common: the leaves that agree,
// squared, so that one pair that agrees in everything is worth more than two
// that agree in some of it; much less for each that differs, less again for
// each that only one of them has, and least for their places. It is 0 for
// elements that agree in nothing and differ in something: they are different
// things.
func (m *matcher) likeness(i, j int) float64 {
	c := m.r.compare(m.pattern+"[]", m.a[i], m.b[j])
	if c.agree == 0 && c.differ > 0 {
		return 0
	}
	place := (i - j) * (i - j)
	if len(m.a) != len(m.b) {
		place += 4 * (i + j) * (len(m.a) + len(m.b))
	}
	if !m.whole {
		c.alone = 0
	}
	return 0.5 + float64(c.agree*c.agree) - float64(c.differ)/(1<<10) - float64(c.alone)/(1<<20) - float64(place)/(1<<40)
}

// kinship counts leaves of two values: those that both have, and those that
// only one of them has.
type kinship struct{ agree, differ, alone int }

func (r *Rules) compare(pattern string, a, b tree.Value) (k kinship) {
	count := func(pattern string, a, b tree.Value) {
		more := r.compare(pattern, a, b)
		k = kinship{k.agree + more.agree, k.differ + more.differ, k.alone + more.alone}
	}
	isObjects := func(v tree.Value) bool {
		return v.Len() > 0 && v.Kind() == tree.List && v.Elems()[0].Kind() == tree.Object
	}
	switch {
	case a.IsUnknown(), b.IsUnknown():
	case a.Kind() == tree.Object || b.Kind() == tree.Object:
		for _, name := range a.Names() {
			count(pattern+"."+name, a.Attr(name), b.Attr(name))
		}
		for _, name := range b.Names() {
			if a.Attr(name).IsNull() {
				count(pattern+"."+name, a.Attr(name), b.Attr(name))
			}
		}
	case isObjects(a) || isObjects(b):
		for i := range max(a.Len(), b.Len()) {
			count(pattern+"[]", pick(a, i), pick(b, i))
		}
	case a.IsNull() && b.IsNull():
	case a.IsNull() || b.IsNull():
		k.alone++
	case r.equal(pattern, a, b):
		k.agree++
	default:
		k.differ++
	}
	return k
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

func pick(list tree.Value, i int) tree.Value {
	if i < 0 || i >= list.Len() {
		return tree.NullValue
	}
	return list.Elems()[i]
}
