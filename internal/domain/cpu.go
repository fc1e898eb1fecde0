package domain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// cpuAspect is what CPU the guest sees: mode, model, features, topology, NUMA
// cells. A running guest has found its CPUs at boot.
//
// What it found is not simply in its XML: there libvirt writes what the
// definition came to. The guest's marker says what its definition was, from the
// moment on in which an apply changes that. A start by anybody takes the marker
// of the definition, which says nothing. Then the form of the XML for another
// host tells, as far as it can: see startedWith.
var cpuAspect = &aspect{
	name: "cpu",
	owns: []string{"cpu"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "The guest finds its CPUs when it starts."
	},
}

// startedCPU is the CPU that the guest was started with: as the marker tells,
// else as far as found, its CPU in the form for another host, tells.
func (s *sight) startedCPU(found tree.Value) tree.Value {
	var cpu tree.Value
	if s.guestMarker.CPU == "" || cpu.UnmarshalJSON([]byte(s.guestMarker.CPU)) != nil { // somebody edited the marker
		return startedWith(s.definition.Attr("cpu"), found)
	}
	return cpu
}

// How a definition names a CPU.
const (
	cpuCustom    = "custom" // a model
	cpuHostModel = "host-model"
)

// startedWith is the CPU of a definition with what a guest certainly has
// otherwise. found is the guest's CPU in the form for another host: as it was
// defined at the start, but for a host-model, which is there a model with all
// its features, features that were optional, and what goes with a model.
func startedWith(defined, found tree.Value) tree.Value {
	mode, has := defined.Attr("mode").Str(), found.Attr("mode").Str()
	written := has == cpuCustom && found.Attr("vendor").IsNull() && found.Attr("features").Len() == 0
	switch {
	case defined.IsNull() || has == "" || mode == "" || defined.Attr("match").Str() == "minimum":
		return defined
	case has == cpuCustom && mode == cpuHostModel && !written:
		return withLayout(defined, found) // what it came to
	case has == cpuCustom && mode != cpuHostModel && !found.Attr("vendor").IsNull() && defined.Attr("vendor").IsNull():
		// Nobody but libvirt writes the vendor of a model.
		return withLayout(withoutModel(defined).With("mode", tree.StringValue(cpuHostModel)), found)
	case has != mode:
		out := withoutModel(defined).With("mode", found.Attr("mode")).With("model", found.Attr("model")).With("features", found.Attr("features"))
		return withLayout(out, found)
	}
	out := defined.With("features", startedFeatures(defined.Attr("features"), found.Attr("features")))
	if !defined.Attr("model").IsNull() {
		out = out.With("model", found.Attr("model"))
	}
	return withLayout(out, found)
}

// withoutModel drops the model and what goes with one.
func withoutModel(cpu tree.Value) tree.Value {
	for _, name := range []string{"match", "model", "model_fallback", "features"} {
		cpu = cpu.With(name, tree.NullValue)
	}
	return cpu
}

// withLayout takes over how a guest's CPUs are laid out.
func withLayout(cpu, found tree.Value) tree.Value {
	return cpu.With("topology", found.Attr("topology")).With("numa", found.Attr("numa"))
}

// startedFeatures are those of a definition with what a guest has otherwise:
// one that is optional may have come to anything, and some are never passed on.
func startedFeatures(defined, found tree.Value) tree.Value {
	has, known := map[string]tree.Value{}, map[string]bool{}
	for _, f := range found.Elems() {
		has[f.Attr("name").Str()] = f
	}
	var out []tree.Value
	for _, f := range defined.Elems() {
		name := f.Attr("name").Str()
		known[name] = true
		switch g, there := has[name]; {
		case f.Attr("policy").Str() == "optional", !there && unpassed[name]:
			out = append(out, f)
		case there:
			out = append(out, f.With("policy", g.Attr("policy")))
		}
	}
	for _, f := range found.Elems() {
		if !known[f.Attr("name").Str()] {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return tree.NullValue
	}
	return tree.ListValue(out)
}

// unpassed are features that libvirt drops at a start, as QEMU has no such
// switch (virQEMUCapsCPUFilterFeatures).
var unpassed = map[string]bool{"cmt": true, "mbm_total": true, "mbm_local": true, "osxsave": true, "ospke": true}

// rememberCPU notes in the running guest's metadata what CPU it was started
// with, before its definition says another one.
func (a *apply) rememberCPU(ctx context.Context) error {
	if !a.before.active() || a.before.guestMarker.CPU != "" || !a.changed("cpu") || a.takesDown() {
		return nil
	}
	cpu, err := json.Marshal(a.before.running().Attr("cpu"))
	if err != nil {
		return fmt.Errorf("remember the CPU of the guest of %s: %w", a.before.name, err)
	}
	was := a.before.guestMarker
	now := was
	now.CPU = string(cpu)
	return a.try(ctx, a.markGuest(now), a.markGuest(was))
}

// markGuest writes the marker of the running guest.
func (a *apply) markGuest(m marker) func(context.Context) error {
	return func(ctx context.Context) error {
		return a.before.dom.SetMetadata(ctx, virt.MetadataElement, m.content(), prefix, Namespace, virt.AffectLive)
	}
}
