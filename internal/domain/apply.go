package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// apply is one update under way.
type apply struct {
	k       *Kind
	before  *sight     // as the host had it when the update began
	wanted  tree.Value // the definition asked for
	changes []tree.Path
	kind.Undo
	steps []kind.Step
}

// changed says whether the update changes the attribute or something below it.
func (a *apply) changed(prefix string) bool {
	for _, p := range a.changes {
		if within(p.Pattern(), prefix) {
			return true
		}
	}
	return false
}

// Update changes the domain: the definition by editing it under the same UUID,
// then what the guest can take live, then autostart and power. It never
// undefines and never stops. If a step fails, what was done is taken back.
func (k *Kind) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	before, err := k.look(ctx, k.Identity(u.Prior))
	if err != nil {
		return done, err
	}
	status := u.Prior.Attr("status")
	done.Exists, done.Facts = true, before.facts(status)
	a := &apply{k: k, before: before, wanted: k.rules.Patch(k.typ, u.Prior, u.Planned, before.definition, u.Owned)}
	if planned := u.Planned.At("metadata.xml"); a.wanted.At("metadata.xml").Str() != before.definition.At("metadata.xml").Str() {
		merged, err := mergeMetadata(before.definition.At("metadata.xml").Str(), planned.Str(), u.Owned.At("metadata.xml").Str())
		if err != nil {
			return done, err
		}
		a.wanted = a.wanted.SetAt("metadata.xml", textOrNull(merged))
	}
	a.wanted = followMemory(before.definition, a.wanted)
	a.wanted = a.wanted.With("uuid", before.definition.Attr("uuid")).With("id", before.definition.Attr("id"))
	a.changes = k.rules.Differences(k.typ, before.definition, a.wanted)
	if len(a.changes) == 0 && before.persistent {
		return done, nil
	}
	if err := a.refuse(); err != nil {
		return done, err
	}
	if a.wanted, err = k.preflight(ctx, a.wanted, before.definition); err != nil {
		return done, err
	}
	if err = a.run(ctx); err != nil {
		err = a.RollBack(ctx, err, "virsh dumpxml --inactive "+before.name)
	}
	after, lookErr := k.look(ctx, k.Identity(before.definition))
	if lookErr != nil {
		return done, errors.Join(err, fmt.Errorf("read %s back: %w", before.name, lookErr))
	}
	done.Facts, done.Steps = after.facts(status), a.steps
	if err == nil {
		err = kind.Unmet(k, before.name, u.Prior, u.Planned, after.definition)
	}
	return done, err
}

func textOrNull(s string) tree.Value {
	if s == "" {
		return tree.NullValue
	}
	return tree.StringValue(s)
}

// refuse repeats the plan's refusals: the guest may have been started since.
func (a *apply) refuse() error {
	for _, p := range a.changes {
		c := change.Change{Path: p, Desired: a.wanted.Get(p), Actual: a.before.definition.Get(p)}
		if class, reason := classify(c, a.before.active()); class == change.ClassOffline && a.before.active() {
			return kind.Refuse(kind.Problem{
				Path: p, Summary: fmt.Sprintf("Cannot change %s of the running domain %q", p, a.before.name),
				Detail: reason + " Nothing was changed. Shut the guest down and apply again.",
			})
		}
	}
	return nil
}

func (a *apply) run(ctx context.Context) error {
	inDefinition, allLive := a.scope()
	next := marker{a.before.marker.Generation + 1}
	if inDefinition {
		if err := a.define(ctx, next); err != nil {
			return fmt.Errorf("define %s: %w", a.before.name, err)
		}
	}
	for _, one := range aspects {
		if one.live == nil || !a.touches(one) {
			continue
		}
		if !a.before.active() && (one == textAspect || one == metadataAspect) {
			continue // the definition has it already, and there is no guest
		}
		if err := one.live(ctx, a); err != nil {
			return fmt.Errorf("change %s of %s: %w", one.name, a.before.name, err)
		}
		a.step(one.name, kind.Updated)
	}
	settled := a.before.marker == a.before.guestMarker
	if inDefinition && a.before.active() && allLive && settled {
		// The guest has all of it: it has reached the new generation.
		if err := a.before.dom.SetMetadata(ctx, virt.MetadataElement, next.content(), prefix, Namespace, virt.AffectLive); err != nil {
			return fmt.Errorf("mark the generation of the guest of %s: %w", a.before.name, err)
		}
	}
	return nil
}

// scope says whether the XML of the definition changes, and whether the guest
// gets all of that live.
func (a *apply) scope() (inDefinition, allLive bool) {
	allLive, inDefinition = true, !a.before.persistent
	for _, p := range a.changes {
		switch aspectOf(p.Pattern()) {
		case autostartAspect, runningAspect, nameAspect:
		case textAspect, metadataAspect:
			inDefinition = true
		default:
			inDefinition, allLive = true, false
		}
	}
	return inDefinition, allLive
}

func (a *apply) touches(one *aspect) bool {
	for _, p := range one.owns {
		if a.changed(p) {
			return true
		}
	}
	return false
}

func (a *apply) step(name, outcome string) {
	a.steps = append(a.steps, kind.Step{Name: name, Outcome: outcome})
}

// define edits the definition and writes it under the same name and UUID. The
// name changes by itself, with virDomainRename.
func (a *apply) define(ctx context.Context, next marker) error {
	wanted := a.wanted
	for _, beside := range []string{"autostart", "running"} {
		wanted = wanted.With(beside, tree.NullValue)
	}
	wanted = wanted.With("name", a.before.raw.Attr("name")).With("id", a.before.raw.Attr("id")).
		SetAt("metadata.xml", tree.StringValue(joinMarker(wanted.At("metadata.xml").Str(), next)))
	xml, err := spec.Domain().Edit(a.before.xml, a.before.raw, wanted)
	if err != nil {
		return err
	}
	if _, err := a.k.host().DefineDomain(ctx, xml, virt.DefineFlags{}); err != nil {
		return err
	}
	a.Add(func(ctx context.Context) error {
		_, err := a.k.host().DefineDomain(ctx, a.before.xml, virt.DefineFlags{})
		return err
	})
	outcome := kind.Updated
	if _, allLive := a.scope(); a.before.active() && !allLive {
		outcome = kind.Deferred
	}
	a.step("definition", outcome)
	return nil
}
