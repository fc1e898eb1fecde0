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
	late := rec.lagging()
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
	if rec.Guest.IsNull() {
		return nil, nil
	}
	guestOnly := map[string]bool{}
	// A device that only the definition has lost is none: it waits to be lost.
	for _, p := range rules.Strangers(typ, rec.Guest, rec.Actual, rec.Baseline, rec.Owned) {
		if isDevice(p) && !late[p.String()] {
			guestOnly[p.String()] = true
			foreign = append(foreign, named(p)+" (guest only)")
		}
	}
	for _, p := range rules.Waiting(typ, rec.Actual, rec.Guest, rec.Owned) {
		if !guestOnly[p.String()] {
			waiting = append(waiting, p)
		}
	}
	return waiting, foreign
}

func isDevice(p tree.Path) bool { return p[0].Attr == "devices" }

// restartsFor lists what a restart would be for: what an apply left waiting,
// and what the configuration names. Another difference of the running guest is
// no reason to touch it, and what is held is not to be put back this way either.
func (m *mapped) restartsFor(config tree.Value, rec records, held []change.Held) (out []tree.Path) {
	late, kept := rec.lagging(), map[string]bool{}
	for _, h := range held {
		kept[h.Path.String()] = h.Live
	}
	waiting, _ := m.waiting(rec, late)
	for _, p := range waiting {
		if kept[p.String()] {
			continue
		}
		if late[p.String()] || !m.kind.Rules().Find(config, p).IsNull() {
			out = append(out, p)
		}
	}
	return out
}

// late lists the paths in which the guest is not yet as its definition at the
// end of an apply: not where somebody else changed it, and not what somebody
// plugged in. What a guest moves by itself is late only if an apply moved it.
func (m *mapped) late(state tree.Value, rec records, changes []change.Change) []string {
	before := rec.lagging()
	for _, c := range changes {
		if c.Kind == change.Removal {
			before[c.Path.String()] = true // it waits to be lost, and is nobody else's
		}
	}
	waiting, _ := m.waiting(rec, before)
	return pathTexts(m.kind.Rules().Lagging(waiting, before, changes, m.heldNow(state, rec, nil)))
}

// foreign names the devices and settings of the definition that appeared since
// the last apply, and that no configuration names.
func (m *mapped) foreign(rec records) (out []string) {
	if tree.Equal(rec.Baseline, rec.Actual) {
		return nil
	}
	rules, typ := m.kind.Rules(), m.kind.Type()
	for _, p := range rules.Strangers(typ, rec.Actual, rec.Baseline, rec.Owned) {
		if isDevice(p) {
			out = append(out, named(p))
		}
	}
	for _, p := range rules.Differences(typ, rec.Baseline, rec.Actual) {
		if isSetting(p) && !rules.Chosen(p.Pattern()) && rules.Find(rec.Baseline, p).IsNull() && rules.Find(rec.Owned, p).IsNull() {
			out = append(out, "setting "+p.String())
		}
	}
	return out
}

// isSetting says whether a path is no device, and lies in none that the trees
// know only by its place.
func isSetting(p tree.Path) bool {
	return p[len(p)-1].Attr != "" && !slices.ContainsFunc(p, func(s tree.Step) bool { return s.Attr == "" && s.Key == "" })
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
// would hold. What was never applied is in no configuration yet: there the plan
// alone can tell.
func (m *mapped) heldNow(state tree.Value, rec records, late map[string]bool) []change.Held {
	if rec.Owned.IsNull() || rec.Guest.IsNull() && tree.Equal(rec.Baseline, rec.Actual) {
		return nil
	}
	config := change.Without(rec.Owned, m.kind.Secret)
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

// heldOtherwise lists, as lines of change.fields, where the plan holds other
// drift than the status shows: the configuration has agreed with the host, or
// names something now that it did not name. Only an apply can record that. It
// says nothing of an object that was never applied.
func (m *mapped) heldOtherwise(state tree.Value, result change.Result, rec records) (lines []string) {
	if !m.reports() || rec.Owned.IsNull() {
		return nil
	}
	shown, done := map[string]bool{}, map[string]bool{}
	for _, h := range state.At("status.held").Elems() {
		shown[h.Attr("path").Str()] = true
	}
	for _, c := range slices.Concat(result.Changes, result.Live) {
		done[c.Path.String()] = true // it is put back, and says so itself
	}
	for _, h := range result.Held {
		if path := h.Path.String(); !shown[path] {
			lines = append(lines, path+": held none")
		} else {
			done[path] = true
		}
	}
	for path := range shown {
		if !done[path] {
			lines = append(lines, path+": agreed none")
		}
	}
	slices.Sort(lines)
	return lines
}

var seedDigest = regexp.MustCompile(`^.*/([^/]*-sha256-[0-9a-f]{64}\.(?:iso|ign|sh))$`)

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
