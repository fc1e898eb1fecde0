package provider

import (
	"testing"

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
