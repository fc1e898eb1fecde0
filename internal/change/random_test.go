package change

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// draw makes random objects of testType, and changes them as people do. Those
// of one story have a few attributes only, so that much happens to each.
type draw struct {
	*rand.Rand
	about map[string]bool // attributes of the root; empty: all
}

func (d draw) isAbout(path tree.Path) bool { return len(d.about) == 0 || d.about[path[0].Attr] }

func (d draw) percent(p int) bool { return d.Intn(100) < p }

func pickOf[T any](d draw, of ...T) T { return of[d.Intn(len(of))] }

// pools are the values that a path may have. They are few, so that things
// agree and come back.
var pools = map[string][]string{
	"title": {"a", "b", "c"}, "kernel": {"a", "b"}, "loader": {"a", "b"}, "label": {"a", "b"}, "meta": {"x", "y", "x y", "y z"},
	"cpu.mode": {"a", "b"}, "cpu.check": {"a", "b"}, "cpu.features[].name": {"x", "y"}, "cpu.features[].policy": {"on", "off"},
	"disks[].dev": {"da", "db", "dc"}, "disks[].file": {"1", "2"}, "disks[].cache": {"on", "off"},
	"disks[].hosts[].name": {"h1", "h2"}, "disks[].hosts[].port": {"1", "2"},
	"nics[].mac": {"m1", "m2", "m3"}, "nics[].net": {"one", "two"}, "nics[].link": {"up", "down"},
	"serials[].port": {"0", "1"}, "serials[].log": {"none", "on", "off"},
	"rngs[].model": {"virtio"}, "rngs[].rate": {"1", "2"}, "rngs[].source": {"r1", "r2", "r3"},
	"backend.file.path": {"1", "2"}, "backend.host.name": {"h1", "h2"}, "disks[].backend.file.path": {"1", "2"}, "disks[].backend.host.name": {"h1", "h2"},
	"boot[].dev": {"hd", "cd"}, "boot[].wait": {"1", "2"},
}

// identities are the paths by which the elements of a list are known.
var identities = map[string]string{"disks": "dev", "nics": "mac", "serials": "port", "cpu.features": "name"}

// lists are the lists of objects, where others may put their own elements.
var strangers = map[string]string{
	"disks": `dev = "fd%d", file = "f", cache = "f"`, "nics": `mac = "fm%d", net = "f", link = "f"`,
	"serials": `port = "f%[1]d", alias = "f%[1]d", log = "f"`, "rngs": `model = "alien", rate = "99", source = "f%d"`,
}

// isForeign says whether nobody but a stranger made an element.
func isForeign(e tree.Value) bool {
	for _, name := range []string{"dev", "mac", "alias", "source"} {
		if strings.HasPrefix(e.Attr(name).Str(), "f") {
			return true
		}
	}
	return false
}

// object makes an object with a part of its attributes; of the host, one with
// all that the host gives.
func (d draw) object(typ *tree.Type, path tree.Path, host bool) tree.Value {
	v := tree.ObjectValue(nil)
	for _, name := range typ.Names() {
		here := path.Attr(name)
		if !d.isAbout(here) {
			continue
		}
		if d.percent(55) || always(here.Pattern(), host) {
			v = v.With(name, d.value(typ.Attrs[name].Type, here, host))
		}
	}
	return d.completed(typ, path, v, host)
}

// completed gives an object what it cannot be without.
func (d draw) completed(typ *tree.Type, path tree.Path, v tree.Value, host bool) tree.Value {
	for _, name := range typ.Names() {
		here := path.Attr(name)
		unit, _ := testRules.unitOf(typ, here)
		switch {
		case unit != "" && v.Attr(name).IsNull():
			v = v.With(unit, tree.NullValue)
		case unit != "" && host:
			// A definition has its numbers in the standard unit.
			if n := Bytes(v.Attr(name), v.Attr(unit), "KiB"); !n.IsNull() {
				v = v.With(name, InUnit(n, tree.StringValue("KiB"), "KiB")).With(unit, tree.StringValue("KiB"))
			}
		}
	}
	if len(path) > 0 && path[len(path)-1].Attr == "backend" {
		v = oneBackend(v, pickOf(d, "file", "host", "none"), host)
	}
	if path.Pattern() == "serials[]" { // where both identities are said, they fit
		port := strings.TrimPrefix(v.Attr("alias").Str(), "s")
		if port != "0" && port != "1" {
			port = pickOf(d, "0", "1")
		}
		v = v.With("alias", tree.StringValue("s"+port))
		if host || !v.Attr("port").IsNull() {
			v = v.With("port", tree.StringValue(port))
		}
	}
	if len(path) == 0 && host {
		v = v.With("uuid", tree.StringValue("u"))
		for _, alone := range []string{"protect", "image"} {
			v = v.With(alone, tree.NullValue)
		}
	}
	if len(path) == 0 && !host { // figures are the host's
		v = v.With("used", tree.NullValue).With("uuid", tree.NullValue)
	}
	return v
}

