package protocol

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Severity says whether a diagnostic stops the operation.
type Severity uint8

// The severities. The zero value is the one that stops.
const (
	Error Severity = iota
	Warning
)

// Diagnostic is a message to the user. The cores merge warnings of equal
// summary, so the object's name belongs into the summary.
type Diagnostic struct {
	Severity Severity
	Summary  string
	Detail   string
	Path     tree.Path // nil: the whole object
}

// Diagnostics is a list of messages in the order in which they are shown.
type Diagnostics []Diagnostic

// HasErrors says whether one of the messages is an error.
func (d Diagnostics) HasErrors() bool {
	for _, one := range d {
		if one.Severity == Error {
			return true
		}
	}
	return false
}

// AddError appends an error. A nil path means the whole object.
func (d *Diagnostics) AddError(path tree.Path, summary, detail string) {
	*d = append(*d, Diagnostic{Error, summary, detail, path})
}

// AddWarning appends a warning. A nil path means the whole object.
func (d *Diagnostics) AddWarning(path tree.Path, summary, detail string) {
	*d = append(*d, Diagnostic{Warning, summary, detail, path})
}

// Append appends messages, as in d.Append(others...).
func (d *Diagnostics) Append(more ...Diagnostic) { *d = append(*d, more...) }

// wire converts the messages for the protocol.
func (d Diagnostics) wire() []*tfprotov6.Diagnostic {
	var out []*tfprotov6.Diagnostic
	for _, one := range d {
		w := &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityError,
			Summary:  one.Summary,
			Detail:   one.Detail,
		}
		if one.Severity == Warning {
			w.Severity = tfprotov6.DiagnosticSeverityWarning
		}
		if len(one.Path) > 0 {
			w.Attribute = wirePath(one.Path)
		}
		out = append(out, w)
	}
	return out
}

// wirePath converts a path for the protocol. An element that is known only by
// its key has no index to point at: the path ends at the list.
func wirePath(p tree.Path) *tftypes.AttributePath {
	steps := make([]tftypes.AttributePathStep, 0, len(p))
	for _, s := range p {
		switch {
		case s.Attr != "":
			steps = append(steps, tftypes.AttributeName(s.Attr))
		case s.Index < 0:
			return tftypes.NewAttributePathWithSteps(steps)
		default:
			steps = append(steps, tftypes.ElementKeyInt(s.Index))
		}
	}
	return tftypes.NewAttributePathWithSteps(steps)
}
