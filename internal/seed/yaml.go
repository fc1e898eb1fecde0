package seed

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// cloud-init reads YAML with PyYAML's safe loader, which speaks YAML 1.1 and
// accepts less than the parser here. So after parsing, the tree is searched for
// what that loader refuses: it would make cloud-init ignore the whole text.

// parseYAML parses one document. A nil root without findings means that it is
// empty; a nil root with findings, that it does not parse.
func parseYAML(text string) (root *yaml.Node, found []Finding) {
	if at := strings.IndexFunc(text, unprintable); at >= 0 {
		line, column := position(text, at)
		return nil, []Finding{{Line: line, Column: column, Problem: "YAML does not allow this control character", Advice: `Remove it, or write it in double quotes as an escape such as "\x1b"`}}
	}
	loader, err := yaml.NewLoader(strings.NewReader(versionDirective.ReplaceAllString(text, "%YAML 1.1")))
	if err != nil {
		return nil, syntaxError(err)
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, []Finding{{Line: second.Line, Column: second.Column, Problem: "a second YAML document begins here, and cloud-init reads only texts with one", Advice: "Remove the line with ---"}}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(err)
	}
	if len(first.Content) == 0 {
		return nil, nil
	}
	root = first.Content[0]
	w := walker{tabbed: map[int][]rune{}}
	for i, line := range lineBreak.Split(text, -1) {
		if strings.ContainsRune(line, '\t') {
			w.tabbed[i+1] = []rune(line)
		}
	}
	w.walk(root)
	if slices.ContainsFunc(w.found, func(f Finding) bool { return !f.Warning }) {
		return nil, w.found
	}
	return root, w.found
}

// lineBreak is what YAML 1.1 ends a line with.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// versionDirective is accepted by PyYAML in every 1.x, by the parser here in one.
var versionDirective = regexp.MustCompile(`(?m)^%YAML +1\.[0-9]`)

// unprintable are the characters that PyYAML's reader refuses.
func unprintable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85, r >= 0x20 && r <= 0x7e, r >= 0xa0 && r <= 0xfffd, r >= 0x10000:
		return false
	}
	return true
}

func syntaxError(err error) []Finding {
	f := Finding{Problem: "it is not valid YAML", Advice: "Correct it; yamlencode() writes valid YAML"}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return []Finding{f}
	}
	f.Line, f.Column = load.Mark.Line, load.Mark.Column
	what := load.Message
	if load.ContextMsg != "" {
		what = load.ContextMsg + ", " + what
	}
	// A password that begins with * reads as an alias, and the parser quotes it.
	if strings.Contains(what, "anchor") {
		f.Advice = "To begin a text with * or & put it in quotes; yamlencode() does so by itself"
	}
	f.Problem += ": " + quoted.ReplaceAllString(what, "")
	return []Finding{f}
}

// quoted is what a message of the parser may hold of the text, which may be secret.
var quoted = regexp.MustCompile(`(?s) ?'.*'`)

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for range 100 {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}

// lookUp returns the value of a key of a mapping, as PyYAML finds it: the last
// one, else the first that << brings.
func lookUp(mapping *yaml.Node, key string) *yaml.Node {
	return lookUpOnce(mapping, key, map[*yaml.Node]bool{})
}

// lookUpOnce looks into no mapping twice: they may merge each other, and
// themselves.
func lookUpOnce(mapping *yaml.Node, key string, visited map[*yaml.Node]bool) (value *yaml.Node) {
	if visited[mapping] {
		return nil
	}
	visited[mapping] = true
	var merged []*yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		switch k, v := mapping.Content[i], resolve(mapping.Content[i+1]); {
		case k.Kind != yaml.ScalarNode:
		case k.Tag == "!!merge" && v.Kind == yaml.SequenceNode:
			merged = append(merged, v.Content...)
		case k.Tag == "!!merge":
			merged = append(merged, v)
		case k.Value == key:
			value = mapping.Content[i+1]
		}
	}
	for _, m := range merged {
		if value != nil {
			break
		}
		if m = resolve(m); m.Kind == yaml.MappingNode {
			value = lookUpOnce(m, key, visited)
		}
	}
	return value
}

