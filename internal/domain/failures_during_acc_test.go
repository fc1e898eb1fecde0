package domain_test

import (
	"context"
	"strings"
	"testing"
	"time"

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

func TestAccFailures_daemonDuringAnUpdate(t *testing.T) {
	acctest.Case(t, "a daemon that restarts, is away for some seconds, or does not come back in the middle of an update: all is as before, or the error names each step that is not, and the guest is untouched")
	const name = "deserted"
	b := newTitled(t, name)
	guest := lab.Observe(t, name)
	for n := 1; n <= 3; n++ { // the definition, the title of the guest, its disk
		err := b.meanwhile(t, b.titled(t), virttest.Nth(n, virttest.Writes), func() {
			if err := lab.Host(t).RestartDaemon(context.Background()); err != nil {
				t.Error(err)
			}
		})
		errorSays(t, err, "was lost", "The previous definition is in force again, and what ran runs")
		b.isAsBefore(t)
		t.Logf("failure | the daemon restarts before write %d | as before", n)
	}

	// gone is a daemon that answers nothing from the nth write on, for a time.
	gone := func(n int, away time.Duration) error {
		var until time.Time
		nth := virttest.Nth(n, virttest.Writes)
		u := b.plan(t, b.titled(t))
		defer virttest.Install(b.host, virttest.Fail(func(c virt.Call) bool {
			if nth(c) {
				until = time.Now().Add(away)
			}
			return time.Now().Before(until)
		}, virttest.ConnectionLost))()
		_, err := b.k.Update(context.Background(), u)
		return err
	}
	for n := 1; n <= 3; n++ {
		errorSays(t, gone(n, 3*time.Second), "was lost", "The previous definition is in force again, and what ran runs")
		b.isAsBefore(t)
		t.Logf("failure | the daemon is away for 3 s from write %d on | as before", n)
	}
	errorSays(t, gone(3, time.Hour), "was lost", "Some of it could not be taken back (", "set metadata of domain", "define domain", "compare `virsh dumpxml --inactive deserted`", "read deserted back")
	t.Log("failure | the daemon is gone for good from write 3 on | the error names what is left")
	guest.Untouched(t, name)
	b.settle(t, b.titled(t))
	b.settle(t, b.config(t))
	guest.Untouched(t, name)
}

func TestAccFailures_somebodyElseDuringARestart(t *testing.T) {
	acctest.Case(t, "a guest that powers off between timeout and hard stop, is stopped by somebody while it is asked to, or is started by somebody before the restart does: the restart is done all the same")
	b := newTitled(t, "hurried")
	restart := b.titled(t, "<memory unit='KiB'>131072", "<memory unit='KiB'>163840", "<currentMemory unit='KiB'>131072", "<currentMemory unit='KiB'>163840").
		SetAt("update.allow", tree.StringValue("restart")).SetAt("update.shutdown.timeout", tree.IntValue(1)).SetAt("update.shutdown.force", tree.BoolValue(true))
	cases := []struct {
		what   string
		before virttest.Match
		does   action
	}{
		{"stopped by somebody while it is asked to shut down", virttest.Op("shut down domain"), virsh("destroy $")},
		{"powered off between timeout and hard stop", virttest.Op("stop domain"), virsh("destroy $")},
		{"started by somebody before the restart does", virttest.Op("start domain"), virsh("start $")},
	}
	for _, c := range cases {
		guest := lab.Observe(t, b.name)
		if err := b.meanwhile(t, restart, c.before, func() { c.does(t, b.name) }); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if again := lab.Observe(t, b.name); again.Report().BootID == guest.Report().BootID {
			t.Fatalf("%s: the guest was never restarted", c.what)
		}
		b.owned = restart
		if left := b.plan(t, restart); len(left.Changes)+len(left.Live)+len(left.Waiting) > 0 {
			t.Fatalf("%s: left to do: %v, %v, %v", c.what, left.Changes, left.Live, left.Waiting)
		}
		t.Logf("failure | %s | the restart is done", c.what)
		b.settle(t, b.config(t).With("update", restart.Attr("update")))
	}
}
