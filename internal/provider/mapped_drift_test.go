package provider

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The way out that a message offers is one that there is: a network has no
// update, and what is locked has no approval.
func TestWaysOutOfDrift(t *testing.T) {
	held := func(path string, tier change.Tier) change.Held {
		return change.Held{Path: tree.ParsePath(path), Tier: tier, Desired: tree.StringValue("ours"), Actual: tree.StringValue("theirs"), Digest: "0123456789ab"}
	}
	for name, c := range map[string]struct {
		kind kind.Kind
		held change.Held
		says []string
		not  []string
	}{
		"a domain": {domain.New(nil), held("cpu.model", change.TierModification),
			[]string{`update = { approve = ["0123456789ab"] }`}, []string{"provider's configuration", "never changed by a plan"}},
		"a domain, locked": {domain.New(nil), held("os.loader", change.TierLocked),
			[]string{"never changed by a plan", "repair it by hand"}, []string{"0123456789ab", "approv"}},
		"a network": {network.New(nil), held("forward.mode", change.TierModification),
			[]string{`approve = ["0123456789ab"] in the provider's configuration`}, []string{"update =", "never changed by a plan"}},
		"a network, locked": {network.New(nil), held("uuid", change.TierLocked),
			[]string{"never changed by a plan", "repair it by hand"}, []string{"0123456789ab", "approv"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mapped{kind: c.kind, data: &Data{}}
			object := tree.ObjectValue(map[string]tree.Value{"name": tree.StringValue("it")})
			var drift, clash protocol.Diagnostics
			m.warnAboutDrift(&drift, object, object, change.Result{Held: []change.Held{c.held}})
			m.refuseClashes(&clash, object, change.Result{Clashes: []change.Clash{{List: c.held.Path, Held: c.held}}})
			for what, d := range map[string]protocol.Diagnostics{"warning": drift, "refusal": clash} {
				if len(d) != 1 {
					t.Fatalf("%s: %d diagnostics", what, len(d))
				}
				for _, part := range c.says {
					if !strings.Contains(d[0].Detail, part) {
						t.Errorf("the %s does not say %q: %s", what, part, d[0].Detail)
					}
				}
				for _, part := range c.not {
					if strings.Contains(d[0].Detail, part) {
						t.Errorf("the %s says %q: %s", what, part, d[0].Detail)
					}
				}
			}
			if revert := strings.Contains(drift[0].Detail, `drift = "revert"`); revert != (name == "a domain") {
				t.Errorf("the warning says revert: %v: %s", revert, drift[0].Detail)
			}
		})
	}
}
