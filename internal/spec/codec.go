package spec

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// decode reads the tree out of a Go struct.
func (o *object) decode(v reflect.Value) tree.Value {
	attrs := map[string]tree.Value{}
	for _, f := range o.fields {
		if got := f.decode(v); !got.IsNull() {
			attrs[f.attr.Name] = got
		}
	}
	return tree.ObjectValue(attrs)
}

func (f *field) decode(v reflect.Value) tree.Value {
	for _, i := range f.at[:len(f.at)-1] {
		v = v.Field(i)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return tree.NullValue
			}
			v = v.Elem()
		}
	}
	v = v.Field(f.at[len(f.at)-1])
	pointer := v.Kind() == reflect.Pointer
	if pointer {
		if v.IsNil() {
			return tree.NullValue
		}
		v = v.Elem()
	}
	switch f.kind {
	case presenceField:
		return tree.BoolValue(true)
	case objectField:
		if !f.one {
			return f.sub.decode(v)
		}
		if v.Len() == 0 {
			return tree.NullValue
		}
		return f.sub.decode(reflect.Indirect(v.Index(0)))
	case listField, scalarsField:
		return f.decodeList(v)
	}
	return f.decodeScalar(v, pointer || f.keep)
}

func (f *field) decodeList(v reflect.Value) tree.Value {
	if v.Len() <= f.from {
		return tree.NullValue
	}
	elems := make([]tree.Value, 0, v.Len()-f.from)
	for i := f.from; i < v.Len(); i++ {
		e := reflect.Indirect(v.Index(i))
		if f.kind == scalarsField {
			elems = append(elems, f.decodeScalar(e, true))
		} else {
			elems = append(elems, f.sub.decode(e))
		}
	}
	return tree.ListValue(elems)
}

// decodeScalar reads a scalar; keep says that a zero value is a value.
func (f *field) decodeScalar(v reflect.Value, keep bool) tree.Value {
	if !keep && v.IsZero() {
		return tree.NullValue
	}
	switch {
	case f.words != nil:
		switch v.String() {
		case f.words[1]:
			return tree.BoolValue(true)
		case f.words[0]:
			return tree.BoolValue(false)
		}
		return tree.NullValue
	case f.text && v.Kind() == reflect.String && strings.TrimSpace(v.String()) == "":
		return tree.NullValue // the space around the elements inside
	case v.Kind() == reflect.String:
		return tree.StringValue(v.String())
	case v.Kind() == reflect.Bool:
		return tree.BoolValue(v.Bool())
	case v.CanInt():
		return tree.IntValue(v.Int())
	case v.CanUint():
		return tree.UintValue(v.Uint())
	}
	n, err := tree.ParseNumber(fmt.Sprint(v.Float()))
	if err != nil {
		return tree.NullValue
	}
	return n
}

// ValueError says that a value of the tree does not fit its place.
type ValueError struct {
	Path   tree.Path
	Reason string
}

func (e *ValueError) Error() string { return e.Path.String() + ": " + e.Reason }

// encode writes the tree into a Go struct, which must be zero. Unknown values
// count as absent.
func (o *object) encode(t tree.Value, v reflect.Value, p tree.Path) error {
	for _, f := range o.fields {
		attr := t.Attr(f.attr.Name)
		if !attr.IsKnown() {
			continue
		}
		if err := f.encode(attr, v, p.Attr(f.attr.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) encode(t tree.Value, v reflect.Value, p tree.Path) error {
	if f.kind == presenceField && !t.Bool() || f.kind == scalarField && f.readsAsNull(t) {
		return nil
	}
	for _, i := range f.at[:len(f.at)-1] {
		v = allocate(v.Field(i))
	}
	v = allocate(v.Field(f.at[len(f.at)-1]))
	switch f.kind {
	case presenceField:
		return nil
	case objectField:
		if !f.one {
			return f.sub.encode(t, v, p)
		}
		return f.encodeElem(t, v, p)
	case listField, scalarsField:
		if v.Len() < f.from && t.Len() > 0 {
			return &ValueError{p, "the first element belongs into the attribute for a single one; this list holds those after it"}
		}
		for i, e := range t.Elems() {
			if err := f.encodeElem(e, v, p.Elem(i, "")); err != nil {
				return err
			}
		}
		return nil
	}
	return f.encodeScalar(t, v, p)
}

// readsAsNull says whether a scalar would be read back as absent. Writing it
// would do nothing but make the element that it is an attribute or the text of,
// which would then say zero, or be one that no tree shows.
func (f *field) readsAsNull(t tree.Value) bool {
	if f.pointer || f.keep || f.words != nil {
		return false
	}
	return t.Kind() == tree.String && t.Str() == "" || t.Kind() == tree.Bool && !t.Bool() ||
		t.Kind() == tree.Number && t.Num().Sign() == 0
}

// encodeElem appends one element to the Go slice v.
func (f *field) encodeElem(t tree.Value, v reflect.Value, p tree.Path) error {
	e := reflect.New(v.Type().Elem()).Elem()
	target := allocate(e)
	var err error
	if f.kind == scalarsField {
		err = f.encodeScalar(t, target, p)
	} else {
		err = f.sub.encode(t, target, p)
	}
	v.Set(reflect.Append(v, e))
	return err
}

// allocate follows a pointer, making what it points to if there is nothing.
func allocate(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

func (f *field) encodeScalar(t tree.Value, v reflect.Value, p tree.Path) error {
	switch {
	case f.words != nil:
		v.SetString(f.words[map[bool]int{true: 1}[t.Bool()]])
	case v.Kind() == reflect.String:
		s := t.Str()
		if i := strings.IndexFunc(s, notInXML); i >= 0 {
			return &ValueError{p, fmt.Sprintf("the character %U at byte %d cannot be written in XML; remove it", []rune(s[i:])[0], i)}
		}
		v.SetString(s)
	case v.Kind() == reflect.Bool:
		v.SetBool(t.Bool())
	case v.CanInt():
		i, ok := t.Int()
		if !ok || v.OverflowInt(i) {
			return &ValueError{p, fmt.Sprintf("%s is not a whole number from %d to %d", t, minInt(v), maxInt(v))}
		}
		v.SetInt(i)
	case v.CanUint():
		u, ok := t.Uint()
		if !ok || v.OverflowUint(u) {
			return &ValueError{p, fmt.Sprintf("%s is not a whole number from 0 to %d", t, uint64(math.MaxUint64)>>(64-v.Type().Bits()))}
		}
		v.SetUint(u)
	default:
		n, _ := t.Num().Float64()
		v.SetFloat(n)
	}
	return nil
}

func minInt(v reflect.Value) int64 { return -1 << (v.Type().Bits() - 1) }
func maxInt(v reflect.Value) int64 { return -(minInt(v) + 1) }

// notInXML says whether XML 1.0 has no way to write the character.
func notInXML(r rune) bool {
	return r == 0xFFFD || r == 0xFFFE || r == 0xFFFF || r < 0x20 && r != '\t' && r != '\n' && r != '\r'
}
