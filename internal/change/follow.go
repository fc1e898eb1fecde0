package change

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// follow makes unknown what the host may adapt by itself when something beside
// it changes: what state knows and the configuration does not name, in the
// same device or the same part of the object. After an import state knows
// everything; planned as it was, such a value would be a promise that nobody
// can keep.
func (p *planner) follow(in Input) {
	paths := append([]tree.Path(nil), p.out.Unknown...) // may turn out to be changes
	for _, c := range p.out.Changes {
		if c.Kind != Removal && c.Kind != Addition {
			paths = append(paths, c.Path)
		}
	}
	for _, path := range paths {
		if scope := scopeOf(path); len(scope) > 0 {
			p.loosen(in, scope)
		}
		if p.Follows == nil {
			continue
		}
		for _, pattern := range p.Follows(path.Pattern()) {
			p.loosen(in, tree.ParsePath(pattern))
		}
	}
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
func (p *planner) loosen(in Input, scope tree.Path) {
	desired := in.Config.Get(scope)
	p.out.Planned = p.out.Planned.Set(scope, p.loosened(scope, desired, p.out.Planned.Get(scope)))
}

func (p *planner) loosened(path tree.Path, desired, planned tree.Value) tree.Value {
	switch planned.Kind() {
	case tree.Null, tree.Unknown:
		return planned
	case tree.Object:
		for _, name := range planned.Names() {
			planned = planned.With(name, p.loosened(path.Attr(name), desired.Attr(name), planned.Attr(name)))
		}
		return planned
	case tree.List:
		if desired.IsNull() && !strings.Contains(path.Pattern(), "[]") {
			return planned
		}
		if !desired.IsNull() {
			return planned
		}
		return tree.UnknownValue
	}
	if !desired.IsNull() || p.Chosen(path.Pattern()) || p.Setting(path.Pattern()) {
		return planned
	}
	return tree.UnknownValue
}
