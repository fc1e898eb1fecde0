package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

var _ kind.Source = (*Volume)(nil)

// DataType is the resource's without settings.
func (k *Volume) DataType() *tree.Type { return kind.Shown(k.typ, k.rules.Setting, k.Keys()) }

// Keys are the ways to name a volume.
func (k *Volume) Keys() [][]string { return [][]string{{"pool", "name"}, {"key"}, {"path"}} }

// Inputs choose the pool whose volumes are listed.
func (k *Volume) Inputs() (one, all []*tree.Attribute) {
	return nil, []*tree.Attribute{optional("pool", tree.StringType, "Only the volumes of the pool of that name, which must be started. Unset: those of all started pools; a pool that is not started says nothing about its volumes.")}
}

// Check finds a pool without a name.
func (k *Volume) Check(config tree.Value) []kind.Problem {
	if pool := config.Attr("pool"); pool.IsKnown() && pool.Str() == "" {
		return []kind.Problem{{Path: tree.Root.Attr("pool"), Summary: "pool is empty", Detail: "No pool has an empty name. Write one, or leave pool out."}}
	}
	return nil
}

// Show reads the volume of that pool and name, that key or that path.
func (k *Volume) Show(ctx context.Context, config tree.Value) (tree.Value, error) {
	s, err := k.lookUp(ctx, config)
	if err != nil {
		return tree.NullValue, err
	}
	if err := s.lookForSeed(ctx, tree.NullValue, tree.NullValue); err != nil {
		return tree.NullValue, err
	}
	f, err := k.facts(ctx, s, tree.NullValue, tree.NullValue, tree.NullValue)
	if err != nil {
		return tree.NullValue, err
	}
	shown := f.Definition.With("status", f.Status)
	for name := range volumeSettings {
		if name != "status" {
			shown = shown.With(name, tree.NullValue)
		}
	}
	return shown, nil
}

// lookUp finds the volume that a configuration names.
func (k *Volume) lookUp(ctx context.Context, config tree.Value) (*volumeSight, error) {
	if name := config.Attr("name"); !name.IsNull() {
		p, err := k.started(ctx, config.Attr("pool").Str(), fmt.Sprintf("Volume %q cannot be read", name.Str()))
		if err != nil {
			return nil, err
		}
		s, err := seeIn(ctx, p, name.Str())
		if virt.IsNotFound(err) {
			return nil, k.missing(ctx, "name", name.Str(), []*virt.Pool{p}, err)
		}
		if err == nil {
			s.pool = p
		}
		return s, err
	}
	at, look := "key", k.host().LookupVolume
	if !config.Attr("path").IsNull() {
		at, look = "path", k.host().LookupVolumeByPath
	}
	vol, err := look(ctx, config.Attr(at).Str())
	var s *volumeSight
	if err == nil {
		s, err = see(ctx, vol)
	}
	if virt.IsNotFound(err) {
		pools, listErr := k.startedPools(ctx)
		if listErr != nil {
			return nil, listErr
		}
		return nil, k.missing(ctx, at, config.Attr(at).Str(), pools, err)
	}
	return s, err
}

// started finds a pool that can tell its volumes; because is the summary of the
// refusal if it cannot.
func (k *Volume) started(ctx context.Context, name, because string) (*virt.Pool, error) {
	p, err := k.host().LookupPoolByName(ctx, name)
	if virt.IsNotFound(err) {
		all, listErr := k.host().Pools(ctx)
		if listErr != nil {
			return nil, listErr
		}
		return nil, kind.MissingAmong("pool", "pool", name, k.host().Display(), all, err)
	}
	if err != nil {
		return nil, err
	}
	active, err := p.IsActive(ctx)
	if err == nil && !active {
		err = kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("pool"), Summary: fmt.Sprintf("%s: pool %q is not started", because, name),
			Detail: fmt.Sprintf("A pool that is not started says nothing about its volumes, and a data source starts none. Start it: virsh pool-start %s; or set active = true in its resource, and name the pool here by a reference to it, so that it is started first.", name),
		})
	}
	return p, err
}

// startedPools are the pools that can tell their volumes.
func (k *Volume) startedPools(ctx context.Context) ([]*virt.Pool, error) {
	all, err := k.host().Pools(ctx)
	if err != nil {
		return nil, err
	}
	standings, err := k.host().View().Pools(ctx)
	return slices.DeleteFunc(all, func(p *virt.Pool) bool { return !standings[p.Name()].Active }), err
}

// missing says which volumes these pools have instead.
func (k *Volume) missing(ctx context.Context, at, written string, pools []*virt.Pool, cause error) error {
	all, err := volumesOf(ctx, pools)
	if err != nil {
		return err
	}
	there := make([]string, len(all))
	for i, v := range all {
		there[i] = map[string]string{"name": v.Name(), "key": v.Key(), "path": v.Path()}[at]
	}
	err = kind.Missing(k.Noun(), at, written, k.host().Display(), there, cause)
	if missing, ok := err.(*kind.MissingError); ok { //nolint:errorlint // made just now
		missing.Problem.Detail += " libvirt knows the files of a pool as of its last refresh, and a data source refreshes none: a file that came later is there after `virsh pool-refresh POOL`. Pools that are not started were not asked."
	}
	return err
}

// volumesOf lists the volumes of pools, sorted by pool and name. A pool that
// stops or goes meanwhile has none.
func volumesOf(ctx context.Context, pools []*virt.Pool) ([]*virt.Volume, error) {
	var out []*virt.Volume
	for _, p := range pools {
		some, err := p.Volumes(ctx)
		switch {
		case virt.IsNotFound(err), virt.HasCode(err, virt.ErrOperationInvalid):
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortFunc(out, func(a, b *virt.Volume) int {
		return strings.Compare(a.Name()+"\x00"+a.PoolName(), b.Name()+"\x00"+b.PoolName())
	})
	return out, nil
}

// List tells of every volume in started pools what identifies it.
func (k *Volume) List(ctx context.Context, config tree.Value) ([]tree.Value, error) {
	var pools []*virt.Pool
	if name := config.Attr("pool"); !name.IsNull() {
		p, err := k.started(ctx, name.Str(), "The volumes cannot be listed")
		if err != nil {
			return nil, err
		}
		pools = []*virt.Pool{p}
	} else {
		var err error
		if pools, err = k.startedPools(ctx); err != nil {
			return nil, err
		}
	}
	all, err := volumesOf(ctx, pools)
	if err != nil {
		return nil, err
	}
	out := make([]tree.Value, len(all))
	for i, v := range all {
		out[i] = tree.ObjectValue(map[string]tree.Value{
			"name": tree.StringValue(v.Name()), "pool": tree.StringValue(v.PoolName()), "key": tree.StringValue(v.Key()),
			"id": tree.StringValue(v.Key()), "path": tree.StringValue(v.Path()),
		})
	}
	return out, nil
}
