package provider_test

import (
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// gateRow is one thing that a user does to all objects of a project at once. The
// core asks the provider about it in the plan, so a protected object is refused
// there, and nothing of the plan is applied.
type gateRow struct {
	does string
	verb string // of the refusal
	body func(w *gates) string
	args func(w *gates) []string // after "apply"; nil: none
	// destroys says that `destroy` is run in place of `apply`.
	destroys bool
	// about are the objects that the row means, all of them if nil.
	about func(o object) bool
	says  []string // of each refusal, beside what all of them say
	// says by type of object.
	names map[string]string
	// gone says that an unprotected object is not there afterwards; otherwise
	// another one is in its place.
	gone bool
	// renews says that the one in its place has another name.
	renews func(o object) bool
	// shares says that the one in its place has the file of the old one.
	shares func(o object) bool
	// core is the only one that can do it, "" if both can.
	core string
	// never says why the row is not played without protection.
	never string
}

func mapped(o object) bool   { return !isSeed(o) }
func isVolume(o object) bool { return o.typ == "volume" }

// forcing are the fields for which another object is needed, by type.
var forcing = map[string]string{"domain": "uuid", "network": "uuid", "pool": "uuid", "volume": "name"}

var gateRows = []gateRow{
	{
		does: "the block is removed", verb: "destroy", gone: true,
		body: func(*gates) string { return other + trigger("1") },
		says: []string{"put its block back", "`moved { from = OLD  to = NEW }`"},
	},
	{
		does: "removed { lifecycle { destroy = true } }", verb: "destroy", gone: true,
		body: func(w *gates) string { return other + trigger("1") + removed(w.objects, true) },
	},
	{
		does: "lifecycle { enabled = false }", verb: "destroy", gone: true, core: core.Tofu,
		body: func(w *gates) string { return other + trigger("1") + w.only(w.objects, form{disable: true}) },
	},
	{
		does: "destroy", verb: "destroy", gone: true, destroys: true,
		body: func(w *gates) string { return w.blocks(form{}) },
	},
	{
		does: "-replace", verb: "replace",
		body: func(w *gates) string { return other + w.blocks(form{}) },
		args: func(w *gates) []string { return addresses("-replace=", w.objects) },
		says: []string{"leave out what forces the replacement", "-replace"},
	},
	{
		does: "replace_triggered_by", verb: "replace",
		body: func(w *gates) string { return other + trigger("2") + w.only(w.objects, form{}) },
		says: []string{"leave out what forces the replacement", "replace_triggered_by"},
	},
	{
		does: "a field that only another object can have", verb: "replace", about: mapped, renews: isVolume,
		body:  func(w *gates) string { return other + w.blocks(form{field: true}) },
		says:  []string{"which only another"},
		names: forcing,
	},
	{
		does: "such a field, and protect = false in the same plan", verb: "replace", about: mapped, renews: isVolume,
		body:  func(w *gates) string { return other + w.blocks(form{field: true, waive: true}) },
		says:  []string{"set `protect = false` in its block without the change of"},
		names: forcing,
		never: "nothing is protected then that could be given up",
	},
	{
		does: "such a field, with create_before_destroy", verb: "replace", renews: mapped, shares: isSeed,
		body: func(w *gates) string { return other + w.blocks(form{renamed: true, first: true}) },
		args: func(w *gates) []string { return addresses("-replace=", without(w.objects, mapped)) },
	},
	{
		does: "the resource has another address, without moved", verb: "destroy",
		body:  func(w *gates) string { return other + w.blocks(form{label: "2"}) },
		says:  []string{"`moved { from = OLD  to = NEW }`"},
		never: "two objects of one name cannot be there at once, and the core makes one while it ends the other: see movedAway",
	},
}

// removed are blocks that say what becomes of objects without a block.
func removed(objects []object, destroy bool) string {
	var b strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&b, "removed {\n  from = %s\n  lifecycle {\n    destroy = %t\n  }\n}\n", o.address(), destroy)
	}
	return b.String()
}

// moved are blocks that say where objects are now.
func moved(objects []object, from, to string) string {
	var b strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&b, "moved {\n  from = %s%s\n  to = %s%s\n}\n", o.address(), from, o.address(), to)
	}
	return b.String()
}

// means are the objects that a row is about.
func (r gateRow) means(objects []object) []object {
	return without(objects, func(o object) bool { return r.about != nil && !r.about(o) })
}

// play makes the plan of a row under a setting.
func (r gateRow) play(w *gates, s setting) outcome {
	args := []string{"apply", "-auto-approve"}
	if r.destroys {
		args[0] = "destroy"
	}
	if r.args != nil {
		args = append(args, r.args(w)...)
	}
	return w.run(s, r.body(w), args...)
}

// settingsOf are those under which a row is played: all of them, or in the short
// run one, which is another one in each row, so that all of them have their turn.
func settingsOf(row int, sampled bool) []setting {
	return allOr(sampled, gateSettings()[row%len(gateSettings())])
}

// allOr are all settings, or in the short run these.
func allOr(sampled bool, short ...setting) []setting {
	if sampled {
		return short
	}
	return gateSettings()
}
