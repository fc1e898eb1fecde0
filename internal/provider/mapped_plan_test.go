package provider

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What a plan says of a value is read by many: it shows where something comes
// from, and not with whose credentials.
func TestPlansShowNoCredentials(t *testing.T) {
	m := &mapped{kind: storage.NewVolume(nil), data: &Data{}}
	if got := m.shown(tree.ParsePath("create.content.url"), tree.StringValue("https://TOKEN@h/x?sig=TOKEN"), ""); got != `"https://xxxxx@h/x?…"` {
		t.Errorf("it is shown as %s", got)
	}
}

// A plan that cannot know whether a volume stays says so, and where; one that need
// not know it is made.
func TestPlanThatDoesNotKnowWhatBecomesOfAVolume(t *testing.T) {
	m := &mapped{kind: storage.NewVolume(nil), data: &Data{}}
	of := func(url string) tree.Value {
		return tree.NullValue.With("name", tree.StringValue("v")).With("pool", tree.StringValue("p")).SetAt("create.content.url", tree.StringValue(url))
	}
	state := of("/one").With("id", tree.StringValue("/v")).With("key", tree.StringValue("/v"))
	for url, errors := range map[string]int{"/one": 0, "/two": 1} {
		config := of(url).SetAt("create.on_change", tree.UnknownValue)
		plan := m.Plan(t.Context(), protocol.PlanRequest{Config: config, Prior: state, Proposed: state, Private: protocol.Private{}})
		if len(plan.Diagnostics) != errors || len(plan.Replace) > 0 {
			t.Errorf("%s: %+v", url, plan.Diagnostics)
		}
		for _, d := range plan.Diagnostics {
			if d.Severity != protocol.Error || d.Path.String() != "create.on_change" || !strings.Contains(d.Detail, "Write the value of create.on_change itself") || !strings.Contains(d.Detail, "create asks for something else") {
				t.Errorf("%s: %+v", url, d)
			}
		}
	}
}
