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
// What it found cannot be read: libvirt fills the running guest's XML with the
// model and all features that the definition came to, so that the two never
// agree. Instead the guest's marker says what its definition was, from the
// moment on in which that changes. A start by anybody takes the marker of the
// definition, which says nothing: the guest has what is defined.
var cpuAspect = &aspect{
	name: "cpu",
	owns: []string{"cpu"},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "The guest finds its CPUs when it starts."
	},
}

// startedCPU is the CPU that the guest was started with, as far as the marker
// tells, else the one of its definition.
func (s *sight) startedCPU() tree.Value {
	if s.guestMarker.CPU == "" {
		return s.definition.Attr("cpu")
	}
	var cpu tree.Value
	if err := cpu.UnmarshalJSON([]byte(s.guestMarker.CPU)); err != nil {
		return s.definition.Attr("cpu") // somebody edited the marker
	}
	return cpu
}

// rememberCPU notes in the running guest's metadata what CPU it was started
// with, before its definition says another one.
func (a *apply) rememberCPU(ctx context.Context) error {
	if !a.before.active() || a.before.guestMarker.CPU != "" || !a.changed("cpu") || a.restarts() {
		return nil
	}
	cpu, err := json.Marshal(a.before.definition.Attr("cpu"))
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
