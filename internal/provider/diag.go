package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
)

// addProblems turns problems that a kind found into diagnostics.
func addProblems(d *protocol.Diagnostics, severity protocol.Severity, problems []kind.Problem) {
	for _, p := range problems {
		d.Append(protocol.Diagnostic{Severity: severity, Path: p.Path, Summary: p.Summary, Detail: p.Detail})
	}
}

// addFailure turns an error into a diagnostic: which object, what was tried,
// what libvirt said, and which host was asked.
func (m *mapped) addFailure(d *protocol.Diagnostics, doing, name string, err error) {
	var problem *kind.ProblemError
	if errors.As(err, &problem) {
		addProblems(d, protocol.Error, problem.Problems)
		return
	}
	var value *spec.ValueError
	if errors.As(err, &value) {
		d.AddError(value.Path, fmt.Sprintf("Invalid value for %s %q", m.kind.Noun(), name), value.Error()+".")
		return
	}
	detail := sentence(err.Error())
	if host := m.data.Host(); host != nil {
		detail += "\n\nAsked: " + host.Display()
	}
	d.AddError(nil, fmt.Sprintf("Could not %s %s %q", doing, m.kind.Noun(), name), detail)
}

// sentence makes a Go error read as one.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return text
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// unconfigured refuses to ask a host that is not known yet: the provider's uri
// depends on something that does not exist, and another daemon must never be
// asked instead.
func (m *mapped) unconfigured(d *protocol.Diagnostics, doing, name string) bool {
	if m.data.Host() != nil {
		return false
	}
	d.AddError(nil, fmt.Sprintf("Could not %s %s %q: the host is not known yet", doing, m.kind.Noun(), name),
		"The uri in the provider's configuration depends on a value that is known only after apply. Apply what it depends on first (-target), or write the URI literally.")
	return true
}
