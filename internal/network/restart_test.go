package network

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// A network that was stopped and cannot be undefined is started again.
func TestRemoveStartsANetworkAgain(t *testing.T) {
	ctx := context.Background()
	h := virt.NewHost(virt.Options{URI: "test:///default"})
	if err := h.Connect(ctx); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	defer func() { _ = h.Close() }()
	net, err := h.DefineNetwork(ctx, "<network><name>kept</name><bridge name='virbr9'/></network>")
	if err == nil {
		err = net.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &sight{net: net, name: "kept", active: true, persistent: true}
	for says, broken := range map[string][]string{
		"The network was started again":                                     {"undefine network"},
		"could not be started again (start network \"kept\": access denied": {"undefine network", "start network"},
	} {
		var remove []func()
		for _, op := range broken {
			remove = append(remove, virttest.Install(h, virttest.Fail(virttest.Op(op), virttest.PermissionDenied)))
		}
		err := s.remove(ctx)
		for _, f := range remove {
			f()
		}
		if err == nil || !strings.Contains(err.Error(), "undefine network") || !strings.Contains(err.Error(), says) {
			t.Errorf("it does not say %q: %v", says, err)
		}
		active, err := net.IsActive(ctx)
		if err != nil || active != (len(broken) == 1) {
			t.Errorf("%q: started: %v, %v", broken, active, err)
		}
		if !active {
			if err := net.Start(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.remove(ctx); err != nil {
		t.Error(err)
	}
	if _, err := h.LookupNetwork(ctx, net.UUID()); !virt.IsNotFound(err) {
		t.Errorf("the network is still there: %v", err)
	}
}
