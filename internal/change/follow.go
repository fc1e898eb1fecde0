package change

import (
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// follow makes unknown what the host may adapt by itself when something beside
// it changes: what state knows and the configuration does not name, in the
// same device or the same part of the object. After an import state knows
// everything; planned as it was, such a value would be a promise that nobody
// can keep.
func (p *planner) follow() {
	paths := append([]tree.Path(nil), p.out.Unknown...) // may turn out to be changes
	for _, c := range p.out.Changes {
		if c.Kind != Removal && c.Kind != Addition {
			paths = append(paths, c.Path)
		}
	}
	for _, path := range paths {
		if scope := scopeOf(path); len(scope) > 0 {
			p.loosen(scope)
		}
		if p.Follows == nil {
			continue
		}
		for _, pattern := range p.Follows(path.Pattern()) {
			for _, follower := range expand(pattern, p.out.Planned) {
				p.loosen(follower)
				p.loosenChosen(follower)
			}
		}
	}
}

// expand lists the paths of a tree that have a pattern.
func expand(pattern string, v tree.Value) []tree.Path {
	list, rest, found := strings.Cut(pattern, "[].")
	if !found {
		return []tree.Path{tree.ParsePath(pattern)}
	}
	var all []tree.Path
	at := tree.ParsePath(list)
	for i, e := range v.Get(at).Elems() {
		for _, below := range expand(rest, e) {
			all = append(all, append(at.Elem(i, ""), below...))
		}
	}
	return all
}

// scopeOf is the part of the object that a path belongs to: the list element
// that it lies in, else the attribute of the root, if that is an object.
func scopeOf(path tree.Path) tree.Path {
	for i := len(path) - 1; i > 0; i-- {
		if path[i].Attr == "" {
			return path[:i+1]
		}
	}
	if len(path) > 1 {
		return path[:1]
	}
	return nil
}

// loosen makes the leaves below a path unknown that are as in prior and that
// the configuration does not name.
func (p *planner) loosen(scope tree.Path) {
	owner := scope[:len(scope)-1]
	if p.isUnitOfNamed(owner, p.in.Config.Get(owner), scope[len(scope)-1].Attr) {
		return
	}
	desired := p.in.Config.Get(scope)
	planned := p.out.Planned.Get(scope)
	loose := p.loosened(scope, desired, planned)
	if scope[len(scope)-1].Attr == "" {
		loose = p.identified(scope.Pattern(), planned, loose)
	}
	p.out.Planned = p.out.Planned.Set(scope, loose)
}

// loosenChosen makes a leaf unknown that libvirt chooses, as it will choose
// again. Where there is none now, as of a guest that is off, there may be one then.
func (p *planner) loosenChosen(leaf tree.Path) {
	planned := p.out.Planned.Get(leaf)
	isLeaf := planned.Kind() != tree.Object && planned.Kind() != tree.List
	if isLeaf && p.Chosen(leaf.Pattern()) && p.in.Config.Get(leaf).IsNull() {
		p.out.Planned = p.out.Planned.Set(leaf, tree.UnknownValue)
	}
}

// identified gives an element back what it is known by.
func (p *planner) identified(pattern string, elem, loose tree.Value) tree.Value {
	keys := p.Keys(pattern, elem)
	elem.Walk(func(leaf tree.Path, v tree.Value) bool {
		isLeaf := v.Kind() != tree.Object && v.Kind() != tree.List
		if isLeaf && !slices.Equal(p.Keys(pattern, elem.Set(leaf, tree.NullValue)), keys) {
			loose = loose.Set(leaf, v)
		}
		return v.Kind() != tree.List
	})
	return loose
}

func (p *planner) loosened(path tree.Path, desired, planned tree.Value) tree.Value {
	switch planned.Kind() {
	case tree.Null, tree.Unknown:
		return planned
	case tree.Object:
		for _, name := range planned.Names() {
			if p.isUnitOfNamed(path, desired, name) {
				continue
			}
			planned = planned.With(name, p.loosened(path.Attr(name), desired.Attr(name), planned.Attr(name)))
		}
		return planned
	case tree.List:
		if !desired.IsNull() || !strings.Contains(path.Pattern(), "[]") {
			return planned
		}
		return tree.UnknownValue
	}
	if !desired.IsNull() || p.Chosen(path.Pattern()) || p.Setting(path.Pattern()) {
		return planned
	}
	return tree.UnknownValue
}

// isUnitOfNamed says whether an attribute is the unit of a number that the
// configuration names.
func (p *planner) isUnitOfNamed(path tree.Path, desired tree.Value, attr string) bool {
	if p.Unit == nil {
		return false
	}
	for _, name := range desired.Names() {
		if unit, _ := p.Unit(path.Attr(name).Pattern()); unit == attr {
			return true
		}
	}
	return false
}
