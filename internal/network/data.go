package network

import (
	"context"
	"fmt"
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
	at, look := "name", k.host().LookupNetworkByName
	if !config.Attr("uuid").IsNull() {
		at, look = "uuid", k.host().LookupNetwork
	}
	net, err := look(ctx, config.Attr(at).Str())
	var s *sight
	if err == nil {
		s, err = k.see(ctx, net)
	}
	if virt.IsNotFound(err) {
		return tree.NullValue, k.missing(ctx, at, config.Attr(at).Str(), err)
	}
	if err != nil {
		return tree.NullValue, err
	}
	return s.definition.With("status", s.facts(tree.NullValue).Status), nil
}

// missing says which networks there are instead.
func (k *Kind) missing(ctx context.Context, at, written string, cause error) error {
	all, err := k.host().Networks(ctx)
	if err != nil {
		return err
	}
	there := make([]string, len(all))
	for i, n := range all {
		if there[i] = n.Name(); at == "uuid" {
			there[i] = fmt.Sprintf("%s (%s)", n.UUID(), n.Name())
		}
	}
	return kind.Missing(k.Noun(), at, written, k.host().Display(), there, cause)
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
