package change

import (
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A path of a plan leads through the configuration: its indices are those of
// the lists there, and an element is called what the configuration calls it.
// Records outlive a configuration that is written in another order or with
// other words, so that they speak of elements as the host does.

// place says where an element of the configuration is on the host: the step
// that leads to it in the definition, and the one in the baseline, which stays
// the same while others come and go.
type place struct{ definition, baseline tree.Step }

// remember notes where the element at a path of the configuration is.
func (p *planner) remember(path tree.Path, e side, actual, baseline int) {
	pattern := path.Pattern()
	at := place{definition: tree.Step{Index: actual, Key: p.label(pattern, e.actual)}}
	if at.baseline = at.definition; baseline >= 0 {
		at.baseline = tree.Step{Index: baseline, Key: p.label(pattern, e.baseline)}
	}
	if p.places == nil {
		p.places = map[string]place{}
	}
	p.places[byIndex(path)] = at
}

// inDefinition is the path as it leads through the definition.
func (p *planner) inDefinition(path tree.Path) tree.Path {
	return p.led(path, func(at place) tree.Step { return at.definition })
}

// inBaseline is the path as it leads through the baseline.
func (p *planner) inBaseline(path tree.Path) tree.Path {
	return p.led(path, func(at place) tree.Step { return at.baseline })
}

// identifies says whether an element of a list is known by the value at the
// path, and the configuration says nothing else that it is known by.
func (p *planner) identifies(path tree.Path) bool {
	for i := len(path) - 1; i > 0; i-- {
		if path[i].Attr != "" {
			continue
		}
		pattern, elem := path[:i+1].Pattern(), p.in.Actual.Get(p.inDefinition(path[:i+1]))
		without := elem.Set(path[i+1:], tree.NullValue)
		return !slices.Equal(p.Keys(pattern, elem), p.Keys(pattern, without)) && p.label(pattern, p.in.Config.Get(path[:i+1])) == ""
	}
	return false
}

func (p *planner) led(path tree.Path, step func(place) tree.Step) tree.Path {
	out := append(tree.Path(nil), path...)
	for i, s := range path {
		if s.Attr == "" {
			if at, known := p.places[byIndex(path[:i+1])]; known {
				out[i] = step(at)
			}
		}
	}
	return out
}

// byIndex prints a path without the names of elements, which need not be
// different.
func byIndex(path tree.Path) string {
	out := append(tree.Path(nil), path...)
	for i := range out {
		out[i].Key = ""
	}
	return out.String()
}
