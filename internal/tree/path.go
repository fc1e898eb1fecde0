package tree

import (
	"strconv"
	"strings"
)

// Step is one step of a path: an attribute of an object, or an element of a
// list. An element is addressed by its index; Key, if set, is the identity
// that a person knows it by (vda, 52:54:00:…) and is what a path prints.
type Step struct {
	Attr  string // attribute name, "" for an element
	Index int    // element index, when Attr is ""
	Key   string // identity of the element, for messages
}

// Path leads from the root of a tree to one of its nodes.
type Path []Step

// Root is the empty path.
var Root Path

// ParsePath reads the form that String prints for paths with indices, as in
// "devices.disks[0].driver.cache".
func ParsePath(s string) Path {
	var p Path
	for _, part := range strings.Split(s, ".") {
		name, rest, _ := strings.Cut(part, "[")
		p = append(p, Step{Attr: name})
		for rest != "" {
			var idx string
			idx, rest, _ = strings.Cut(rest, "]")
			i, err := strconv.Atoi(idx)
			if err != nil {
				p = append(p, Step{Key: idx, Index: -1})
			} else {
				p = append(p, Step{Index: i})
			}
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return p
}

// Attr returns the path extended by an attribute.
func (p Path) Attr(name string) Path { return append(p[:len(p):len(p)], Step{Attr: name}) }

// Elem returns the path extended by an element of a list.
func (p Path) Elem(i int, key string) Path {
	return append(p[:len(p):len(p)], Step{Index: i, Key: key})
}

// String prints the path for people, with the identity of an element where it
// is known: devices.disks[vda].driver.cache.
func (p Path) String() string {
	return p.render(func(b *strings.Builder, s Step) {
		if s.Key != "" {
			b.WriteString(s.Key)
		} else {
			b.WriteString(strconv.Itoa(s.Index))
		}
	})
}

// Pattern prints the path as the field table knows it, with "[]" for any
// element: devices.disks[].driver.cache.
func (p Path) Pattern() string { return p.render(func(*strings.Builder, Step) {}) }

func (p Path) render(elem func(*strings.Builder, Step)) string {
	var b strings.Builder
	for i, s := range p {
		if s.Attr == "" {
			b.WriteByte('[')
			elem(&b, s)
			b.WriteByte(']')
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.Attr)
	}
	return b.String()
}

// Get returns the node at the path, null if there is none.
func (v Value) Get(p Path) Value {
	for _, s := range p {
		if s.Attr != "" {
			v = v.Attr(s.Attr)
			continue
		}
		if v.kind == Unknown {
			return UnknownValue
		}
		if s.Index < 0 || s.Index >= len(v.Elems()) {
			return NullValue
		}
		v = v.list[s.Index]
	}
	return v
}

// At is Get for a path written as text.
func (v Value) At(path string) Value { return v.Get(ParsePath(path)) }

// Set returns the tree with the node at the path replaced. Objects on the way
// are made as needed; an element that a list lacks is an invariant broken by
// the caller, and leaves the tree as it is.
func (v Value) Set(p Path, node Value) Value {
	if len(p) == 0 {
		return node
	}
	s := p[0]
	if s.Attr != "" {
		child := v.Attr(s.Attr)
		if node.IsNull() && child.IsNull() {
			return v
		}
		if child.kind == Unknown {
			child = NullValue
		}
		return v.With(s.Attr, child.Set(p[1:], node))
	}
	if s.Index < 0 || s.Index >= len(v.Elems()) {
		return v
	}
	out := append([]Value(nil), v.list...)
	out[s.Index] = out[s.Index].Set(p[1:], node)
	return ListValue(out)
}

// SetAt is Set for a path written as text.
func (v Value) SetAt(path string, node Value) Value { return v.Set(ParsePath(path), node) }

// Walk calls f for every node that is not null, parents first, in a stable
// order. It does not go below a node for which f returns false.
func (v Value) Walk(f func(p Path, node Value) bool) { v.walk(nil, f) }

func (v Value) walk(p Path, f func(Path, Value) bool) {
	if v.kind == Null || !f(p, v) {
		return
	}
	switch v.kind {
	case List:
		for i, e := range v.list {
			e.walk(p.Elem(i, ""), f)
		}
	case Object:
		for _, name := range v.Names() {
			v.obj[name].walk(p.Attr(name), f)
		}
	}
}
