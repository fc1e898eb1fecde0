package main

import (
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// project is the configuration before it is text.
type project struct {
	uri       string // of the host
	hidden    bool   // the URI holds credentials: it is no part of the configuration
	objects   []*object
	links     map[*object]map[string]string // for an object, by path: what to write instead of the value
	locals    []local
	variables []variable
}

// local is a value that several objects share.
type local struct {
	name  string
	value tree.Value
}

// variable stands for a value that must not be written.
type variable struct {
	name, about string
	value       string // as the host has it; only the proof is told
}

var roots = map[string]func() *spec.Root{
	kindDomain: spec.Domain, kindNetwork: spec.Network, kindPool: spec.Pool, kindVolume: spec.Volume,
}

// compose names the objects and finds what in them refers to others.
func compose(objects []*object, uri, shown string) *project {
	p := &project{uri: uri, hidden: uri != shown, objects: objects, links: map[*object]map[string]string{}}
	label(objects)
	for _, o := range objects {
		p.links[o] = map[string]string{}
	}
	p.refer()
	p.share()
	p.hide()
	return p
}

// refer writes the names of other adopted objects as references to them.
func (p *project) refer() {
	byName := map[string]*object{} // by selector
	byPath := map[string]*object{} // volumes
	for _, o := range p.objects {
		byName[o.selector()] = o
		if o.path != "" {
			byPath[o.path] = o
		}
	}
	for _, o := range p.objects {
		o.essence.Walk(func(path tree.Path, v tree.Value) bool {
			if v.Kind() != tree.String {
				return true
			}
			pattern := path.Pattern()
			switch {
			case o.kind == kindVolume && pattern == "pool":
				p.link(o, path, byName[kindPool+"/"+v.Str()], "name")
			case o.kind == kindVolume && pattern == "backing_store.path":
				p.link(o, path, byPath[v.Str()], "path")
			case o.kind != kindDomain:
			case strings.HasSuffix(pattern, "source.network.network"):
				p.link(o, path, byName[kindNetwork+"/"+v.Str()], "name")
			case strings.HasSuffix(pattern, "source.volume.pool"), strings.HasSuffix(pattern, "source.volume.volume"):
				p.linkVolume(o, path, byName)
			case slices.Contains(pathsOfVolumes, pattern):
				p.link(o, path, byPath[v.Str()], "path")
			}
			return true
		})
	}
}

// pathsOfVolumes are where a machine names a volume by its path.
var pathsOfVolumes = []string{"devices.disks[].source.file.file", "devices.disks[].source.block.dev", "os.kernel", "os.initrd", "os.dtb"}

func (p *project) link(from *object, path tree.Path, to *object, attribute string) {
	if to != nil && to != from {
		p.links[from][path.String()] = to.address() + "." + attribute
	}
}

// linkVolume refers to a volume that is named by pool and name, or at least to
// its pool.
func (p *project) linkVolume(o *object, path tree.Path, byName map[string]*object) {
	source := o.essence.Get(path[:len(path)-1])
	pool, name := source.Attr("pool").Str(), source.Attr("volume").Str()
	volume := byName[kindVolume+"/"+pool+"/"+name]
	switch attribute := path[len(path)-1].Attr; {
	case volume != nil && attribute == "volume":
		p.link(o, path, volume, "name")
	case volume != nil:
		p.link(o, path, volume, "pool")
	case attribute == "pool":
		p.link(o, path, byName[kindPool+"/"+pool], "name")
	}
}

// shared are the places whose values are written once if several objects have
// the same, and the names that these get.
var shared = []struct{ pattern, name string }{
	{"os.type_machine", "machine_type"},
	{"os.loader", "firmware"},
	{"os.nv_ram.template", "firmware_variables"},
	{"devices.interfaces[].source.network.network", "network"},
	{"devices.interfaces[].source.bridge.bridge", "bridge"},
	{"devices.interfaces[].source.direct.dev", "uplink"},
	{"devices.disks[].source.volume.pool", "pool"},
	{"pool", "pool"},
}

// share makes locals of values that more than one object has.
func (p *project) share() {
	type use struct {
		object *object
		path   string
	}
	taken := names{}
	byPattern := map[string]map[string][]use{}
	for _, o := range p.objects {
		o.essence.Walk(func(path tree.Path, v tree.Value) bool {
			if v.Kind() == tree.String && p.links[o][path.String()] == "" {
				pattern := path.Pattern()
				if byPattern[pattern] == nil {
					byPattern[pattern] = map[string][]use{}
				}
				byPattern[pattern][v.Str()] = append(byPattern[pattern][v.Str()], use{o, path.String()})
			}
			return true
		})
	}
	named := map[string]string{} // by name and value: both patterns of a pool mean the same
	for _, s := range shared {
		var repeated []string
		for text, uses := range byPattern[s.pattern] {
			if slices.ContainsFunc(uses, func(u use) bool { return u.object != uses[0].object }) {
				repeated = append(repeated, text)
			}
		}
		slices.Sort(repeated)
		for _, text := range repeated {
			key := s.name + "\x00" + text
			if named[key] == "" {
				wish := s.name
				if len(repeated) > 1 {
					wish = s.name + "_" + identifier(text, "value")
				}
				named[key] = taken.take(wish)
				p.locals = append(p.locals, local{named[key], tree.StringValue(text)})
			}
			for _, u := range byPattern[s.pattern][text] {
				p.links[u.object][u.path] = "local." + named[key]
			}
		}
	}
}
