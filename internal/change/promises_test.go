package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

var worldSchema = worldType(testType, "")

// worldType is testType as a schema has it: what is on the host may be left to
// it, a setting is the configuration's alone.
func worldType(typ *tree.Type, prefix string) *tree.Type {
	switch typ.Kind {
	case tree.List:
		return tree.ListOf(worldType(typ.Elem, prefix+"[]"))
	case tree.Object:
		var attrs []*tree.Attribute
		for _, name := range typ.Names() {
			pattern := join(prefix, name)
			attrs = append(attrs, &tree.Attribute{
				Name: name, Optional: true, Computed: !testRules.Setting(pattern), Type: worldType(typ.Attrs[name].Type, pattern),
			})
		}
		return tree.ObjectOf(attrs...)
	}
	return typ
}

// A promise holds for every plan that is applied. before is the world that the
// plan was made for.
type promise struct {
	name string
	kept func(before *world, p Result, after *world) error
}

var promises = []promise{
	{"the definition has what was planned", func(before *world, p Result, after *world) error {
		if unmet := testRules.Unmet(testType, before.state, p.Planned, after.definition); len(unmet) > 0 {
			return fmt.Errorf("not %v", unmet)
		}
		if !refines(p.Planned, after.state) {
			return fmt.Errorf("planned %s, and the state is %s", p.Planned, after.state)
		}
		if seen := testRules.Project(testType, after.state, after.definition); !tree.Equal(seen, after.state) {
			return fmt.Errorf("a refresh changes the state from %s to %s", after.state, seen)
		}
		return nil
	}},
	{"the plan names every change, and no other", func(before *world, p Result, after *world) error {
		var said, done []string
		for _, c := range p.Changes {
			said = append(said, c.Path.Pattern())
		}
		for _, path := range testRules.Differences(testType, before.definition, after.definition) {
			done = append(done, path.Pattern())
			if !concerns(said, path) && !givesWay(said, path.Pattern()) {
				return fmt.Errorf("%s changed, and the plan does not say so", path)
			}
		}
		for _, c := range p.Changes {
			refilled := c.Kind == Withdrawal && c.Path.Pattern() == "serials[].port" // by the host
			if !isNameless(c.Path) && !refilled && !concerns(done, c.Path) {
				return fmt.Errorf("%s %s is planned, and nothing changed", c.Kind, c.Path)
			}
		}
		return nil
	}},
	{"the second plan is empty", func(_ *world, first Result, after *world) error {
		if len(first.Postponed) > 0 {
			return nil // its time may have come
		}
		again := *after
		again.refresh()
		p := again.plan()
		if !tree.Equal(p.Planned, again.state) || len(p.Changes)+len(p.Live) > 0 {
			return fmt.Errorf("%s", planText(again.input(), p))
		}
		if !again.isNoOp(p) {
			return fmt.Errorf("held now: %v, in the status: %v", heldPaths(p.Held), heldPaths(again.held()))
		}
		return nil
	}},
	{"the second plan is empty after a power cycle", func(_ *world, first Result, after *world) error {
		if len(first.Postponed) > 0 {
			return nil
		}
		again := *after
		again.refresh()
		again.start()
		if p := again.plan(); !tree.Equal(p.Planned, again.state) || len(p.Changes)+len(p.Live) > 0 {
			return fmt.Errorf("%s", planText(again.input(), p))
		}
		return nil
	}},
	{"what others put there stays", func(before *world, _ Result, after *world) error {
		for _, list := range []string{"disks", "nics", "serials", "rngs"} {
			for _, e := range before.definition.Attr(list).Elems() {
				if isForeign(e) && !slices.ContainsFunc(after.definition.Attr(list).Elems(), func(o tree.Value) bool { return tree.Equal(o, e) }) {
					return fmt.Errorf("%s of %s is gone or another", e, list)
				}
			}
		}
		return nil
	}},
	{"what is held stays held", func(_ *world, p Result, after *world) error {
		again := *after
		again.refresh()
		now := digests(again.plan().Held)
		for _, h := range p.Held {
			if !slices.Contains(now, h.Digest) {
				return fmt.Errorf("%s (%s) is held no more: %v", h.Path, h.Digest, now)
			}
		}
		return nil
	}},
	{"nothing waits that was reached or made", func(before *world, p Result, after *world) error {
		waiting := pathSet(testRules.Waiting(testType, after.definition, after.running(), after.owned))
		for _, c := range slices.Concat(p.Changes, p.Live) {
			if (c.Reached || c.Live) && !isNameless(c.Path) && waiting[c.Path.String()] {
				return fmt.Errorf("%s", c.Path)
			}
		}
		return nil
	}},
}

// isNameless says whether a path leads through an element that is known by its
// content alone, or by its place. Who looks at it later may take another for it.
func isNameless(path tree.Path) bool {
	pattern := path.Pattern()
	return strings.HasPrefix(pattern, "rngs[]") || strings.HasPrefix(pattern, "boot[]") || strings.HasPrefix(pattern, "disks[].hosts[]")
}

// givesWay says whether a pattern lies in a kind of backend of which another
// one, that is among the patterns, takes the place.
func givesWay(patterns []string, pattern string) bool {
	object, _, found := strings.Cut(pattern, "backend.")
	return found && slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(p, object+"backend.") })
}

// concerns says whether a path is among the patterns, or lies in an element that
// came or went; if it is nameless, whether another of its list is.
func concerns(patterns []string, path tree.Path) bool {
	pattern := path.Pattern()
	return slices.ContainsFunc(patterns, func(p string) bool {
		if isNameless(path) {
			list := pattern[:strings.LastIndex(pattern, "[]")]
			return strings.HasPrefix(p, list)
		}
		whole := strings.HasSuffix(p, "[]") && strings.HasPrefix(pattern, p) || strings.HasSuffix(pattern, "[]") && strings.HasPrefix(p, pattern)
		return whole || p == pattern
	})
}

func digests(all []Held) (out []string) {
	for _, h := range all {
		out = append(out, h.Digest)
	}
	return out
}
