package virt_test

import (
	"context"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestNetworkLife(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	n := got(h.DefineNetwork(ctx, `<network><name>life</name><bridge name="virbr77"/><ip address="192.168.77.1" netmask="255.255.255.0"><dhcp><range start="192.168.77.2" end="192.168.77.9"/></dhcp></ip></network>`))(t)
	t.Cleanup(func() { _ = n.Stop(ctx); _ = n.Undefine(ctx) })
	if got := got(h.LookupNetwork(ctx, n.UUID()))(t).Name(); got != "life" {
		t.Errorf("got %q", got)
	}
	if got := got(h.LookupNetworkByName(ctx, "life"))(t).UUID(); got != n.UUID() {
		t.Errorf("got %q", got)
	}
	if got(n.IsActive(ctx))(t) || !got(n.IsPersistent(ctx))(t) || got(n.Autostart(ctx))(t) {
		t.Error("a new network is not what it should be")
	}
	try(t, n.SetAutostart(ctx, true))
	try(t, n.Start(ctx))
	if !got(n.IsActive(ctx))(t) || !got(n.Autostart(ctx))(t) || got(n.BridgeName(ctx))(t) != "virbr77" {
		t.Error("start, autostart or bridge")
	}
	const host = `<host mac="52:54:00:00:00:01" ip="192.168.77.5"/>`
	try(t, n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, host))
	if !containsAny(got(n.XML(ctx, false))(t), "52:54:00:00:00:01") {
		t.Error("the entry is not there")
	}
	if err := n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, host); !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("the same entry again: %v", err)
	}
	try(t, n.Update(ctx, virt.NetworkDelete, virt.SectionDHCPHost, 0, host))
	found := false
	for _, other := range got(h.Networks(ctx))(t) {
		found = found || other.UUID() == n.UUID()
	}
	if !found {
		t.Error("it is not in the list")
	}
	try(t, n.Stop(ctx))
	try(t, n.Undefine(ctx))
	for what, err := range map[string]error{"look-up": second(h.LookupNetworkByName(ctx, "life")), "XML": second(n.XML(ctx, false)), "start": n.Start(ctx)} {
		if !virt.IsNotFound(err) {
			t.Errorf("%s of a network that is gone: %v", what, err)
		}
	}
}
