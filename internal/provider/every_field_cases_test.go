package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// subject is one kind of object whose every field is tried.
type subject struct {
	kind.Kind
	root   *spec.Root
	beside tree.Path             // a field to change beside another
	base   tree.Value            // what every object of the kind has
	status tree.Value            // of an object that runs
	units  map[string]string     // pattern of a unit → pattern of its number
	ids    map[string][][]string // pattern of a list element → what identity found
	skip   int                   // the companion to leave out and to do nothing about it, -1 for none
}

func newSubject(k kind.Kind, root *spec.Root, base, status map[string]tree.Value, beside string) *subject {
	s := &subject{
		Kind: k, root: root, base: tree.ObjectValue(base), status: tree.ObjectValue(status), beside: tree.ParsePath(beside),
		units: map[string]string{}, ids: map[string][][]string{}, skip: -1,
	}
	k.Type().Walk(func(pattern string, a *tree.Attribute) {
		if a.Type.Kind != tree.Number {
			return
		}
		if unit, _ := k.Rules().Unit(pattern); unit != "" {
			s.units[pattern[:strings.LastIndex(pattern, ".")+1]+unit] = pattern
		}
	})
	return s
}

// leaf is one field that holds a value: a scalar, or a list of scalars.
type leaf struct {
	pattern  string
	path     tree.Path // through element 0 of every list
	typ      *tree.Type
	settable bool // a configuration can hold it
	required bool // and must
}

// leaves lists every field of the kind.
func (s *subject) leaves() []leaf {
	var out []leaf
	settable := map[string]bool{}
	s.Type().Walk(func(pattern string, a *tree.Attribute) {
		parent := strings.TrimSuffix(pattern[:max(0, strings.LastIndex(pattern, "."))], "[]")
		settable[pattern] = (a.Optional || a.Required) && (parent == "" || settable[parent])
		if isLeaf(a.Type) {
			out = append(out, leaf{pattern: pattern, path: firstPath(pattern), typ: a.Type, settable: settable[pattern], required: a.Required})
		}
	})
	return out
}

func isLeaf(typ *tree.Type) bool {
	return typ.Kind != tree.Object && (typ.Kind != tree.List || typ.Elem.Kind != tree.Object)
}

func firstPath(pattern string) tree.Path {
	return tree.ParsePath(strings.ReplaceAll(pattern, "[]", "[0]"))
}

// narrow is a type without the attributes that an object does not have: to a
// plan they are null in every tree. Units stay, as numbers are read by them.
func narrow(typ *tree.Type, all ...tree.Value) *tree.Type {
	switch {
	case typ.Kind == tree.List:
		var elems []tree.Value
		for _, v := range all {
			elems = append(elems, v.Elems()...)
		}
		return tree.ListOf(narrow(typ.Elem, elems...))
	case typ.Kind != tree.Object:
		return typ
	}
	out := &tree.Type{Kind: tree.Object, Attrs: map[string]*tree.Attribute{}}
	for name, a := range typ.Attrs {
		var below []tree.Value
		for _, v := range all {
			if sub := v.Attr(name); !sub.IsNull() {
				below = append(below, sub)
			}
		}
		switch {
		case below != nil:
			copied := *a
			copied.Type = narrow(a.Type, below...)
			out.Attrs[name] = &copied
		case strings.HasSuffix(name, "unit"):
			out.Attrs[name] = a
		}
	}
	return out
}

// plant sets a value and makes everything on the way to it, also elements.
func plant(v tree.Value, p tree.Path, value tree.Value) tree.Value {
	switch {
	case len(p) == 0:
		return value
	case p[0].Attr != "":
		if child := plant(v.Attr(p[0].Attr), p[1:], value); !child.IsNull() || v.Kind() == tree.Object {
			return v.With(p[0].Attr, child)
		}
		return v
	case v.Len() > 0:
		return v.Set(p[:1], plant(v.Elems()[0], p[1:], value))
	}
	return tree.ListValue([]tree.Value{plant(tree.ObjectValue(nil), p[1:], value)})
}

