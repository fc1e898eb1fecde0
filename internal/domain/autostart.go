package domain

import (
	"context"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// autostartAspect is whether the host starts the domain at boot. It is a link
// on the host's disk, not part of the XML: neither guest nor definition hear
// of a change.
var autostartAspect = &aspect{
	name: "autostart",
	owns: []string{"autostart"},
	rule: func(change.Change, situation) (change.Class, string) { return change.ClassNone, "" },
	live: func(ctx context.Context, a *apply) error {
		want := a.wanted.Attr("autostart")
		if !want.IsKnown() || tree.Equal(want, a.before.definition.Attr("autostart")) {
			return nil
		}
		set := func(on bool) func(context.Context) error {
			return func(ctx context.Context) error { return a.before.dom.SetAutostart(ctx, on) }
		}
		return a.try(ctx, set(want.Bool()), set(!want.Bool()))
	},
}
