package virt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestHooks(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "hooked")
	var trace []string
	hook := func(name string, before error) virt.Hook {
		return virt.Hook{
			Before: func(c virt.Call) error { trace = append(trace, name+" before "+c.String()); return before },
			After: func(c virt.Call, err error) error {
				trace = append(trace, fmt.Sprintf("%s after: %v", name, err))
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				return nil
			},
		}
	}
	fault := errors.New("fault")
	first, second := h.AddHook(hook("first", fault)), h.AddHook(hook("second", nil))
	err := d.SetAutostart(ctx, true)
	if !errors.Is(err, fault) || err.Error() != "first: second: fault" {
		t.Errorf("got %v", err)
	}
	if want := []string{
		`first before set autostart of domain "hooked"`, `second before set autostart of domain "hooked"`,
		"second after: fault", "first after: second: fault",
	}; !slices.Equal(trace, want) {
		t.Errorf("got %q\nwant %q", trace, want)
	}
	first()
	first() // a second time does nothing
	if on := got(d.Autostart(ctx))(t); on {
		t.Error("the call was made although a hook forbade it")
	}
	second()
	trace = nil
	try(t, d.SetAutostart(ctx, true))
	if len(trace) != 0 {
		t.Errorf("removed hooks still see calls: %q", trace)
	}
}

func TestFail(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "web")
	set := virttest.Op("set autostart of domain")

	remove := virttest.Install(h, virttest.Fail(virttest.And(set, virttest.On("web")), virttest.PermissionDenied))
	if err := d.SetAutostart(ctx, true); !virt.HasCode(err, virt.ErrAccessDenied) || virt.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	remove()
	if got(d.Autostart(ctx))(t) {
		t.Error("Fail made the call")
	}

	remove = virttest.Install(h, virttest.FailAfter(set, virttest.ConnectionLost))
	if err := d.SetAutostart(ctx, true); !virt.IsLost(err) || virt.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	remove()
	if !got(d.Autostart(ctx))(t) {
		t.Error("FailAfter did not make the call")
	}

	remove = virttest.Install(h, virttest.Instead(virttest.And(set, virttest.Nth(1, virttest.Writes)), nil))
	try(t, d.SetAutostart(ctx, false))
	if !got(d.Autostart(ctx))(t) {
		t.Error("Instead made the call")
	}
	try(t, d.SetAutostart(ctx, false)) // the second is no match
	if got(d.Autostart(ctx))(t) {
		t.Error("Instead prevents what it does not match")
	}
	remove()

	defer virttest.Install(h, virttest.Instead(virttest.Op("rename domain"), func(c virt.Call) {
		try(t, d.SetAutostart(ctx, c.Object == "web"))
	}))()
	try(t, d.Rename(ctx, "other"))
	if got(h.LookupDomainByName(ctx, "web"))(t); !got(d.Autostart(ctx))(t) {
		t.Error("Instead does not do the other thing")
	}

	remove = virttest.Install(h, virttest.Fail(virttest.Nth(2, virttest.Writes), virttest.Internal("boom")))
	try(t, d.SetAutostart(ctx, false))
	want(t, d.Start(ctx, virt.StartFlags{}), `start domain "web"`, "internal error: boom")
	try(t, d.Start(ctx, virt.StartFlags{}))
	remove()
}

// What virttest answers must be what libvirt answers, or tests prove nothing.
// The test driver has texts of its own; an acceptance case compares those.
func TestNoSuchObject(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	const nobody = "a7a1b2c3-0000-4000-8000-000000000000"
	pool := got(h.LookupPoolByName(ctx, "default-pool"))(t)
	for name, look := range map[string]func() error{
		"domain":  func() error { return second(h.LookupDomain(ctx, nobody)) },
		"network": func() error { return second(h.LookupNetwork(ctx, nobody)) },
		"pool":    func() error { return second(h.LookupPool(ctx, nobody)) },
		"volume":  func() error { return second(pool.LookupVolume(ctx, nobody)) },
	} {
		genuine := look()
		remove := virttest.Install(h, virttest.Fail(virttest.Lookups, virttest.NoSuchObject))
		injected := look()
		remove()
		var r, i *virt.Error
		if !errors.As(genuine, &r) || !errors.As(injected, &i) {
			t.Fatalf("%s: %v, %v", name, genuine, injected)
		}
		if !virt.IsNotFound(genuine) || r.Code != i.Code {
			t.Errorf("%s: libvirt answers %d (%v), virttest %d", name, r.Code, genuine, i.Code)
		}
	}
}

