package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
// it unless active or create.start is false, and sets autostart.
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
	s, seeErr := k.see(ctx, pool)
	if seeErr != nil {
		uuid := tree.StringValue(pool.UUID())
		done.Facts = kind.Facts{Name: name, Definition: planned.Known().With("uuid", uuid).With("id", uuid)}
		return done, errors.Join(err, fmt.Errorf("read pool %s back: %w", name, seeErr))
	}
	done.Facts = s.facts(tree.NullValue)
	if err == nil {
		err = kind.Unmet(k, name, tree.NullValue, planned, s.definition)
	}
	return done, err
}

// equip does what follows the definition of a new pool.
func (k *Pool) equip(ctx context.Context, pool *virt.Pool, planned tree.Value, step func(string)) error {
	step("definition")
	create := planned.Attr("create")
	build := create.Attr("build")
	if build.Bool() || build.IsNull() && planned.Attr("type").Str() == "dir" {
		// A directory that is there already is no obstacle, and no error.
		if err := pool.Build(ctx, virt.BuildFlags{NoOverwrite: planned.Attr("type").Str() != "dir"}); err != nil {
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
	wanted := k.rules.Patch(k.typ, u.Prior, u.Planned, before.definition, u.Owned)
	for _, name := range []string{"uuid", "id", "capacity", "allocation", "available"} {
		wanted = wanted.With(name, before.definition.Attr(name))
	}
	if len(k.rules.Differences(k.typ, before.definition, wanted)) == 0 && before.persistent {
		return done, nil
	}
	a := &poolApply{k: k, before: before, wanted: wanted}
	if err = a.run(ctx); err != nil {
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

func (a *poolApply) step(name string) {
	a.steps = append(a.steps, kind.Step{Name: name, Outcome: kind.Updated})
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
	if wanted := poolDocument(a.wanted); !a.before.persistent || len(a.k.rules.Differences(a.k.typ, a.before.raw, wanted)) > 0 {
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
		a.step("definition")
	}
	if want := a.wanted.Attr("autostart"); want.IsKnown() && !tree.Equal(want, a.before.definition.Attr("autostart")) {
		if err := pool.SetAutostart(ctx, want.Bool()); err != nil {
			return err
		}
		a.Add(func(ctx context.Context) error { return pool.SetAutostart(ctx, !want.Bool()) })
		a.step("autostart")
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
	a.step("active")
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

// Delete stops and undefines the pool. Its storage stays, unless
// destroy.delete asks for it to go too.
func (k *Pool) Delete(ctx context.Context, state tree.Value) error {
	s, err := k.look(ctx, k.Identity(state))
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return err
	}
	if name := state.Attr("name").Str(); name != s.name {
		return kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Refusing to destroy pool %q: it is not the one in the state", s.name),
			Detail:  fmt.Sprintf("The state has the name %q for the UUID %s. Nothing was changed. Refresh the state (apply -refresh-only) and repeat.", name, s.pool.UUID()),
		})
	}
	if err := k.refuseUsed(ctx, s, "destroy", false); err != nil {
		return err
	}
	if s.active {
		if err := s.pool.Stop(ctx); err != nil {
			return err
		}
	}
	if state.At("destroy.delete").Bool() {
		if err := s.pool.Delete(ctx); err != nil {
			if s.active {
				err = errors.Join(err, s.pool.Start(ctx))
			}
			return fmt.Errorf("delete the storage of pool %s (destroy.delete = true): %w", s.name, err)
		}
	}
	if !s.persistent {
		return nil
	}
	return s.pool.Undefine(ctx)
}

// refuseUsed refuses to take a pool away from domains that name its volumes.
// With runningOnly, definitions do not count.
func (k *Pool) refuseUsed(ctx context.Context, s *poolSight, verb string, runningOnly bool) error {
	all, err := users(ctx, k.host())
	if err != nil {
		return err
	}
	dir := s.raw.At("target.path").Str()
	var found []user
	for _, u := range all {
		inside := u.pool == s.name
		for _, p := range u.paths {
			inside = inside || dir != "" && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
		}
		if inside && (u.running || !runningOnly) {
			found = append(found, u)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to %s pool %q: its volumes are in use", verb, s.name),
		Detail:  fmt.Sprintf("They are used by %s. Nothing was changed. Remove or move the disks first.", list(found)),
	})
}
