package tree

import "sort"

// Type describes what a node may be: a scalar, a list of one element type, or
// an object with named attributes.
type Type struct {
	Kind  Kind                  // Bool, Number, String, List or Object
	Elem  *Type                 // of a List
	Attrs map[string]*Attribute // of an Object
}

// Attribute is a named member of an object type, with what a schema says of it.
type Attribute struct {
	Name        string
	Type        *Type
	Required    bool
	Optional    bool
	Computed    bool
	Sensitive   bool
	Deprecated  string // message, "" if current
	Description string // Markdown

	// Plain has a core take the attribute for one value and not for a tree of
	// attributes: what is inside has no flags and no descriptions of its own then,
	// nothing in it is sensitive, and the schema costs a core far less.
	Plain bool
}

// Scalar types, shared by all schemas.
var (
	BoolType   = &Type{Kind: Bool}
	NumberType = &Type{Kind: Number}
	StringType = &Type{Kind: String}
)

// ListOf returns the list type of an element type.
func ListOf(elem *Type) *Type { return &Type{Kind: List, Elem: elem} }

// ObjectOf returns an object type of the given attributes.
func ObjectOf(attrs ...*Attribute) *Type {
	t := &Type{Kind: Object, Attrs: make(map[string]*Attribute, len(attrs))}
	for _, a := range attrs {
		t.Attrs[a.Name] = a
	}
	return t
}

// Names returns the attribute names of an object type, sorted.
func (t *Type) Names() []string {
	names := make([]string, 0, len(t.Attrs))
	for name := range t.Attrs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// String names the type as the provider protocol does: bool, number, string,
// list(string), object, list(object).
func (t *Type) String() string {
	if t.Kind == List {
		return "list(" + t.Elem.String() + ")"
	}
	return t.Kind.String()
}

// Walk calls f for every attribute below an object type with its pattern
// (devices.disks[].driver.cache), parents first, in alphabetical order.
func (t *Type) Walk(f func(pattern string, a *Attribute)) { t.walk("", f) }

func (t *Type) walk(prefix string, f func(string, *Attribute)) {
	for _, name := range t.Names() {
		a := t.Attrs[name]
		f(prefix+name, a)
		switch {
		case a.Type.Kind == Object:
			a.Type.walk(prefix+name+".", f)
		case a.Type.Kind == List && a.Type.Elem.Kind == Object:
			a.Type.Elem.walk(prefix+name+"[].", f)
		}
	}
}
