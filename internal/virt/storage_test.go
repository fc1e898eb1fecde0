package virt_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func poolXML(name, path string) string {
	return fmt.Sprintf(`<pool type="dir"><name>%s</name><target><path>%s</path></target></pool>`, name, path)
}

func volumeXML(name string, bytes int, more string) string {
	return fmt.Sprintf(`<volume><name>%s</name><capacity>%d</capacity><allocation>0</allocation>%s</volume>`, name, bytes, more)
}

// makePool makes a pool of the test driver that is gone after the test.
func makePool(t testing.TB, h *virt.Host, name string) *virt.Pool {
	t.Helper()
	ctx := context.Background()
	p := got(h.DefinePool(ctx, poolXML(name, "/"+name)))(t)
	t.Cleanup(func() {
		_ = p.Stop(ctx)
		if err := p.Undefine(ctx); err != nil && !virt.IsNotFound(err) {
			t.Error(err)
		}
	})
	return p
}

func TestPoolLife(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	p := makePool(t, h, "life")
	if got := got(h.LookupPool(ctx, p.UUID()))(t).Name(); got != "life" {
		t.Errorf("got %q", got)
	}
	if got(p.IsActive(ctx))(t) || !got(p.IsPersistent(ctx))(t) || got(p.Autostart(ctx))(t) {
		t.Error("a new pool is not what it should be")
	}
	if i := got(p.Info(ctx))(t); i.State != virt.PoolInactive || i.State.String() != "inactive" {
		t.Errorf("got %+v", i)
	}
	try(t, p.Build(ctx, virt.BuildFlags{}))
	try(t, p.Start(ctx))
	if i := got(p.Info(ctx))(t); i.State != virt.PoolRunning || i.Capacity == 0 || i.Capacity != i.Allocation+i.Available {
		t.Errorf("got %+v", i)
	}
	try(t, p.SetAutostart(ctx, true))
	try(t, p.Refresh(ctx))
	found := false
	for _, other := range got(h.Pools(ctx))(t) {
		found = found || other.UUID() == p.UUID() && got(other.Autostart(ctx))(t)
	}
	if !found {
		t.Error("it is not in the list")
	}
	if !containsAny(got(p.XML(ctx, false))(t), "<name>life</name>") {
		t.Error("another XML")
	}
	if err := p.Undefine(ctx); err == nil {
		t.Error("an active pool was undefined")
	}
	try(t, p.Stop(ctx))
	try(t, p.Delete(ctx))
	try(t, p.Undefine(ctx))
	for what, err := range map[string]error{
		"look-up": second(h.LookupPoolByName(ctx, "life")), "XML": second(p.XML(ctx, false)), "start": p.Start(ctx),
	} {
		if !virt.IsNotFound(err) {
			t.Errorf("%s of a pool that is gone: %v", what, err)
		}
	}
}

func TestVolumeLife(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	p := makePool(t, h, "volumes")
	try(t, p.Build(ctx, virt.BuildFlags{}))
	try(t, p.Start(ctx))
	v := got(p.CreateVolume(ctx, volumeXML("disk", 1<<20, ""), virt.CreateFlags{}))(t)
	if v.Name() != "disk" || v.PoolName() != "volumes" || v.Path() != "/volumes/disk" || v.Key() == "" {
		t.Errorf("got %q %q %q %q", v.Name(), v.PoolName(), v.Path(), v.Key())
	}
	for what, look := range map[string]func() (*virt.Volume, error){
		"key":  func() (*virt.Volume, error) { return h.LookupVolume(ctx, v.Key()) },
		"path": func() (*virt.Volume, error) { return h.LookupVolumeByPath(ctx, v.Path()) },
		"name": func() (*virt.Volume, error) { return p.LookupVolume(ctx, "disk") },
	} {
		same := got(look())(t)
		if same.Key() != v.Key() || same.PoolName() != "volumes" {
			t.Errorf("by %s: %q in %q", what, same.Key(), same.PoolName())
		}
	}
	if i := got(v.Info(ctx))(t); i.Capacity != 1<<20 || i.Type != "file" {
		t.Errorf("got %+v", i)
	}
	_, err := p.CreateVolume(ctx, volumeXML("disk", 1<<20, ""), virt.CreateFlags{})
	want(t, err, `create volume "disk"`, "already exists")
	clone := got(p.CloneVolume(ctx, volumeXML("copy", 1<<20, ""), v, virt.CreateFlags{}))(t)
	if n := len(got(p.Volumes(ctx))(t)); n != 2 {
		t.Errorf("%d volumes, want 2", n)
	}
	try(t, clone.Delete(ctx, virt.DeleteFlags{}))
	if _, err := clone.XML(ctx); !virt.IsNotFound(err) {
		t.Errorf("a deleted volume: %v", err)
	}
	if _, err := p.LookupVolume(ctx, "copy"); !virt.IsNotFound(err) {
		t.Errorf("a deleted volume: %v", err)
	}
	for _, id := range []string{"/volumes/copy", "/elsewhere/copy", "no-path"} {
		if _, err := h.LookupVolume(ctx, id); !virt.IsNotFound(err) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// That a pool is not started says nothing about its volumes, however they are
// asked for.
func TestVolumesOfAStoppedPoolAreNotMissing(t *testing.T) {
	ctx := context.Background()
	h := fake(t)
	p := makePool(t, h, "stopped")
	other := makePool(t, h, "stop") // its target is a prefix of the path, but not of the directories
	try(t, other.Build(ctx, virt.BuildFlags{}))
	try(t, p.Build(ctx, virt.BuildFlags{}))
	try(t, p.Start(ctx))
	v := got(p.CreateVolume(ctx, volumeXML("disk", 1<<20, ""), virt.CreateFlags{}))(t)
	try(t, p.Stop(ctx))
	for what, err := range map[string]error{
		"by name": second(p.LookupVolume(ctx, "disk")), "by key": second(h.LookupVolume(ctx, v.Key())),
		"by path": second(h.LookupVolumeByPath(ctx, "/stopped//disk")), "its XML": second(v.XML(ctx)),
	} {
		want(t, err, "stopped", "not active")
		if virt.IsNotFound(err) || !virt.HasCode(err, virt.ErrOperationInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := h.LookupVolume(ctx, "/elsewhere/disk"); !virt.IsNotFound(err) {
		t.Errorf("a path of no pool: %v", err)
	}
}
