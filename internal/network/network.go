// Package network knows libvirt's virtual networks: what a change to one means
// and how it is made.
//
// A network has a definition and, while it is started, a running form. Entries
// of its DHCP and DNS servers change in both at once, through
// virNetworkUpdate; anything else goes to the definition and waits until the
// network is started again, because restarting it cuts off its guests. That is
// never done here, and neither is undefining: a network keeps its UUID.
package network

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Kind is the kind of object "network".
type Kind struct {
	host     func() *virt.Host
	departed func(mac string) bool // whether it was that of a domain which this process destroyed
	typ      *tree.Type
	rules    *change.Rules
}

var _ kind.Kind = (*Kind)(nil)

// New returns the kind. host is asked at each call.
func New(host func() *virt.Host) *Kind {
	k := &Kind{host: host, departed: func(string) bool { return false }, typ: resourceType()}
	k.rules = &change.Rules{
		Equal: func(pattern string, a, b tree.Value) bool {
			return pattern != "autostart" && pattern != "active" && spec.Network().Equal(pattern, a, b)
		},
		Keys:    keysOf,
		Unit:    func(string) (string, string) { return "", "" },
		Tier:    tier,
		Setting: func(pattern string) bool { return pattern == "protect" || pattern == "change" || pattern == "status" },
		Chosen: func(pattern string) bool {
			return pattern == "id" || pattern == "uuid" || pattern == "bridge.name" || pattern == "active" || pattern == "autostart"
		},
		Sticky: func(pattern string) bool { return pattern == "active" },
		Kept:   func(pattern string) bool { return pattern == "autostart" },

		Alternatives: spec.Network().Alternatives,
	}
	return k
}

// Knowing tells the kind which MACs were those of domains that this process has
// destroyed: their leases outlive them.
func (k *Kind) Knowing(departed func(mac string) bool) *Kind {
	k.departed = departed
	return k
}

// Noun is what people call it.
func (k *Kind) Noun() string { return "network" }

// Type is the whole schema of the resource.
func (k *Kind) Type() *tree.Type { return k.typ }

// Rules are those of the comparison.
func (k *Kind) Rules() *change.Rules { return k.rules }

// Secret says that a path is kept out of records; a network has no secrets.
func (k *Kind) Secret(string) bool { return false }

// NeverUsed is false: guests use a network from its start on.
func (k *Kind) NeverUsed(tree.Value) bool { return false }

// Identity finds the network: its UUID, else its id, which is the same, else
// its name.
func (k *Kind) Identity(state tree.Value) string {
	for _, attr := range []string{"uuid", "id", "name"} {
		if v := state.Attr(attr).Str(); v != "" {
			return v
		}
	}
	return ""
}

func resourceType() *tree.Type {
	root := spec.Network().Type()
	attrs := make([]*tree.Attribute, 0, len(root.Attrs)+6)
	for name, a := range root.Attrs {
		if name == "name" {
			a = &tree.Attribute{Name: name, Type: a.Type, Required: true, Description: a.Description}
		}
		attrs = append(attrs, a)
	}
	reported := func(name string, typ *tree.Type, text string) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: typ, Computed: true, Description: text}
	}
	onHost := func(name, text string) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: tree.BoolType, Optional: true, Computed: true, Description: text}
	}
	attrs = append(attrs,
		reported("id", tree.StringType, "The UUID."),
		onHost("autostart", "Whether the host starts the network when it boots. Read from the host."),
		onHost("active", "Whether the network is started. Unset: it is started at creation and kept as last agreed; one that somebody stopped is started again. `false` stops it, which is refused while running guests are attached."),
		&tree.Attribute{Name: "protect", Type: tree.BoolType, Optional: true, Description: "Refuse to destroy or replace the network. Unset, the provider's `protect` counts (standard: true)."},
		reported("change", kind.ChangeType(), "What the last plan that changed something does. Meaningful where the action is not a no-op."),
		reported("status", tree.ObjectOf(
			reported("state", tree.StringType, "settled, pending (a change waits until the network is started again) or degraded (the definition is missing)."),
			reported("settled", tree.BoolType, "Nothing waits and nothing is missing."),
			reported("active", tree.BoolType, "Whether the network is started."),
			reported("persistent", tree.BoolType, "Whether there is a definition."),
			reported("pending", tree.ListOf(tree.StringType), "Paths in which the started network is older than its definition."),
			reported("last_steps", kind.StepsType(), "What the last apply did, step by step."),
		), "What the host says, as of the last refresh."),
	)
	return tree.ObjectOf(attrs...)
}

// keys are the attributes that the elements of a list are known by, best first.
var keys = map[string][]string{
	"ips[]":                  {"address"},
	"ips[].dhcp.hosts[]":     {"mac", "id", "name", "ip"},
	"ips[].dhcp.ranges[]":    {"start"},
	"dns.host[]":             {"ip"},
	"dns.host[].hostnames[]": {"hostname"},
	"dns.tx_ts[]":            {"name"},
	"dns.forwarders[]":       {"domain", "addr"},
	"port_groups[]":          {"name"},
	"forward.interfaces[]":   {"dev"},
	"routes[]":               {"address"},
	"vlan.tags[]":            {"id"},
}

func keysOf(pattern string, elem tree.Value) []string {
	out := make([]string, len(keys[pattern]))
	for i, attr := range keys[pattern] {
		if v := elem.Attr(attr); v.IsKnown() {
			out[i] = strings.ToLower(spec.Network().Canonical(pattern+"."+attr, strings.Trim(v.String(), `"`)))
		}
	}
	return out
}

func tier(pattern string) change.Tier {
	switch {
	case pattern == "uuid":
		return change.TierLocked
	case strings.HasPrefix(pattern, "ips[].address"), strings.HasPrefix(pattern, "forward"), strings.HasPrefix(pattern, "bridge"):
		return change.TierModification
	}
	return change.TierRoutine
}
