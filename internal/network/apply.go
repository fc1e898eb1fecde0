package network

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// beside are the attributes that are not in the XML.
var beside = []string{"id", "autostart", "active"}

func document(v tree.Value) tree.Value {
	for _, name := range beside {
		v = v.With(name, tree.NullValue)
	}
	return v
}

// Create defines the network, sets autostart and starts it unless active is
// false.
func (k *Kind) Create(ctx context.Context, planned, _ tree.Value) (done kind.Done, err error) {
	name := planned.Attr("name").Str()
	switch net, err := k.host().LookupNetworkByName(ctx, name); {
	case err == nil:
		return done, kind.Exists(k.Noun(), name, net.UUID(), k.host().Display())
	case !virt.IsNotFound(err):
		return done, err
	}
	xml, err := spec.Network().Encode(document(planned.Known()))
	if err != nil {
		return done, err
	}
	net, err := k.host().DefineNetwork(ctx, xml)
	if err != nil {
		return done, err
	}
	done.Exists = true
	done.Steps = append(done.Steps, kind.Step{Name: "definition", Outcome: kind.Updated})
	if planned.Attr("autostart").Bool() {
		if err = net.SetAutostart(ctx, true); err == nil {
			done.Steps = append(done.Steps, kind.Step{Name: "autostart", Outcome: kind.Updated})
		}
	}
	if active := planned.Attr("active"); err == nil && (!active.IsKnown() || active.Bool()) {
		if err = net.Start(ctx); err == nil {
			done.Steps = append(done.Steps, kind.Step{Name: "active", Outcome: kind.Updated})
		}
	}
	s, lookErr := k.see(ctx, net)
	if lookErr != nil {
		uuid := tree.StringValue(net.UUID())
		done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("uuid", uuid).With("id", uuid)}
		return done, errors.Join(err, fmt.Errorf("read network %s back: %w", name, lookErr))
	}
	done.Facts = s.facts(tree.NullValue)
	if err == nil {
		err = kind.Unmet(k, name, tree.NullValue, planned, s.definition)
	}
	return done, err
}

// Update changes the network: entries of DHCP, DNS and port groups in the
// started network and the definition at once, everything else in the
// definition, which the network takes when it is started again.
func (k *Kind) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	before, err := k.look(ctx, k.Identity(u.Prior))
	if err != nil {
		return done, err
	}
	status := u.Prior.Attr("status")
	done.Exists, done.Facts = true, before.facts(status)
	wanted := kind.Order(k, u).Patch(before.definition)
	wanted = wanted.With("uuid", before.definition.Attr("uuid")).With("id", before.definition.Attr("id")).With("name", before.definition.Attr("name"))
	if len(k.rules.Differences(k.typ, before.definition, wanted)) == 0 && before.persistent {
		return done, nil
	}
	if err := kind.RefuseMoved(k, before.name, u, before.definition); err != nil {
		return done, err
	}
	a := &apply{k: k, before: before, current: before, wanted: wanted}
	if err = a.run(ctx); err != nil {
		err = a.RollBack(ctx, err, "virsh net-dumpxml --inactive "+before.name)
	}
	done.Steps = a.steps
	after, lookErr := k.look(ctx, k.Identity(before.definition))
	if lookErr != nil {
		return done, errors.Join(err, lookErr)
	}
	done.Facts = after.facts(status)
	if err == nil {
		err = kind.Unmet(k, before.name, u.Prior, u.Planned, after.definition)
	}
	return done, err
}

// apply is one update under way.
type apply struct {
	k       *Kind
	before  *sight     // as the host had it when the update began
	current *sight     // as it has it now
	wanted  tree.Value // the definition asked for
	kind.Undo
	steps []kind.Step
}

func (a *apply) step(name, outcome string) {
	a.steps = append(a.steps, kind.Step{Name: name, Outcome: outcome})
}

// stops says whether the update stops the network.
func (a *apply) stops() bool {
	active := a.wanted.Attr("active")
	return a.before.active && active.IsKnown() && !active.Bool()
}

func (a *apply) run(ctx context.Context) error {
	if a.stops() {
		nics, err := a.k.plugs(ctx)
		if err != nil {
			return err
		}
		if err := refuseAttached(a.before, nics, "stop"); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{a.sections, a.definition, a.autostart, a.power} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sections changes what libvirt changes in the started network and in the
// definition with one call.
func (a *apply) sections(ctx context.Context) error {
	if !a.before.active || !a.before.persistent || a.stops() {
		return nil
	}
	all, err := a.k.commands(a.before.raw, document(a.wanted))
	if err != nil || len(all) == 0 {
		return err
	}
	for _, c := range all {
		if err := a.before.net.Update(ctx, c.do, c.section.id, c.parent, c.xml); err != nil {
			return fmt.Errorf("change %s of network %s (%s): %w", c.section.pattern, a.before.name, c.xml, err)
		}
		a.Add(func(ctx context.Context) error {
			return a.before.net.Update(ctx, c.undo.do, c.section.id, c.parent, c.undo.xml)
		})
	}
	a.step("sections", kind.Updated)
	a.current, err = a.k.see(ctx, a.before.net)
	return err
}

// definition writes the rest, under the same name and UUID.
func (a *apply) definition(ctx context.Context) error {
	wanted := document(a.wanted)
	if a.before.persistent && len(a.k.rules.Differences(a.k.typ, a.current.raw, wanted)) == 0 {
		return nil
	}
	xml, err := spec.Network().Edit(a.current.xml, a.current.raw, wanted)
	if err != nil {
		return err
	}
	if _, err := a.k.host().DefineNetwork(ctx, xml); err != nil {
		return err
	}
	was := a.current.xml
	a.Add(func(ctx context.Context) error {
		_, err := a.k.host().DefineNetwork(ctx, was)
		return err
	})
	outcome := kind.Updated
	if a.before.active && !a.stops() {
		outcome = kind.Deferred
	}
	a.step("definition", outcome)
	return nil
}

func (a *apply) autostart(ctx context.Context) error {
	want := a.wanted.Attr("autostart")
	if !want.IsKnown() || tree.Equal(want, a.before.definition.Attr("autostart")) {
		return nil
	}
	if err := a.before.net.SetAutostart(ctx, want.Bool()); err != nil {
		return err
	}
	a.Add(func(ctx context.Context) error { return a.before.net.SetAutostart(ctx, !want.Bool()) })
	a.step("autostart", kind.Updated)
	return nil
}

// power starts or stops the network. It is the last step, so it is never
// taken back.
func (a *apply) power(ctx context.Context) error {
	want := a.wanted.Attr("active")
	if !want.IsKnown() || tree.Equal(want, a.before.definition.Attr("active")) {
		return nil
	}
	change := a.before.net.Stop
	if want.Bool() {
		change = a.before.net.Start
	}
	if err := change(ctx); err != nil {
		return err
	}
	a.step("active", kind.Updated)
	return nil
}
