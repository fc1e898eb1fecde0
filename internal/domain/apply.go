package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// apply is one update under way.
type apply struct {
	k       *Kind
	update  kind.Update
	before  *sight          // as the host had it when the update began
	wanted  tree.Value      // the definition asked for
	changes []tree.Path     // of the definition
	live    []change.Change // what the running guest is to get now
	late    []tree.Path     // of live: what the guest does in its own time

	document string // of the definition asked for, as it is now if nothing of it changes
	written  string // the definition as libvirt made it of that, "" if it was not written

	needsRestart bool // a change is to have the effect restart
	asItRan      bool // the definition that had waited cannot be started
	started      bool // the guest, by this update: from the start or once more
	ended        bool // it was asked to shut down, by this update
	kind.Undo
	steps    []kind.Step
	warnings []kind.Problem
}

// changed says whether the update changes the attribute of the definition, or
// something below it.
func (a *apply) changed(prefix string) bool { return below(a.changes, prefix) }

// does says whether the running guest is to get the attribute now, or
// something below it.
func (a *apply) does(prefix string) bool {
	return slices.ContainsFunc(a.live, func(c change.Change) bool { return within(c.Path.Pattern(), prefix) })
}

// corrects says whether the guest alone is not as its definition, in an attribute
// or below it, and is put back now.
func (a *apply) corrects(prefix string) bool {
	return slices.ContainsFunc(a.live, func(c change.Change) bool { return c.Live && within(c.Path.Pattern(), prefix) })
}

// doesElement says whether the running guest is to get an element of a list
// now, or something in it. key is what identifies it.
func (a *apply) doesElement(list, key string) bool {
	return slices.ContainsFunc(a.live, func(c change.Change) bool {
		k, ok := elementOf(c.Path, list)
		return ok && k == key
	})
}

// doesField says whether the running guest is to get a field of an element of a
// list now, by itself or with the whole element: one that comes brings what it
// says, one that goes takes all along.
func (a *apply) doesField(list, key, field string) bool {
	return slices.ContainsFunc(a.live, func(c change.Change) bool {
		k, ok := elementOf(c.Path, list)
		switch pattern, path := c.Path.Pattern(), list+"[]."+field; {
		case !ok || k != key:
			return false
		case pattern == list+"[]":
			return c.Desired.IsNull() || !c.Desired.At(field).IsNull()
		default:
			return within(pattern, path) || within(path, pattern)
		}
	})
}

// takesOut says whether the running guest is to lose an element of the list now.
func (a *apply) takesOut(list string) bool {
	return slices.ContainsFunc(a.live, func(c change.Change) bool { return c.Kind == change.Removal && c.Path.Pattern() == list+"[]" })
}

// isLate says whether the guest does it in its own time.
func (a *apply) isLate(p tree.Path) bool {
	return slices.ContainsFunc(a.late, func(l tree.Path) bool { return l.String() == p.String() })
}

func below(paths []tree.Path, prefix string) bool {
	return slices.ContainsFunc(paths, func(p tree.Path) bool { return within(p.Pattern(), prefix) })
}

// Update changes the domain: the definition by editing it under the same UUID,
// then what the guest can take live, then autostart and power, and restarts
// the guest if the plan said so. It never undefines. If a step fails, what was
// done is taken back.
func (k *Kind) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	before, err := k.look(ctx, k.Identity(u.Prior), extras(u.Prior, u.Owned, u.Planned)...)
	if err != nil {
		return done, err
	}
	before.problems = k.bootProblems(ctx, before)
	status := u.Prior.Attr("status")
	done.Exists, done.Facts = true, before.facts(status)
	a := &apply{k: k, update: u, before: before, Undo: kind.Undo{Lost: virt.IsUnreachable}}
	if a.wanted, err = k.wantedBy(u, before.definition); err != nil {
		return done, err
	}
	a.changes = k.rules.Differences(k.typ, before.definition, a.wanted)
	if err := a.prepare(); err != nil {
		return done, err
	}
	if !a.hasWork() {
		return done, nil
	}
	if a.wanted, a.document, err = k.preflight(ctx, a.flight()); err != nil {
		return done, err
	}
	var leases earlier
	if !a.resumes() || a.restarts() { // a guest that goes on has its lease, and renews it in its own time
		leases = k.leasesBefore(ctx, u.Planned.At("devices.interfaces"), a.wanted.At("devices.interfaces"))
	}
	after, err := a.carryOut(ctx)
	if after == nil {
		return done, err
	}
	after.problems = k.bootProblems(ctx, after)
	done.Facts, done.Steps, done.Warnings = after.facts(status), a.steps, a.warnings
	if err == nil && a.started && after.active() && !after.paused { // a paused guest gets no address
		err = k.addressesMissing(ctx, before.dom, u, leases, &done)
	}
	return done, err
}

