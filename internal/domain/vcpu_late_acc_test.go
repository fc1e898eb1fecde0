package domain

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// No emulated guest is asked to let go of a CPU, and the test host has only such:
// here it is libvirt's own test driver, whose answers are replaced by those that
// libvirt gives of a guest on KVM.

// cpuGuest is a guest with three CPUs, two of which can be taken out.
func cpuGuest(ctx context.Context, t *testing.T) (*Kind, *sight) {
	t.Helper()
	file := t.TempDir() + "/host.xml"
	text := `<node><domain type="test"><name>many</name><memory>1024</memory><vcpu current="3">4</vcpu><vcpus>` +
		`<vcpu id="0" enabled="yes" hotpluggable="no" order="1"/><vcpu id="1" enabled="yes" hotpluggable="yes" order="2"/>` +
		`<vcpu id="2" enabled="yes" hotpluggable="yes" order="3"/><vcpu id="3" enabled="no" hotpluggable="yes"/></vcpus><os><type>hvm</type></os></domain></node>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host := virt.NewHost(virt.Options{URI: "test://" + file})
	if err := host.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	k := New(func() *virt.Host { return host })
	before, err := k.look(ctx, "many")
	if err != nil {
		t.Fatal(err)
	}
	if n := pluggedIn(before.running()); n != 3 || !before.active() {
		t.Fatalf("the guest has %d CPUs, and is active: %v", n, before.active())
	}
	return k, before
}

func TestAccDomain_cpusThatLeave(t *testing.T) {
	acctest.Case(t, "a guest that can let go of CPUs is waited for, also when libvirt gives up waiting; one that does not, or that libvirt only says to have, is an error, with nothing to be taken back")
	setCPUs := virttest.Op("set the vCPUs of domain")
	gaveUp := virttest.Coded(virt.ErrOperationTimeout, "vcpu unplug request timed out. Unplug result must be manually inspected in the domain")
	for name, c := range map[string]struct {
		hook   func(follow func()) virt.Hook
		left   int64 // CPUs that the guest has in the end
		waited bool  // the whole time
		says   []string
	}{
		"at once":                             {func(func()) virt.Hook { return virt.Hook{} }, 1, false, nil},
		"and libvirt gave up a moment before": {func(func()) virt.Hook { return virttest.FailAfter(setCPUs, gaveUp) }, 1, false, nil},
		"seconds after libvirt gave up": {func(follow func()) virt.Hook {
			return virttest.Fail(virttest.Nth(1, setCPUs), func(c virt.Call) error {
				time.AfterFunc(2*time.Second, follow)
				return gaveUp(c)
			})
		}, 1, false, nil},
		"never": {func(func()) virt.Hook { return virttest.Fail(setCPUs, gaveUp) }, 3, true, []string{
			"the guest did not let go of its CPUs within 20s: it has 3, not 1", "vcpu unplug request timed out",
		}},
		"never, and libvirt says that it did": {func(func()) virt.Hook { return virttest.Instead(setCPUs, nil) }, 3, true, []string{
			"the guest did not let go of its CPUs within 20s: it has 3, not 1",
		}},
		"never, for another reason": {func(func()) virt.Hook { return virttest.Fail(setCPUs, virttest.Internal("no such CPU")) }, 3, false, []string{"no such CPU"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			k, before := cpuGuest(ctx, t)
			to := change.Change{Path: tree.Root.Attr("vcpu_current"), Desired: tree.IntValue(1), Actual: tree.IntValue(3)}
			if class, why := vcpuRule(to, situation{active: true, guest: before.running()}); class != change.ClassLive {
				t.Fatalf("the rule says %v: %s", class, why)
			}
			a := &apply{
				k: k, before: before, wanted: before.definition.With("vcpu_current", tree.IntValue(1)), live: []change.Change{to},
				Undo: kind.Undo{Lost: virt.IsUnreachable},
			}
			remove := virttest.Install(k.host(), c.hook(func() {
				if err := before.dom.SetVcpus(ctx, 1, virt.AffectLive); err != nil {
					t.Error(err)
				}
			}))
			began := time.Now()
			err := plugCPUs(ctx, a)
			if (err != nil) != (c.says != nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %q, without %q", err, part)
				}
			}
			if waited := time.Since(began) >= unplugTime; waited != c.waited {
				t.Errorf("it took %s", time.Since(began))
			}
			now, lookErr := k.look(ctx, "many")
			if lookErr != nil {
				t.Fatal(lookErr)
			}
			if n := pluggedIn(now.running()); n != c.left {
				t.Errorf("the guest has %d CPUs, want %d", n, c.left)
			}
			remove()
			if kept := a.TakeBack(ctx); len(kept) > 0 {
				t.Errorf("this is not taken back: %q", kept)
			}
			if now, lookErr = k.look(ctx, "many"); lookErr != nil || pluggedIn(now.running()) != 3 {
				t.Errorf("when all is taken back, the guest has %d CPUs: %v", pluggedIn(now.running()), lookErr)
			}
		})
	}
}
