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

// A plan sees whether the guest has the secret that it is to get.
func TestSecretsThatTheGuestHas(t *testing.T) {
	with := func(passwd string) tree.Value {
		vnc := tree.NullValue.SetAt("vnc.auto_port", tree.BoolValue(true))
		if passwd != "" {
			vnc = vnc.SetAt("vnc.passwd", tree.StringValue(passwd))
		}
		return tree.NullValue.With("uuid", tree.StringValue("5f0c4b9e-3f5a-4c57-9d0e-0d6c0f3f7a11")).SetAt("devices.graphics", tree.ListValue([]tree.Value{vnc}))
	}
	passwd := tree.ParsePath("devices.graphics[0].vnc.passwd")
	m := &mapped{kind: domain.New(nil)}
	for name, c := range map[string]struct {
		definition, guest, config, want string
	}{
		"edited in the definition":  {"theirs", "ours", "ours", "ours"},
		"waiting, and asked again":  {"", "ours", "ours", "ours"},
		"the first one, taken back": {"ours", "", "", ""},
		"as the definition":         {"ours", "ours", "other", "ours"},
	} {
		rec := records{Guest: m.guestRecord(kind.Facts{Definition: with(c.definition), Guest: with(c.guest)})}
		if got := m.guestOf(with(c.config), with(c.definition), rec).Get(passwd).Str(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	rec := records{Guest: m.guestRecord(kind.Facts{Definition: with("theirs"), Guest: with("ours")})}
	if got := m.guestOf(with("a third"), with("theirs"), rec).Get(passwd).Str(); got == "theirs" || got == "a third" {
		t.Errorf("the guest is thought to have %q", got)
	}
}
