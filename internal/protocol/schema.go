package protocol

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// wireSchema converts a schema for the protocol. Objects and lists of objects
// become nested attributes, so that plans show them field by field.
func wireSchema(s Schema) (*tfprotov6.Schema, error) {
	if s.Type == nil || s.Type.Kind != tree.Object {
		return nil, fmt.Errorf("convert the schema of %s: its type is no object", s.TypeName)
	}
	attrs, err := wireAttributes(s.Type, nil)
	if err != nil {
		return nil, fmt.Errorf("convert the schema of %s: %w", s.TypeName, err)
	}
	return &tfprotov6.Schema{
		Version: s.Version,
		Block: &tfprotov6.SchemaBlock{
			Version:         s.Version,
			Attributes:      attrs,
			Description:     s.Description,
			DescriptionKind: tfprotov6.StringKindMarkdown,
		},
	}, nil
}

func wireAttributes(object *tree.Type, at tree.Path) ([]*tfprotov6.SchemaAttribute, error) {
	attrs := make([]*tfprotov6.SchemaAttribute, 0, len(object.Attrs))
	for _, name := range object.Names() {
		a := object.Attrs[name]
		here := at.Attr(name)
		if a.Name != name {
			return nil, fmt.Errorf("%s calls itself %q", here.Pattern(), a.Name)
		}
		w, err := wireAttribute(a, here)
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, w)
	}
	return attrs, nil
}

func wireAttribute(a *tree.Attribute, at tree.Path) (*tfprotov6.SchemaAttribute, error) {
	if a.Required == (a.Optional || a.Computed) {
		// The cores reject the whole provider for one such attribute.
		return nil, fmt.Errorf("%s must be either required, or optional, computed or both", at.Pattern())
	}
	w := &tfprotov6.SchemaAttribute{
		Name:               a.Name,
		Description:        a.Description,
		DescriptionKind:    tfprotov6.StringKindMarkdown,
		Required:           a.Required,
		Optional:           a.Optional,
		Computed:           a.Computed,
		Sensitive:          a.Sensitive,
		Deprecated:         a.Deprecated != "",
		DeprecationMessage: a.Deprecated,
	}
	var object *tree.Type
	nesting := tfprotov6.SchemaObjectNestingModeSingle
	switch {
	case a.Plain:
		var err error
		w.Type, err = wireType(a.Type, at, true)
		return w, err
	case a.Type.Kind == tree.Object:
		object = a.Type
	case a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object:
		object, nesting, at = a.Type.Elem, tfprotov6.SchemaObjectNestingModeList, at.Elem(0, "")
	default:
		var err error
		w.Type, err = wireType(a.Type, at, false)
		return w, err
	}
	attrs, err := wireAttributes(object, at)
	if err != nil {
		return nil, err
	}
	w.NestedType = &tfprotov6.SchemaObject{Attributes: attrs, Nesting: nesting}
	return w, nil
}

// wireType converts the type of an attribute that is not nested. An object has a
// place in it only if the attribute is plain: it is a value of the core's own
// then, so nothing in it can be sensitive.
func wireType(t *tree.Type, at tree.Path, plain bool) (tftypes.Type, error) {
	switch {
	case t.Kind == tree.Bool:
		return tftypes.Bool, nil
	case t.Kind == tree.Number:
		return tftypes.Number, nil
	case t.Kind == tree.String:
		return tftypes.String, nil
	case t.Kind == tree.List:
		elem, err := wireType(t.Elem, at.Elem(0, ""), plain)
		if err != nil {
			return nil, err
		}
		return tftypes.List{ElementType: elem}, nil
	case t.Kind == tree.Object && plain:
		attrs := make(map[string]tftypes.Type, len(t.Attrs))
		for name, a := range t.Attrs {
			if a.Sensitive {
				return nil, fmt.Errorf("%s is sensitive, which a core does not learn there", at.Attr(name).Pattern())
			}
			var err error
			if attrs[name], err = wireType(a.Type, at.Attr(name), plain); err != nil {
				return nil, err
			}
		}
		return tftypes.Object{AttributeTypes: attrs}, nil
	}
	return nil, fmt.Errorf("%s is %s, which has no place in a schema there", at.Pattern(), withArticle(t))
}
