package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// Place is where something stands in a document that the tree may have no
// attribute for: an element, or an attribute of one. It is written like an
// absolute path of XPath, of which it knows names and four kinds of predicates:
//
//	/domain/devices/rng[2]/backend/log
//	/domain/devices/disk[target/@dev='vda']/driver/@novel
//	/domain/devices/channel[@type='unix'][target/@name='org.example']/log
//	/domain/cpu/feature[policy='require']
type Place struct {
	text  string
	steps []placeStep
	attr  string // "" for an element
}

type placeStep struct {
	tag  string // with its prefix
	want []condition
}

// condition is a predicate: the element of that number, from 1, or the one
// where a value, reached from it, is so.
type condition struct {
	number int
	tags   []string
	attr   string
	value  string
}

var (
	stepForm      = regexp.MustCompile(`^([\w.:-]+)((?:\[[^\]]*\])*)$`)
	predicateForm = regexp.MustCompile(`^\[(?:(\d+)|((?:[\w.:-]+/)*(?:@?[\w.:-]+))\s*=\s*(?:'([^']*)'|"([^"]*)"))\]$`)
	predicates    = regexp.MustCompile(`\[[^\]]*\]`)
)

// ParsePlace reads a place below the root element of a document.
func (r *Root) ParsePlace(text string) (Place, error) {
	p := Place{text: text}
	parts := splitPlace(text)
	if len(parts) < 3 || parts[0] != "" || parts[1] != r.Name {
		return p, fmt.Errorf("it does not begin with /%s/", r.Name)
	}
	for i, part := range parts[2:] {
		if name, isAttr := strings.CutPrefix(part, "@"); isAttr {
			if i != len(parts)-3 || !stepForm.MatchString(name) || strings.Contains(name, "[") {
				return p, fmt.Errorf("%q is no attribute at its end", part)
			}
			p.attr = name
			continue
		}
		m := stepForm.FindStringSubmatch(part)
		if m == nil {
			return p, fmt.Errorf("%q is no name of an element, with or without conditions in brackets", part)
		}
		step := placeStep{tag: m[1]}
		for _, text := range predicates.FindAllString(m[2], -1) {
			c, err := parseCondition(text)
			if err != nil {
				return p, err
			}
			step.want = append(step.want, c)
		}
		p.steps = append(p.steps, step)
	}
	if len(p.steps) == 0 {
		return p, fmt.Errorf("it names no element below /%s", r.Name)
	}
	return p, nil
}

