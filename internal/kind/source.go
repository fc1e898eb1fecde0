package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Source is a Kind that data sources show: one object by its name, and all of
// the host. Nothing here changes anything on the host.
type Source interface {
	Kind
	// DataType is what a data source shows of one object: the paths of Type that
	// the host fills, all of them computed. Shown makes it.
	DataType() *tree.Type
	// Keys are the ways to name one object: sets of attributes of DataType, of
	// which a configuration has exactly one.
	Keys() [][]string
	// Inputs are attributes that only a configuration has: of the data source for
	// one object, and of that for all.
	Inputs() (one, all []*tree.Attribute)
	// Check finds what is wrong with the inputs of a configuration, offline.
	Check(config tree.Value) []Problem
	// Show reads the object that a configuration names, in the form of DataType.
	// If libvirt says that there is none, the error is a *MissingError.
	Show(ctx context.Context, config tree.Value) (tree.Value, error)
	// List returns what the host has, in order of the names, as far as one or a
	// few calls tell it: each element is part of what Show returns, and has one
	// set of Keys. config has the inputs for all.
	List(ctx context.Context, config tree.Value) ([]tree.Value, error)
}

// MissingError says that libvirt itself answered "no such object" to a data
// source, and what there is instead.
type MissingError struct {
	Problem Problem
	Err     error
}

func (e *MissingError) Error() string { return e.Problem.Summary + ": " + e.Problem.Detail }
func (e *MissingError) Unwrap() error { return e.Err }

// Missing makes a MissingError. at is the attribute that named the object, as
// written, and there are the values that it could have had on this host.
func Missing(noun, at, written, host string, there []string, err error) error {
	return &MissingError{Err: err, Problem: Problem{
		Path: tree.Root.Attr(at), Summary: fmt.Sprintf("There is no %s %q", noun, written),
		Detail: fmt.Sprintf("No %s on the host %s has %s = %q. %s"+
			"The way out: write one that is there into %s; or read data.libvirt_%ss and filter it, if the %s may be missing.",
			noun, host, at, written, Choices("There are", there, written), at, noun, noun),
	}}
}

// few is how many choices a message shows.
const few = 6

// Choices is the sentence of a message that lists what could have been written:
// those that are nearest to what was. It ends with a space.
func Choices(title string, names []string, written string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return title + ": none. "
	}
	more := ""
	if len(names) > few {
		slices.SortStableFunc(names, func(a, b string) int { return distance(a, written) - distance(b, written) })
		more = fmt.Sprintf(" and %d more", len(names)-few)
		names = names[:few]
	}
	return fmt.Sprintf("%s: %s%s. ", title, strings.Join(names, ", "), more)
}

// distance is how many letters have to be changed, added or left out to make one
// name of another, whatever their case.
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range y {
			cost := 1
			if r == s {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}

// notShown are the parts of a resource's status that its last apply and its
// records tell, of which a data source knows nothing.
var notShown = map[string]bool{
	"status.held": true, "status.foreign": true, "status.last_steps": true, "status.spec_digest": true, "status.started": true,
}

// Shown makes the type of a data source from that of the resource: without what
// only speaks to the provider, and with every attribute computed, but for those
// that name the object. The attributes below the first level have no
// description: they are those of the resource.
func Shown(typ *tree.Type, setting func(pattern string) bool, keys [][]string) *tree.Type {
	shown := computed(typ, "", func(pattern string) bool {
		return pattern == "change" || notShown[pattern] || pattern != "status" && setting(pattern)
	})
	for _, set := range keys {
		for _, name := range set {
			shown.Attrs[name].Optional = true
		}
	}
	return shown
}

func computed(typ *tree.Type, prefix string, skip func(pattern string) bool) *tree.Type {
	switch {
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		return tree.ListOf(computed(typ.Elem, strings.TrimSuffix(prefix, ".")+"[].", skip))
	case typ.Kind != tree.Object:
		return typ
	}
	attrs := make(map[string]*tree.Attribute, len(typ.Attrs))
	for name, a := range typ.Attrs {
		if skip(prefix + name) {
			continue
		}
		out := &tree.Attribute{Name: name, Type: computed(a.Type, prefix+name+".", skip), Computed: true, Sensitive: a.Sensitive}
		if prefix == "" || strings.HasPrefix(prefix, "status.") {
			out.Description = a.Description
		}
		attrs[name] = out
	}
	return &tree.Type{Kind: tree.Object, Attrs: attrs}
}
