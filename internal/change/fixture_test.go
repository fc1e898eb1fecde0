package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A small kind of object with one field of every sort, and a list of every way
// in which elements are known.
var testType = tree.ObjectOf(
	str("title"), str("uuid"), str("image"), str("loader"), str("kernel"), str("label"), str("meta"),
	&tree.Attribute{Name: "active", Type: tree.BoolType}, &tree.Attribute{Name: "protect", Type: tree.BoolType},
	num("memory"), str("memory_unit"), num("balloon"), str("balloon_unit"), num("used"), num("vcpu"),
	&tree.Attribute{Name: "args", Type: tree.ListOf(tree.StringType)}, &tree.Attribute{Name: "flags", Type: tree.ListOf(tree.StringType)},
	&tree.Attribute{Name: "cpu", Type: tree.ObjectOf(str("mode"), str("check"),
		num("size"), str("size_unit"), list("features", str("name"), str("policy")))},
	backend(), list("disks", str("dev"), str("file"), str("cache"), backend(), list("hosts", str("name"), str("port"))),
	list("nics", str("mac"), str("net"), str("link")),
	list("serials", str("port"), str("alias"), str("log")),
	list("rngs", str("model"), str("rate"), str("source")),
	list("boot", str("dev"), str("wait")),
)

func str(name string) *tree.Attribute { return &tree.Attribute{Name: name, Type: tree.StringType} }
func num(name string) *tree.Attribute { return &tree.Attribute{Name: name, Type: tree.NumberType} }

// backend has kinds of which the host has one.
func backend() *tree.Attribute {
	file := &tree.Attribute{Name: "file", Type: tree.ObjectOf(str("path"), str("mode"))}
	host := &tree.Attribute{Name: "host", Type: tree.ObjectOf(str("name"))}
	return &tree.Attribute{Name: "backend", Type: tree.ObjectOf(file, host, &tree.Attribute{Name: "none", Type: tree.BoolType})}
}

func list(name string, attrs ...*tree.Attribute) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: tree.ListOf(tree.ObjectOf(attrs...))}
}

var testRules = &Rules{
	// "" and "none" are what a serial's log is when nothing is said of it; that
	// it is not false that there is no backend says nothing either.
	Equal: func(pattern string, a, b tree.Value) bool {
		switch pattern {
		case "backend.none", "disks[].backend.none":
			return !a.IsUnknown() && !b.IsUnknown() && a.Bool() == b.Bool()
		case "nics[].mac":
			return a.IsKnown() && b.IsKnown() && strings.EqualFold(a.Str(), b.Str())
		case "serials[].log":
			return !a.IsUnknown() && !b.IsUnknown() && strings.TrimPrefix(a.Str(), "none") == strings.TrimPrefix(b.Str(), "none")
		}
		return false
	},
	Keys: func(pattern string, e tree.Value) []string {
		switch pattern {
		case "disks[]":
			return []string{e.Attr("dev").Str()}
		case "nics[]":
			return []string{strings.ToLower(e.Attr("mac").Str())}
		case "cpu.features[]":
			return []string{e.Attr("name").Str()}
		case "serials[]":
			return []string{e.Attr("port").Str(), e.Attr("alias").Str()}
		}
		return nil
	},
	Ordered: func(pattern string) bool { return pattern == "boot" },
	Unit: func(pattern string) (string, string) {
		switch pattern {
		case "memory", "balloon", "cpu.size":
			return pattern[strings.LastIndex(pattern, ".")+1:] + "_unit", "KiB"
		}
		return "", ""
	},
	Tier: func(pattern string) Tier {
		root, _, _ := strings.Cut(strings.ReplaceAll(pattern, "[]", ""), ".")
		switch root {
		case "uuid", "loader":
			return TierLocked
		case "memory", "memory_unit", "balloon", "balloon_unit", "vcpu", "disks", "serials", "boot":
			return TierModification
		}
		if strings.HasPrefix(pattern, "cpu.") && pattern != "cpu.mode" && pattern != "cpu.check" {
			return TierModification
		}
		return TierRoutine
	},
	Setting:  func(pattern string) bool { return pattern == "protect" || pattern == "image" },
	Once:     func(pattern string) bool { return pattern == "image" },
	Chosen:   func(pattern string) bool { return pattern == "uuid" || pattern == "nics[].mac" },
	Sticky:   func(pattern string) bool { return pattern == "active" },
	Kept:     func(pattern string) bool { return pattern == "args" },
	Measured: func(pattern string) bool { return pattern == "used" },
	Noise:    func(pattern string) bool { return pattern == "label" || pattern == "disks[].hosts[].port" },
	Floats:   func(pattern string) bool { return pattern == "balloon" || pattern == "balloon_unit" },
	Covers:   coversWords,
	Follows: func(pattern string) []string {
		if pattern == "memory" {
			return []string{"balloon", "balloon_unit"}
		}
		return nil
	},
	Correctable: correctableInTests,

	Alternatives: func(pattern string) []string {
		object, name, found := cutLast(pattern, ".")
		if !found || object != "backend" && object != "disks[].backend" {
			return nil
		}
		return slices.DeleteFunc([]string{"file", "host", "none"}, func(n string) bool { return n == name })
	},
}

// coversWords compares texts as sets of words: what other people put there is
// theirs.
func coversWords(pattern string, desired, actual, owned tree.Value) (covers, applies bool) {
	if pattern != "meta" {
		return false, false
	}
	want, have := words(desired), words(actual)
	for w := range want {
		if !have[w] {
			return false, true
		}
	}
	for w := range words(owned) {
		if have[w] && !want[w] {
			return false, true
		}
	}
	return true, true
}

