package domain_test

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// lateOff holds a guest from the moment it was asked to shut down until its time
// is over, and lets it power itself off right before the call that would stop it
// hard. It returns how often that call was made.
func lateOff(t *testing.T, b *bench) (hardStops *atomic.Int32) {
	t.Helper()
	hardStops = &atomic.Int32{}
	machine, err := lab.Host(t).Domain(context.Background(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(machine.PID, s); err != nil {
			t.Errorf("send %s to QEMU: %v", s, err)
		}
	}
	held := atomic.Bool{}
	hold := virt.Hook{After: func(c virt.Call, err error) error {
		if c.Op == "shut down domain" && err == nil && !held.Swap(true) {
			signal(syscall.SIGSTOP)
		}
		return err
	}}
	letGo := virttest.Observe(virttest.Op("stop domain"), func(virt.Call) {
		if hardStops.Add(1) > 1 {
			return
		}
		signal(syscall.SIGCONT)
		for until := time.Now().Add(time.Minute); !strings.HasPrefix(lab.Virsh(t, "domstate", b.name), "shut off"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Error("the guest does not power itself off")
				return
			}
		}
	})
	for _, hook := range []virt.Hook{hold, letGo} {
		t.Cleanup(virttest.Install(b.host, hook))
	}
	return hardStops
}

func TestAccPower_offBetweenTimeoutAndHardStop(t *testing.T) {
	acctest.Case(t, "a guest that powers itself off between its timeout and the hard stop: a planned shutdown, a restart and a destroy find it off, and go on")
	ctx := context.Background()
	begin := func(name string) (*bench, tree.Value, *lab.Guest) {
		b := newBench(t, name, "<title>before</title><memory unit='MiB'>128</memory>", "")
		config := b.config(t, "<title>before<", "<title>after<").SetAt("update.shutdown.timeout", tree.IntValue(1)).SetAt("update.shutdown.force", tree.BoolValue(true))
		return b, config, lab.Observe(t, name)
	}

	b, config, _ := begin("late-off")
	u := b.plan(t, config.With("running", tree.BoolValue(false)))
	stops := lateOff(t, b)
	done, err := b.k.Update(ctx, u)
	if err != nil || u.Effect != change.EffectShutdown || done.Facts.Active || done.Facts.Definition.Attr("title").Str() != "after" {
		t.Errorf("a planned shutdown (%s): %v, active %v, %s", u.Effect, err, done.Facts.Active, done.Facts.Definition.Attr("title"))
	}
	if stops.Load() != 1 {
		t.Errorf("a planned shutdown: %d hard stops", stops.Load())
	}

	b, config, guest := begin("late-restart")
	config = config.SetAt("update.allow", tree.StringValue("restart")).With("memory", tree.IntValue(167772160)).With("current_memory", tree.IntValue(167772160)).With("memory_unit", tree.StringValue("b")).With("current_memory_unit", tree.StringValue("b"))
	u = b.plan(t, config)
	stops = lateOff(t, b)
	done, err = b.k.Update(ctx, u)
	if err != nil || u.Effect != change.EffectRestart || !done.Facts.Active || done.Facts.Definition.Attr("title").Str() != "after" {
		t.Errorf("a restart (%s): %v, active %v, %s", u.Effect, err, done.Facts.Active, done.Facts.Definition.Attr("title"))
	}
	if now := lab.Observe(t, "late-restart"); now.Report().BootID == guest.Report().BootID || now.Report().MemKiB <= guest.Report().MemKiB {
		t.Errorf("a restart: the guest had %+v, and has %+v", guest.Report(), now.Report())
	}
	if stops.Load() != 1 {
		t.Errorf("a restart: %d hard stops", stops.Load())
	}

	b, _, _ = begin("late-destroy")
	u = b.plan(t, b.config(t))
	stops = lateOff(t, b)
	warnings, err := b.k.Delete(ctx, u.Prior.SetAt("destroy.shutdown.timeout", tree.IntValue(1)))
	if err != nil || len(warnings) > 0 || stops.Load() != 1 {
		t.Errorf("a destroy: %v, %v, %d hard stops", err, warnings, stops.Load())
	}
	if list := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(list, "late-destroy") {
		t.Errorf("a destroy leaves\n%s", list)
	}
}