// walker searches a tree, within its text, for what PyYAML refuses.
type walker struct {
	tabbed map[int][]rune // the lines with tabs in them, by number
	found  []Finding
}

func (w *walker) add(n *yaml.Node, warning bool, problem, advice string) {
	if len(w.found) < 10 { // more help nobody
		w.found = append(w.found, Finding{Warning: warning, Line: n.Line, Column: n.Column, Problem: problem, Advice: advice})
	}
}

func (w *walker) walk(n *yaml.Node) {
	w.tag(n)
	w.tabs(n)
	if n.Kind == yaml.MappingNode {
		w.mapping(n)
	}
	for i, c := range n.Content {
		key := n.Kind == yaml.MappingNode && i%2 == 0
		if !key && c.Kind == yaml.ScalarNode && c.Style == 0 && c.Value == "=" {
			w.add(c, false, "a bare = is a special value in YAML 1.1, at which cloud-init gives up", "Put it in quotes")
		}
		w.walk(c)
	}
}

// safeTags are the tags that a safe loader can make a value of.
var safeTags = []string{"", "!", "!!null", "!!bool", "!!int", "!!float", "!!str", "!!binary", "!!timestamp",
	"!!omap", "!!pairs", "!!set", "!!seq", "!!map", "!!merge", "!!python/unicode"}

var isoDate = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

func (w *walker) tag(n *yaml.Node) {
	if n.Kind != yaml.AliasNode && !slices.Contains(safeTags, n.ShortTag()) {
		w.add(n, false, "this tag is not known to cloud-init, which then ignores the whole text", "Remove the tag; to begin a text with ! put it in quotes")
	}
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return
	}
	if isoDate.MatchString(n.Value) {
		if _, err := time.Parse(time.DateOnly, n.Value); err != nil {
			w.add(n, false, "this looks like a date, and there is no such day, at which cloud-init gives up", "Put it in quotes if it is a text")
		}
	}
}

// tabs finds tabs between the tokens of a document, of which PyYAML says that
// they cannot start any token. Inside quotes, block scalars and comments they
// are fine.
func (w *walker) tabs(n *yaml.Node) {
	line := w.tabbed[n.Line]
	if line == nil || n.Column < 1 {
		return
	}
	start := n.Column - 1
	tab := start > 0 && start <= len(line) && line[start-1] == '\t'
	if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Tag != "!!null" {
		value := []rune(n.Value)
		end := start + len(value)
		tab = tab || strings.ContainsRune(n.Value, '\t') ||
			end < len(line) && line[end] == '\t' && slices.Equal(line[start:end], value)
	}
	if tab {
		w.add(n, false, "a tab stands beside this value, and cloud-init's YAML parser gives up at tabs between values", "Use spaces instead")
	}
}

// mapping finds keys that PyYAML cannot use, and keys that hide earlier ones.
func (w *walker) mapping(n *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch plain := resolve(key); {
		case plain.Kind == yaml.MappingNode || plain.Kind == yaml.SequenceNode:
			w.add(key, false, "a mapping or a list cannot be a key", "Put the text in quotes if it begins with { or [. If it is a template, begin the whole text with the line ## template: jinja")
		case key.Tag == "!!merge":
			mergeable := value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode &&
				!slices.ContainsFunc(value.Content, func(c *yaml.Node) bool { return resolve(c).Kind != yaml.MappingNode })
			if !mergeable {
				w.add(n.Content[i+1], false, "<< merges mappings, and this is none", "Give it a mapping, an alias of one, or a list of these")
			}
		case key.Kind == yaml.ScalarNode:
			id := key.Tag + " " + key.Value
			if seen[id] {
				w.add(key, true, "the key "+shorten(key.Value)+" stands twice in this mapping, and cloud-init uses only the last", "Remove one, or join their values")
			}
			seen[id] = true
		}
	}
}

// shorten makes a key fit for a message.
func shorten(key string) string {
	if r := []rune(key); len(r) > 40 {
		key = string(r[:40]) + "…"
	}
	return `"` + key + `"`
}
