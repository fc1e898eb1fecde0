package domain

import (
	"context"
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
	wanted := planned.Known().SetAt("metadata.xml", tree.StringValue(joinMarker(planned.At("metadata.xml").Str(), marker{1})))
	xml, err := spec.Domain().Encode(wanted.With("id", tree.NullValue))
	if err != nil {
		return done, err
	}
	dom, err := k.host().DefineDomain(ctx, xml, virt.DefineFlags{Validate: planned.At("create.validate").Bool()})
	if err != nil {
		return done, err
	}
	done.Exists = true
	step := func(name, outcome string) { done.Steps = append(done.Steps, kind.Step{Name: name, Outcome: outcome}) }
	step("definition", kind.Updated)
	err = func() error {
		if planned.Attr("autostart").Bool() {
			if err := dom.SetAutostart(ctx, true); err != nil {
				return fmt.Errorf("set autostart of %s: %w", name, err)
			}
			step("autostart", kind.Updated)
		}
		if !planned.Attr("running").Bool() {
			return nil
		}
		if err := start(ctx, dom, planned.Attr("create")); err != nil {
			return fmt.Errorf("start %s, which is defined now: %w", name, err)
		}
		step("running", kind.Updated)
		done.Warnings = append(done.Warnings, waitForAddresses(ctx, dom, planned)...)
		return nil
	}()
	s, seeErr := k.see(ctx, dom)
	if seeErr != nil {
		// The object is there; what it holds is as planned, as far as is known.
		done.Facts = kind.Facts{Name: name, Definition: planned.With("uuid", tree.StringValue(dom.UUID())), Status: neverStarted(err)}
		if err == nil {
			err = fmt.Errorf("read %s back: %w", name, seeErr)
		}
		return done, err
	}
	done.Facts = s.facts(tree.ObjectValue(map[string]tree.Value{"started": tree.BoolValue(s.active())}))
	if err == nil {
		err = kind.Unmet(k, name, planned, s.definition)
	}
	return done, err
}

// neverStarted is the status of a domain that could not even be read back.
func neverStarted(startErr error) tree.Value {
	return tree.ObjectValue(map[string]tree.Value{"started": tree.BoolValue(startErr == nil), "state": tree.StringValue("degraded"), "settled": tree.BoolValue(false)})
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