// wantedBy is the definition that a plan asks for.
func (k *Kind) wantedBy(u kind.Update, definition tree.Value) (tree.Value, error) {
	wanted := kind.Order(k, u).Patch(definition)
	if planned := u.Planned.At("metadata.xml"); wanted.At("metadata.xml").Str() != definition.At("metadata.xml").Str() {
		merged, err := mergeMetadata(definition.At("metadata.xml").Str(), planned.Str(), u.Owned.At("metadata.xml").Str())
		if err != nil {
			return wanted, err
		}
		wanted = wanted.SetAt("metadata.xml", textOrNull(merged))
	}
	wanted = followCPUs(u.Config, definition, followMemory(u.Config, definition, wanted))
	wanted = followThreads(u.Config, definition, wanted)
	wanted = k.followMachine(u.Config, definition, wanted)
	wanted = followListen(definition, followBoot(u.Planned, wanted))
	wanted = withoutRemnants(definition, wanted)
	wanted = withoutItsConsole(u.Config, definition, wanted)
	return wanted.With("uuid", definition.Attr("uuid")).With("id", definition.Attr("id")), nil
}

func textOrNull(s string) tree.Value {
	if s == "" {
		return tree.NullValue
	}
	return tree.StringValue(s)
}

// prepare finds what the running guest gets, and repeats the plan's refusals:
// host and guest may have changed since.
func (a *apply) prepare() error {
	if err := kind.RefuseMoved(a.k, a.before.name, a.update, a.before.definition); err != nil {
		return err
	}
	allow := allowed(a.update.Config)
	was := a.before.definition
	again := a.k.rules.Plan(change.Input{Type: a.k.typ, Config: a.wanted, Prior: was, Baseline: was, Actual: was, Owned: was, Guest: a.before.guest})
	now := newSituation(a.before.active(), a.before.running(), was)
	if a.shutsDown() {
		now = endingWith(again.Changes, now)
	}
	now = resuming(again.Changes, a.before.managedSave, now)
	costs := withMediaSetting(a.update.Config, again.Changes, costsOf(again.Changes, now))
	for i, c := range again.Changes {
		class, reason := costs[i].class, costs[i].reason
		if class == change.ClassLive && !a.planned(c) {
			// It follows another change, in the definition alone.
			class = change.ClassNextBoot
		}
		if class == change.ClassNextBoot && a.plannedAsReached(c) {
			c.Reached = true // the plan knew what an apply had left in the guest
		}
		effect, refused := effectOf(c, class, now, allow)
		switch {
		case refused && a.planned(c):
			return kind.Refuse(a.k.refusal(c, class, reason, a.before.name, now))
		case effect > a.update.Effect && a.planned(c):
			return kind.Refuse(kind.Problem{
				Path: c.Path, Summary: fmt.Sprintf("Domain %q is not as it was when the plan was made", a.before.name),
				Detail: fmt.Sprintf("The change of %s has the effect %s now; the plan announced %s at most. Nothing was changed. Plan again.", c.Path, effect, a.update.Effect),
			})
		case effect == change.EffectLive:
			a.live = append(a.live, c)
		case effect == change.EffectRestart:
			a.needsRestart = true
		}
	}
	if a.restarts() {
		a.live = nil // the restart brings it
		return nil
	}
	if !now.active { // or not for long
		return nil
	}
	if err := a.prepareLive(); err != nil {
		return err
	}
	return a.seatDevices()
}

