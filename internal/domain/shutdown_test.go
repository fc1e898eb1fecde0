package domain

import (
	"context"
	"errors"
	"fmt"
	"os"
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
// which somebody else acts. more is more of its definition.
func testGuest(t *testing.T, more ...string) (ours, theirs *virt.Domain, host *virt.Host) {
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
	dom, err := hosts[1].DefineDomain(ctx, fmt.Sprintf(`<domain type="test"><name>%s</name><memory>1024</memory><os><type>hvm</type></os>%s</domain>`, name, strings.Join(more, "")), virt.DefineFlags{})
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
func deaf() virt.Hook { return pretend(virttest.Op("shut down domain"), func() {}) }

// pretend has calls succeed that are not made, and tells of them.
func pretend(which virttest.Match, tell func()) virt.Hook {
	never := errors.New("not carried out")
	return virt.Hook{
		Before: func(c virt.Call) error {
			if which(c) {
				tell()
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
	// times fails the test unless something happened that often.
	times := func(t *testing.T, least, most int32) (tell func()) {
		var n atomic.Int32
		t.Cleanup(func() {
			if got := n.Load(); got < least || got > most {
				t.Errorf("it happened %d times, want %d to %d", got, least, most)
			}
		})
		return func() { n.Add(1) }
	}
	action, again := virttest.Op("set a lifecycle action of domain"), "<on_poweroff>restart</on_poweroff>"
	cases := map[string]struct {
		more     string                                              // of the definition
		before   func(t *testing.T, theirs *virt.Domain)             // what somebody does before
		hooks    func(t *testing.T, theirs *virt.Domain) []virt.Hook // what happens meanwhile
		wait     time.Duration                                       // a second, if not said
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
			}, graceful: true, says: "so that it can shut down", power: virt.StatePaused},
		"it cannot be resumed, and is stopped hard": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Suspend(ctx)) },
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(virttest.Op("resume domain"), virttest.Internal("it will not"))}
			}, power: virt.StateShutoff},
		"it cannot be resumed just now": {
			before: func(t *testing.T, theirs *virt.Domain) { must(t, theirs.Suspend(ctx)) },
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(virttest.Nth(1, virttest.Op("resume domain")), virttest.Internal("it is being saved"))}
			}, wait: 4 * time.Second, graceful: true, power: virt.StateShutoff},
		"it boots again when it powers off": {
			more: again, hooks: func(t *testing.T, theirs *virt.Domain) []virt.Hook {
				// The driver of the test cannot set it.
				return []virt.Hook{pretend(action, times(t, 1, 1)), first("shut down domain", func() { must(t, theirs.Destroy(ctx, false)) })}
			}, graceful: true, power: virt.StateShutoff},
		"it boots again when it powers off, and is deaf": {
			more: again, hooks: func(t *testing.T, _ *virt.Domain) []virt.Hook {
				return []virt.Hook{deaf(), pretend(action, times(t, 2, 2))} // it is set back
			}, graceful: true, says: "did not shut down within 1s", power: virt.StateRunning},
		"it boots again when it powers off, and nobody may change that": {
			more: again, hooks: func(t *testing.T, _ *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(action, virttest.PermissionDenied), virttest.Observe(virttest.Op("shut down domain"), func(c virt.Call) { t.Errorf("%s: which makes it boot", c) })}
			}, graceful: true, says: `on_poweroff = "restart"`, power: virt.StateRunning},
		"it boots again when it powers off, nobody may change that, and it is stopped hard": {
			more: again, hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{virttest.Fail(action, virttest.PermissionDenied)}
			}, power: virt.StateShutoff},
		"it cannot be asked just now": {
			hooks: func(t *testing.T, _ *virt.Domain) []virt.Hook {
				tell := times(t, 2, 7) // and not all the time
				return []virt.Hook{virttest.Observe(virttest.Op("shut down domain"), func(virt.Call) { tell() }),
					virttest.Fail(virttest.Op("shut down domain"), virttest.Coded(virt.ErrOperationInvalid, "domain is not running"))}
			}, wait: 3 * time.Second, graceful: true, says: "did not shut down within 3s", power: virt.StateRunning},
		"the host has much to do, and the guest hears only the button": {
			hooks: func(*testing.T, *virt.Domain) []virt.Hook {
				return []virt.Hook{pretend(virttest.Nth(1, virttest.Op("shut down domain")), func() {}),
					virttest.Observe(virttest.Nth(2, virttest.Op("read the state of domain")), func(virt.Call) { time.Sleep(2 * time.Second) })}
			}, graceful: true, power: virt.StateShutoff},
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
			hooks: func(t *testing.T, _ *virt.Domain) []virt.Hook {
				over := make(chan struct{})
				t.Cleanup(func() { close(over) })
				return []virt.Hook{first("shut down domain", func() { <-over })}
			}, graceful: true, power: virt.StateShutoff},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs, host := testGuest(t, c.more)
			if c.before != nil {
				c.before(t, theirs)
			}
			if c.hooks != nil {
				for _, hook := range c.hooks(t, theirs) {
					t.Cleanup(virttest.Install(host, hook))
				}
			}
			looks := countLooks(t, host)
			wait := max(c.wait, time.Second)
			err := stop(ctx, ours, ours.Name(), wait, c.graceful)
			if n, most := int(looks.Load()), 5+int(2*wait/lookAgain); n > most {
				t.Errorf("it was looked at %d times, want %d at most", n, most)
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

// countLooks counts how often a guest on its way down is looked at. Between two
// looks there is always the same pause, so that a wait that is too long shows in
// their number, however busy the machine is.
func countLooks(t *testing.T, host *virt.Host) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	t.Cleanup(virttest.Install(host, virttest.Observe(virttest.Op("read the state of domain"), func(virt.Call) { n.Add(1) })))
	return &n
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
	looks := countLooks(t, host)
	if err := shutDown(ctx, ours, ours.Name(), time.Hour); !errors.Is(err, context.Canceled) || looks.Load() > 2 || asked.Load() != 1 {
		t.Errorf("%v after %d looks, asked %d times", err, looks.Load(), asked.Load())
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

// A guest that is on its way down already is not asked, and has its time too.
func TestStopOfOneOnItsWayDown(t *testing.T) {
	ctx := context.Background()
	file := t.TempDir() + "/host.xml"
	text := `<node xmlns:test="http://libvirt.org/schemas/domain/test/1.0"><domain type="test"><name>going</name><memory>1024</memory><os><type>hvm</type></os><test:runstate>4</test:runstate></domain></node>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host := virt.NewHost(virt.Options{URI: "test://" + file})
	if err := host.Connect(ctx); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	t.Cleanup(func() { _ = host.Close() })
	dom, err := host.LookupDomainByName(ctx, "going")
	if err != nil {
		t.Fatal(err)
	}
	if power, _, err := dom.State(ctx); err != nil || power != virt.StateShutdown {
		t.Fatalf("it is %s: %v", power, err)
	}
	asked := virttest.Record(host)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := stop(ctx, dom, "going", time.Second, true); err == nil || !strings.Contains(err.Error(), "did not shut down within 1s") {
		t.Errorf("it never gets there: %v", err)
	}
	if writes := asked.Writes(); len(writes) > 0 {
		t.Errorf("it was asked: %v", writes)
	}
	if err := stop(ctx, dom, "going", time.Second, false); err != nil {
		t.Error(err)
	}
	if power, _, err := dom.State(ctx); err != nil || power != virt.StateShutoff {
		t.Errorf("it is %s: %v", power, err)
	}
}

// A guest that was asked to shut down, and did so only after its time, is started
// again.
func TestBringBackWaits(t *testing.T) {
	ctx := context.Background()
	for what, c := range map[string]struct{ interrupted, slow, goes, back bool }{
		"it was asked, and goes late": {false, true, true, true}, "it was asked, and stays": {false, true, false, true},
		"the user gave up": {true, false, true, true}, "the user gave up, and it stays": {true, false, false, false}, "it was not asked": {false, false, false, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ours, theirs, _ := testGuest(t)
			was, err := theirs.ID(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wait := 2 * time.Second
			if c.goes {
				wait = time.Hour
				time.AfterFunc(time.Second, func() { _ = theirs.Destroy(ctx, false) })
			}
			if err := bringBack(ctx, ours, c.interrupted, c.slow, wait, tree.NullValue); (err == nil) != c.back {
				t.Error(err)
			}
			if id, err := theirs.ID(ctx); err != nil || (id == was) == c.goes {
				t.Errorf("it was number %d and is %d: %v", was, id, err)
			}
		})
	}
}

// Where as many agents are waited for as there may be, the button comes at once.
func TestStopWhileAgentsHang(t *testing.T) {
	ctx := context.Background()
	ours, theirs, host := testGuest(t)
	hangs, goOn := make(chan struct{}), make(chan struct{})
	remove := virttest.Install(host, pretend(virttest.Nth(1, virttest.Op("shut down domain")), func() {
		close(hangs)
		<-goOn
	}))
	answer := ours.AskAgent(ctx)
	<-hangs
	looks := countLooks(t, host)
	if err := stop(ctx, ours, ours.Name(), time.Minute, true); err != nil {
		t.Error(err)
	}
	if n := looks.Load(); n > 5 {
		t.Errorf("it was looked at %d times, as if its agent had been waited for", n)
	}
	if power, _, err := theirs.State(ctx); err != nil || power != virt.StateShutoff {
		t.Errorf("it is %s: %v", power, err)
	}
	close(goOn)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	remove()
	if again := ours.AskAgent(ctx); again == nil {
		t.Error("the place of the one that hung is not given back")
	} else {
		<-again
	}
}
