package domain

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// sight is what one look at a domain shows: definition and guest apart.
type sight struct {
	dom         *virt.Domain
	extra       []string // places of extra_xml that are looked at
	name        string
	xml         string     // the definition with its secrets; it never leaves memory
	raw         tree.Value // decoded from xml
	definition  tree.Value // raw without the marker, with id, autostart and running
	marker      marker     // of the definition
	guestMarker marker     // of the guest, if it runs
	power       virt.State
	reason      int  // of power, by libvirt's number
	paused      bool // by somebody, not by libvirt
	persistent  bool
	managedSave bool
	problems    []string   // of the next start or host boot; read for the state only
	guest       tree.Value // what runs, in the form of definition; null if it is as it, or if nothing runs
}

// running is what runs, in the form of a definition.
func (s *sight) running() tree.Value {
	if s.guest.IsNull() {
		return s.definition
	}
	return s.guest
}

func (s *sight) active() bool { return s.power.Active() }

// Read asks the host about the domain of a state.
func (k *Kind) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	s, err := k.look(ctx, k.Identity(state), extras(state)...)
	if err != nil {
		return kind.Facts{}, err
	}
	s.problems = k.bootProblems(ctx, s)
	return s.facts(state.Attr("status")), nil
}

// look finds the domain by UUID or name and reads it, with its XML at the
// places that the schema has no attribute for.
func (k *Kind) look(ctx context.Context, identity string, extra ...string) (*sight, error) {
	dom, err := k.find(ctx, identity)
	if virt.IsNotFound(err) {
		return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: err}
	}
	if err != nil {
		return nil, err
	}
	s, err := k.see(ctx, dom, extra...)
	if virt.IsNotFound(err) {
		// It went between two calls.
		return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: err}
	}
	return s, err
}

func (k *Kind) find(ctx context.Context, identity string) (*virt.Domain, error) {
	if kind.IsUUID(identity) {
		return k.host().LookupDomain(ctx, identity)
	}
	return k.host().LookupDomainByName(ctx, identity)
}

func (k *Kind) see(ctx context.Context, dom *virt.Domain, extra ...string) (*sight, error) {
	s := &sight{dom: dom, extra: extra}
	var err error
	if s.xml, err = dom.XML(ctx, virt.XMLInactive|virt.XMLSecure); err != nil {
		return nil, err
	}
	if s.raw, err = spec.Domain().Decode(s.xml); err != nil {
		return nil, err
	}
	s.name = s.raw.Attr("name").Str()
	if s.power, s.reason, err = dom.State(ctx); err != nil {
		return nil, err
	}
	s.paused = virt.IsPausedByHand(s.power, s.reason)
	if s.persistent, err = dom.IsPersistent(ctx); err != nil {
		return nil, err
	}
	autostart := false
	if s.persistent {
		if autostart, err = dom.Autostart(ctx); err != nil {
			return nil, err
		}
		if s.managedSave, err = dom.HasManagedSave(ctx); err != nil {
			return nil, err
		}
	}
	var rest string
	rest, s.marker = splitMarker(s.raw.At("metadata.xml").Str())
	s.definition = withExtras(withPluggedIn(s.raw), s.xml, extra).With("id", tree.NullValue).
		With("autostart", tree.BoolValue(autostart)).With("running", tree.BoolValue(s.active()))
	if rest == "" {
		s.definition = s.definition.With("metadata", tree.NullValue)
	} else {
		s.definition = s.definition.SetAt("metadata.xml", tree.StringValue(rest))
	}
	if s.active() {
		return s, k.seeGuest(ctx, s)
	}
	return s, nil
}

// seeGuest adds what only the running guest knows.
func (k *Kind) seeGuest(ctx context.Context, s *sight) error {
	id, err := s.dom.ID(ctx)
	if err != nil {
		return err
	}
	s.definition = s.definition.With("id", tree.IntValue(int64(id)))
	text, err := s.dom.Metadata(ctx, virt.MetadataElement, Namespace, virt.AffectLive)
	switch {
	case virt.HasCode(err, virt.ErrNoDomainMetadata):
	case err != nil:
		return err
	default:
		s.guestMarker = parseMarker(text)
	}
	// Equal generations are no proof: a definition edited by hand, or a device
	// detached from the guest alone, has none.
	s.guest, err = k.guestOf(ctx, s)
	return err
}