// sample makes the n-th of several values of a field that all mean something
// else.
func (s *subject) sample(pattern string, typ *tree.Type, n int) tree.Value {
	switch typ.Kind {
	case tree.Bool:
		return tree.BoolValue(n%2 == 0)
	case tree.Number:
		return tree.IntValue(int64(n + 1))
	case tree.List:
		return tree.ListValue([]tree.Value{s.sample(pattern+"[]", typ.Elem, n)})
	}
	if s.units[pattern] != "" {
		return tree.StringValue([]string{"GiB", "TiB", "PiB"}[n%3])
	}
	for _, row := range spellings {
		if pattern == row.suffix || strings.HasSuffix(pattern, "."+row.suffix) {
			return tree.StringValue(row.values[n])
		}
	}
	return tree.StringValue(string(rune('a' + n)))
}

// zero is the value of a field that XML may not tell from none.
func zero(typ *tree.Type) tree.Value {
	switch typ.Kind {
	case tree.Bool:
		return tree.BoolValue(false)
	case tree.Number:
		return tree.IntValue(0)
	case tree.List:
		return tree.ListValue(nil)
	}
	return tree.StringValue("")
}

// object is the smallest object that can hold the field, with what tells its
// list elements from others, and the field without a value.
func (s *subject) object(l leaf) tree.Value {
	obj := s.base
	if number := s.units[l.pattern]; number != "" {
		obj = plant(obj, firstPath(number), tree.IntValue(1024))
	}
	for i := range l.path {
		if s.root == spec.Domain() {
			obj = s.accompanied(obj, l, l.path[:i])
		}
	}
	for i, step := range l.path {
		if step.Attr == "" {
			obj = s.identified(obj, l, l.path[:i+1])
		}
	}
	return obj
}

// accompanied adds the companions that the table has for an object above a leaf.
func (s *subject) accompanied(obj tree.Value, l leaf, above tree.Path) tree.Value {
	for i, c := range companions {
		if !c.concerns(l, above.Pattern()) || i == s.skip {
			continue
		}
		value := c.value
		if value.IsNull() {
			value = tree.StringValue("x")
		}
		obj = plant(obj, append(slices.Clone(above), firstPath(c.at)...), value)
	}
	return obj
}

// concerns says whether a companion is for a leaf below an object.
func (c companion) concerns(l leaf, object string) bool {
	rest := l.pattern
	if object != "" {
		var inside bool
		if rest, inside = strings.CutPrefix(rest, object+"."); !inside {
			return false
		}
	}
	under := func(prefix string) bool { return within(rest, prefix) }
	return (object == c.under || c.under != "" && strings.HasSuffix(object, "."+c.under)) && rest != c.at &&
		(c.fields == nil || slices.ContainsFunc(c.fields, under)) && !slices.ContainsFunc(c.unless, under)
}

