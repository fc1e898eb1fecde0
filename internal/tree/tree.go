// Package tree holds the values that every other package of the provider
// speaks about: a configuration, a state, a definition read from libvirt are
// each one tree.
//
// A tree is made of null, unknown, booleans, numbers, strings, lists and
// objects. Two rules keep it small and comparisons exact:
//
//   - An object holds only its attributes that are not null; an absent
//     attribute and a null one are the same thing. The domain schema has
//     thousands of paths of which a machine uses a few dozen.
//   - Numbers are exact decimals of any size, so that a 64 bit address and a
//     fraction survive every conversion.
//
// Values are immutable: functions that change something return a new value
// and share what did not change. The package is pure and knows neither the
// wire nor libvirt.
package tree

import (
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// Kind is the kind of a value or of a schema type.
type Kind uint8

// The kinds. Null and Unknown are kinds of values only.
const (
	Null Kind = iota
	Unknown
	Bool
	Number
	String
	List
	Object
)

var kindNames = [...]string{"null", "unknown", "bool", "number", "string", "list", "object"}

func (k Kind) String() string { return kindNames[k] }

// Value is one node. The zero Value is null.
type Value struct {
	kind Kind
	b    bool
	s    string
	n    *big.Float
	list []Value
	obj  map[string]Value
}

// NullValue is the absent value.
var NullValue = Value{}

// UnknownValue is a value that is not known before apply.
var UnknownValue = Value{kind: Unknown}

// BoolValue returns a boolean.
func BoolValue(b bool) Value { return Value{kind: Bool, b: b} }

// StringValue returns a string.
func StringValue(s string) Value { return Value{kind: String, s: s} }

// IntValue returns a number.
func IntValue(i int64) Value { return NumberValue(newFloat().SetInt64(i)) }

// UintValue returns a number.
func UintValue(u uint64) Value { return NumberValue(newFloat().SetUint64(u)) }

// NumberValue returns a number; f is not copied and must not change afterwards.
func NumberValue(f *big.Float) Value { return Value{kind: Number, n: f} }

// precision is that of the plugin protocol's numbers.
const precision = 512

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

// ParseNumber reads a decimal number.
func ParseNumber(s string) (Value, error) {
	f, ok := newFloat().SetString(s)
	if !ok {
		return NullValue, fmt.Errorf("%q is not a number", s)
	}
	return NumberValue(f), nil
}

// ListValue returns a list; the slice is not copied.
func ListValue(elems []Value) Value {
	if elems == nil {
		elems = []Value{}
	}
	return Value{kind: List, list: elems}
}

// ObjectValue returns an object; the map is not copied, and its null
// attributes are removed from it.
func ObjectValue(attrs map[string]Value) Value {
	if attrs == nil {
		attrs = map[string]Value{}
	}
	for name, v := range attrs {
		if v.kind == Null {
			delete(attrs, name)
		}
	}
	return Value{kind: Object, obj: attrs}
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// IsNull says whether the value is absent.
func (v Value) IsNull() bool { return v.kind == Null }

// IsUnknown says whether this very value is unknown; see HasUnknown.
func (v Value) IsUnknown() bool { return v.kind == Unknown }

// IsKnown says whether the value is neither null nor unknown.
func (v Value) IsKnown() bool { return v.kind > Unknown }

// HasUnknown says whether the value or anything inside it is unknown.
func (v Value) HasUnknown() bool {
	switch v.kind {
	case Unknown:
		return true
	case List:
		for _, e := range v.list {
			if e.HasUnknown() {
				return true
			}
		}
	case Object:
		for _, e := range v.obj {
			if e.HasUnknown() {
				return true
			}
		}
	}
	return false
}

// Bool returns the boolean, false for any other kind.
func (v Value) Bool() bool { return v.kind == Bool && v.b }

// Str returns the string, "" for any other kind.
func (v Value) Str() string {
	if v.kind == String {
		return v.s
	}
	return ""
}

// Num returns the number, nil for any other kind. It must not be changed.
func (v Value) Num() *big.Float {
	if v.kind == Number {
		return v.n
	}
	return nil
}

// Int returns the number as int64; ok is false if the value is not a whole
// number of that range.
func (v Value) Int() (i int64, ok bool) {
	if v.kind != Number {
		return 0, false
	}
	i, acc := v.n.Int64()
	return i, acc == big.Exact && v.n.IsInt()
}

// Uint returns the number as uint64; ok is false if the value is not a whole
// number of that range.
func (v Value) Uint() (u uint64, ok bool) {
	if v.kind != Number {
		return 0, false
	}
	// big.Float.Uint64 calls 1.5 exact, so ask for wholeness apart.
	u, acc := v.n.Uint64()
	return u, acc == big.Exact && v.n.IsInt()
}

// Elems returns the elements of a list, nil for any other kind. The slice
// must not be changed.
func (v Value) Elems() []Value {
	if v.kind == List {
		return v.list
	}
	return nil
}

// Len returns the number of elements or of attributes that are not null.
func (v Value) Len() int {
	switch v.kind {
	case List:
		return len(v.list)
	case Object:
		return len(v.obj)
	}
	return 0
}

// Attr returns an attribute of an object. Of anything else it is null, of an
// unknown value unknown.
func (v Value) Attr(name string) Value {
	switch v.kind {
	case Object:
		return v.obj[name]
	case Unknown:
		return UnknownValue
	}
	return NullValue
}

// Names returns the attributes that are not null, sorted.
func (v Value) Names() []string {
	if v.kind != Object {
		return nil
	}
	names := make([]string, 0, len(v.obj))
	for name := range v.obj {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// With returns the object with one attribute set; null removes it. A null
// value counts as an empty object.
func (v Value) With(name string, attr Value) Value {
	out := make(map[string]Value, len(v.obj)+1)
	for k, e := range v.obj {
		out[k] = e
	}
	if attr.kind == Null {
		delete(out, name)
	} else {
		out[name] = attr
	}
	return Value{kind: Object, obj: out}
}

// Equal says whether both values are the same to the last attribute. Unknown
// equals unknown only.
func Equal(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case Bool:
		return a.b == b.b
	case Number:
		return a.n.Cmp(b.n) == 0
	case String:
		return a.s == b.s
	case List:
		if len(a.list) != len(b.list) {
			return false
		}
		for i := range a.list {
			if !Equal(a.list[i], b.list[i]) {
				return false
			}
		}
	case Object:
		if len(a.obj) != len(b.obj) {
			return false
		}
		for name, av := range a.obj {
			if !Equal(av, b.obj[name]) {
				return false
			}
		}
	}
	return true
}

// digits writes a number with every digit. The long way costs hundreds of
// times more, and hardly a number needs it.
func (v Value) digits() string {
	if i, whole := v.Int(); whole {
		return strconv.FormatInt(i, 10)
	}
	return v.n.Text('f', -1)
}

// String renders the value on one line, for messages and tests. Objects are
// in alphabetical order, so equal values render equally.
func (v Value) String() string {
	var b strings.Builder
	v.render(&b)
	return b.String()
}

func (v Value) render(b *strings.Builder) {
	switch v.kind {
	case Null:
		b.WriteString("null")
	case Unknown:
		b.WriteString("(known after apply)")
	case Bool:
		b.WriteString(strconv.FormatBool(v.b))
	case Number:
		b.WriteString(v.digits())
	case String:
		b.WriteString(strconv.Quote(v.s))
	case List:
		b.WriteByte('[')
		for i, e := range v.list {
			if i > 0 {
				b.WriteString(", ")
			}
			e.render(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, name := range v.Names() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(name)
			b.WriteString(" = ")
			v.obj[name].render(b)
		}
		b.WriteByte('}')
	}
}

// Known returns the value without what is unknown in it. An object or list of
// which nothing else is left is null; one that was empty stays.
func (v Value) Known() Value {
	switch v.kind {
	case Unknown:
		return NullValue
	case Object:
		attrs := make(map[string]Value, len(v.obj))
		for name, e := range v.obj {
			if k := e.Known(); !k.IsNull() {
				attrs[name] = k
			}
		}
		if len(attrs) == 0 && len(v.obj) > 0 {
			return NullValue
		}
		return ObjectValue(attrs)
	case List:
		elems := make([]Value, 0, len(v.list))
		for _, e := range v.list {
			if k := e.Known(); !k.IsNull() {
				elems = append(elems, k)
			}
		}
		if len(elems) == 0 && len(v.list) > 0 {
			return NullValue
		}
		return ListValue(elems)
	}
	return v
}
