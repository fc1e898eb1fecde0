package change

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Inexpressible is one place where the core refuses a planned value.
type Inexpressible struct {
	Path   tree.Path
	Reason string // follows the path in a sentence; holds no values, which may be secret
}

func (i Inexpressible) String() string {
	if len(i.Path) == 0 {
		return "the object " + i.Reason
	}
	return i.Path.String() + " " + i.Reason
}

// Expressible lists where the core refuses the planned value of an object; it
// accepts the plan iff the list is empty. It mirrors what OpenTofu and
// Terraform check of the answer to PlanResourceChange, for schemas of
// attributes and nested attributes: a planned value is the configuration's, or
// exactly the prior one if neither is null, or anything where the
// configuration has none and the schema says computed. Nested lists are
// compared by index and length, whatever the identities of their elements are.
//
// The values are those of one call: the configuration and prior state as they
// came, and the plan as it is to be sent. What is absent from an object counts
// as null, and an empty list or object is another value than null, as on the
// wire.
func Expressible(typ *tree.Type, prior, config, planned tree.Value) []Inexpressible {
	e := &expression{}
	switch {
	case config.IsNull() && planned.IsNull():
	case planned.IsNull():
		e.refuse(nil, planAbsent)
	case config.IsNull():
		e.refuse(nil, "is planned to exist, though the configuration does not have it")
	default:
		e.attributes(typ, nil, prior, config, planned)
	}
	return e.refused
}

// Reasons that occur in more than one place.
const (
	planAbsent  = "is planned to be absent, though the configuration has it"
	planUnknown = "is planned to be unknown, though the configuration has a value"
)

type expression struct{ refused []Inexpressible }

func (e *expression) refuse(path tree.Path, format string, args ...any) {
	e.refused = append(e.refused, Inexpressible{path, fmt.Sprintf(format, args...)})
}

// attributes checks an object that neither the configuration nor the plan has
// as null. Attributes that are null in both agree, so sparse objects cost what
// they hold.
func (e *expression) attributes(typ *tree.Type, path tree.Path, prior, config, planned tree.Value) {
	for _, name := range namesOf(typ, config, planned) {
		if a := typ.Attrs[name]; a != nil {
			e.attribute(a, path.Attr(name), prior.Attr(name), config.Attr(name), planned.Attr(name))
		}
	}
}

// namesOf lists, sorted, the attributes that one of the objects may have; an
// unknown object may have them all.
func namesOf(typ *tree.Type, config, planned tree.Value) []string {
	if config.IsUnknown() || planned.IsUnknown() {
		return typ.Names()
	}
	a, b := config.Names(), planned.Names()
	names := make([]string, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			names, a = append(names, a[0]), a[1:]
		case a[0] > b[0]:
			names, b = append(names, b[0]), b[1:]
		default:
			names, a, b = append(names, a[0]), a[1:], b[1:]
		}
	}
	return append(append(names, a...), b...)
}

func (e *expression) attribute(a *tree.Attribute, path tree.Path, prior, config, planned tree.Value) {
	switch {
	case tree.Equal(planned, config):
	case !prior.IsNull() && !config.IsNull() && tree.Equal(planned, prior):
	case a.Computed && !a.Optional:
	case config.IsNull() && a.Computed:
	case config.IsNull():
		e.refuse(path, "is planned, though the configuration does not have it and nothing else may set it")
	case planned.IsNull():
		e.refuse(path, planAbsent)
	case planned.IsUnknown():
		e.refuse(path, planUnknown)
	case a.Type.Kind == tree.Object:
		e.attributes(a.Type, path, prior, config, planned)
	case a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object:
		e.elements(a.Type.Elem, path, prior, config, planned)
	case prior.IsNull():
		e.refuse(path, "is planned with another value than the configuration's")
	default:
		e.refuse(path, "is planned with a value that is neither the configuration's nor the prior one")
	}
}

// elements checks a list of objects that the plan knows and the configuration
// has. The core looks for the element of prior at the same index, and does so
// also when the prior list is longer or shorter.
func (e *expression) elements(elem *tree.Type, path tree.Path, prior, config, planned tree.Value) {
	switch {
	case config.IsUnknown():
		e.refuse(path, "is planned as a list of %d, though the configuration's list is not known yet", planned.Len())
		return
	case config.Len() != planned.Len():
		e.refuse(path, "is planned as a list of %d, neither the configuration's list of %d nor the prior one", planned.Len(), config.Len())
		return
	}
	for i, p := range planned.Elems() {
		c := config.Elems()[i]
		if c.IsNull() || p.IsNull() {
			// OpenTofu 1.12 takes the attributes of both and crashes on a null;
			// Terraform 1.11 has them all null. Both take a list that is as
			// configured.
			e.refuse(path.Elem(i, ""), "is null, and a list of objects that is not planned as a whole cannot hold null")
			continue
		}
		e.attributes(elem, path.Elem(i, ""), pick(prior, i), c, p)
	}
}
