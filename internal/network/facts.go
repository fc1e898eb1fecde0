package network

import (
	"context"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// sight is what one look at a network shows.
type sight struct {
	net        *virt.Network
	name       string
	xml        string     // of the definition
	raw        tree.Value // decoded from xml
	definition tree.Value // raw with id, autostart and active
	active     bool
	persistent bool
	pending    []string
}

// Read asks the host about the network of a state.
func (k *Kind) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	s, err := k.look(ctx, k.Identity(state))
	if err != nil {
		return kind.Facts{}, err
	}
	return s.facts(state.Attr("status")), nil
}

func (k *Kind) find(ctx context.Context, identity string) (*virt.Network, error) {
	if kind.IsUUID(identity) {
		return k.host().LookupNetwork(ctx, identity)
	}
	return k.host().LookupNetworkByName(ctx, identity)
}

func (k *Kind) look(ctx context.Context, identity string) (*sight, error) {
	net, err := k.find(ctx, identity)
	var s *sight
	if err == nil {
		s, err = k.see(ctx, net)
	}
	if virt.IsNotFound(err) {
		return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: err}
	}
	return s, err
}

func (k *Kind) see(ctx context.Context, net *virt.Network) (*sight, error) {
	s := &sight{net: net}
	var err error
	if s.xml, err = net.XML(ctx, true); err != nil {
		return nil, err
	}
	if s.raw, err = spec.Network().Decode(s.xml); err != nil {
		return nil, err
	}
	if s.active, err = net.IsActive(ctx); err != nil {
		return nil, err
	}
	if s.persistent, err = net.IsPersistent(ctx); err != nil {
		return nil, err
	}
	autostart := false
	if s.persistent {
		if autostart, err = net.Autostart(ctx); err != nil {
			return nil, err
		}
	}
	s.name = s.raw.Attr("name").Str()
	s.definition = s.raw.With("id", s.raw.Attr("uuid")).
		With("autostart", tree.BoolValue(autostart)).With("active", tree.BoolValue(s.active))
	if !s.active {
		return s, nil
	}
	xml, err := net.XML(ctx, false)
	if err != nil {
		return nil, err
	}
	running, err := spec.Network().Decode(xml)
	if err != nil {
		return nil, err
	}
	for _, p := range k.rules.Differences(k.typ, running, s.raw) {
		if !startAdds(p, running) {
			s.pending = append(s.pending, p.String())
		}
	}
	return s, nil
}

// startAdds says whether a start fills a path in by itself: the interfaces
// behind a physical function, and the range of ports that NAT uses.
func startAdds(p tree.Path, running tree.Value) bool {
	switch p.Pattern() {
	case "forward.interfaces[]", "forward.addresses[]":
		return true
	case "forward.nat.ports[]":
		ports := running.Get(p)
		return ports.Attr("start").String() == "1024" && ports.Attr("end").String() == "65535"
	}
	return false
}

func (s *sight) facts(before tree.Value) kind.Facts {
	f := kind.Facts{Name: s.name, Definition: s.definition, Active: s.active}
	state := "settled"
	switch {
	case !s.persistent:
		state = "degraded"
		f.Warnings = append(f.Warnings, kind.Problem{
			Summary: fmt.Sprintf("Network %q has no definition", s.name),
			Detail:  "Somebody undefined it while it was started: it will be gone when it stops. It is not touched. Any change that is applied defines it again; by hand: virsh net-dumpxml NAME > f; virsh net-define f.",
		})
	case len(s.pending) > 0:
		state = "pending"
	}
	pending := make([]tree.Value, len(s.pending))
	for i, p := range s.pending {
		pending[i] = tree.StringValue(p)
	}
	f.Status = tree.ObjectValue(map[string]tree.Value{
		"state": tree.StringValue(state), "settled": tree.BoolValue(state == "settled"), "active": tree.BoolValue(s.active),
		"persistent": tree.BoolValue(s.persistent), "pending": tree.ListValue(pending), "last_steps": before.Attr("last_steps"),
	})
	return f
}

// Find resolves a UUID or a name for an import.
func (k *Kind) Find(ctx context.Context, id string) (tree.Value, error) {
	net, err := k.find(ctx, id)
	if virt.IsNotFound(err) && kind.IsUUID(id) {
		net, err = k.host().LookupNetworkByName(ctx, id) // a name can look like a UUID
	}
	if virt.IsNotFound(err) {
		return tree.NullValue, kind.NotFound(kind.Problem{
			Summary: fmt.Sprintf("There is no network %q", id),
			Detail:  fmt.Sprintf("The host %s has no network of that UUID or name. An import takes the UUID (virsh net-uuid NAME) or the name, as `virsh net-list --all` shows it.", k.host().Display()),
		}, err)
	}
	if err != nil {
		return tree.NullValue, err
	}
	return tree.ObjectValue(map[string]tree.Value{
		"id": tree.StringValue(net.UUID()), "uuid": tree.StringValue(net.UUID()), "name": tree.StringValue(net.Name()),
	}), nil
}
