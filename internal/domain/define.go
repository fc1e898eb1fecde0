package domain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Create defines the domain, sets autostart and starts it. Done.Exists is true
// from the definition on, so that a failed start leaves an object in state.
// What follows the definition is read back also after the user gave up.
func (k *Kind) Create(ctx context.Context, planned, config tree.Value) (done kind.Done, err error) {
	name := planned.Attr("name").Str()
	if err := k.refuseExisting(ctx, planned); err != nil {
		return done, err
	}
	wanted := planned.Known().SetAt("metadata.xml", tree.StringValue(joinMarker(planned.At("metadata.xml").Str(), marker{Generation: 1, Owner: k.owner()})))
	if wanted.Attr("uuid").IsNull() {
		// Chosen here, it finds the domain even if libvirt's answer gets lost.
		wanted = wanted.With("uuid", tree.StringValue(newUUID()))
	}
	_, xml, err := k.preflight(ctx, flight{
		name: name, wanted: wanted, inConfig: planned, starts: planned.Attr("running").Bool(), changes: true,
		gets: func(string, string) bool { return false }, write: newDocument,
	})
	if err != nil {
		return done, err
	}
	// What is true of it as long as nothing else is known.
	done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("uuid", wanted.Attr("uuid")), Status: beginning(false, true)}
	dom, err := k.defineNew(ctx, xml, wanted.Attr("uuid").Str(), planned, &done)
	if err != nil {
		return done, err
	}
	done.Steps = append(done.Steps, kind.Step{Name: "definition", Outcome: kind.Updated})
	started, err := k.bringUp(ctx, dom, planned, &done)
	done.Facts.Status = beginning(started, err != nil && !started)
	look, cancel := lastingly(ctx)
	defer cancel()
	s, seeErr := k.see(look, dom, extras(planned)...)
	if seeErr != nil {
		return done, errors.Join(err, fmt.Errorf("read %s back: %w", name, seeErr))
	}
	s.problems = k.bootProblems(look, s)
	done.Facts = s.facts(done.Facts.Status)
	if err == nil && started && !s.active() {
		err = endedAtOnce(dom, &downError{name, inWords(s.power, s.reason)})
	}
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

// beginning is the status of a new domain, before it is read.
func beginning(started, failed bool) tree.Value {
	status := tree.ObjectValue(map[string]tree.Value{"started": tree.BoolValue(started)})
	if failed {
		status = status.With("state", tree.StringValue(stateFailed))
	}
	return status
}

// newUUID draws an identity (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// defineNew writes the definition and holds it against the planned one. With an
// error it is taken back; done.Exists tells if that did not succeed, or if nobody
// can say: then it goes into the state, and the next refresh finds out.
func (k *Kind) defineNew(ctx context.Context, xml, uuid string, planned tree.Value, done *kind.Done) (*virt.Domain, error) {
	dom, err := k.host().DefineDomain(ctx, xml, virt.DefineFlags{Validate: planned.At("create.validate").Bool()})
	look, cancel := lastingly(ctx)
	defer cancel()
	if virt.IsLost(err) {
		found, lookErr := k.host().LookupDomain(look, uuid)
		switch {
		case lookErr == nil:
			dom, err = found, nil // it was carried out, and the answer lost
		case !virt.IsNotFound(lookErr):
			done.Exists = true
			return nil, fmt.Errorf("%w. Whether it is defined now could not be found out (%w); the next refresh will", err, lookErr)
		}
	}
	if err != nil {
		return nil, err
	}
	done.Exists = true
	if err := k.confirm(look, dom, planned); err != nil {
		// Nothing but the definition exists yet, and it is not the one asked for.
		undone := dom.Undefine(look, untouched(planned))
		done.Exists = undone != nil && !virt.IsNotFound(undone)
		return nil, errors.Join(err, undone)
	}
	return dom, nil
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

// bringUp sets autostart, starts the guest and waits for its addresses. started
// says that it has run, whatever became of it.
func (k *Kind) bringUp(ctx context.Context, dom *virt.Domain, planned tree.Value, done *kind.Done) (started bool, err error) {
	name := planned.Attr("name").Str()
	step := func(name string) {
		done.Steps = append(done.Steps, kind.Step{Name: name, Outcome: kind.Updated})
	}
	if planned.Attr("autostart").Bool() {
		if err := dom.SetAutostart(ctx, true); err != nil {
			return false, fmt.Errorf("set autostart of %s: %w", name, err)
		}
		step("autostart")
	}
	if !planned.Attr("running").Bool() {
		return false, nil
	}
	leases := k.leasesBefore(ctx, planned.At("devices.interfaces"), planned.At("devices.interfaces"))
	if err := start(ctx, dom, planned.Attr("create")); err != nil && !startedAllTheSame(ctx, dom, err) {
		return false, fmt.Errorf("start %s, which is defined now: %w", name, k.explain(err, planned, []tree.Path{tree.Root}, nil))
	}
	step("running")
	if planned.At("create.paused").Bool() {
		return true, nil // a paused guest gets no address
	}
	missing, down := k.waitForAddresses(ctx, dom, planned, leases)
	for i := range missing {
		missing[i].Detail += " The machine is created and in the state; nothing was undone."
	}
	done.Warnings = append(done.Warnings, missing...)
	if down != nil {
		return true, endedAtOnce(dom, down)
	}
	return true, nil
}

// startedAllTheSame says that only the answer to a start was lost.
func startedAllTheSame(ctx context.Context, dom *virt.Domain, err error) bool {
	if !virt.IsLost(err) {
		return false
	}
	look, cancel := lastingly(ctx)
	defer cancel()
	active, err := dom.IsActive(look)
	return err == nil && active
}

// endedAtOnce is the error of a guest that ran and went down during its creation.
// It may have written something, so that it is not simply made again.
func endedAtOnce(dom *virt.Domain, down error) error {
	return fmt.Errorf("%w. Domain %q is defined and in the state, marked as tainted. `untaint ADDRESS` keeps it, and the next apply starts it again; without that, the next apply replaces it, unless it is protected", down, dom.Name())
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
