package provider

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// otherOwner is the owner that an object is marked with on the host, if the
// provider is configured with another one; else "".
func (m *mapped) otherOwner(state tree.Value) string {
	mine, theirs := m.data.Owner(), state.At("status.owner").Str()
	if mine == "" || theirs == mine {
		return ""
	}
	return theirs
}

// warnAboutOwner says that two configurations claim the same object.
func (m *mapped) warnAboutOwner(d *protocol.Diagnostics, config, state tree.Value) {
	theirs := m.otherOwner(state)
	if theirs == "" || config.Attr("adopt").Bool() {
		return
	}
	d.AddWarning(nil, fmt.Sprintf("%s %q is marked as %q's", capital(m.kind.Noun()), state.Attr("name").Str(), theirs),
		fmt.Sprintf("The provider's owner is %q: another configuration seems to manage the same object, and the two would undo each other's changes. If it is to be managed here, set adopt = true in its block; else `state rm ADDRESS` and remove the block, which touches nothing on the host.", m.data.Owner()))
}

// beside lists what a plan records on the host though no field changes.
func (m *mapped) beside(config, state tree.Value) (fields []string) {
	if !m.reports() {
		return nil
	}
	if theirs := m.otherOwner(state); theirs != "" && config.Attr("adopt").Bool() {
		fields = append(fields, "owner: taken over none")
	}
	if persistent := state.At("status.persistent"); persistent.IsKnown() && !persistent.Bool() {
		fields = append(fields, "definition: defined again none")
	}
	return fields
}
