package domain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// testGuest starts a machine of libvirt's own driver without a hypervisor. What
// it does is seen through two connections: one that a test breaks, and one with
// which somebody else acts.
func testGuest(t *testing.T) (ours, theirs *virt.Domain, host *virt.Host) {
	t.Helper()
	ctx := context.Background()
	var hosts [2]*virt.Host
	for i := range hosts {
		h := virt.NewHost(virt.Options{URI: "test:///default"})
		if err := h.Connect(ctx); err != nil {
			t.Skip("libvirt library missing: " + err.Error())
		}
		t.Cleanup(func() { _ = h.Close() })
		hosts[i] = h
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", ",", "").Replace(t.Name()))
	dom, err := hosts[1].DefineDomain(ctx, fmt.Sprintf(`<domain type="test"><name>%s</name><memory>1024</memory><os><type>hvm</type></os></domain>`, name), virt.DefineFlags{})
	if err == nil {
		err = dom.Start(ctx, virt.StartFlags{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dom.Destroy(ctx, false)
		_ = dom.Undefine(ctx, virt.UndefineFlags{})
	})
	if ours, err = hosts[0].LookupDomain(ctx, dom.UUID()); err != nil {
		t.Fatal(err)
	}
	return ours, dom, hosts[0]
}

// deaf is a guest that is asked to shut down and does nothing.
func deaf() virt.Hook {
	never := errors.New("not carried out")
	return virt.Hook{
		Before: func(c virt.Call) error {
			if c.Op == "shut down domain" {
				return never
			}
			return nil
		},
		After: func(_ virt.Call, err error) error {
			if errors.Is(err, never) {
				return nil
			}
			return err
		},
	}
}

func TestStop(t *testing.T) {
	ctx := context.Background()
	first := func(op string, f func()) virt.Hook {
		return virttest.Observe(virttest.Nth(1, virttest.Op(op)), func(virt.Call) { f() })
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	cases := map[string]struct {
		before   func(t *testing.T, theirs *virt.Domain)             // what somebody does before
		hooks    func(t *testing.T, theirs *virt.Domain) []virt.Hook // what happens meanwhile
		graceful bool
		says     string     // the error, "" for none
		lost     bool       // it is that the connection is
		power    virt.State // in the end
		gone     bool       // it is not even defined then
	}{
		"it runs": {power: virt.StateShutoff},
		"it is off": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Destroy(ctx, false)) },
			hooks: func(t *testing.T, _ *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Observe(virttest.Writes, func(c virt.Call) { t.Errorf("%s: of a guest that is off", c) })}
			}, power: virt.StateShutoff},
		"it is paused": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Suspend(ctx)) }, graceful: true, power: virt.StateShutoff},
		"somebody else resumes it first": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Suspend(ctx)) },
			hooks: func(t *testing.T, theirs *virt.Domain) []virt.Hook {
				return []virt.Hook{first("resume domain", func() { must(t, theirs.Resume(ctx)) })}
			}, graceful: true, power: virt.StateShutoff},
		"it cannot be resumed": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Suspend(ctx)) },
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(virttest.Op("resume domain"), virttest.Internal("it will not"))}
			}, says: "so that it can shut down", power: virt.StatePaused},
		"it goes between two calls": {
			hooks: func(t *testing.T, theirs *virt.Domain) []virt.Hook {
				return []virt.Hook{first("shut down domain", func() { must(t, theirs.Destroy(ctx, false)) })}
			}, graceful: true, power: virt.StateShutoff},
		"it goes for good": {
			before:   func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Undefine(ctx, virt.UndefineFlags{})) },
			graceful: true, gone: true},
		"it is deaf": {
			hooks:    func(*testing.T, *virt.Domain) []virt.Hook { return []virt.Hook{deaf()} },
			graceful: true, says: "did not shut down within 1s", power: virt.StateRunning},
		"it is deaf, and stopped hard": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook { return []virt.Hook{deaf()} }, power: virt.StateShutoff},
		"it goes by itself just before the hard stop": {
			hooks: func(t *testing.T, theirs *virt.Domain) []virt.Hook {
				return []virt.Hook{deaf(), first("stop domain", func() { must(t, theirs.Destroy(ctx, false)) })}
			}, power: virt.StateShutoff},
		"the answer to the hard stop is lost": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{deaf(), virttest.FailAfter(virttest.Op("stop domain"), virttest.ConnectionLost)}
			}, power: virt.StateShutoff},
		"the hard stop is refused": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{deaf(), virttest.Fail(virttest.Op("stop domain"), virttest.PermissionDenied)}
			}, says: "access denied", power: virt.StateRunning},
		"the connection goes with the question": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(virttest.Op("shut down domain"), virttest.ConnectionLost)}
			}, says: "was lost", lost: true, power: virt.StateRunning},
		"the agent does not answer": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{first("shut down domain", func() { time.Sleep(20 * time.Second) })}
			}, graceful: true, power: virt.StateShutoff},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs, host := testGuest(t)
			if c.before != nil {
				c.before(t, theirs)
			}
			if c.hooks != nil {
				for _, hook := range c.hooks(t, theirs) {
					t.Cleanup(virttest.Install(host, hook))
				}
			}
			begin := time.Now()
			err := stop(ctx, ours, ours.Name(), time.Second, c.graceful)
			if took := time.Since(begin); took > 8*time.Second {
				t.Errorf("it took %s", took)
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || virt.IsLost(err) != c.lost {
				t.Errorf("%v, want %q", err, c.says)
			}
			power, _, err := theirs.State(ctx)
			if virt.IsNotFound(err) != c.gone || !c.gone && (err != nil || power != c.power) {
				t.Errorf("in the end it is %s (%v), want %s, gone %v", power, err, c.power, c.gone)
			}
		})
	}
}

// A user who gives up does not wait for the guest.
func TestShutDownIsGivenUp(t *testing.T) {
	ours, _, host := testGuest(t)
	ctx, cancel := context.WithCancel(context.Background())
	var asked atomic.Int32
	t.Cleanup(virttest.Install(host, deaf()))
	t.Cleanup(virttest.Install(host, virttest.Observe(virttest.Op("shut down domain"), func(virt.Call) {
		asked.Add(1)
		cancel()
	})))
	begin := time.Now()
	if err := shutDown(ctx, ours, ours.Name(), time.Hour); !errors.Is(err, context.Canceled) || time.Since(begin) > 5*time.Second || asked.Load() != 1 {
		t.Errorf("%v after %s, asked %d times", err, time.Since(begin), asked.Load())
	}
}

// A start that somebody else made is a start.
func TestStart(t *testing.T) {
	ctx := context.Background()
	ours, theirs, host := testGuest(t)
	// QEMU's driver answers so.
	remove := virttest.Install(host, virttest.Fail(virttest.Op("start domain"), virttest.Coded(virt.ErrOperationInvalid, "domain is already running")))
	if err := start(ctx, ours, tree.NullValue); err != nil {
		t.Errorf("it runs already: %v", err)
	}
	if err := theirs.Destroy(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := start(ctx, ours, tree.NullValue); err == nil {
		t.Error("it is off, and its start was refused")
	}
	remove()
	if err := start(ctx, ours, tree.NullValue); err != nil {
		t.Error(err)
	}
}
