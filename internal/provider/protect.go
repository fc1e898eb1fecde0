package provider

import (
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// guard travels in the planned private state from the first plan of a
// replacement to the second, which creates the successor: there the core no
// longer shows the object that is to go.
type guard struct {
	Noun    string `json:"noun"`
	Name    string `json:"name"`
	Protect bool   `json:"protect"`
	Origin  string `json:"origin"`
	// Explicit says that the object itself asks for it: then only the object
	// can take it back.
	Explicit bool `json:"explicit"`
	// Untaint says that the refusal comes at apply, where only a tainted object
	// gets: the core does not ask at plan time.
	Untaint bool `json:"-"`
}

// protection says whether an object may not be destroyed, and why.
func (m *mapped) protection(state tree.Value) (protect bool, origin string) {
	if p := state.Attr("protect"); p.IsKnown() {
		return p.Bool(), "protect = " + p.String() + " in its state"
	}
	return m.data.Protect(true)
}

// refuseDestroy adds the refusal if the object is protected. verb says what
// was asked for: destroy, replace.
func refuseDestroy(d *protocol.Diagnostics, verb string, g guard) {
	if !g.Protect {
		return
	}
	again := "put the block back"
	if verb == "replace" {
		again = "take back what forces the replacement: -replace, replace_triggered_by, or the field that the plan marks"
	}
	if g.Untaint {
		again = "if it is marked as tainted (a provisioner failed, or somebody marked it): `untaint ADDRESS`, then plan again. Else put the block back"
	}
	lab := "\nIn a lab, for this one run: LIBVIRT_PROTECT=false in the environment."
	if g.Explicit {
		lab = ""
	}
	d.AddError(nil, fmt.Sprintf("Refusing to %s protected %s %q", verb, g.Noun, g.Name),
		fmt.Sprintf("It is protected by %s. Nothing was changed.\n\n"+
			"To keep it: %s.\n"+
			"To forget it without touching it: `removed { from = ADDRESS  lifecycle { destroy = false } }`, or `state rm ADDRESS`.\n"+
			"To %s it all the same: set `protect = false` in its block, apply (this touches nothing on the host), then repeat.%s", g.Origin, again, verb, lab))
}

func (m *mapped) guardOf(state tree.Value) guard {
	g := guard{Noun: m.kind.Noun(), Name: state.Attr("name").Str()}
	g.Protect, g.Origin = m.protection(state)
	g.Explicit = state.Attr("protect").IsKnown()
	return g
}