// prepareLive takes over what the plan corrects in the running guest, unless
// somebody changed it once more.
func (a *apply) prepareLive() error {
	again := a.k.rules.Plan(change.Input{
		Type: a.k.typ, Config: a.wanted, Prior: a.wanted, Baseline: a.wanted, Actual: a.wanted, Owned: a.wanted, Guest: a.before.guest,
		Policy: change.Policy{Revert: true},
	})
	for _, c := range a.update.Live {
		for _, now := range again.Live {
			if now.Path.String() != c.Path.String() {
				continue
			}
			if !a.k.rules.Same(c.Path.Pattern(), now.Actual, c.Actual) {
				return kind.Refuse(kind.Problem{
					Path: c.Path, Summary: fmt.Sprintf("%s of the guest of domain %q was changed after the plan was made", c.Path, a.before.name),
					Detail: "Nothing was changed. Plan again, and decide with the new value before you.",
				})
			}
			a.live = append(a.live, now)
		}
	}
	return nil
}

// planned says whether the plan has the change, by itself or as part of a
// larger one. What it has not only follows one that it has.
func (a *apply) planned(c change.Change) bool {
	return slices.ContainsFunc(a.update.Changes, func(p change.Change) bool {
		return within(c.Path.Pattern(), p.Path.Pattern()) || within(p.Path.Pattern(), c.Path.Pattern())
	})
}

// plannedAsReached says whether the plan found that the guest has it already.
func (a *apply) plannedAsReached(c change.Change) bool {
	return slices.ContainsFunc(a.update.Changes, func(p change.Change) bool { return p.Reached && p.Path.String() == c.Path.String() })
}

func (a *apply) hasWork() bool {
	return len(a.changes) > 0 || len(a.live) > 0 || !a.before.persistent || a.restarts() || a.takesOver()
}

// restarts says whether the plan said that the guest is restarted, and there
// is still a reason to: somebody else may have done it since.
func (a *apply) restarts() bool {
	if a.update.Effect != change.EffectRestart || !a.before.active() && !a.resumes() {
		return false
	}
	if a.needsRestart {
		return true
	}
	for _, p := range a.k.rules.Waiting(a.k.typ, a.before.definition, a.before.guest, a.update.Config) {
		if slices.ContainsFunc(a.update.Waiting, func(w tree.Path) bool { return w.String() == p.String() }) {
			return true
		}
	}
	return false
}

// takesOver says whether the domain gets another owner.
func (a *apply) takesOver() bool {
	return a.update.Config.Attr("adopt").Bool() && a.next().Owner != a.before.marker.Owner
}

// next is the marker of the definition that this update makes.
func (a *apply) next() marker {
	m := marker{Generation: a.before.marker.Generation + 1, Owner: a.before.marker.Owner}
	if owner := a.k.owner(); owner != "" && (m.Owner == "" || a.update.Config.Attr("adopt").Bool()) {
		m.Owner = owner
	}
	return m
}

func (a *apply) run(ctx context.Context) error {
	if a.defines() {
		if err := a.define(ctx); err != nil {
			return fmt.Errorf("define %s: %w", a.before.name, err)
		}
	}
	if err := a.rememberCPU(ctx); err != nil {
		return err
	}
	for _, one := range aspects {
		if one.live == nil || !a.concerns(one) {
			continue
		}
		if err := one.live(ctx, a); err != nil {
			return fmt.Errorf("change %s of %s: %w", one.name, a.before.name, err)
		}
	}
	if err := a.takeOutDevices(ctx); err != nil {
		return fmt.Errorf("change devices of %s: %w", a.before.name, err)
	}
	for _, one := range aspects {
		if one.live == nil || !a.concerns(one) {
			continue
		}
		outcome := kind.Updated
		if slices.ContainsFunc(a.late, func(p tree.Path) bool { return aspectOf(p.Pattern()) == one }) {
			outcome = kind.Deferred
		}
		a.step(one.name, outcome)
	}
	return a.cyclePower(ctx)
}

// defines says whether the definition is written.
func (a *apply) defines() bool { return a.inDefinition() || a.takesOver() }

