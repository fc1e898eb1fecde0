package virt_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func domainXML(name, more string) string {
	return fmt.Sprintf(`<domain type="test"><name>%s</name><memory>1024</memory><vcpu>1</vcpu><os><type>hvm</type></os>%s</domain>`, name, more)
}

// define makes a domain of the test driver that is gone after the test.
func define(t testing.TB, h *virt.Host, name string) *virt.Domain {
	t.Helper()
	ctx := context.Background()
	d := got(h.DefineDomain(ctx, domainXML(name, ""), virt.DefineFlags{}))(t)
	t.Cleanup(func() {
		_ = d.Destroy(ctx, false)
		if err := d.Undefine(ctx, virt.UndefineFlags{SnapshotsMetadata: true}); err != nil && !virt.IsNotFound(err) {
			t.Error(err)
		}
	})
	return d
}

// Under the race detector: fifty goroutines, one of which closes the
// connections all the time, share one host and one domain.
func TestManyGoroutines(t *testing.T) {
	ctx := context.Background()
	h := open(t, virt.Options{URI: testDriver, MaxCalls: 5})
	keep := fake(t) // the test driver forgets everything when nobody is connected
	try(t, keep.Connect(ctx))
	shared := define(t, h, "shared")
	stop := make(chan struct{})
	var closer sync.WaitGroup
	closer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				_ = h.Close()
			}
		}
	})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprintf("many-%d", i)
			for range 10 {
				d, err := h.DefineDomain(ctx, domainXML(name, ""), virt.DefineFlags{})
				if err == nil {
					err = d.SetAutostart(ctx, true)
				}
				if err == nil {
					_, err = d.XML(ctx, virt.XMLInactive)
				}
				if err == nil {
					err = d.Undefine(ctx, virt.UndefineFlags{})
				}
				if err == nil {
					_, _, err = shared.State(ctx)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	all.Wait()
	close(stop)
	closer.Wait()
	if n := h.Connections(); n > 5 {
		t.Errorf("%d connections are open, at most 5 may be", n)
	}
}

func TestCallsThatOverlapHaveConnectionsOfTheirOwn(t *testing.T) {
	ctx := context.Background()
	h := open(t, virt.Options{URI: testDriver, MaxCalls: 3})
	d := define(t, h, "overlap")
	if n := h.Connections(); n != 1 {
		t.Fatalf("one call after the other opened %d connections", n)
	}
	var now, most atomic.Int32
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			try(t, virt.Long(ctx, d, 60*time.Millisecond, func() {
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
			}, func() { now.Add(-1) }))
		})
	}
	all.Wait()
	if most.Load() != 3 || h.Connections() != 3 {
		t.Errorf("up to %d calls at once on %d connections, want 3 on 3", most.Load(), h.Connections())
	}
}

func TestConnectionOfAFileOfTheTestDriverIsOne(t *testing.T) {
	ctx := context.Background()
	h := open(t, virt.Options{URI: "test://" + got(filepath.Abs("testdata/host.xml"))(t), MaxCalls: 8})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprintf("file-%d", i)
			_, err := h.DefineDomain(ctx, domainXML(name, ""), virt.DefineFlags{})
			try(t, err)
			_, err = h.LookupDomainByName(ctx, name) // on another connection it would not be there
			try(t, err)
		})
	}
	all.Wait()
}

// silent is a daemon that accepts connections and never says a word.
func silent(t testing.TB) (uri string, accepted *atomic.Int32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	try(t, err)
	accepted = &atomic.Int32{}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	return "qemu+unix:///system?socket=" + path, accepted
}

func TestSilentDaemon(t *testing.T) {
	uri, accepted := silent(t)
	h := open(t, virt.Options{URI: uri})
	h.SetPatience(5*time.Second, 400*time.Millisecond, time.Second)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			want(t, second(h.Domains(context.Background())), "list domains", uri, "no answer for 400ms")
		})
	}
	all.Wait()
	if n := accepted.Load(); n != 1 {
		t.Errorf("ten calls made %d attempts to connect, want one together", n)
	}
	// The next call tries again.
	want(t, h.Connect(context.Background()), "no answer")
	if n := accepted.Load(); n != 2 {
		t.Errorf("%d attempts after another call, want 2", n)
	}
}

func TestContextEndsWaiting(t *testing.T) {
	uri, _ := silent(t)
	h := open(t, virt.Options{URI: uri})
	h.SetPatience(time.Hour, time.Hour, time.Hour) // nothing but the context ends it
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := h.Connect(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	try(t, h.Close())
}

func TestContextIsLookedAtBeforeACall(t *testing.T) {
	h := fake(t)
	rec := virttest.Record(h)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := h.DefineDomain(ctx, domainXML("never", ""), virt.DefineFlags{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	want(t, err, `define domain "never"`)
	if calls := rec.Calls(); len(calls) != 0 {
		t.Errorf("it was made all the same: %v", calls)
	}
}

func TestCloseAndOpenAgain(t *testing.T) {
	ctx := context.Background()
	keep := fake(t)
	try(t, keep.Connect(ctx))
	h := fake(t)
	d := define(t, h, "survivor")
	for range 3 {
		try(t, h.Close())
		if n := h.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		// The handle is of the connection that is closed.
		if _, err := d.XML(ctx, 0); err != nil {
			t.Error(err)
		}
	}
	try(t, h.Close())
	try(t, h.Close())
}

func TestCloseLetsCallsFinish(t *testing.T) {
	ctx := context.Background()
	keep := fake(t)
	try(t, keep.Connect(ctx))
	h := fake(t)
	d := define(t, h, "busy")
	begun := make(chan struct{})
	done := make(chan error)
	go func() {
		done <- virt.Long(ctx, d, 100*time.Millisecond, func() { close(begun) }, func() {})
	}()
	<-begun
	try(t, h.Close())
	try(t, <-done)
	try(t, second(d.Autostart(ctx)))
}

func TestVersions(t *testing.T) {
	h := fake(t)
	v := got(h.Versions(context.Background()))(t)
	if v.Library < 1000000 || v.Daemon != v.Library || v.Type != "TEST" || v.HostName == "" || v.URI != testDriver {
		t.Errorf("got %+v", v)
	}
	if got := virt.Version(9002013).String(); got != "9.2.13" {
		t.Errorf("got %s", got)
	}
	xml := got(h.Capabilities(context.Background()))(t)
	if !containsAny(xml, "<capabilities>") {
		t.Errorf("got %s", xml)
	}
}
