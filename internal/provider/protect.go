package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
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
	// Fields are what the configuration wants and only another object can have.
	Fields []string `json:"fields,omitempty"`
	// Late says that the refusal comes at apply, where only a tainted object gets,
	// and a plan that was made under another setting.
	Late bool `json:"-"`
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
	keep, waive := g.waysOut(verb)
	lab := "\nIn a lab, for this one run: LIBVIRT_PROTECT=false in the environment."
	if g.Explicit {
		lab = ""
	}
	d.AddError(nil, fmt.Sprintf("Refusing to %s protected %s %q", verb, g.Noun, g.Name),
		fmt.Sprintf("It is protected by %s. It was not touched.\n\n"+
			"To keep it: %s.\n"+
			"To forget it without touching it: `removed { from = ADDRESS  lifecycle { destroy = false } }`, or `state rm ADDRESS`.\n"+
			"To %s it all the same: %s (this touches nothing on the host), then repeat.%s", g.Origin, keep, verb, waive, lab))
}

// waysOut are what to do to keep the object, and to take its protection away.
// Each must work as it is written where the refusal stands.
func (g guard) waysOut(verb string) (keep, waive string) {
	switch {
	case g.Late:
		return "if it is tainted (a provisioner failed, or somebody marked it): `untaint ADDRESS`, then plan again. If the plan was made under another setting of protection: plan again under this one",
			"if it is tainted, `untaint ADDRESS`; set `protect = false` in its block, apply"
	case verb == "replace" && len(g.Fields) > 0:
		return fmt.Sprintf("take the change of %s back, which only another %s can have", strings.Join(g.Fields, ", "), g.Noun),
			fmt.Sprintf("set `protect = false` in its block without the change of %s, apply", strings.Join(g.Fields, ", "))
	case verb == "replace":
		return "leave out what forces the replacement: -replace, or what its replace_triggered_by names",
			"set `protect = false` in its block, apply without a replacement"
	}
	return "put its block back (its module, its key of for_each, the number of count). If it only has another address now: `moved { from = OLD  to = NEW }`. " +
			"If the plan calls it deposed (what create_before_destroy left), its block is its successor's: `state rm ADDRESS` forgets both, `import` takes the successor back",
		"set `protect = false` in its block, apply"
}

func (m *mapped) guardOf(state tree.Value) guard {
	g := guard{Noun: m.kind.Noun(), Name: state.Attr("name").Str()}
	g.Protect, g.Origin = m.protection(state)
	g.Explicit = state.Attr("protect").IsKnown()
	return g
}

// guardOfUpdate is guardOf for an object that still has a block: a block that
// asks for protection has it from this plan on, not only from the next apply.
func (m *mapped) guardOfUpdate(state, config tree.Value, replace []tree.Path) guard {
	protect := config.Attr("protect")
	g := m.guardOf(state).asked(protect.IsKnown() && protect.Bool())
	g.Fields = pathTexts(replace)
	return g
}

// asked is the guard of an object whose block asks for protection now.
func (g guard) asked(now bool) guard {
	if now && !(g.Explicit && g.Protect) {
		g.Protect, g.Explicit, g.Origin = true, true, "protect = true in its block"
	}
	return g
}

// gone says whether libvirt itself says that there is no such object any more.
// Terraform plans the end of an object whose block is gone without a refresh
// before it, and what is not there needs no protection.
func (m *mapped) gone(ctx context.Context, state tree.Value, private protocol.Private) bool {
	var unsaid protocol.Diagnostics
	if m.data.Host() == nil || m.elsewhere(ctx, &unsaid, loadRecords(private), state) {
		return false
	}
	_, err := m.kind.Read(ctx, state)
	var gone *kind.GoneError
	return errors.As(err, &gone)
}
