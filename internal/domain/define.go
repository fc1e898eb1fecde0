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
		err = k.verify(planned, s)
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
	return kind.Refuse(kind.Problem{
		Path: tree.Root.Attr("name"), Summary: fmt.Sprintf("Domain %q exists already", dom.Name()),
		Detail: fmt.Sprintf("The host %s has it with the UUID %s. It was not touched. To manage it, import it: `import ADDRESS %s`. To have another one, choose another name.", k.host().Display(), dom.UUID(), dom.UUID()),
	})
}

// verify holds what libvirt now has against what was planned.
func (k *Kind) verify(planned tree.Value, s *sight) error {
	var problems []kind.Problem
	for _, p := range k.rules.Unmet(k.typ, planned, s.definition) {
		problems = append(problems, kind.Problem{
			Path: p, Summary: fmt.Sprintf("libvirt did not take %s of domain %q", p, s.name),
			Detail: fmt.Sprintf("It accepted the definition, but holds %s where %s was asked for. Write what it holds into the configuration, or leave the attribute out.",
				k.shown(p, s.definition.Get(p)), k.shown(p, planned.Get(p))),
		})
	}
	if len(problems) > 0 {
		return &kind.ProblemError{Problems: problems}
	}
	return nil
}

func (k *Kind) shown(p tree.Path, v tree.Value) string {
	if k.Secret(p.Pattern()) && !v.IsNull() {
		return "(sensitive)"
	}
	if v.IsNull() {
		return "nothing"
	}
	return v.String()
}
