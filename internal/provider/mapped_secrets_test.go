package provider

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A password that waits for the guest's next start is seen to wait, though no
// record has it.
func TestSecretsThatWait(t *testing.T) {
	const path = "devices.graphics[0].vnc.passwd"
	with := func(passwd string) tree.Value {
		vnc := tree.NullValue.SetAt("vnc.auto_port", tree.BoolValue(true))
		if passwd != "" {
			vnc = vnc.SetAt("vnc.passwd", tree.StringValue(passwd))
		}
		return tree.NullValue.SetAt("devices.graphics", tree.ListValue([]tree.Value{vnc}))
	}
	m := &mapped{kind: domain.New(nil)}
	for name, c := range map[string]struct {
		definition, guest string
		waits             bool
	}{
		"another one":      {"canary", "canary of old", true},
		"the first one":    {"canary", "", true},
		"none any more":    {"", "canary of old", true},
		"the same":         {"canary", "canary", false},
		"none in the both": {"", "", false},
	} {
		facts := kind.Facts{Definition: with(c.definition), Guest: with(c.guest)}
		rec := records{Actual: with(""), Owned: with(""), Guest: m.guestRecord(facts)}
		waiting, _ := m.waiting(rec, nil)
		if got := len(waiting) == 1 && waiting[0].String() == path; got != c.waits || len(waiting) > 1 {
			t.Errorf("%s: %v waits", name, waiting)
		}
		if strings.Contains(rec.Guest.String(), "canary") {
			t.Errorf("%s: a secret is in %s", name, rec.Guest)
		}
	}
	if got := m.guestRecord(kind.Facts{Definition: with("canary")}); !got.IsNull() {
		t.Errorf("no guest, and %s", got)
	}
}