// flight is what the update is about to do.
func (a *apply) flight() flight {
	starts := a.restarts() || a.changed("running") && a.wanted.Attr("running").Bool() && !a.before.active()
	return flight{
		name: a.before.name, wanted: a.wanted, before: a.before.definition, old: a.before.xml, inConfig: a.update.Planned,
		starts: starts, changes: a.defines(), write: a.write,
		gets: func(list, key string) bool {
			return a.doesElement(list, key) || key == "" && list != "" && a.does(list)
		},
	}
}

// inDefinition says whether the XML of the definition changes.
func (a *apply) inDefinition() bool {
	return !a.before.persistent || slices.ContainsFunc(a.changes, func(p tree.Path) bool {
		switch aspectOf(p.Pattern()) {
		case autostartAspect, runningAspect, nameAspect:
			return false
		}
		return true
	})
}

// concerns says whether an aspect has something to do beside the definition.
func (a *apply) concerns(one *aspect) bool {
	does := a.does
	switch {
	case one == autostartAspect, one == runningAspect && !a.shutsDown():
		does = a.changed
	case a.takesDown():
		return false // a name is changed while the guest is off
	case one == nameAspect:
		does = a.changed
	}
	return slices.ContainsFunc(one.owns, does)
}

func (a *apply) step(name, outcome string) {
	a.steps = append(a.steps, kind.Step{Name: name, Outcome: outcome})
}

// write edits the definition, under the same name and UUID: the name changes by
// itself, with virDomainRename.
func (a *apply) write(definition tree.Value) (string, error) {
	return a.writeMarked(definition, a.next())
}

func (a *apply) writeMarked(definition tree.Value, mark marker) (string, error) {
	wanted := definition
	for _, beside := range []string{"autostart", "running", extraXML} {
		wanted = wanted.With(beside, tree.NullValue)
	}
	wanted = wanted.With("name", a.before.raw.Attr("name")).With("id", a.before.raw.Attr("id")).
		SetAt("metadata.xml", tree.StringValue(joinMarker(wanted.At("metadata.xml").Str(), mark)))
	return writeExtras(a.before.xml, a.before.definition, definition, func(xml string) (string, error) {
		return spec.Domain().Edit(xml, a.before.raw, wanted)
	})
}

// define writes the definition.
func (a *apply) define(ctx context.Context) error {
	if err := a.unedited(ctx); err != nil {
		return err
	}
	write := func(ctx context.Context) error {
		_, err := a.k.host().DefineDomain(ctx, a.document, virt.DefineFlags{})
		return err
	}
	if err := a.try(ctx, write, a.restore); err != nil {
		return err
	}
	// What cannot be read now is put back without asking, if it comes to that.
	a.written, _ = a.definitionNow(ctx)
	outcome := kind.Updated
	if a.waits() {
		outcome = kind.Deferred
	}
	a.step("definition", outcome)
	return nil
}

// waits says whether something of the new definition waits for the guest's
// next start.
func (a *apply) waits() bool {
	if a.resumes() {
		return !a.restarts()
	}
	if !a.before.active() || a.takesDown() {
		return false
	}
	waiting := a.k.rules.Waiting(a.k.typ, a.wanted, a.before.running(), a.update.Config)
	return slices.ContainsFunc(waiting, func(p tree.Path) bool {
		return below(a.changes, p.Pattern()) && !a.does(p.Pattern())
	})
}

// verifyGuest says what libvirt accepted for the running guest and did not do.
// Devices that come and go are looked at one by one, where that is done.
func (a *apply) verifyGuest(after *sight) error {
	did := map[string]bool{}
	for _, c := range a.live {
		did[c.Path.String()] = plugOf(c.Path) == nil || len(c.Path) > 3
	}
	if err := a.verifyBeside(after, did); err != nil {
		return err
	}
	var problems []kind.Problem
	for _, p := range a.k.rules.Waiting(a.k.typ, after.definition, after.guest, a.update.Config) {
		if !did[p.String()] || a.isLate(p) {
			continue
		}
		problems = append(problems, kind.Problem{
			Path: p, Summary: fmt.Sprintf("The running guest of domain %q did not take %s", a.before.name, p),
			Detail: "libvirt accepted the change, and reading it back shows another value in the guest. The definition has it, so it is pending until the guest's next start.",
		})
	}
	if len(problems) == 0 {
		return nil
	}
	return &kind.ProblemError{Problems: problems}
}
