package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// poolDocument is what of a tree is in the XML.
func poolDocument(v tree.Value) tree.Value {
	v = withoutFigures(v)
	for _, name := range []string{"id", "autostart", "active"} {
		v = v.With(name, tree.NullValue)
	}
	return v
}

// Create defines the pool, makes its storage where that is asked for, starts
// it unless active or create.start is false, and sets autostart. A pool for
// which not all of that succeeds is not defined any more afterwards.
func (k *Pool) Create(ctx context.Context, planned, _ tree.Value) (done kind.Done, err error) {
	name := planned.Attr("name").Str()
	switch pool, err := k.host().LookupPoolByName(ctx, name); {
	case err == nil:
		return done, kind.Exists(k.Noun(), name, pool.UUID(), k.host().Display())
	case !virt.IsNotFound(err):
		return done, err
	}
	xml, err := spec.Pool().Encode(poolDocument(planned.Known()))
	if err != nil {
		return done, err
	}
	pool, err := k.host().DefinePool(ctx, xml)
	if err != nil {
		return done, err
	}
	done.Exists = true
	err = k.equip(ctx, pool, planned, func(name string) {
		done.Steps = append(done.Steps, kind.Step{Name: name, Outcome: kind.Updated})
	})
	var s *poolSight
	if err == nil {
		if s, err = k.see(ctx, pool); err != nil {
			err = fmt.Errorf("read pool %s back: %w", name, err)
		}
	}
	if err == nil {
		done.Facts = s.facts(tree.NullValue)
		err = kind.Unmet(k, name, tree.NullValue, planned, s.definition)
	}
	if err == nil {
		return done, nil
	}
	if undone := k.unmake(ctx, pool); undone != nil {
		uuid := tree.StringValue(pool.UUID())
		done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("uuid", uuid).With("id", uuid)}
		return done, also(err, fmt.Sprintf("The pool is defined, and could not be taken back (%v): look with virsh pool-info %s.", undone, name))
	}
	return kind.Done{}, also(err, "The pool is not defined any more, and no data was touched. Repeat the apply when the cause is gone.")
}

// unmake takes back what Create did before it failed. The storage stays: it may
// have been there before.
func (k *Pool) unmake(ctx context.Context, pool *virt.Pool) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	active, err := pool.IsActive(ctx)
	if err == nil && active {
		err = pool.Stop(ctx)
	}
	if err != nil {
		return err
	}
	return pool.Undefine(ctx)
}

// formatted are the types whose storage is formatted when it is built. libvirt
// refuses the flags about what is there already for all others.
var formatted = map[string]bool{"fs": true, "logical": true, "disk": true}

// equip does what follows the definition of a new pool.
func (k *Pool) equip(ctx context.Context, pool *virt.Pool, planned tree.Value, step func(string)) error {
	step("definition")
	create, typ := planned.Attr("create"), planned.Attr("type").Str()
	build := create.Attr("build")
	if build.Bool() || build.IsNull() && typ == "dir" {
		// A directory that is there already is no obstacle: it keeps its content,
		// and its mode unless the configuration has one.
		overwrite := create.Attr("overwrite").Bool()
		if err := pool.Build(ctx, virt.BuildFlags{Overwrite: overwrite && formatted[typ], NoOverwrite: !overwrite && formatted[typ]}); err != nil {
			return err
		}
		step("build")
	}
	active := planned.Attr("active")
	if !active.IsKnown() {
		active = tree.BoolValue(create.Attr("start").IsNull() || create.Attr("start").Bool())
	}
	if active.Bool() {
		if err := pool.Start(ctx); err != nil {
			return err
		}
		step("active")
	}
	autostart := planned.Attr("autostart")
	if !autostart.IsKnown() {
		autostart = create.Attr("autostart")
	}
	if autostart.Bool() {
		if err := pool.SetAutostart(ctx, true); err != nil {
			return err
		}
		step("autostart")
	}
	return nil
}

// Update changes the definition in place, under the same UUID, then autostart
// and whether the pool is started.
func (k *Pool) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	before, err := k.look(ctx, k.Identity(u.Prior))
	if err != nil {
		return done, err
	}
	status := u.Prior.Attr("status")
	done.Exists, done.Facts = true, before.facts(status)
	wanted := kind.Order(k, u).Patch(before.definition)
	for _, name := range []string{"uuid", "id", "capacity", "allocation", "available"} {
		wanted = wanted.With(name, before.definition.Attr(name))
	}
	if len(k.rules.Differences(k.typ, before.definition, wanted)) == 0 && before.persistent {
		return done, nil
	}
	if err := kind.RefuseMoved(k, before.name, u, before.definition); err != nil {
		return done, err
	}
	a := &poolApply{k: k, before: before, wanted: wanted}
	if err = a.run(ctx); err != nil {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		err = a.RollBack(ctx, err, "virsh pool-dumpxml --inactive "+before.name)
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

// poolApply is one update of a pool under way.
type poolApply struct {
	k      *Pool
	before *poolSight
	wanted tree.Value
	kind.Undo
	steps []kind.Step
}

func (a *poolApply) step(name, outcome string) {
	a.steps = append(a.steps, kind.Step{Name: name, Outcome: outcome})
}

func (a *poolApply) run(ctx context.Context) error {
	pool := a.before.pool
	active := a.wanted.Attr("active")
	moves := active.IsKnown() && active.Bool() != a.before.active
	if moves && !active.Bool() {
		if err := a.k.refuseUsed(ctx, a.before, "stop", true); err != nil {
			return err
		}
	}
	if err := a.define(ctx); err != nil {
		return err
	}
	if want := a.wanted.Attr("autostart"); want.IsKnown() && !tree.Equal(want, a.before.definition.Attr("autostart")) {
		if err := pool.SetAutostart(ctx, want.Bool()); err != nil {
			return err
		}
		a.Add(func(ctx context.Context) error { return pool.SetAutostart(ctx, !want.Bool()) })
		a.step("autostart", kind.Updated)
	}
	if !moves {
		return nil
	}
	power := pool.Stop
	if active.Bool() {
		power = pool.Start
	}
	if err := power(ctx); err != nil {
		return err
	}
	a.step("active", kind.Updated)
	return nil
}

// define writes the definition where it changes. A pool that is started goes
// on as it is.
func (a *poolApply) define(ctx context.Context) error {
	// What the definition says of the directory's permissions is libvirt's.
	wanted := poolDocument(a.wanted).SetAt(permissions, a.before.raw.At(permissions))
	changes := len(a.k.rules.Differences(a.k.typ, a.before.raw, wanted)) > 0
	if a.before.persistent && !changes {
		return nil
	}
	xml, err := spec.Pool().Edit(a.before.xml, withFiguresOf(a.before.xml, a.before.raw), withFiguresOf(a.before.xml, wanted))
	if err != nil {
		return err
	}
	if _, err := a.k.host().DefinePool(ctx, xml); err != nil {
		return err
	}
	a.Add(func(ctx context.Context) error {
		_, err := a.k.host().DefinePool(ctx, a.before.xml)
		return err
	})
	if a.before.active && changes {
		a.step("definition", kind.Deferred)
	} else {
		a.step("definition", kind.Updated)
	}
	return nil
}

// withFiguresOf puts the figures of a document back into a tree, so that an
// edit of the document leaves them alone.
func withFiguresOf(xml string, v tree.Value) tree.Value {
	decoded, err := spec.Pool().Decode(xml)
	if err != nil {
		return v
	}
	for name := range poolMeasured {
		v = v.With(name, decoded.Attr(name)).With(name+"_unit", decoded.Attr(name+"_unit"))
	}
	return v
}
