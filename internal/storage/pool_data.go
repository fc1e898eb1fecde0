package storage

import (
	"context"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What data sources show of pools is as old as the pool's last refresh: a
// refresh is a write, and one that fails makes libvirt stop the pool.

var _ kind.Source = (*Pool)(nil)

// DataType is the resource's without settings.
func (k *Pool) DataType() *tree.Type { return kind.Shown(k.typ, k.rules.Setting, k.Keys()) }

// Keys are the ways to name a pool.
func (k *Pool) Keys() [][]string { return [][]string{{"name"}, {"uuid"}} }

// Inputs are none.
func (k *Pool) Inputs() (one, all []*tree.Attribute) { return nil, nil }

// Check finds nothing, as there are no inputs.
func (k *Pool) Check(tree.Value) []kind.Problem { return nil }

// Show reads the pool of that name or UUID.
func (k *Pool) Show(ctx context.Context, config tree.Value) (tree.Value, error) {
	host := k.host()
	s, err := kind.Lookup[*virt.Pool, *poolSight]{
		Noun: k.Noun(), Host: host.Display(), ByName: host.LookupPoolByName, ByUUID: host.LookupPool,
		All: host.Pools, See: k.see, NotFound: virt.IsNotFound,
	}.Find(ctx, config)
	if err != nil {
		return tree.NullValue, err
	}
	return s.definition.With("status", s.facts(tree.NullValue).Status), nil
}

// List tells of every pool what the host's lists tell, and its type.
func (k *Pool) List(ctx context.Context, _ tree.Value) ([]tree.Value, error) {
	all, err := k.host().Pools(ctx)
	if err != nil {
		return nil, err
	}
	standings, err := k.host().View().Pools(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *virt.Pool) int { return strings.Compare(a.Name(), b.Name()) })
	out := make([]tree.Value, 0, len(all))
	for _, p := range all {
		is, there := standings[p.Name()]
		if !there {
			continue // undefined since the list was made
		}
		out = append(out, tree.ObjectValue(map[string]tree.Value{
			"name": tree.StringValue(p.Name()), "uuid": tree.StringValue(p.UUID()), "id": tree.StringValue(p.UUID()),
			"type": tree.StringValue(is.Type), "active": tree.BoolValue(is.Active), "autostart": tree.BoolValue(is.Autostart),
			"status": tree.ObjectValue(map[string]tree.Value{"active": tree.BoolValue(is.Active), "persistent": tree.BoolValue(is.Persistent)}),
		}))
	}
	return out, nil
}
