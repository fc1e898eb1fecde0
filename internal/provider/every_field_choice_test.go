package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Of several kinds of a source, backend or device the host has one that nobody
// wrote down, as after an import, and the configuration asks for another: the
// new one must be there afterwards, the old one gone, and the next plan empty.
func TestEveryFieldTakesThePlaceOfItsAlternative(t *testing.T) {
	for _, s := range subjects() {
		byObject := map[string][]leaf{}
		for _, l := range s.leaves() {
			if role := s.roleOf(l); role != ordinary {
				continue
			}
			for i := range l.path {
				byObject[l.path[:i+1].Pattern()] = append(byObject[l.path[:i+1].Pattern()], l)
			}
		}
		tried, apart := 0, 0
		for _, l := range s.leaves() {
			for i := range l.path {
				pattern := l.path[:i+1].Pattern()
				if first := byObject[pattern]; len(first) == 0 || first[0].pattern != l.pattern {
					continue
				}
				was, there := nextAlternative(s.root, pattern, byObject)
				if !there {
					continue
				}
				switch err := s.replaces(l, was); {
				case errors.Is(err, errNotInOne):
					apart++
				case err != nil:
					t.Error(s.fail(l, "in place of %s: %v", was.pattern, err))
				default:
					tried++
				}
			}
		}
		t.Logf("%s: %d tried, %d not in one element", s.Noun(), tried, apart)
		if least := map[string]int{"domain": 362, "network": 10}[s.Noun()]; tried < least {
			t.Errorf("%s: %d tried, want %d", s.Noun(), tried, least)
		}
	}
}

// nextAlternative is the first leaf of the alternative after the one of a
// pattern, in a ring, so that each is once the old one and once the new one.
func nextAlternative(root *spec.Root, pattern string, byObject map[string][]leaf) (leaf, bool) {
	object := pattern[:strings.LastIndex(pattern, ".")+1]
	names := append([]string(nil), root.Alternatives(pattern)...)
	slices.SortFunc(names, func(a, b string) int {
		if before, after := object+a < pattern, object+b < pattern; before != after {
			return map[bool]int{true: 1, false: -1}[before]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if all := byObject[object+name]; len(all) > 0 {
			return all[0], true
		}
	}
	return leaf{}, false
}

var errNotInOne = errors.New("the two are not kinds of one thing")

// replaces lets one leaf take the place of another.
func (s *subject) replaces(l, was leaf) error {
	mine, theirs := s.try(l), s.try(was)
	from, to := theirs.host(theirs.a), mine.host(mine.a)
	if from.err != nil || to.err != nil {
		return errNotInOne
	}
	w := &world{s: s, typ: narrow(s.Type(), from.obj, to.obj), config: to.obj}
	if err := w.become(from); err != nil {
		return err
	}
	w.baseline = w.actual
	w.state = s.Rules().Project(w.typ, from.obj, w.actual)
	r := s.Rules().Plan(w.input())
	said := strings.Split(told(r), "; ")
	if slices.ContainsFunc(said, func(line string) bool { return strings.HasSuffix(line, "[]") }) {
		return errNotInOne
	}
	if !slices.Contains(said, "intent "+l.pattern) {
		return fmt.Errorf("the plan says %q; %s", told(r), w.shown(r))
	}
	if refused := change.Expressible(w.typ, w.state, w.config, r.Planned); len(refused) > 0 {
		return fmt.Errorf("no core accepts the plan: %v", refused)
	}
	before, order := w.actual, change.Order{Rules: s.Rules(), Type: w.typ, Config: w.config, Prior: w.state, Planned: r.Planned, Owned: w.owned}
	next := order.Patch(before)
	var err error
	if w.xml, err = s.root.Edit(w.xml, w.decoded, next); err != nil {
		return err
	}
	if err := w.read(next); err != nil {
		return err
	}
	if unmet := s.Rules().Unmet(w.typ, order.Prior, r.Planned, w.actual); len(unmet) > 0 {
		return fmt.Errorf("the host did not take %v: %s", unmet, w.actual)
	}
	if !tree.Equal(w.actual.Get(l.path), mine.a) || !w.actual.Get(was.path).IsNull() {
		return fmt.Errorf("the host has %s", w.actual)
	}
	w.state = order.Settle(before, w.actual)
	w.owned = order.Identify(w.state)
	w.baseline = w.actual
	if err := agrees(nil, r.Planned, w.state); err != nil {
		return err
	}
	w.refresh()
	return w.quiet("the apply and a refresh")
}