// guestOf compares guest and definition, both in the form that libvirt would
// send to another host, where what a start adds by itself is not in it. It
// returns the definition with what the guest has otherwise, null if that is
// nothing.
func (k *Kind) guestOf(ctx context.Context, s *sight) (tree.Value, error) {
	var sides [2]tree.Value
	for i, flags := range []virt.XMLFlags{virt.XMLSecure | virt.XMLMigratable, virt.XMLSecure | virt.XMLMigratable | virt.XMLInactive} {
		xml, err := s.dom.XML(ctx, flags)
		if err != nil {
			return tree.NullValue, err
		}
		if sides[i], err = spec.Domain().Decode(xml); err != nil {
			return tree.NullValue, err
		}
		rest, _ := splitMarker(sides[i].At("metadata.xml").Str())
		sides[i] = withExtras(withPluggedIn(sides[i]), xml, s.extra).SetAt("metadata.xml", textOrNull(rest))
	}
	guest, definition, err := s.withHidden(ctx, sides[0], sides[1])
	if err != nil {
		return tree.NullValue, err
	}
	live, inactive := s.asDefined(guest, definition), definition.With("cpu", s.definition.Attr("cpu"))
	live = live.With("cpu", s.startedCPU(live.Attr("cpu")))
	live = perfAs(inactive, ioThreadsAs(inactive, live))
	if len(k.rules.Waiting(k.typ, inactive, live, inactive)) == 0 && pluggable(live) == 0 {
		return tree.NullValue, nil
	}
	differs := change.Order{Rules: k.rules, Type: k.typ, Config: live, Prior: inactive, Planned: live, Owned: inactive}
	return differs.Patch(s.definition), nil
}

// noise is what differs between a guest and its definition though nobody
// changed anything.
var noise = []string{
	"id", "vcpus", "devices.disks[].backing_store", "devices.disks[].source.index",
	"devices.disks[].target.tray", // the guest opens and closes it by itself
	"devices.memorydevs[].address", "devices.filesystems[].binary",
}

// floats says of what it is nobody's business, unless the configuration names
// it, that the running guest has it otherwise: the balloon moves by itself, and
// controllers come into a definition with the devices that need them, and stay.
func floats(pattern string) bool {
	return within(pattern, "current_memory") || within(pattern, "devices.controllers")
}

func isNoise(pattern string) bool {
	for _, prefix := range noise {
		if within(pattern, prefix) {
			return true
		}
	}
	return false
}

// The states that more than one place decides about.
const (
	stateFailed   = "failed"   // its first start failed, and it has not run since
	stateDegraded = "degraded" // it lacks its definition, or stands still though nobody told it to
	stateSettled  = "settled"
	statePending  = "pending" // something waits for the next start
)

// stillFailed says whether a domain whose first start failed has not run since.
// Between two looks somebody may have started it by hand, installed something and
// shut it down. What libvirt remembers of that it forgets when its daemon starts
// again, as with the host: a failure that it knew before and does not know now is
// none any more, as nobody can tell what happened in between. before is the status
// of the last look.
func (s *sight) stillFailed(before tree.Value) bool {
	if before.Attr("state").Str() != stateFailed || before.Attr("started").Bool() || virt.HasRun(s.power, s.reason) {
		return false
	}
	return virt.IsFailedStart(s.power, s.reason) || before.Attr("power_reason").IsNull()
}

// facts turns the look into what the provider needs. before is the status of
// the state, for what the host cannot know.
func (s *sight) facts(before tree.Value) kind.Facts {
	started := virt.HasRun(s.power, s.reason) || before.IsNull() || before.Attr("started").Bool()
	failed := s.stillFailed(before)
	f := kind.Facts{Name: s.name, Definition: s.definition, Guest: s.guest, Active: s.active()}
	state := stateSettled
	if trouble := s.standsStill(); trouble != nil {
		state = stateDegraded
		f.Warnings = append(f.Warnings, *trouble)
	}
	switch {
	case !s.persistent:
		state = stateDegraded
		f.Warnings = append(f.Warnings, kind.Problem{
			Summary: fmt.Sprintf("Domain %q has no definition", s.name),
			Detail:  "Somebody undefined it while it runs: it will be gone when it stops. The guest is not touched, and the plan defines it again.",
		})
	case failed:
		state = stateFailed
	case s.managedSave && !s.active():
		state = statePending
	}
	status := map[string]tree.Value{
		"state": tree.StringValue(state), "power": tree.StringValue(s.power.String()), "power_reason": textOrNull(virt.Reason(s.power, s.reason)),
		"generation": tree.IntValue(s.marker.Generation), "persistent": tree.BoolValue(s.persistent),
		"started": tree.BoolValue(started), "managed_save": tree.BoolValue(s.managedSave),
		"last_steps": before.Attr("last_steps"), "owner": textOrNull(s.marker.Owner), "boot_problems": textList(s.problems),
	}
	if s.active() {
		status["observed_generation"] = tree.IntValue(s.guestMarker.Generation)
	}
	f.Status = tree.ObjectValue(status)
	return f
}

func textList(all []string) tree.Value {
	elems := make([]tree.Value, len(all))
	for i, text := range all {
		elems[i] = tree.StringValue(text)
	}
	return tree.ListValue(elems)
}
