package domain

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// grade says when something that is wrong keeps a guest from starting.
type grade int

const (
	later    grade = iota // not now: at the host's next boot, or not at all
	inactive              // now, but what is named is right and only has to be started or plugged in
	missing               // now: what is named is not there
)

// finding is one thing that a definition names and the host does not have as a
// guest needs it. A refresh tells it in status.boot_problems, and an apply that
// is about to name it refuses (preflight.go).
type finding struct {
	text   string // of status.boot_problems
	grade  grade
	ref    reference
	what   string // is wrong: a clause that begins with a noun
	choice choice // what the host has instead; nil: that cannot be listed
	wayOut string // beside a choice
}

// reference is the attribute of a definition that names something.
type reference struct {
	list  string // that has the element, "" if it is in none
	leaf  string // below the element, or from the root
	key   string // of the element, as keysOf makes it; "" if it has none
	value string // as the attribute has it, "" if the attribute is an object
}

// same says whether two findings are the same thing wrong with the same
// reference, wherever in its list that is.
func (f finding) same(other finding) bool {
	return f.ref.list == other.ref.list && f.ref.leaf == other.ref.leaf && f.ref.value == other.ref.value && f.what == other.what
}

// ofMachine says whether there is no such machine at all: nothing else that
// libvirt says of it means anything then.
func (f finding) ofMachine() bool {
	return f.ref.leaf == "type" || f.ref.leaf == "os.type_machine" || f.ref.leaf == "devices.emulator"
}

// newIn returns the findings of a definition that are about what changes, that
// is, less those of the definition before. An element that only moved, or that
// changes in something else, names what it named. But each element answers for
// itself: a second interface in a network that is missing is new.
func newIn(now, before []finding) []finding {
	rest := slices.Clone(before)
	take := func(all []finding, fits func(old, f finding) bool) (left []finding) {
		for _, f := range all {
			i := slices.IndexFunc(rest, func(old finding) bool { return old.same(f) && fits(old, f) })
			if i < 0 {
				left = append(left, f)
				continue
			}
			rest = slices.Delete(rest, i, i+1)
		}
		return left
	}
	left := take(now, func(old, f finding) bool { return old.ref.key == f.ref.key })
	return take(left, func(finding, finding) bool { return true })
}

// path leads to the reference as a configuration has it.
func (r reference) path(in tree.Value) tree.Path {
	if r.list == "" {
		return tree.ParsePath(r.leaf)
	}
	at, leaf := -1, tree.ParsePath(r.leaf)
	key := r.key
	for i, e := range in.At(r.list).Elems() {
		if v := e.Get(leaf); v.IsNull() || v.Str() != r.value && (!path.IsAbs(v.Str()) || path.Clean(v.Str()) != r.value) {
			continue
		}
		own := ""
		if ways := keysOf(r.list+"[]", e); len(ways) > 0 {
			own = ways[0]
		}
		if at < 0 || own == strings.ToLower(r.key) {
			at, key = i, own
		}
		if own == strings.ToLower(r.key) {
			break
		}
	}
	if at < 0 && key == "" {
		return tree.ParsePath(r.list) // nothing tells which
	}
	return append(tree.ParsePath(r.list).Elem(at, key), leaf...)
}

// refusal is a finding that keeps an apply from being made.
func (f finding) refusal(ctx context.Context, host hostView, domain string, in tree.Value) kind.Problem {
	at := f.ref.path(in)
	detail := fmt.Sprintf("It is about %s. ", at)
	if f.ref.value != "" {
		detail = fmt.Sprintf("%s is %q. ", at, f.ref.value)
	}
	if f.choice != nil {
		detail += f.choice(ctx, host).sentence(f.ref.value)
	}
	return kind.Problem{
		Path: at, Summary: fmt.Sprintf("Domain %q cannot start as configured: %s", domain, f.what),
		Detail: detail + fmt.Sprintf("The way out: %s. Nothing was changed.", f.wayOut),
	}
}

// createFirst is the way out where a resource may make what is missing.
func createFirst(noun, resource string) string {
	return fmt.Sprintf("create the %s first, and name it by a reference (%s.x.name) so that the core knows the order, or name another one", noun, resource)
}
