// Package spec derives the schema of the XML-mapped resources from the Go
// structs of libvirt.org/go/libvirtxml by reflection, and converts between
// those structs and trees.
//
// One compiled table serves both: for each attribute it knows where the value
// lives in the Go struct, how it is spelt in XML and what the schema says of
// it. There is no generated code; a new version of libvirtxml brings its new
// fields by itself.
//
// The shape follows fixed rules. XML elements become nested attributes,
// repeated elements lists, XML attributes scalars of the object that contains
// them, elements without content booleans. An element of a value and a few
// attributes is flattened into its parent: <memory unit="KiB">1024</memory>
// is memory and memory_unit. Where the rules give another shape than users
// know, overrides.go says so, with the reason.
package spec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// field is one attribute of an object and its place in the Go struct.
type field struct {
	attr    *tree.Attribute
	at      []int      // Go fields from the containing struct to the value; all but the last may be pointers to structs
	kind    fieldKind  // how the Go value is stored
	sub     *object    // of a nested object or of list elements
	pointer bool       // a pointer to a scalar: zero is a value of its own
	words   *[2]string // a Go string of these words, for false and true, that is a boolean to users
	keep    bool       // a zero value is a value: the XML always has it
	from    int        // of a list that is split over two attributes: its first element here
	one     bool       // an object that stands for one element of a Go slice
	text    bool       // the text between an element's tags
}

type fieldKind uint8

const (
	scalarField   fieldKind = iota // string, number or bool
	presenceField                  // pointer to a struct without fields: the element is there or not
	objectField                    // nested object
	listField                      // list of objects
	scalarsField                   // list of scalars
)

// object is a compiled Go struct.
type object struct {
	goType reflect.Type
	typ    *tree.Type
	fields []*field
}

type compiler struct {
	root  string
	table *overrides
	info  map[string]*Field
}

// Field is what the table knows of one attribute.
type Field struct {
	Pattern string // devices.disks[].driver.cache
	XML     string // /domain/devices/disk/driver/@cache
	Flags   Flags
	Lost    string // why no document holds it, "" if documents do
	// Alternatives are the attributes beside it of which XML takes only one.
	Alternatives []string
	// Order is that of the document: of two attributes of one object, the one that
	// comes first has the smaller number.
	Order int

	typ            *tree.Type
	absentWhenZero bool // the XML leaves the zero value out
}

// compile builds the object of a Go struct. The stack holds the types that
// enclose it: a type inside itself (a backing store's backing store) ends
// there, and what lies deeper stays in the definition untouched.
func (c *compiler) compile(t reflect.Type, pattern, xmlPath string, stack []reflect.Type) *object {
	o := &object{goType: t, typ: &tree.Type{Kind: tree.Object, Attrs: map[string]*tree.Attribute{}}}
	c.addFields(o, t, nil, pattern, xmlPath, append(stack[:len(stack):len(stack)], t))
	c.noteAlternatives(t, pattern)
	return o
}

func (c *compiler) addFields(o *object, t reflect.Type, at []int, pattern, xmlPath string, stack []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		here := append(at[:len(at):len(at)], i)
		switch {
		case f.Name == "XMLName" || !f.IsExported() || c.table.skip[t.Name()+"."+f.Name] != "":
		case f.Anonymous:
			c.addFields(o, deref(f.Type), here, pattern, xmlPath, stack)
		default:
			c.addField(o, f, here, attributeName(f.Name), pattern, xmlPath, stack)
		}
	}
}

// addField adds the attributes of one Go field: one, or several where a value
// with attributes is flattened into its parent.
func (c *compiler) addField(o *object, f reflect.StructField, at []int, name, pattern, xmlPath string, stack []reflect.Type) {
	t := deref(f.Type)
	where := xmlLocation(xmlPath, f)
	switch {
	case scalarKind(t) != tree.Null:
		c.add(o, &field{at: at, kind: scalarField, keep: alwaysPresent(f), pointer: f.Type.Kind() == reflect.Pointer, text: isText(f)}, name, pattern, where, scalarType(t))
	case t.Kind() == reflect.Slice && scalarKind(deref(t.Elem())) != tree.Null:
		c.add(o, &field{at: at, kind: scalarsField}, name, pattern, where, tree.ListOf(scalarType(deref(t.Elem()))))
	case t.Kind() == reflect.Slice:
		c.addList(o, deref(t.Elem()), at, name, pattern, where, stack)
	case t.Kind() != reflect.Struct:
		panic(fmt.Sprintf("spec: %s%s has the unexpected Go type %s", pattern, name, f.Type))
	case onStack(stack, t):
	case isEmpty(t):
		c.add(o, &field{at: at, kind: presenceField}, name, pattern, where, tree.BoolType)
	default:
		if text := flatText(t); text >= 0 {
			c.addFlat(o, t, text, at, name, pattern, where)
			return
		}
		sub := c.compile(t, pattern+name+".", where, stack)
		c.add(o, &field{at: at, kind: objectField, sub: sub}, name, pattern, where, sub.typ)
	}
}

