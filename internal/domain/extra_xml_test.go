package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func pieces(pairs ...string) tree.Value {
	var all []tree.Value
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, tree.NullValue.With("path", tree.StringValue(pairs[i])).With("xml", tree.StringValue(pairs[i+1])))
	}
	return tree.NullValue.With(extraXML, tree.ListValue(all))
}

// A piece belongs to the element that it was written into, whatever else the
// update does to the document.
func TestWriteExtras(t *testing.T) {
	const (
		a, b  = `<rng><backend>a</backend></rng>`, `<rng><backend>b<log file="l"/></backend></rng>`
		named = "/domain/devices/rng[backend='b']/backend/log"
		nth   = "/domain/devices/rng[2]/backend/log"
		first = "/domain/devices/rng[1]/backend/log"
		root  = "/domain/os/root"
		log   = `<log file="l"/>`
	)
	doc := func(parts ...string) string {
		return "<domain><os/><devices>" + strings.Join(parts, "") + "</devices></domain>"
	}
	without := func(part string) func(string) (string, error) {
		return func(xml string) (string, error) { return strings.Replace(xml, part, "", 1), nil }
	}
	nothing := without("no such part")
	cases := map[string]struct {
		before, wanted tree.Value
		edit           func(string) (string, error)
		want, fails    string
	}{
		"one stays though others go":     {pieces(named, log), pieces(named, log), without(a), doc(b), ""},
		"one that is counted, others go": {pieces(nth, log), pieces(nth, log), without(a), "", "counts elements"},
		"counted anew, others go":        {pieces(nth, log), pieces(first, log), without(a), "", "counts elements"},
		"one that is counted goes":       {pieces(nth, log), pieces(), nothing, doc(a, `<rng><backend>b</backend></rng>`), ""},
		"another value":                  {pieces(nth, log), pieces(nth, `<log file="m"/>`), nothing, doc(a, strings.Replace(b, `"l"`, `"m"`, 1)), ""},
		"another spelling":               {pieces(nth, log), pieces(nth, `<log file='l'></log>`), nothing, doc(a, b), ""},
		"a new one":                      {pieces(), pieces(root, "<root/>"), nothing, "<domain><os><root/></os><devices>" + a + b + "</devices></domain>", ""},
		"no place for it":                {pieces(), pieces("/domain/devices/none/log", log), nothing, "", "0 elements to put it into"},
		"no path at all":                 {pieces("os", log), pieces(), nothing, "", "does not begin"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := writeExtras(doc(a, b), c.before, c.wanted, c.edit)
			switch {
			case c.fails != "":
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %s, %v", got, err)
				}
			case err != nil || got != c.want:
				t.Errorf("got\n%s, %v, want\n%s", got, err, c.want)
			}
		})
	}
}

func TestExtrasInMetadataAreRefused(t *testing.T) {
	problems := validateExtras(pieces("/domain/metadata/driftsafe:domain", "<driftsafe:domain xmlns:driftsafe='u'/>"))
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, "write metadata.xml") {
		t.Errorf("%+v", problems)
	}
}
