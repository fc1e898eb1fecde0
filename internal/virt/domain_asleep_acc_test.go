package virt_test

import (
	"context"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestAccDomain_asleep(t *testing.T) {
	acctest.Case(t, "a guest's system that sleeps hears neither a button nor a pause, and wakes up in the same QEMU; one that is awake cannot be woken up")
	ctx := context.Background()
	d, _ := machine{top: `<pm><suspend-to-mem enabled="yes"/></pm>`}.boot(t, "sleeper")
	until(t, "the agent is there", time.Minute, func() bool { return second(d.OnlineVcpuCount(ctx)) == nil })
	lab.Virsh(t, "dompmsuspend", "sleeper", "mem")
	is := func(want virt.State) func() bool {
		return func() bool { s, _, err := d.State(ctx); return err == nil && s == want }
	}
	until(t, "it sleeps", time.Minute, is(virt.StatePMSuspended))
	if s, reason, err := d.State(ctx); err != nil || !s.Active() || virt.Reason(s, reason) != "" {
		t.Errorf("it is %s (%d), %v", s, reason, err)
	}
	coded(t, d.Shutdown(ctx, virt.ByACPI), virt.ErrOperationInvalid)
	coded(t, d.Suspend(ctx), virt.ErrOperationInvalid)
	coded(t, d.Resume(ctx), virt.ErrOperationInvalid)
	try(t, d.PMWakeup(ctx))
	until(t, "it is awake", time.Minute, is(virt.StateRunning))
	if s, reason, err := d.State(ctx); err != nil || virt.Reason(s, reason) != "event wakeup" {
		t.Errorf("it is %s (%d), %v", s, reason, err)
	}
	if err := d.PMWakeup(ctx); !virt.HasCode(err, virt.ErrOperationInvalid) && !virt.HasCode(err, virt.ErrInternal) {
		t.Errorf("woken up twice: %v", err)
	}
}
