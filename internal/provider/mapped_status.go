package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// reports says whether a kind shows in its status what the comparison finds.
func (m *mapped) reports() bool {
	status := m.kind.Type().Attrs["status"]
	return status != nil && status.Type.Attrs["held"] != nil
}

// complete adds to a kind's status what only the records can tell: what
// waits, what is held, what is foreign. state is what it stands beside.
func (m *mapped) complete(status, state tree.Value, rec records) tree.Value {
	if status.IsNull() || !m.reports() {
		return status
	}
	state = state.With("status", status)
	late := rec.lagging(state)
	waiting, foreign := m.waiting(rec, late)
	held := m.heldNow(state, rec, late)
	word := status.Attr("state").Str()
	switch {
	case word == "degraded", word == "failed":
	case len(held) > 0:
		word = "held"
	case len(waiting) > 0:
		word = "pending"
	}
	return status.With("state", tree.StringValue(word)).With("settled", tree.BoolValue(word == "settled")).
		With("pending", texts(pathTexts(waiting))).With("held", m.heldValue(held)).
		With("foreign", texts(append(m.foreign(rec), foreign...))).With("spec_digest", specDigest(m.kind, rec.Owned))
}

// waiting lists the paths in which the running guest waits for its next start
// to be as its definition, and the devices that only the guest has because
// somebody plugged them in. late are the paths that an apply left so.
func (m *mapped) waiting(rec records, late map[string]bool) (waiting []tree.Path, foreign []string) {
	rules, typ := m.kind.Rules(), m.kind.Type()
	for _, p := range rules.Waiting(typ, rec.Actual, rec.Guest, rec.Owned) {
		if last := p[len(p)-1]; last.Attr == "" && !late[p.String()] && !hasElement(rules, p, rec.Actual) {
			foreign = append(foreign, named(p)+" (guest only)")
			continue
		}
		waiting = append(waiting, p)
	}
	return waiting, foreign
}

// restartsFor lists what a restart would be for: what an apply left waiting,
// and what the configuration names. Another difference of the running guest is
// no reason to touch it.
func (m *mapped) restartsFor(config, state tree.Value, rec records) (out []tree.Path) {
	late := rec.lagging(state)
	waiting, _ := m.waiting(rec, late)
	for _, p := range waiting {
		if late[p.String()] || !config.Get(p).IsNull() && !strings.Contains(p.Pattern(), "[]") {
			out = append(out, p)
		}
	}
	return out
}

// late lists the paths in which the guest is not yet as its definition at the
// end of an apply: not where somebody else changed it, and not what somebody
// plugged in.
func (m *mapped) late(state tree.Value, rec records, changes []change.Change) []string {
	before := rec.lagging(state)
	for _, c := range changes {
		if c.Kind == change.Removal {
			before[c.Path.String()] = true
		}
	}
	waiting, _ := m.waiting(rec, before)
	held := map[string]bool{}
	for _, h := range m.heldNow(state, rec, nil) {
		held[h.Path.String()] = h.Live
	}
	var out []string
	for _, p := range waiting {
		if !held[p.String()] {
			out = append(out, p.String())
		}
	}
	return out
}

// hasElement says whether an element that only one of two trees has is in
// this one.
func hasElement(rules *change.Rules, p tree.Path, in tree.Value) bool {
	last := p[len(p)-1]
	if last.Key == "" {
		return last.Index < in.Get(p[:len(p)-1]).Len()
	}
	return slices.ContainsFunc(in.Get(p[:len(p)-1]).Elems(), func(e tree.Value) bool {
		return slices.Contains(rules.Keys(p.Pattern(), e), last.Key)
	})
}

// foreign names the devices and settings of the definition that appeared since
// the last apply, and that no configuration names.
func (m *mapped) foreign(rec records) (out []string) {
	rules := m.kind.Rules()
	for _, p := range rules.Differences(m.kind.Type(), rec.Baseline, rec.Actual) {
		switch last := p[len(p)-1]; {
		case rules.Chosen(p.Pattern()):
		case last.Attr == "" && hasElement(rules, p, rec.Actual) && !hasElement(rules, p, rec.Baseline):
			out = append(out, named(p))
		case last.Attr != "" && rec.Baseline.Get(p).IsNull() && rec.Owned.Get(p).IsNull() && !strings.Contains(p.Pattern(), "[]"):
			out = append(out, "setting "+p.String())
		}
	}
	return out
}