func (c *compiler) addList(o *object, elem reflect.Type, at []int, name, pattern, where string, stack []reflect.Type) {
	if onStack(stack, elem) {
		return
	}
	first := 0
	if single := c.table.firstOf[pattern+name]; single != "" {
		sub := c.compile(elem, pattern+single+".", where, stack)
		c.add(o, &field{at: at, kind: objectField, sub: sub, one: true}, single, pattern, where, sub.typ)
		first = 1
	}
	sub := c.compile(elem, pattern+name+"[].", where, stack)
	c.add(o, &field{at: at, kind: listField, sub: sub, from: first}, name, pattern, where, tree.ListOf(sub.typ))
}

func (c *compiler) addFlat(o *object, t reflect.Type, text int, at []int, name, pattern, where string) {
	for i := range t.NumField() {
		f := t.Field(i)
		here := append(at[:len(at):len(at)], i)
		switch {
		case f.Name == "XMLName":
		case i == text:
			c.add(o, &field{at: here, kind: scalarField, keep: f.Type.Kind() != reflect.String}, name, pattern, where, scalarType(f.Type))
		default:
			c.add(o, &field{at: here, kind: scalarField, keep: alwaysPresent(f), pointer: f.Type.Kind() == reflect.Pointer}, name+"_"+attributeName(f.Name), pattern, xmlLocation(where, f), scalarType(deref(f.Type)))
		}
	}
}

func (c *compiler) add(o *object, f *field, name, pattern, where string, typ *tree.Type) {
	if known := c.table.rename[pattern+name]; known != "" {
		name = known
	}
	full := pattern + name
	flags := c.table.flags(full)
	switch {
	case flags.Has(YesNo):
		f.words, typ = &[2]string{"no", "yes"}, tree.BoolType
	case flags.Has(OnOff):
		f.words, typ = &[2]string{"off", "on"}, tree.BoolType
	}
	f.attr = &tree.Attribute{
		Name: name, Type: typ, Optional: !flags.Has(ReadOnly), Computed: true,
		Sensitive:   flags.Has(Secret),
		Description: describe(full, where, typ),
	}
	if _, twice := o.typ.Attrs[name]; twice {
		panic("spec: two Go fields give the attribute " + full)
	}
	o.typ.Attrs[name] = f.attr
	o.fields = append(o.fields, f)
	c.info[full] = &Field{Pattern: full, XML: where, Flags: flags, Lost: c.table.lostReason(full), Order: len(c.info), typ: typ, absentWhenZero: f.absentWhenZero()}
}

// absentWhenZero says whether XML without the field reads as its zero value.
func (f *field) absentWhenZero() bool {
	return f.kind == presenceField || f.kind == scalarField && !f.keep && f.words == nil && !f.pointer
}

// xmlLocation is the XPath-like place of a Go field below the place of its
// struct. Fields that libvirtxml spells by hand carry no usable tag; they are
// alternatives of the element above, or spelt like the Go field.
func xmlLocation(parent string, f reflect.StructField) string {
	tag, ok := f.Tag.Lookup("xml")
	name, opts, _ := strings.Cut(tag, ",")
	switch {
	case strings.Contains(opts, "chardata"), strings.Contains(opts, "innerxml"), strings.Contains(opts, "cdata"):
		return parent
	case !ok, tag == "-":
		if t := deref(f.Type); t.Kind() == reflect.Struct {
			if x, found := t.FieldByName("XMLName"); found {
				n, _, _ := strings.Cut(x.Tag.Get("xml"), ",")
				return parent + "/" + n[strings.LastIndex(n, " ")+1:]
			}
			return parent + "[" + strings.ToLower(f.Name) + "]"
		}
		return parent + "/@" + strings.ToLower(f.Name)
	case strings.Contains(opts, "attr"):
		return parent + "/@" + name
	default:
		return parent + "/" + strings.ReplaceAll(name, ">", "/")
	}
}

// alwaysPresent says whether the XML has the field even when it is zero.
func alwaysPresent(f reflect.StructField) bool {
	tag, ok := f.Tag.Lookup("xml")
	return ok && tag != "-" && f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.String &&
		!strings.Contains(tag, "omitempty")
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func onStack(stack []reflect.Type, t reflect.Type) bool {
	for _, s := range stack {
		if s == t {
			return true
		}
	}
	return false
}

func isEmpty(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Name != "XMLName" {
			return false
		}
	}
	return true
}

// flatText returns the index of the field that holds the text of an element
// whose every other field is a scalar attribute, or -1.
func flatText(t reflect.Type) int {
	text := -1
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Name == "XMLName":
		case isText(f):
			text = i
		case scalarKind(deref(f.Type)) == tree.Null:
			return -1
		}
	}
	return text
}

func isText(f reflect.StructField) bool { return strings.Contains(f.Tag.Get("xml"), ",chardata") }

func scalarKind(t reflect.Type) tree.Kind {
	switch t.Kind() {
	case reflect.String:
		return tree.String
	case reflect.Bool:
		return tree.Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return tree.Number
	}
	return tree.Null
}

func scalarType(t reflect.Type) *tree.Type {
	switch scalarKind(t) {
	case tree.String:
		return tree.StringType
	case tree.Bool:
		return tree.BoolType
	}
	return tree.NumberType
}