func within(pattern, prefix string) bool {
	rest, ok := strings.CutPrefix(pattern, prefix)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// identified gives a list element what it is known by: the leaves that one of
// its keys is made of, or, if its list has no keys, any leaf that stays.
func (s *subject) identified(obj tree.Value, l leaf, elem tree.Path) tree.Value {
	pattern := elem.Pattern()
	fits := func(with tree.Value, more ...leaf) bool {
		return s.skip >= 0 || s.holds(plant(with, l.path, s.sample(l.pattern, l.typ, 0)), append(more, l)...)
	}
	for _, ids := range s.identity(pattern) {
		with := obj
		var more []leaf
		for i, id := range ids {
			if id != l.pattern && with.Get(firstPath(id)).IsNull() {
				with = plant(with, firstPath(id), s.sample(id, s.leafType(id), 3+i))
				more = append(more, leaf{path: firstPath(id)})
			}
		}
		if fits(with, more...) {
			return with
		}
	}
	if s.ordered(pattern) {
		return plantElem(obj, elem)
	}
	for _, c := range s.below(pattern) {
		if c.pattern == l.pattern || s.units[c.pattern] != "" || s.roleOf(c) != ordinary {
			continue
		}
		if with := plant(obj, c.path, s.sample(c.pattern, c.typ, 3)); fits(with, c) {
			return with
		}
	}
	return plantElem(obj, elem)
}

func plantElem(obj tree.Value, elem tree.Path) tree.Value {
	if !obj.Get(elem).IsNull() {
		return obj
	}
	return plant(obj, elem, tree.ObjectValue(nil))
}

// holds says whether XML can carry the leaves of an object.
func (s *subject) holds(obj tree.Value, leaves ...leaf) bool {
	xml, err := s.root.Encode(obj)
	if err != nil {
		return false
	}
	got, err := s.root.Decode(xml)
	if err != nil {
		return false
	}
	for _, l := range leaves {
		if !tree.Equal(got.Get(l.path), obj.Get(l.path)) {
			return false
		}
	}
	return true
}

func (s *subject) ordered(elem string) bool {
	o := s.Rules().Ordered
	return o != nil && o(strings.TrimSuffix(elem, "[]"))
}

func (s *subject) leafType(pattern string) *tree.Type {
	typ := s.Type()
	for _, name := range strings.Split(strings.ReplaceAll(pattern, "[]", ".[]"), ".") {
		if name == "[]" {
			typ = typ.Elem
		} else {
			typ = typ.Attrs[name].Type
		}
	}
	return typ
}

// below lists the leaves of a list element that are not in a list of their
// own, the closest first.
func (s *subject) below(elem string) []leaf {
	var out []leaf
	s.leafType(elem).Walk(func(pattern string, a *tree.Attribute) {
		if isLeaf(a.Type) && a.Type.Kind != tree.List && !strings.Contains(pattern, "[]") {
			full := elem + "." + pattern
			out = append(out, leaf{pattern: full, path: firstPath(full), typ: a.Type, settable: true})
		}
	})
	slices.SortStableFunc(out, func(a, b leaf) int { return len(a.path) - len(b.path) })
	return out
}

// identity finds the leaves that each key of a list element is made of, by
// asking for the keys of an element that has everything, and of ones that lack
// one leaf each.
func (s *subject) identity(elem string) [][]string {
	ids, known := s.ids[elem]
	if !known {
		ids = s.findIdentity(elem)
		s.ids[elem] = ids
	}
	return ids
}

func (s *subject) findIdentity(elem string) [][]string {
	all := s.below(elem)
	from := len(firstPath(elem))
	full := tree.ObjectValue(nil)
	for i, c := range all {
		full = plant(full, c.path[from:], s.sample(c.pattern, c.typ, i%20))
	}
	keys := s.Rules().Keys(elem, full)
	ids := make([][]string, len(keys))
	for _, c := range all {
		for i, key := range s.Rules().Keys(elem, full.Set(c.path[from:], tree.NullValue)) {
			if key != keys[i] {
				ids[i] = append(ids[i], c.pattern)
			}
		}
	}
	return slices.DeleteFunc(ids, func(way []string) bool { return len(way) == 0 })
}

// role is what the rules say of a field, and with it what a plan may do.
type role uint8

const (
	ordinary role = iota
	setting       // speaks to the provider
	once          // acts at creation
	reported      // no configuration can hold it
	measured      // read, and never compared
	unit          // of a number, and compared with it
	key           // an element with another one is another element
	lost          // no document holds it
)

var roleNames = [...]string{"ordinary", "setting", "once", "reported", "measured", "unit", "key", "lost"}

func (x role) String() string { return roleNames[x] }

func (s *subject) roleOf(l leaf) role {
	r := s.Rules()
	if !l.settable {
		if r.Measured != nil && r.Measured(l.pattern) {
			return measured
		}
		return reported
	}
	if r.Setting(l.pattern) {
		return setting // also within what acts at creation
	}
	for i := range l.path {
		above := l.path[:i+1].Pattern()
		if strings.HasSuffix(above, "[]") {
			continue
		}
		if r.Once != nil && r.Once(above) {
			return once
		}
		if r.Setting(above) {
			return setting
		}
	}
	f := s.root.Fields[l.pattern]
	switch {
	case f != nil && f.Lost != "":
		return lost
	case s.units[l.pattern] != "":
		return unit
	}
	for i := len(l.path) - 1; i > 0; i-- {
		if l.path[i].Attr != "" {
			continue
		}
		elem := l.path[:i+1].Pattern()
		ids := s.identity(elem)
		if len(ids) > 0 && slices.Contains(ids[0], l.pattern) {
			return key
		}
		break
	}
	return ordinary
}

// elem is the innermost list element that a leaf lies in.
func (l leaf) elem() string { return l.pattern[:strings.LastIndex(l.pattern, "[]")+2] }

// fail formats a finding about a leaf.
func (s *subject) fail(l leaf, format string, args ...any) error {
	return fmt.Errorf("%s %s (%s): %s", s.Noun(), l.pattern, s.roleOf(l), fmt.Sprintf(format, args...))
}