// named is what people call a device: "disk vdc" for devices.disks[vdc].
func named(p tree.Path) string {
	last := p[len(p)-1]
	noun := strings.TrimSuffix(p[len(p)-2].Attr, "s")
	if last.Key == "" {
		return fmt.Sprintf("%s %d", noun, last.Index)
	}
	return noun + " " + last.Key
}

// heldNow is the drift that a plan for the configuration of the last apply
// would hold. An object that was never applied has none; there, what it was
// when it was first read stands for it.
func (m *mapped) heldNow(state tree.Value, rec records, late map[string]bool) []change.Held {
	config := change.Without(rec.Owned, m.kind.Secret)
	if rec.Owned.IsNull() {
		config = rec.Baseline
	}
	return m.kind.Rules().Plan(change.Input{
		Type: m.kind.Type(), Object: m.kind.Identity(state), Config: config, Prior: rec.Actual, Baseline: rec.Baseline,
		Actual: rec.Actual, Owned: config, Guest: rec.Guest, Lagging: late,
	}).Held
}

func (m *mapped) heldValue(all []change.Held) tree.Value {
	elems := make([]tree.Value, len(all))
	for i, h := range all {
		approve := tree.NullValue
		if h.Tier != change.TierLocked {
			approve = tree.StringValue(h.Digest)
		}
		elems[i] = tree.ObjectValue(map[string]tree.Value{
			"path": tree.StringValue(h.Path.String()), "tier": tree.StringValue(h.Tier.String()), "approve": approve,
			"desired": tree.StringValue(m.shown(h.Path, h.Desired, h.Unit)), "actual": tree.StringValue(m.shown(h.Path, h.Actual, h.Unit)),
		})
	}
	return tree.ListValue(elems)
}

// settledDrift lists the paths that the status shows as held and the plan does
// not, or the other way round: the configuration has agreed with the host, or
// names something now that it did not name. Only an apply can record that.
func (m *mapped) settledDrift(state tree.Value, held []change.Held) (out []string) {
	if !m.reports() {
		return nil
	}
	before, now := map[string]bool{}, map[string]bool{}
	for _, h := range state.At("status.held").Elems() {
		before[h.Attr("path").Str()] = true
	}
	for _, h := range held {
		now[h.Path.String()] = true
		if !before[h.Path.String()] {
			out = append(out, h.Path.String())
		}
	}
	for path := range before {
		if !now[path] {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

var seedDigest = regexp.MustCompile(`^.*/([^/]*-sha256-[0-9a-f]{64}\.iso)$`)

// specDigest is a digest of what the configuration of the last apply says of
// the object on the host: no settings, no secrets, and of a seed image its
// name, which is its content, but not the directory it is staged in.
func specDigest(k kind.Kind, owned tree.Value) tree.Value {
	if owned.IsNull() {
		return tree.NullValue
	}
	spec := change.Without(owned, func(pattern string) bool {
		root, _, _ := strings.Cut(pattern, ".")
		return k.Rules().Setting(root) || k.Rules().Setting(pattern) || k.Secret(pattern) || k.Rules().Chosen(pattern)
	})
	spec.Walk(func(p tree.Path, v tree.Value) bool {
		if m := seedDigest.FindStringSubmatch(v.Str()); m != nil {
			spec = spec.Set(p, tree.StringValue(m[1]))
		}
		return true
	})
	text, err := json.Marshal(spec.Known())
	if err != nil {
		return tree.NullValue
	}
	sum := sha256.Sum256(text)
	return tree.StringValue("sha256:" + hex.EncodeToString(sum[:]))
}

func pathTexts(all []tree.Path) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.String()
	}
	return out
}

func texts(all []string) tree.Value {
	elems := make([]tree.Value, len(all))
	for i, s := range all {
		elems[i] = tree.StringValue(s)
	}
	return tree.ListValue(elems)
}
