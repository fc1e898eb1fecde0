package domain_test

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// What others do to guest and daemon in the middle of an update.

// meanwhile makes an update during which something happens right before a call.
func (b *bench) meanwhile(t *testing.T, config tree.Value, before virttest.Match, happens func()) error {
	t.Helper()
	u, done := b.plan(t, config), false
	defer virttest.Install(b.host, virttest.Observe(virttest.Nth(1, before), func(virt.Call) {
		done = true
		happens()
	}))()
	_, err := b.k.Update(context.Background(), u)
	if !done {
		t.Fatal("the call before which something was to happen was never made")
	}
	return err
}

// errorSays fails the test unless the error has these parts.
func errorSays(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil || !lab.Says(parts...).MatchString(err.Error()) {
		t.Errorf("the error is %v, want %q", err, parts)
	}
}

// titled is a configuration with a title, and a disk that is plugged in.
func (b *bench) titled(t testing.TB, more ...string) tree.Value {
	t.Helper()
	file := lab.Host(t).PoolDir() + "/" + b.name + "-vdb.raw"
	return b.config(t, append([]string{"<title>before", "<title>after", "<devices>",
		"<devices><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='" + file + "'/><target dev='vdb' bus='virtio'/></disk>"}, more...)...)
}

func newTitled(t *testing.T, name string) *bench {
	t.Helper()
	image(t, name+"-vdb.raw")
	ports := "<controller type='pci' index='0' model='pcie-root'/>" + strings.Repeat("<controller type='pci' model='pcie-root-port'/>", 6)
	b := newBench(t, name, "<title>before</title><memory unit='MiB'>128</memory><vcpu>1</vcpu>", ports)
	lab.Observe(t, name)
	b.settle(t, b.titled(t))
	b.settle(t, b.config(t))
	b.definition, b.guest = definitions(t, []string{name})[name], b.shown(t)
	return b
}

// isAsBefore fails the test unless the definition is, and the guest runs it.
func (b *bench) isAsBefore(t testing.TB) {
	t.Helper()
	if now := definitions(t, []string{b.name})[b.name]; now != b.definition {
		t.Errorf("the definition differs:\n%s", difference(b.definition, now))
	}
	if left := b.plan(t, b.config(t)); len(left.Changes)+len(left.Live)+len(left.Waiting) > 0 {
		t.Errorf("the guest is not as its definition: %v, %v, %v", left.Changes, left.Live, left.Waiting)
	}
	state(t, b.name, "running")
}

func TestAccFailures_somebodyElseDuringAnUpdate(t *testing.T) {
	acctest.Case(t, "a guest that somebody stops, or stops and starts, in the middle of a live update: the old definition is in force, and the error says what became of the guest")
	const name = "interfered"
	b := newTitled(t, name)
	attach := virttest.Op("attach a device to domain")

	err := b.meanwhile(t, b.titled(t), attach, func() { lab.Virsh(t, "destroy", name) })
	errorSays(t, err, "not running", "The previous definition is in force again", "The guest does not run any more")
	lab.Virsh(t, "start", name)
	b.isAsBefore(t)

	err = b.meanwhile(t, b.titled(t), attach, func() { virsh("destroy $", "start $")(t, name) })
	errorSays(t, err, "vdb", "The previous definition is in force again", "The guest was started anew meanwhile", "status.pending")
	state(t, name, "running")
	if now := definitions(t, []string{name})[name]; now != b.definition {
		t.Errorf("the definition differs:\n%s", difference(b.definition, now))
	}
	lab.Observe(t, name)
	b.settle(t, b.titled(t))
	b.settle(t, b.config(t))
}