func words(v tree.Value) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(v.Str()) {
		out[w] = true
	}
	return out
}

// correctableInTests: texts, links, rates, whole devices, and the balloon up to
// what the guest has.
func correctableInTests(c Change, guest tree.Value) bool {
	switch c.Path.Pattern() {
	case "title", "meta", "flags", "nics[].link", "rngs[].rate", "disks[]", "nics[]", "disks[].file":
		return true
	case "balloon":
		most := Bytes(guest.Attr("memory"), guest.Attr("memory_unit"), "KiB")
		return most.Num() != nil && c.Desired.Num() != nil && c.Desired.Num().Cmp(most.Num()) <= 0
	}
	return false
}

// obj reads a tree, as JSON with single quotes or as the scripts write it; "?"
// is unknown, and no text is null.
func obj(t testing.TB, text string) tree.Value {
	t.Helper()
	v, err := parseTree(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// parseTree reads what tree.Value.String writes, with less ceremony: commas may
// be new lines, the outermost braces may be left out, JSON is understood too,
// and # begins a comment.
func parseTree(text string) (v tree.Value, err error) {
	p := &treeParser{text: text}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("at %q: %v", p.rest(), r)
		}
	}()
	if p.space(); p.at == len(p.text) {
		return tree.NullValue, nil
	}
	if c := p.text[p.at]; c == '{' || strings.HasPrefix(p.rest(), "null") {
		v = p.value()
	} else {
		v = p.attrs("")
	}
	if p.space(); p.at < len(p.text) {
		return v, fmt.Errorf("more than one value: %q", p.rest())
	}
	return v, nil
}

type treeParser struct {
	text string
	at   int
}

func (p *treeParser) rest() string { return p.text[p.at:] }

// space skips white space, commas and comments.
func (p *treeParser) space() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		case strings.ContainsRune(" \t\r\n,", rune(c)):
			p.at++
		default:
			return
		}
	}
}

// next says whether one of the tokens follows, and takes it.
func (p *treeParser) next(tokens ...string) (string, bool) {
	p.space()
	for _, t := range tokens {
		if t != "" && strings.HasPrefix(p.rest(), t) {
			p.at += len(t)
			return t, true
		}
	}
	return "", false
}

// attrs reads attributes up to a closing token, "" for the end of the text.
func (p *treeParser) attrs(end string) tree.Value {
	out := map[string]tree.Value{}
	for {
		if p.space(); end == "" && p.at == len(p.text) {
			return tree.ObjectValue(out)
		}
		if _, closed := p.next(end); closed {
			return tree.ObjectValue(out)
		}
		quote, _ := p.next(`"`, `'`)
		from := p.at
		for p.at < len(p.text) && !strings.ContainsRune(" \t\n=:\"'{}[],", rune(p.text[p.at])) {
			p.at++
		}
		name := p.text[from:p.at]
		if p.next(quote); name == "" {
			panic("an attribute is expected")
		}
		if _, there := p.next("=", ":"); !there {
			panic("= is expected")
		}
		out[name] = p.value()
	}
}

func (p *treeParser) value() tree.Value {
	token, _ := p.next("{", "[", `"`, `'`, "?", "(known after apply)", "null", "true", "false")
	switch token {
	case "{":
		return p.attrs("}")
	case "[":
		elems := []tree.Value{}
		for {
			if _, closed := p.next("]"); closed {
				return tree.ListValue(elems)
			}
			elems = append(elems, p.value())
		}
	case `"`, `'`:
		s, _, closed := strings.Cut(p.rest(), token)
		if !closed {
			panic("a text does not end")
		}
		if p.at += len(s) + 1; s == "?" {
			return tree.UnknownValue
		}
		return tree.StringValue(s)
	case "?", "(known after apply)":
		return tree.UnknownValue
	case "null":
		return tree.NullValue
	case "true", "false":
		return tree.BoolValue(token == "true")
	}
	from := p.at
	for p.at < len(p.text) && strings.ContainsRune("+-.0123456789eE", rune(p.text[p.at])) {
		p.at++
	}
	n, err := tree.ParseNumber(p.text[from:p.at])
	if err != nil {
		panic(err)
	}
	return n
}

func TestTreesAreReadAsTheyAreWritten(t *testing.T) {
	const text = `{active = false, args = ["a", "b"], cpu = {mode = "x"}, disks = [{dev = "a"}, {}], memory = 1.5, title = (known after apply)}`
	v := obj(t, text)
	if v.String() != text {
		t.Errorf("read %s", v)
	}
	for _, same := range []string{
		"active = false\nargs = ['a' 'b'] # not c\ncpu = { mode = \"x\" }\n\ndisks = [{dev = 'a'}, {}]\nmemory = 1.5\ntitle = ?",
		`{'active': false, 'args': ['a','b'], 'cpu': {'mode':'x','check':null}, 'disks': [{'dev':'a'},{}], 'memory': 1.5, 'title': '?'}`,
	} {
		if got := obj(t, same); !tree.Equal(got, v) {
			t.Errorf("%s\nread as %s", same, got)
		}
	}
	for _, wrong := range []string{"a", "a = ", "a = 'b", "{} {}", "= 1", "a = x", "a = [1", "a = {b = 1", "null null"} {
		if got, err := parseTree(wrong); err == nil {
			t.Errorf("%s was read as %s", wrong, got)
		}
	}
}