// splitPlace splits at slashes that are in no brackets.
func splitPlace(text string) (parts []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '/' && depth == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

func parseCondition(text string) (c condition, err error) {
	m := predicateForm.FindStringSubmatch(text)
	if m == nil {
		return c, fmt.Errorf("%s is no condition of the form [2], [@name='value'], [child='value'] or [child/@name='value']", text)
	}
	if m[1] != "" {
		c.number, err = strconv.Atoi(m[1])
		if err == nil && c.number == 0 {
			err = fmt.Errorf("elements count from [1]")
		}
		return c, err
	}
	c.tags, c.value = strings.Split(m[2], "/"), m[3]+m[4]
	last := len(c.tags) - 1
	if name, isAttr := strings.CutPrefix(c.tags[last], "@"); isAttr {
		c.tags, c.attr = c.tags[:last], name
	}
	return c, nil
}

// String returns the place as it was written.
func (p Place) String() string { return p.text }

// Tag is the name of the element, "" if the place is an attribute.
func (p Place) Tag() string {
	if p.attr != "" {
		return ""
	}
	return p.steps[len(p.steps)-1].tag
}

// AttributeFor names an attribute of the tree that says what stands at a place,
// or below it; "" if there is none.
func (r *Root) AttributeFor(p Place) string {
	at := "/" + r.Name
	for _, s := range p.steps {
		at += "/" + s.tag
	}
	if p.attr != "" {
		at += "/@" + p.attr
	}
	var found []string
	for pattern, f := range r.Fields {
		if f.Lost == "" && (f.XML == at || strings.HasPrefix(f.XML, at+"/")) {
			found = append(found, pattern)
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortFunc(found, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return found[0]
}

// elements finds what the steps lead to.
func (p Place) elements(root *etree.Element, steps []placeStep) []*etree.Element {
	found := []*etree.Element{root}
	for _, s := range steps {
		var next []*etree.Element
		for _, e := range found {
			var here []*etree.Element
			for _, child := range e.ChildElements() {
				if child.FullTag() == s.tag {
					here = append(here, child)
				}
			}
			for _, c := range s.want {
				here = c.among(here)
			}
			next = append(next, here...)
		}
		found = next
	}
	return found
}

func (c condition) among(all []*etree.Element) (out []*etree.Element) {
	for i, e := range all {
		if c.number == i+1 || c.number == 0 && c.holds(e) {
			out = append(out, e)
		}
	}
	return out
}

func (c condition) holds(e *etree.Element) bool {
	for _, tag := range c.tags {
		if e = e.SelectElement(tag); e == nil {
			return false
		}
	}
	if c.attr == "" {
		return strings.TrimSpace(e.Text()) == c.value
	}
	a := e.SelectAttr(c.attr)
	return a != nil && a.Value == c.value
}

// Counts says, for each condition of the place that is a number, how many
// elements it counts among.
func (p Place) Counts(xml string) (counts []int, err error) {
	doc, err := parse(xml)
	if err != nil {
		return nil, err
	}
	for i, s := range p.steps {
		for j, c := range s.want {
			if c.number > 0 {
				upTo := append(slices.Clone(p.steps[:i]), placeStep{tag: s.tag, want: s.want[:j]})
				counts = append(counts, len(p.elements(doc.Root(), upTo)))
			}
		}
	}
	return counts, nil
}

// Read returns what stands at the place: the XML of an element, or the text of
// an attribute. An error says that the place is not the only one of its kind.
func (p Place) Read(xml string) (value string, found bool, err error) {
	doc, err := parse(xml)
	if err != nil {
		return "", false, err
	}
	all := p.elements(doc.Root(), p.steps)
	switch {
	case len(all) == 0:
		return "", false, nil
	case len(all) > 1:
		return "", false, fmt.Errorf("%s is %d elements: a condition in brackets chooses one", p, len(all))
	case p.attr != "":
		a := all[0].SelectAttr(p.attr)
		if a == nil {
			return "", false, nil
		}
		return a.Value, true, nil
	}
	alone := etree.NewDocument()
	alone.SetRoot(all[0].Copy())
	value, err = alone.WriteToString()
	return value, true, err
}

// Write returns the document with the value at the place, in which nothing is
// there without one (nil). An element is replaced where it stood, or is the last
// of its parent, which has to be there, and the only one.
func (p Place) Write(xml string, value *string) (string, error) {
	doc, err := parse(xml)
	if err != nil {
		return "", err
	}
	above := p.steps
	if p.attr == "" {
		above = above[:len(above)-1]
	}
	parents := p.elements(doc.Root(), above)
	if len(parents) != 1 {
		if len(parents) == 0 && value == nil {
			return xml, nil
		}
		return "", fmt.Errorf("%s: the definition has %d elements to put it into, not one", p, len(parents))
	}
	if p.attr != "" {
		if value == nil {
			parents[0].RemoveAttr(p.attr)
		} else {
			parents[0].CreateAttr(p.attr, *value)
		}
		return doc.WriteToString()
	}
	there := p.elements(doc.Root(), p.steps)
	if len(there) > 1 {
		return "", fmt.Errorf("%s is %d elements: a condition in brackets chooses one", p, len(there))
	}
	at := len(parents[0].Child)
	if len(there) == 1 {
		at = there[0].Index()
		parents[0].RemoveChildAt(at)
	}
	if value != nil {
		part, err := parse(*value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
		parents[0].InsertChildAt(at, part.Root().Copy())
	}
	return doc.WriteToString()
}

// TagOf is the name of the one element that a text is.
func TagOf(xml string) (string, error) {
	doc, err := parse(xml)
	if err != nil {
		return "", err
	}
	return doc.Root().FullTag(), nil
}
