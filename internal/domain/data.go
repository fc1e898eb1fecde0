package domain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What data sources show of domains. A secret is read with the rest, since the
// status compares guest and definition whole, but it is only shown if the
// configuration asks for it: the state of a data source is one more place where
// it would lie.

var _ kind.Source = (*Kind)(nil)

// The values of view.
const (
	viewDefinition = "definition"
	viewGuest      = "guest"
)

// DataType is the resource's without settings and without extra_xml, which shows
// XML only where a configuration names it.
func (k *Kind) DataType() *tree.Type {
	return kind.Shown(k.typ, func(pattern string) bool { return isSetting(pattern) || pattern == extraXML }, k.Keys())
}

// Keys are the ways to name a domain.
func (k *Kind) Keys() [][]string { return [][]string{{"name"}, {"uuid"}} }

// Inputs say which face of a domain is shown, and how much of it.
func (k *Kind) Inputs() (one, all []*tree.Attribute) {
	view := optional("view", tree.StringType, "What is shown: `definition` (standard), which the next start uses; or `guest`, what runs now, with what the start has added: ports of displays, names of host interfaces, addresses on the guest's buses. Of a domain that is off, `guest` shows the definition.")
	secrets := optional("secrets", tree.BoolType, "Show secrets, as the passwords of displays. They lie in the state then. Standard: false, and they are null. Only what libvirt knows to be secret counts: texts of any meaning, as in `qemu_commandline`, `sys_info` and `os.cmdline`, are always shown.")
	return []*tree.Attribute{view, secrets}, []*tree.Attribute{view}
}

// Check finds a view that there is not.
func (k *Kind) Check(config tree.Value) []kind.Problem {
	if v := config.Attr("view"); v.IsKnown() && v.Str() != viewDefinition && v.Str() != viewGuest {
		return []kind.Problem{{
			Path: tree.Root.Attr("view"), Summary: "Unknown view of a domain",
			Detail: fmt.Sprintf("view is %q; it can be %q, which is the standard, or %q, what runs now.", v.Str(), viewDefinition, viewGuest),
		}}
	}
	return nil
}

// Show reads the domain of that name or UUID.
func (k *Kind) Show(ctx context.Context, config tree.Value) (tree.Value, error) {
	host := k.host()
	s, err := kind.Lookup[*virt.Domain, *sight]{
		Noun: k.Noun(), Host: host.Display(), ByName: host.LookupDomainByName, ByUUID: host.LookupDomain,
		All:      func(ctx context.Context) ([]*virt.Domain, error) { return host.Domains(ctx) },
		See:      func(ctx context.Context, dom *virt.Domain) (*sight, error) { return k.see(ctx, dom) },
		NotFound: virt.IsNotFound,
	}.Find(ctx, config)
	if err != nil {
		return tree.NullValue, err
	}
	s.problems = k.bootProblems(ctx, s)
	shown := s.definition
	if config.Attr("view").Str() == viewGuest && s.active() {
		if shown, err = k.running(ctx, s); err != nil {
			return tree.NullValue, err
		}
	}
	if !config.Attr("secrets").Bool() {
		shown = change.Without(shown, k.Secret)
	}
	return shown.With("status", k.statusOf(s)), nil
}

// statusOf is the status as far as the host alone can tell it.
func (k *Kind) statusOf(s *sight) tree.Value {
	status := s.facts(tree.NullValue).Status
	waiting := k.rules.Waiting(k.typ, s.definition, s.guest, tree.NullValue)
	state := status.Attr("state").Str()
	if state == stateSettled && len(waiting) > 0 {
		state = statePending
	}
	paths := make([]string, len(waiting))
	for i, p := range waiting {
		paths[i] = p.String()
	}
	return status.With("state", tree.StringValue(state)).With("settled", tree.BoolValue(state == stateSettled)).
		With("pending", textList(paths)).With("started", tree.NullValue)
}

// running is the guest as libvirt tells it, with what its start has added.
func (k *Kind) running(ctx context.Context, s *sight) (tree.Value, error) {
	document, err := s.dom.XML(ctx, virt.XMLSecure)
	if err != nil {
		return tree.NullValue, err
	}
	live, err := spec.Domain().Decode(document)
	if err != nil {
		return tree.NullValue, err
	}
	rest, _ := splitMarker(live.At("metadata.xml").Str())
	for _, name := range []string{"id", "autostart", "running"} {
		live = live.With(name, s.definition.Attr(name))
	}
	if rest == "" {
		return withPluggedIn(live).With("metadata", tree.NullValue), nil
	}
	return withPluggedIn(live).SetAt("metadata.xml", tree.StringValue(rest)), nil
}

// List tells of every domain what the host's lists tell.
func (k *Kind) List(ctx context.Context, _ tree.Value) ([]tree.Value, error) {
	all, err := k.host().Domains(ctx)
	if err != nil {
		return nil, err
	}
	is := map[virt.DomainFilter]map[string]bool{virt.OnlyActive: {}, virt.OnlyAutostart: {}, virt.OnlyPersistent: {}, virt.OnlyManagedSave: {}}
	for filter, uuids := range is {
		some, err := k.host().Domains(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			uuids[d.UUID()] = true
		}
	}
	slices.SortFunc(all, func(a, b *virt.Domain) int { return strings.Compare(a.Name(), b.Name()) })
	out := make([]tree.Value, len(all))
	for i, d := range all {
		flag := func(filter virt.DomainFilter) tree.Value { return tree.BoolValue(is[filter][d.UUID()]) }
		out[i] = tree.ObjectValue(map[string]tree.Value{
			"name": tree.StringValue(d.Name()), "uuid": tree.StringValue(d.UUID()),
			"running": flag(virt.OnlyActive), "autostart": flag(virt.OnlyAutostart),
			"status": tree.ObjectValue(map[string]tree.Value{"persistent": flag(virt.OnlyPersistent), "managed_save": flag(virt.OnlyManagedSave)}),
		})
	}
	return out, nil
}
