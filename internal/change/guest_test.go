package change

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// guestRules are testRules with a running guest whose memory, title and
// devices can be changed; its memory may be more than it is to have for a
// while. The elements of nics have no identity here.
func guestRules() *Rules {
	r := *testRules
	r.Correctable = func(c Change, _ tree.Value) bool {
		p := c.Path.Pattern()
		return p == "title" || p == "memory" || c.Kind == Addition
	}
	r.Late = func(c Change) bool {
		return c.Path.Pattern() == "memory" && c.Actual.Num().Cmp(c.Desired.Num()) > 0
	}
	r.Keys = func(pattern string, e tree.Value) []string {
		if pattern == "disks[]" {
			return []string{e.Attr("dev").Str()}
		}
		return nil
	}
	return &r
}

func (r Result) guestText() string {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s %s", c.Kind, c.Path)
		if c.Reached {
			b.WriteString(", reached")
		}
		b.WriteString("; ")
	}
	for _, c := range r.Live {
		fmt.Fprintf(&b, "live %s %s; ", c.Kind, c.Path)
	}
	for _, h := range r.Held {
		fmt.Fprintf(&b, "held %s live=%v; ", h.Path, h.Live)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestPlanWithAGuest(t *testing.T) {
	cases := map[string]struct {
		config, definition, baseline, guest string // of baseline and owned: "" means config
		lagging                             string
		revert                              bool
		says                                string
	}{
		"as defined":                         {config: `{'title':'a'}`, definition: `{'title':'a'}`, guest: `{'title':'a'}`},
		"changed in the guest alone":         {config: `{'title':'a'}`, definition: `{'title':'a'}`, guest: `{'title':'b'}`, says: "live drift title"},
		"late in the guest":                  {config: `{'title':'a'}`, definition: `{'title':'a'}`, guest: `{'title':'b'}`, lagging: "title"},
		"held in the guest":                  {config: `{'memory':2}`, definition: `{'memory':2}`, guest: `{'memory':1}`, says: "held memory live=true"},
		"held in the guest, reverted":        {config: `{'memory':2}`, definition: `{'memory':2}`, guest: `{'memory':1}`, revert: true, says: "live drift memory"},
		"on its way":                         {config: `{'memory':1}`, definition: `{'memory':1}`, guest: `{'memory':2}`},
		"on its way, reverted":               {config: `{'memory':1}`, definition: `{'memory':1}`, guest: `{'memory':2}`, revert: true, says: "live drift memory"},
		"nothing to be done about it":        {config: `{'cpu':{'mode':'x'}}`, definition: `{'cpu':{'mode':'x'}}`, guest: `{'cpu':{'mode':'y'}}`},
		"changed in the definition alone":    {config: `{'title':'a'}`, definition: `{'title':'b'}`, guest: `{'title':'a'}`, says: "drift title, reached"},
		"changed in both":                    {config: `{'title':'a'}`, definition: `{'title':'b'}`, guest: `{'title':'b'}`, says: "drift title"},
		"a device taken out of the guest":    {config: `{'disks':[{'dev':'a'}]}`, definition: `{'disks':[{'dev':'a'}]}`, guest: `{'title':'x'}`, says: "live addition disks[a]"},
		"a device the definition has lost":   {config: `{'disks':[{'dev':'a'}]}`, definition: `{}`, baseline: `{'disks':[{'dev':'a'}]}`, guest: `{'disks':[{'dev':'a'}]}`, says: "drift disks[a], reached"},
		"one without identity":               {config: `{'nics':[{'net':'one'}]}`, definition: `{}`, baseline: `{'nics':[{'net':'one'}]}`, guest: `{'nics':[{'net':'one'}]}`, says: "drift nics[0], reached"},
		"one without identity, lost in both": {config: `{'nics':[{'net':'one'}]}`, definition: `{}`, baseline: `{'nics':[{'net':'one'}]}`, guest: `{'title':'x'}`, says: "drift nics[0]"},
		"another one is in the guest":        {config: `{'nics':[{'net':'one'}]}`, definition: `{}`, baseline: `{'nics':[{'net':'one'}]}`, guest: `{'nics':[{'net':'two'}]}`, says: "drift nics[0]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := guestRules()
			definition, config := obj(t, c.definition), obj(t, c.config)
			baseline := config
			if c.baseline != "" {
				baseline = obj(t, c.baseline)
			}
			got := r.Plan(Input{
				Type: testType, Config: config, Owned: config, Baseline: baseline, Actual: definition, Prior: r.Project(testType, config, definition),
				Guest: obj(t, c.guest), Lagging: map[string]bool{c.lagging: true}, Policy: Policy{Revert: c.revert},
			})
			if got.guestText() != c.says {
				t.Errorf("says %q\nwant %q", got.guestText(), c.says)
			}
		})
	}
}