// oneBackend leaves one kind in a backend, the preferred one if it is there.
func oneBackend(v tree.Value, preferred string, host bool) tree.Value {
	if host && !v.Attr("none").Bool() {
		v = v.With("none", tree.NullValue)
	}
	kinds := slices.DeleteFunc(v.Names(), func(name string) bool { return name == "none" && !v.Attr("none").Bool() })
	if len(kinds) < 2 {
		return v
	}
	if !slices.Contains(kinds, preferred) {
		preferred = kinds[0]
	}
	for _, name := range kinds {
		if name != preferred {
			v = v.With(name, tree.NullValue)
		}
	}
	return v
}

// always says that an attribute is never left out.
func always(pattern string, host bool) bool {
	list, name, inList := cutLast(pattern, "[].")
	if !inList || strings.Contains(name, ".") {
		return false
	}
	switch {
	case identities[list] == name:
		return host || list == "disks" || list == "cpu.features"
	case list == "serials" && name == "alias":
		return true
	case list == "rngs" || list == "boot" || list == "disks[].hosts":
		return host || name == "model" || name == "source" || name == "dev" || name == "name"
	}
	return host && list == "nics" && name == "net"
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (d draw) value(typ *tree.Type, path tree.Path, host bool) tree.Value {
	pattern := path.Pattern()
	switch {
	case typ.Kind == tree.Object:
		return d.object(typ, path, host)
	case typ.Kind == tree.List && typ.Elem.Kind == tree.Object:
		var elems []tree.Value
		for range d.Intn(4) {
			elems = d.withElem(typ.Elem, path, elems, host)
		}
		return listOf(elems)
	case typ.Kind == tree.List:
		return tree.ListValue([]tree.Value{tree.StringValue("p"), tree.StringValue("q"), tree.StringValue("r")}[:d.Intn(4)])
	case typ.Kind == tree.Bool:
		return tree.BoolValue(d.percent(50))
	case strings.HasSuffix(pattern, "_unit"):
		return tree.StringValue(pickOf(d, "KiB", "MiB", "k"))
	case pattern == "memory" || pattern == "balloon" || pattern == "cpu.size":
		return tree.IntValue(int64(1+d.Intn(2)) * 1024)
	case typ.Kind == tree.Number:
		return tree.IntValue(int64(1 + d.Intn(3)))
	case len(pools[pattern]) > 0:
		return tree.StringValue(pickOf(d, pools[pattern]...))
	}
	return tree.StringValue("v")
}

// withElem adds an element to a list, if its identity is not there yet.
func (d draw) withElem(typ *tree.Type, list tree.Path, elems []tree.Value, host bool) []tree.Value {
	e := d.object(typ, list.Elem(0, ""), host)
	for _, other := range elems {
		if id := identityOf(list.Pattern(), e); id != "" && id == identityOf(list.Pattern(), other) {
			return elems
		}
	}
	return slices.Insert(elems, d.Intn(len(elems)+1), e)
}

// identityOf is what no two elements of a list may have in common.
func identityOf(list string, e tree.Value) string {
	id := e.Attr(identities[list]).Str()
	switch {
	// No two of these have it in common, though it is not what they are known by:
	// of two that are alike, nobody can say after a while which is which.
	case list == "disks[].hosts":
		id = e.Attr("name").Str()
	case list == "rngs":
		id = e.Attr("source").Str()
	case list == "serials":
		id = strings.TrimPrefix(e.Attr("alias").Str(), "s")
	}
	return id
}

func (d draw) host() tree.Value { return d.object(testType, nil, true) }

// named makes a configuration of a part of a definition.
func (d draw) named(typ *tree.Type, path tree.Path, v tree.Value) tree.Value {
	out := tree.ObjectValue(nil)
	for _, name := range v.Names() {
		here, a, attr := path.Attr(name), typ.Attrs[name], v.Attr(name)
		pattern := here.Pattern()
		switch {
		case !d.percent(55) && !always(pattern, false):
		case a.Type.Kind == tree.Object:
			out = out.With(name, d.named(a.Type, here, attr))
		case a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object:
			var elems []tree.Value
			for _, e := range attr.Elems() {
				if d.percent(70) {
					elems = append(elems, d.named(a.Type.Elem, here.Elem(0, ""), e))
				}
			}
			out = out.With(name, listOf(elems))
		default:
			out = out.With(name, attr)
		}
	}
	return d.completed(typ, path, out, false)
}

// edited changes one thing of a tree: a value, an element, the order of a list.
// at says what.
func (d draw) edited(v tree.Value, host bool) (out tree.Value, at string) {
	var places []tree.Path
	eachPlace(testType, nil, v, func(p tree.Path, typ *tree.Type) {
		if typ.Kind != tree.Object && p.Pattern() != "uuid" && d.isAbout(p) {
			places = append(places, p)
		}
	})
	p := pickOf(d, places...)
	if d.percent(50) { // the lists themselves, too
		lists := slices.DeleteFunc(slices.Clone(places), func(p tree.Path) bool { return !isObjectList(typeAt(testType, p)) })
		if len(lists) > 0 {
			p = pickOf(d, lists...)
		}
	}
	typ, node := typeAt(testType, p), v.Get(p)
	owner := v.Get(p[:len(p)-1])
	switch {
	case isObjectList(typ):
		node = d.editedList(typ.Elem, p, node, host)
	case !node.IsNull() && d.percent(30) && !always(p.Pattern(), host):
		node = tree.NullValue
	default:
		node = d.value(typ, p, host)
	}
	last := p[len(p)-1].Attr
	if len(p) > 1 && isForeign(v.Get(p[:2])) {
		return v, "nothing"
	}
	if id := identities[strings.TrimSuffix(p[:len(p)-1].Pattern(), "[]")]; !node.IsNull() && (id == last && id != "" || last == "alias") {
		return v, "nothing" // identities change as elements come and go
	}
	before := v
	v = v.Set(p[:len(p)-1], d.completed(typeAt(testType, p[:len(p)-1]), p[:len(p)-1], owner.With(last, node), host))
	for n := range p {
		if p[n].Attr == "backend" && n+1 < len(p) {
			v = v.Set(p[:n+1], oneBackend(v.Get(p[:n+1]), p[n+1].Attr, host))
		}
	}
	if hasTwins(v) {
		return before, "nothing"
	}
	return v, p.String()
}

// hasTwins says whether two elements of a list are known by the same.
func hasTwins(v tree.Value) bool {
	twins := false
	eachPlace(testType, nil, v, func(p tree.Path, _ *tree.Type) {
		seen := map[string]bool{}
		for _, e := range v.Get(p).Elems() {
			id := identityOf(p.Pattern(), e)
			twins = twins || id != "" && seen[id]
			seen[id] = true
		}
	})
	return twins
}

func (d draw) editedList(typ *tree.Type, path tree.Path, v tree.Value, host bool) tree.Value {
	elems := slices.Clone(v.Elems())
	switch at := d.Intn(len(elems) + 1); {
	case at == len(elems) || d.percent(20):
		elems = d.withElem(typ, path, elems, host)
	case d.percent(40):
		elems = slices.Delete(elems, at, at+1)
	case d.percent(50):
		d.Shuffle(len(elems), func(i, j int) { elems[i], elems[j] = elems[j], elems[i] })
	default:
		gone := slices.Delete(slices.Clone(elems), at, at+1)
		return listOf(d.withElem(typ, path, gone, host)) // another in its place
	}
	if len(elems) == 0 && !host && d.percent(50) {
		return tree.ListValue(nil)
	}
	return listOf(elems)
}

// visited puts a stranger's element into a list of a definition or a guest.
func (d draw) visited(v tree.Value) (out tree.Value, at string) {
	var lists []string
	for _, list := range []string{"disks", "nics", "serials", "rngs"} {
		if d.isAbout(tree.Root.Attr(list)) {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return v, "nothing"
	}
	list := pickOf(d, lists...)
	e, err := parseTree("{" + fmt.Sprintf(strangers[list], d.Intn(3)) + "}")
	if err != nil {
		panic(err)
	}
	elems := slices.Clone(v.Attr(list).Elems())
	if slices.ContainsFunc(elems, func(o tree.Value) bool { return tree.Equal(o, e) }) {
		return v, "nothing"
	}
	return v.With(list, tree.ListValue(slices.Insert(elems, d.Intn(len(elems)+1), e))), list + " " + e.String()
}

// eachPlace calls f for every path that a value of the type may have, with the
// elements that it has.
func eachPlace(typ *tree.Type, path tree.Path, v tree.Value, f func(tree.Path, *tree.Type)) {
	for _, name := range typ.Names() {
		a, here := typ.Attrs[name].Type, path.Attr(name)
		f(here, a)
		switch {
		case a.Kind == tree.Object:
			eachPlace(a, here, v.Attr(name), f)
		case a.Kind == tree.List && a.Elem.Kind == tree.Object:
			for i, e := range v.Attr(name).Elems() {
				eachPlace(a.Elem, here.Elem(i, ""), e, f)
			}
		}
	}
}

func isObjectList(typ *tree.Type) bool { return typ.Kind == tree.List && typ.Elem.Kind == tree.Object }

func typeAt(typ *tree.Type, p tree.Path) *tree.Type {
	for _, s := range p {
		if s.Attr == "" {
			typ = typ.Elem
			continue
		}
		typ = typ.Attrs[s.Attr].Type
	}
	return typ
}
