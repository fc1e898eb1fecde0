package provider

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		mine, theirs string
		adopt        bool
		warns        bool
		fields       string
	}{
		"nobody is asked":     {"", "site-a", false, false, ""},
		"nobody has it":       {"site-b", "", false, false, ""},
		"mine":                {"site-b", "site-b", false, false, ""},
		"another's":           {"site-b", "site-a", false, true, ""},
		"another's, taken":    {"site-b", "site-a", true, false, "owner: taken over none"},
		"mine, to be adopted": {"site-b", "site-b", true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := &Data{owner: tc.mine}
			m := &mapped{kind: domain.New(data.Host), data: data}
			state := tree.NullValue.With("name", tree.StringValue("web"))
			if tc.theirs != "" {
				state = state.SetAt("status.owner", tree.StringValue(tc.theirs))
			}
			config := tree.NullValue.With("adopt", tree.BoolValue(tc.adopt))
			var d protocol.Diagnostics
			m.warnAboutOwner(&d, config, state)
			if len(d) > 0 != tc.warns || tc.warns && (!strings.Contains(d[0].Summary, `"web"`) || !strings.Contains(d[0].Detail, "adopt = true")) {
				t.Errorf("warned: %+v", d)
			}
			if got := strings.Join(m.beside(config, state), " "); got != tc.fields {
				t.Errorf("fields %q, want %q", got, tc.fields)
			}
		})
	}
}
