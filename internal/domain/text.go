package domain

import (
	"context"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// textAspect is title and description: libvirt writes them into the running
// guest and into the definition, each by itself.
var textAspect = &aspect{
	name: "text",
	owns: []string{"title", "description"},
	rule: func(change.Change, situation) (change.Class, string) { return change.ClassLive, "" },
	live: func(ctx context.Context, a *apply) error {
		for attr, sort := range map[string]virt.MetadataKind{"title": virt.MetadataTitle, "description": virt.MetadataDescription} {
			if !a.does(attr) {
				continue
			}
			if err := a.setGuestText(ctx, sort, a.wanted.Attr(attr).Str(), a.before.running().Attr(attr).Str()); err != nil {
				return err
			}
		}
		return nil
	},
}

// setGuestText writes one text of the running guest, and remembers how to
// take it back.
func (a *apply) setGuestText(ctx context.Context, sort virt.MetadataKind, text, was string) error {
	write := func(text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return a.before.dom.SetMetadata(ctx, sort, text, "", "", virt.AffectLive)
		}
	}
	return a.try(ctx, write(text), write(was))
}

// validateText finds what libvirt would refuse.
func validateText(config tree.Value) []kind.Problem {
	if title := config.Attr("title").Str(); strings.ContainsAny(title, "\n\r") {
		return []kind.Problem{{
			Path: tree.Root.Attr("title"), Summary: "A title has one line",
			Detail: "libvirt refuses a title with a line break. Put longer text into description.",
		}}
	}
	return nil
}
