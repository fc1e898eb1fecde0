package virt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// An agent that hangs holds libvirt's call for ever.
func TestAddressesAreNotWaitedForLonger(t *testing.T) {
	h := fake(t)
	d := define(t, h, "hanging")
	hold, ended := make(chan struct{}), make(chan struct{})
	remove := virttest.Install(h, virttest.Observe(virttest.Op("read addresses of domain"), func(virt.Call) { <-hold; close(ended) }))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := d.InterfaceAddresses(ctx, virt.AddressAgent) // which ends before the call does
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	want(t, err, `read addresses of domain "hanging": no answer`)
	remove()
	// The connection of the call that was given up is not missed.
	if _, err := d.IsActive(context.Background()); err != nil {
		t.Error(err)
	}
	close(hold)
	<-ended
}

func TestAddressSources(t *testing.T) {
	if got := fmt.Sprint(virt.AddressLease, virt.AddressAgent, virt.AddressARP); got != "lease agent arp" {
		t.Errorf("got %s", got)
	}
}
