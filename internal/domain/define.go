package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Create defines the domain, sets autostart and starts it. Done.Exists is true
// from the definition on, so that a failed start leaves an object in state.
func (k *Kind) Create(ctx context.Context, planned, config tree.Value) (done kind.Done, err error) {
	name := planned.Attr("name").Str()
	if err := k.refuseExisting(ctx, planned); err != nil {
		return done, err
	}
	wanted := planned.Known().SetAt("metadata.xml", tree.StringValue(joinMarker(planned.At("metadata.xml").Str(), marker{Generation: 1, Owner: k.owner()})))
	_, xml, err := k.preflight(ctx, flight{
		name: name, wanted: wanted, inConfig: planned, starts: planned.Attr("running").Bool(), changes: true,
		gets: func(string, string) bool { return false }, write: newDocument,
	})
	if err != nil {
		return done, err
	}
	dom, err := k.host().DefineDomain(ctx, xml, virt.DefineFlags{Validate: planned.At("create.validate").Bool()})
	if err != nil {
		return done, err
	}
	if err := k.confirm(ctx, dom, planned); err != nil {
		// Nothing but the definition exists yet, and it is not the one asked for.
		return done, errors.Join(err, dom.Undefine(ctx, virt.UndefineFlags{NVRAM: true}))
	}
	done.Exists = true
	done.Steps = append(done.Steps, kind.Step{Name: "definition", Outcome: kind.Updated})
	err = k.bringUp(ctx, dom, planned, &done)
	before := tree.ObjectValue(map[string]tree.Value{"started": tree.BoolValue(false)})
	if err != nil {
		before = before.With("state", tree.StringValue(stateFailed))
	}
	s, seeErr := k.see(ctx, dom, extras(planned)...)
	if seeErr != nil {
		// The object is there; what it holds is as planned, as far as is known.
		done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("uuid", tree.StringValue(dom.UUID())), Status: before}
		return done, errors.Join(err, fmt.Errorf("read %s back: %w", name, seeErr))
	}
	s.problems = k.bootProblems(ctx, s)
	done.Facts = s.facts(before)
	return done, err
}

// newDocument is that of a definition which is not on the host yet.
func newDocument(wanted tree.Value) (string, error) {
	xml, err := spec.Domain().Encode(wanted.With("id", tree.NullValue).With(extraXML, tree.NullValue))
	if err != nil {
		return "", err
	}
	return writeExtras(xml, tree.NullValue, wanted, func(xml string) (string, error) { return xml, nil })
}

// confirm holds the definition that libvirt made against the planned one.
func (k *Kind) confirm(ctx context.Context, dom *virt.Domain, planned tree.Value) error {
	s, err := k.see(ctx, dom, extras(planned)...)
	if err != nil {
		return err
	}
	document := planned
	for _, later := range []string{"id", "autostart", "running"} {
		document = document.With(later, tree.NullValue)
	}
	return kind.Unmet(k, s.name, tree.NullValue, document, s.definition)
}

// bringUp sets autostart and starts the guest.
func (k *Kind) bringUp(ctx context.Context, dom *virt.Domain, planned tree.Value, done *kind.Done) error {
	name := planned.Attr("name").Str()
	step := func(name string) {
		done.Steps = append(done.Steps, kind.Step{Name: name, Outcome: kind.Updated})
	}
	if planned.Attr("autostart").Bool() {
		if err := dom.SetAutostart(ctx, true); err != nil {
			return fmt.Errorf("set autostart of %s: %w", name, err)
		}
		step("autostart")
	}
	if !planned.Attr("running").Bool() {
		return nil
	}
	if err := start(ctx, dom, planned.Attr("create")); err != nil {
		return fmt.Errorf("start %s, which is defined now: %w", name, err)
	}
	step("running")
	done.Warnings = append(done.Warnings, waitForAddresses(ctx, dom, planned)...)
	return nil
}

// refuseExisting refuses to take over a domain that is there already.
func (k *Kind) refuseExisting(ctx context.Context, planned tree.Value) error {
	name := planned.Attr("name").Str()
	dom, err := k.host().LookupDomainByName(ctx, name)
	if virt.IsNotFound(err) {
		if uuid := planned.Attr("uuid"); uuid.IsKnown() {
			dom, err = k.host().LookupDomain(ctx, uuid.Str())
		}
	}
	switch {
	case virt.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return kind.Exists(k.Noun(), dom.Name(), dom.UUID(), k.host().Display())
}
