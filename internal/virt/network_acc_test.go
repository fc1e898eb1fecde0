package virt_test

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestAccNetwork_twoSides(t *testing.T) {
	acctest.Case(t, "an element of a network changes in the started network, in the definition, or in both with one call")
	ctx := context.Background()
	h := shared(t)
	n := got(h.DefineNetwork(ctx, `<network><name>sides</name><bridge name="virbr77"/><ip address="192.168.77.1" netmask="255.255.255.0"><dhcp><range start="192.168.77.2" end="192.168.77.9"/></dhcp></ip></network>`))(t)
	defer func() { try(t, n.Stop(ctx)); try(t, n.Undefine(ctx)) }()
	try(t, n.Start(ctx))
	has := func(mac string, live, config bool) {
		t.Helper()
		l, c := strings.Contains(got(n.XML(ctx, false))(t), mac), strings.Contains(got(n.XML(ctx, true))(t), mac)
		if l != live || c != config {
			t.Errorf("%s: live %v, definition %v; want %v, %v", mac, l, c, live, config)
		}
	}
	const a, b, c = `<host mac="52:54:00:00:00:0a" ip="192.168.77.3"/>`, `<host mac="52:54:00:00:00:0b" ip="192.168.77.4"/>`, `<host mac="52:54:00:00:00:0c" ip="192.168.77.5"/>`
	try(t, n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, a))
	try(t, n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, b, virt.AffectLive))
	try(t, n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, c, virt.AffectConfig))
	has("00:0a", true, true)
	has("00:0b", true, false)
	has("00:0c", false, true)
	err := n.Update(ctx, virt.NetworkAddLast, virt.SectionDHCPHost, 0, a)
	if !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("the same entry again: %v", err)
	}
	want(t, err, `update network "sides"`)
	err = n.Update(ctx, virt.NetworkDelete, virt.SectionDHCPHost, 0, b) // only one side has it, so neither changes
	if err == nil {
		t.Error("an entry that the definition does not have was deleted there")
	}
	has("00:0b", true, false)
	if err := n.Start(ctx); !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("a second start: %v", err)
	}
}
