// Package domain knows libvirt's virtual machines: what a change to one means
// and how it is made.
//
// A domain has two faces. Its definition is what the next start will use, its
// guest is what runs now. State holds the definition's values; the guest's
// decide what a change costs. Whoever asks how a change of some field is
// applied opens the file of its aspect (autostart.go, text.go, name.go, …):
// the paths it owns, its rule and its live action stand there side by side. A
// field without an aspect belongs to the definition: it is changed there, and
// the guest takes it at its next start.
//
// Three rules hold for every update: a domain is never undefined, a guest is
// stopped only if the plan said "restart" or "shutdown", and a failed change
// leaves the previous definition in force.
package domain

import (
	"sync"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Kind is the kind of object "domain".
type Kind struct {
	host  func() *virt.Host
	owner func() string // whose machines these are, "" if nobody says
	typ   *tree.Type
	rules *change.Rules

	media Media // takes what comes out of drives; nil if nobody does

	departed sync.Map // MACs, in lower case, of the domains that were destroyed
}

var _ kind.Kind = (*Kind)(nil)

// New returns the kind. host is asked at each call, as the provider is
// configured after its resources are made.
func New(host func() *virt.Host) *Kind {
	k := &Kind{host: host, owner: func() string { return "" }, typ: resourceType()}
	k.rules = &change.Rules{
		Equal:   equal,
		Keys:    keysOf,
		Unit:    spec.Domain().Unit,
		Tier:    tier,
		Setting: isSetting,
		Chosen:  isChosen,
		Kept:    isKept,
		Covers:  coversMetadata,
		Follows: follows,
		Ordered: isOrdered,
		Noise:   isNoise,

		Alternatives: spec.Domain().Alternatives,
		Present:      func(pattern string) bool { return pattern == "features.apic" },

		Correctable: correctable,
		Late:        balloonIsLate,
		Floats:      floats,
	}
	return k
}

// OwnedBy makes the kind write an owner into every domain that it defines.
func (k *Kind) OwnedBy(owner func() string) *Kind {
	k.owner = owner
	return k
}

// Noun is what people call it.
func (k *Kind) Noun() string { return "domain" }

// Type is the whole schema of the resource.
func (k *Kind) Type() *tree.Type { return k.typ }

// Rules are those of the comparison.
func (k *Kind) Rules() *change.Rules { return k.rules }

// Secret says that a path is kept out of records.
func (k *Kind) Secret(pattern string) bool {
	f := spec.Domain().Fields[pattern]
	return f != nil && f.Flags.Has(spec.Secret)
}

// Identity finds the domain: its UUID, else its name (state of old versions
// of the incumbent may have no UUID).
func (k *Kind) Identity(state tree.Value) string {
	if uuid := state.Attr("uuid").Str(); uuid != "" {
		return uuid
	}
	return state.Attr("name").Str()
}

// NeverUsed says that the domain was defined, its first start failed, and it has
// not run since: it has nothing to lose, so that the start can simply be tried
// again.
func (k *Kind) NeverUsed(state tree.Value) bool { return state.At("status.state").Str() == stateFailed }

func equal(pattern string, a, b tree.Value) bool {
	switch pattern {
	case "autostart", "running":
		return false
	case "metadata.xml":
		return sameMetadata(a, b)
	case extraXML + "[].xml":
		return sameExtra(a, b)
	}
	return spec.Domain().Equal(pattern, a, b)
}