func TestRecord(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	d := define(t, h, "watched")
	rec := virttest.Record(h)
	got(h.LookupDomain(ctx, d.UUID()))(t)
	got(d.XML(ctx, 0))(t)
	if w := rec.Writes(); len(w) != 0 {
		t.Errorf("reading wrote: %v", w)
	}
	remove := virttest.Install(h, virttest.Fail(virttest.Writes, virttest.ReadOnly))
	if err := d.Rename(ctx, "other"); !virt.HasCode(err, virt.ErrOperationDenied) {
		t.Errorf("got %v", err)
	}
	remove()
	if w, want := rec.Writes(), []virt.Call{{Op: "rename domain", Object: "watched", Write: true}}; !slices.Equal(w, want) {
		t.Errorf("got %v, want %v", w, want)
	}
	if all := rec.Calls(); len(all) != 3 || all[0].Op != "look up domain" || all[0].Object != d.UUID() {
		t.Errorf("got %v", all)
	}
	rec.Reset()
	rec.Stop()
	got(d.XML(ctx, 0))(t)
	if all := rec.Calls(); len(all) != 0 {
		t.Errorf("it goes on after Stop: %v", all)
	}
}

func TestBusyPoolIsWaitedFor(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	pool := got(h.LookupPoolByName(ctx, "default-pool"))(t)
	refresh := virttest.Op("refresh pool")

	rec := virttest.Record(h)
	for n := range 3 { // busy twice, then free
		defer virttest.Install(h, virttest.Fail(virttest.And(virttest.Nth(n+1, refresh), func(virt.Call) bool { return n < 2 }), virttest.PoolBusy))()
	}
	try(t, pool.Refresh(ctx))
	if n := len(rec.Writes()); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
}

func TestBusyPoolHasALimit(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	h.SetPatience(5*time.Second, time.Second, 300*time.Millisecond)
	pool := got(h.LookupPoolByName(ctx, "default-pool"))(t)
	defer virttest.Install(h, virttest.Fail(virttest.Op("refresh pool"), virttest.PoolBusy))()
	err := pool.Refresh(ctx)
	want(t, err, `refresh pool "default-pool"`, "asynchronous jobs", "300ms")
	if !virt.HasCode(err, virt.ErrInternal) {
		t.Errorf("the code is lost: %v", err)
	}
	h.SetPatience(5*time.Second, time.Second, time.Hour)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err = pool.Refresh(short)
	if !errors.Is(err, context.DeadlineExceeded) || !virt.HasCode(err, virt.ErrInternal) {
		t.Errorf("the context does not end the waiting, or hides its reason: %v", err)
	}
}

func TestOtherFailuresOfAPoolAreNotRepeated(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	pool := got(h.LookupPoolByName(ctx, "default-pool"))(t)
	rec := virttest.Record(h)
	for _, answer := range []virttest.Answer{
		virttest.Internal("out of space"), virttest.PoolInactive, virttest.NoSuchPool, virttest.ConnectionLost,
		// The words alone are not enough: the code says whether libvirt refused.
		virttest.Coded(virt.ErrSystem, "pool has asynchronous jobs running"),
	} {
		rec.Reset()
		remove := virttest.Install(h, virttest.Fail(virttest.Op("refresh pool"), answer))
		if err := pool.Refresh(ctx); err == nil {
			t.Error("no error")
		}
		remove()
		if n := len(rec.Writes()); n != 1 {
			t.Errorf("%d attempts, want one", n)
		}
	}
}
