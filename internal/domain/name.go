package domain

import (
	"context"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
)

// nameAspect is the domain's name: libvirt renames it while it is off, and
// keeps UUID, snapshots and autostart.
var nameAspect = &aspect{
	name: "name",
	owns: []string{"name"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassOffline, "libvirt renames a domain only while it is off."
	},
	live: func(ctx context.Context, a *apply) error {
		if !a.changed("name") {
			return nil
		}
		rename := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				// libvirt refuses to give a domain the name that it has.
				if now, err := a.k.host().LookupDomain(ctx, a.before.dom.UUID()); err != nil || now.Name() == name {
					return err
				}
				return a.before.dom.Rename(ctx, name)
			}
		}
		return a.try(ctx, rename(a.wanted.Attr("name").Str()), rename(a.before.name))
	},
}

// uuidAspect is the identity: another one is another machine.
var uuidAspect = &aspect{
	name: "uuid",
	owns: []string{"uuid"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassReplace, "The UUID is the machine's identity."
	},
}
