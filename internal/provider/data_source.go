package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// dataSources are those of the mapped resources: two for each.
func dataSources(resources []protocol.Resource) (out []protocol.DataSource) {
	for _, r := range resources {
		if m, is := r.(*mapped); is {
			if source, shows := m.kind.(kind.Source); shows {
				out = append(out, newShown(m, source), newListed(m, source))
			}
		}
	}
	return out
}

// shown serves one object of a kind as a data source: it reads what the resource
// of the same name reads, and keeps and changes nothing.
type shown struct {
	*mapped
	source kind.Source
	typ    *tree.Type
}

var _ protocol.DataSource = (*shown)(nil)

func newShown(m *mapped, source kind.Source) *shown {
	one, _ := source.Inputs()
	return &shown{m, source, extended(source.DataType(), one)}
}

// extended is an object type with more attributes.
func extended(typ *tree.Type, more []*tree.Attribute) *tree.Type {
	attrs := slices.Clone(more)
	for _, a := range typ.Attrs {
		attrs = append(attrs, a)
	}
	return tree.ObjectOf(attrs...)
}

func (s *shown) Schema() protocol.Schema {
	return protocol.Schema{
		TypeName: s.typeName, Type: s.typ,
		Description: fmt.Sprintf("Reads one %[1]s of the host, whoever made it, found by %[3]s. Nothing is changed. One that does not exist is an error; `data.%[2]ss` lists those that do.",
			s.kind.Noun(), s.typeName, strings.Join(s.ways("`"), ", or ")),
	}
}

// Validate checks that the configuration names one object, and in one way.
func (s *shown) Validate(_ context.Context, config tree.Value) (d protocol.Diagnostics) {
	if p := s.named(config); p != nil {
		addProblems(&d, protocol.Error, []kind.Problem{*p})
	}
	if uuid := config.Attr("uuid"); uuid.IsKnown() && !kind.IsUUID(uuid.Str()) {
		d.AddError(tree.Root.Attr("uuid"), "Not a UUID", fmt.Sprintf("uuid is %q; a UUID is written like 6a2a5b6e-6f0e-4f39-9a3f-0c1d2e3f4a5b. To find the %s by its name, set name instead.", uuid.Str(), s.kind.Noun()))
	}
	addProblems(&d, protocol.Error, s.source.Check(config))
	return d
}

// ways are the ways to name the object, with quotes around attributes.
func (s *shown) ways(quote string) (out []string) {
	for _, set := range s.source.Keys() {
		out = append(out, quote+strings.Join(set, quote+" and "+quote)+quote)
	}
	return out
}

// named says what is wrong with the way in which a configuration names the
// object, nil if nothing is. What is not known yet may be null or not.
func (s *shown) named(config tree.Value) *kind.Problem {
	whole, begun := 0, 0
	for _, set := range s.source.Keys() {
		missing := 0
		for _, name := range set {
			switch v := config.Attr(name); {
			case v.IsUnknown():
				return nil
			case v.IsNull():
				missing++
			case v.Str() == "":
				return &kind.Problem{Path: tree.Root.Attr(name), Summary: fmt.Sprintf("%s is empty", name), Detail: fmt.Sprintf("No %s has an empty %s. Write it, or leave the attribute out.", s.kind.Noun(), name)}
			}
		}
		if missing == 0 {
			whole++
		}
		if missing < len(set) {
			begun++
		}
	}
	if whole == 1 && begun == 1 {
		return nil
	}
	return &kind.Problem{
		Summary: fmt.Sprintf("Which %s?", s.kind.Noun()),
		Detail:  fmt.Sprintf("A data %q names one %s. Set %s, and nothing else of these.", s.typeName, s.kind.Noun(), strings.Join(s.ways(""), ", or ")),
	}
}

// Read shows the object.
func (s *shown) Read(ctx context.Context, config tree.Value) (out tree.Value, d protocol.Diagnostics) {
	name := s.call(config)
	if s.unconfigured(&d, "read", name) {
		return out, d
	}
	found, err := s.source.Show(ctx, config)
	if err != nil {
		s.addAnswer(&d, name, err)
		return out, d
	}
	return withInputs(found, config), d
}

// call is what a configuration calls its object, for messages.
func (s *shown) call(config tree.Value) string {
	var parts []string
	for _, set := range s.source.Keys() {
		for _, name := range set {
			if v := config.Attr(name).Str(); v != "" {
				parts = append(parts, v)
			}
		}
	}
	return strings.Join(parts, "/")
}

// addAnswer turns the error of a Source into a diagnostic.
func (m *mapped) addAnswer(d *protocol.Diagnostics, name string, err error) {
	var missing *kind.MissingError
	if errors.As(err, &missing) {
		addProblems(d, protocol.Error, []kind.Problem{missing.Problem})
		return
	}
	m.addFailure(d, "read", name, err)
}

// withInputs is what was found, with what the configuration says in its own
// spelling.
func withInputs(found, config tree.Value) tree.Value {
	for _, name := range config.Names() {
		found = found.With(name, config.Attr(name))
	}
	return found
}
