package network

import (
	"context"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

var _ kind.Source = (*Kind)(nil)

// DataType is the resource's without settings.
func (k *Kind) DataType() *tree.Type { return kind.Shown(k.typ, k.rules.Setting, k.Keys()) }

// Keys are the ways to name a network.
func (k *Kind) Keys() [][]string { return [][]string{{"name"}, {"uuid"}} }

// Inputs are none.
func (k *Kind) Inputs() (one, all []*tree.Attribute) { return nil, nil }

// Check finds nothing, as there are no inputs.
func (k *Kind) Check(tree.Value) []kind.Problem { return nil }

// Show reads the network of that name or UUID.
func (k *Kind) Show(ctx context.Context, config tree.Value) (tree.Value, error) {
	host := k.host()
	s, err := kind.Lookup[*virt.Network, *sight]{
		Noun: k.Noun(), Host: host.Display(), ByName: host.LookupNetworkByName, ByUUID: host.LookupNetwork,
		All: host.Networks, See: k.see, NotFound: virt.IsNotFound,
	}.Find(ctx, config)
	if err != nil {
		return tree.NullValue, err
	}
	return s.definition.With("status", s.facts(tree.NullValue).Status), nil
}

// List tells of every network what the host's lists tell.
func (k *Kind) List(ctx context.Context, _ tree.Value) ([]tree.Value, error) {
	all, err := k.host().Networks(ctx)
	if err != nil {
		return nil, err
	}
	standings, err := k.host().View().Networks(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *virt.Network) int { return strings.Compare(a.Name(), b.Name()) })
	out := make([]tree.Value, len(all))
	for i, n := range all {
		is := standings[n.Name()]
		out[i] = tree.ObjectValue(map[string]tree.Value{
			"name": tree.StringValue(n.Name()), "uuid": tree.StringValue(n.UUID()), "id": tree.StringValue(n.UUID()),
			"active": tree.BoolValue(is.Active), "autostart": tree.BoolValue(is.Autostart),
			"status": tree.ObjectValue(map[string]tree.Value{"active": tree.BoolValue(is.Active), "persistent": tree.BoolValue(is.Persistent)}),
		})
	}
	return out, nil
}
