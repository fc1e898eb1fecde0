package virt_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestViewAsksOnce(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	pool := makePool(t, h, "viewed")
	try(t, pool.Start(ctx))
	for i := range 5 {
		got(pool.CreateVolume(ctx, volumeXML(fmt.Sprintf("v%d", i), 1, ""), virt.CreateFlags{}))(t)
	}
	v := h.View()
	rec := virttest.Record(h)
	ask := func() {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				networks, err := v.Networks(ctx)
				pools, perr := v.Pools(ctx)
				links, lerr := v.NetworkLinks(ctx, "default")
				if err != nil || perr != nil || lerr != nil || !networks["default"].Active || pools["viewed"].Target != "/viewed" || links.Bridge != "" {
					t.Errorf("got %v %v %v, %v %v %v", networks, pools, links, err, perr, lerr)
				}
				if f := v.File(ctx, fmt.Sprintf("/viewed/v%d", i%5)); f != virt.Present {
					t.Errorf("a volume is %v", f)
				}
				if f := v.Volume(ctx, "viewed", fmt.Sprintf("v%d", i%5)); f != virt.Present {
					t.Errorf("a volume is %v", f)
				}
			})
		}
		all.Wait()
	}
	count := func(op string) int { return len(rec.Matching(virttest.Op(op))) }
	ask()
	lists, documents := count("list networks")+count("list pools")+count("list the volumes of pool"), count("read the XML of volume")
	if lists != 3 || documents != 10 {
		t.Errorf("%d lists and %d looks at volumes, want 3 and one for each of 5 volumes and way: %v", lists, documents, rec.Calls())
	}
	before := len(rec.Calls())
	ask()
	d := define(t, h, "unrelated")
	try(t, d.SetAutostart(ctx, true))
	ask()
	if n := len(rec.Calls()); n > before+5 {
		t.Errorf("asked again after a change of a domain: %v", rec.Calls()[before:])
	}
	rec.Reset()
	try(t, got(h.LookupNetworkByName(ctx, "default"))(t).SetAutostart(ctx, true))
	ask()
	if count("list networks") != 1 || count("list pools") != 1 {
		t.Errorf("not asked again, once, after a change of a network: %v", rec.Calls())
	}
	try(t, got(pool.LookupVolume(ctx, "v0"))(t).Delete(ctx, virt.DeleteFlags{}))
	if f := v.Volume(ctx, "viewed", "v0"); f != virt.Gone {
		t.Errorf("a volume that was deleted is %v", f)
	}
}

func TestViewOfStandings(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	off := makePool(t, h, "off")
	on := makePool(t, h, "on")
	try(t, on.Start(ctx))
	try(t, on.SetAutostart(ctx, true))
	net := got(h.DefineNetwork(ctx, `<network><name>off</name><portgroup name="a"/></network>`))(t)
	t.Cleanup(func() { _ = net.Undefine(ctx) })
	pools := got(h.View().Pools(ctx))(t)
	networks := got(h.View().Networks(ctx))(t)
	for what, c := range map[string]struct{ got, want virt.Standing }{
		off.Name():              {pools["off"].Standing, virt.Standing{Persistent: true}},
		on.Name():               {pools["on"].Standing, virt.Standing{Active: true, Autostart: true, Persistent: true}},
		"network " + net.Name(): {networks["off"].Standing, virt.Standing{Persistent: true}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, c.got, c.want)
		}
	}
	if f := h.View().Volume(ctx, "off", "v"); f != virt.Unknown {
		t.Errorf("of a pool that is not active something is known: %v", f)
	}
	if _, err := h.View().NetworkLinks(ctx, "nobody"); err == nil {
		t.Error("no error of a network that does not exist")
	}
}

// Whatever goes wrong, nothing is said to be gone.
func TestViewIsSilentOnErrors(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	pool := makePool(t, h, "silent")
	try(t, pool.Start(ctx))
	got(pool.CreateVolume(ctx, volumeXML("there", 1, ""), virt.CreateFlags{}))(t)
	for name, answer := range map[string]virttest.Answer{
		"denied": virttest.PermissionDenied, "lost": virttest.ConnectionLost, "internal": virttest.Internal("x"),
		"system": virttest.Coded(virt.ErrSystem, "Too many open files"),
	} {
		for _, op := range []string{
			"list pools", "list the volumes of pool", "read the XML of volume", "read the XML of pool", "read the head of file", "ask for the versions of",
		} {
			h := fake(t) // with a view of its own
			remove := virttest.Install(h, virttest.Fail(virttest.Op(op), answer))
			v := h.View()
			for _, file := range []string{"/silent/there", "relative", ""} {
				if f := v.File(ctx, file); f == virt.Gone {
					t.Errorf("%s, %s: %q is gone", name, op, file)
				}
			}
			if f := v.Volume(ctx, "silent", "there"); f == virt.Gone {
				t.Errorf("%s, %s: a volume is gone", name, op)
			}
			if m := v.MissingBelow(ctx, "/silent/there", "qcow2"); m != "" {
				t.Errorf("%s, %s: %s is gone", name, op, m)
			}
			remove()
		}
		h := fake(t)
		remove := virttest.Install(h, virttest.Fail(virttest.Reads, answer))
		v := h.View()
		_, networks := v.Networks(ctx)
		_, filters := v.Filters(ctx)
		_, devices := v.NodeDevices(ctx)
		_, usb := v.USBDevices(ctx)
		lacks, link := v.LacksLink(ctx, "br0")
		if networks == nil || filters == nil || devices == nil || usb == nil || link == nil || lacks || v.Offers(ctx, virt.Offer{}) == nil {
			t.Errorf("%s: an answer in spite of the error", name)
		}
		remove()
	}
}

// Without a daemon that opens files, a file is gone only from a directory that
// is seen.
func TestViewOfADaemonThatOpensNothing(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	defer virttest.Install(h, virttest.Fail(virttest.Op("read the head of file"), virttest.Coded(virt.ErrNoSupport, "this function is not supported by the connection driver")))()
	dir := t.TempDir()
	try(t, os.WriteFile(dir+"/there", nil, 0o600))
	for name, want := range map[string]virt.Presence{
		dir + "/there": virt.Present, dir + "/gone": virt.Gone, dir: virt.Present, dir + "/no/gone": virt.Unknown, dir + "/there/gone": virt.Unknown, "gone": virt.Unknown,
	} {
		if f := h.View().File(ctx, name); f != want {
			t.Errorf("%s: %v, want %v", name, f, want)
		}
	}
}

func TestViewBuildsNothingWithoutQEMU(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	const document = "<domain type='test'><name>d</name><devices><interface type='hostdev'/></devices></domain>"
	if err := h.View().Builds(ctx, document); !virt.HasCode(err, virt.ErrNoSupport) {
		t.Errorf("a driver that starts no QEMU: %v", err)
	}
	rec := virttest.Record(h)
	if err := h.View().Builds(ctx, "<domain"); err == nil || len(rec.Calls()) > 0 {
		t.Errorf("a broken document: %v, %v", err, rec.Calls())
	}
}
