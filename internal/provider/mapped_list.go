package provider

import (
	"context"
	"fmt"
	"regexp"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A resource whose kind can be shown can be listed, too: by the query command of
// a core that has one, which makes import blocks and configuration of what it
// finds. Nothing is changed on the host.

var _ protocol.Lister = (*mapped)(nil)

// ListType is what a list block can say.
func (m *mapped) ListType() *tree.Type {
	attrs := []*tree.Attribute{{
		Name: "name_regex", Type: tree.StringType, Optional: true,
		Description: fmt.Sprintf("Only the %ss whose names match this [regular expression](https://github.com/google/re2/wiki/Syntax).", m.kind.Noun()),
	}}
	if source, shows := m.kind.(kind.Source); shows {
		_, all := source.Inputs()
		for _, a := range all {
			if a.Name != "view" { // an import takes the definition
				attrs = append(attrs, a)
			}
		}
	}
	return tree.ObjectOf(attrs...)
}

// ValidateList checks what a list block says.
func (m *mapped) ValidateList(ctx context.Context, config tree.Value) (d protocol.Diagnostics) {
	if source, shows := m.kind.(kind.Source); shows {
		d = (&listed{mapped: m, source: source}).Validate(ctx, config)
	}
	return d
}

// List finds the objects on the host, by name. Each is read as an import would
// read it, if the core wants that; one that cannot be read is an error of its own.
func (m *mapped) List(ctx context.Context, req protocol.ListRequest, found func(protocol.Listed) bool) (d protocol.Diagnostics) {
	source, shows := m.kind.(kind.Source)
	pattern, err := regexp.Compile(req.Config.Attr("name_regex").Str())
	if !shows || err != nil {
		return m.ValidateList(ctx, req.Config)
	}
	if m.unconfigured(&d, "list", m.kind.Noun()+"s") {
		return d
	}
	all, err := source.List(ctx, req.Config)
	if err != nil {
		m.addAnswer(&d, "", err)
		return d
	}
	for _, one := range all {
		name := one.Attr("name").Str()
		if !pattern.MatchString(name) {
			continue
		}
		next := protocol.Listed{Name: name, State: one}
		if req.Whole {
			if next = m.whole(ctx, next); next.State.IsNull() && !next.Diagnostics.HasErrors() {
				continue // it went since the list was made
			}
		}
		if !found(next) {
			break
		}
	}
	return d
}

// whole reads one object as an import does, which knows no status before. What a
// warning would say, the first plan says again.
func (m *mapped) whole(ctx context.Context, one protocol.Listed) protocol.Listed {
	private, err := (records{Imported: true}).store(protocol.Private{})
	if err != nil {
		m.addFailure(&one.Diagnostics, "read", one.Name, err)
		return one
	}
	resp := m.Read(ctx, protocol.ReadRequest{State: one.State.With("status", tree.NullValue), Private: private})
	one.State = resp.State
	for _, diagnostic := range resp.Diagnostics {
		if diagnostic.Severity == protocol.Error {
			one.Diagnostics.Append(diagnostic)
		}
	}
	return one
}
