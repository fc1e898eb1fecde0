package spec_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/beevik/etree"
)

// facts is what an XML document says, without how it says it: one entry for
// each element, attribute and text, by place. The order of attributes and of
// unlike siblings, white space between elements, prefixes of namespaces and
// comments say nothing; the order of like siblings does, through a number
// from the second on: /domain/devices/disk[2]/source/@file.
//
// Below <metadata>, which libvirt keeps to the letter for others, the order of
// all nodes counts, and comments do too.
type facts map[string]string

func factsOf(t testing.TB, xml string) facts {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(xml); err != nil {
		t.Fatalf("read XML: %v\n%s", err, xml)
	}
	if doc.Root() == nil {
		t.Fatalf("read XML: no root element in %q", xml)
	}
	f := facts{}
	f.add("/"+nameOf(doc.Root()), doc.Root())
	return f
}

func (f facts) add(place string, e *etree.Element) {
	f[place] = ""
	f.addAttributes(place, e)
	if e.Tag == "metadata" && e.Space == "" {
		f.addVerbatim(place, e)
		return
	}
	var text strings.Builder
	seen := map[string]int{}
	for _, token := range e.Child {
		switch c := token.(type) {
		case *etree.CharData:
			text.WriteString(c.Data)
		case *etree.Element:
			name := nameOf(c)
			if seen[name]++; seen[name] > 1 {
				f.add(fmt.Sprintf("%s/%s[%d]", place, name, seen[name]), c)
			} else {
				f.add(place+"/"+name, c)
			}
		}
	}
	if s := text.String(); strings.TrimSpace(s) != "" {
		f[place+"/text()"] = s
	}
}

func (f facts) addAttributes(place string, e *etree.Element) {
	for _, a := range e.Attr {
		switch {
		case a.Space == "xmlns" || a.Space == "" && a.Key == "xmlns":
		case a.Space == "":
			f[place+"/@"+a.Key] = a.Value
		default:
			f[place+"/@{"+a.NamespaceURI()+"}"+a.Key] = a.Value
		}
	}
}

// addVerbatim numbers all nodes in order. White space alone between two
// elements is how libvirt indents, and no node.
func (f facts) addVerbatim(place string, e *etree.Element) {
	n := 0
	next := func(what string) string {
		n++
		return fmt.Sprintf("%s/%d:%s", place, n, what)
	}
	for _, token := range e.Child {
		switch c := token.(type) {
		case *etree.CharData:
			if strings.TrimSpace(c.Data) != "" || len(e.Child) == 1 && c.Data != "" {
				f[next("text()")] = c.Data
			}
		case *etree.Comment:
			f[next("comment()")] = c.Data
		case *etree.Element:
			at := next(nameOf(c))
			f[at] = ""
			f.addAttributes(at, c)
			f.addVerbatim(at, c)
		}
	}
}

// nameOf is the element's name, with its namespace if it has one.
func nameOf(e *etree.Element) string {
	if ns := e.NamespaceURI(); ns != "" {
		return "{" + ns + "}" + e.Tag
	}
	return e.Tag
}

// A change is one fact that two documents do not share.
type change struct {
	place       string
	was, is     string
	gone, added bool
}

func (c change) String() string {
	switch {
	case c.gone:
		return fmt.Sprintf("- %s %s", c.place, c.was)
	case c.added:
		return fmt.Sprintf("+ %s %s", c.place, c.is)
	}
	return fmt.Sprintf("~ %s %s → %s", c.place, c.was, c.is)
}

// changes lists what differs from a to b, by place.
func changes(a, b facts) []change {
	var out []change
	for place, was := range a {
		if is, there := b[place]; !there {
			out = append(out, change{place: place, was: was, gone: true})
		} else if is != was {
			out = append(out, change{place: place, was: was, is: is})
		}
	}
	for place, is := range b {
		if _, there := a[place]; !there {
			out = append(out, change{place: place, is: is, added: true})
		}
	}
	slices.SortFunc(out, func(x, y change) int { return strings.Compare(x.place, y.place) })
	return out
}

// unnumbered is a place without the numbers of like siblings.
func unnumbered(place string) string {
	var b strings.Builder
	depth := 0
	for _, r := range place {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestFacts(t *testing.T) {
	const doc = `<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata>` +
		`<x i="1" j="2"/><y>  t  </y><x><q:z/></x><kvm> </kvm></d>`
	cases := map[string]struct{ doc, want string }{
		"attribute order":       {`<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata><x j="2" i="1"/><y>  t  </y><x><q:z/></x><kvm> </kvm></d>`, ""},
		"order of unlike":       {`<d xmlns:q="urn:q"><y>  t  </y><kvm/><x i="1" j="2"/><x><q:z/></x><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata></d>`, ""},
		"white space, comments": {"<d xmlns:q='urn:q'>\n <metadata>\n <!-- n -->\n <p xmlns='urn:p'>a <b/> c</p> </metadata><!-- x --><x i='1' j='2'/><y>  t  </y><x>\n<q:z/></x><kvm/></d>", ""},
		"prefix":                {`<d><metadata><!-- n --><r:p xmlns:r="urn:p">a <r:b/> c</r:p></metadata><x i="1" j="2"/><y>  t  </y><x><k:z xmlns:k="urn:q"/></x><kvm/></d>`, ""},
		"order of like":         {`<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata><x><q:z/></x><y>  t  </y><x i="1" j="2"/><kvm/></d>`, "- /d/x/@i 1"},
		"text":                  {`<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata><x i="1" j="2"/><y>t</y><x><q:z/></x><kvm/></d>`, "~ /d/y/text()   t   → t"},
		"empty element":         {`<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata><x i="1" j="2"/><y>  t  </y><x><q:z/></x></d>`, "- /d/kvm"},
		"namespace":             {`<d xmlns:q="urn:r"><metadata><!-- n --><p xmlns="urn:p">a <b/> c</p></metadata><x i="1" j="2"/><y>  t  </y><x><q:z/></x><kvm/></d>`, "- /d/x[2]/{urn:q}z"},
		"comment in metadata":   {`<d xmlns:q="urn:q"><metadata><p xmlns="urn:p">a <b/> c</p></metadata><x i="1" j="2"/><y>  t  </y><x><q:z/></x><kvm/></d>`, "- /d/metadata/1:comment()  n "},
		"mixed text":            {`<d xmlns:q="urn:q"><metadata><!-- n --><p xmlns="urn:p">a  c<b/></p></metadata><x i="1" j="2"/><y>  t  </y><x><q:z/></x><kvm/></d>`, "~ /d/metadata/2:{urn:p}p/1:text() a  → a  c"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			got := changes(factsOf(t, doc), factsOf(t, cases[name].doc))
			want := cases[name].want
			if want == "" && len(got) > 0 {
				t.Errorf("these say the same, yet: %v", got)
			}
			if want != "" && !slices.ContainsFunc(got, func(c change) bool { return strings.TrimRight(c.String(), " ") == strings.TrimRight(want, " ") }) {
				t.Errorf("got %v, want %s among them", got, want)
			}
		})
	}
	if got := unnumbered("/d/x[2]/y/@z"); got != "/d/x/y/@z" {
		t.Errorf("unnumbered: %s", got)
	}
}
