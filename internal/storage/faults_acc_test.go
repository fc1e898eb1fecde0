package storage_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// connect opens a connection of the test's own, to break calls of.
func connect(t *testing.T) *virt.Host {
	t.Helper()
	h := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func object(attrs map[string]any) tree.Value {
	out := tree.NullValue
	for path, v := range attrs {
		switch v := v.(type) {
		case string:
			out = out.SetAt(path, tree.StringValue(v))
		case int:
			out = out.SetAt(path, tree.IntValue(int64(v)))
		case bool:
			out = out.SetAt(path, tree.BoolValue(v))
		}
	}
	return out
}

// says fails the test unless the error has all the parts.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, wanted one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not say %q: %v", p, err)
		}
	}
}

func TestAccPool_faults(t *testing.T) {
	acctest.Case(t, "wherever the making of a pool breaks, no pool is left; where even that cannot be done, the state has it; a failed update is taken back")
	h := connect(t)
	k := storage.NewPool(func() *virt.Host { return h })
	ctx := context.Background()
	dir := t.TempDir() + "/faulty"
	planned := object(map[string]any{"name": "faulty", "type": "dir", "target.path": dir, "autostart": true})

	for _, op := range []string{"define pool", "build pool", "start pool", "set autostart of pool", "read the XML of pool", "read autostart of pool"} {
		t.Run(op, func(t *testing.T) {
			remove := virttest.Install(h, virttest.Fail(virttest.Nth(1, virttest.Op(op)), virttest.PermissionDenied))
			done, err := k.Create(ctx, planned, planned)
			remove()
			says(t, err, op)
			if done.Exists {
				t.Error("it claims that there is a pool")
			}
			absent(t, "pool-list --all", "faulty")
		})
	}
	t.Run("given up", func(t *testing.T) {
		cancelled, cancel := context.WithCancel(ctx)
		defer virttest.Install(h, virttest.FailAfter(virttest.Op("start pool"), func(virt.Call) error { cancel(); return context.Canceled }))()
		done, err := k.Create(cancelled, planned, planned)
		if err == nil || done.Exists {
			t.Errorf("%+v, %v", done, err)
		}
		absent(t, "pool-list --all", "faulty")
	})
	t.Run("cannot be taken back", func(t *testing.T) {
		remove := virttest.Install(h, virttest.Fail(virttest.Op("start pool"), virttest.PermissionDenied))
		keep := virttest.Install(h, virttest.Fail(virttest.Op("undefine pool"), virttest.PermissionDenied))
		done, err := k.Create(ctx, planned, planned)
		remove()
		keep()
		says(t, err, "start pool", "could not be taken back", "virsh pool-info faulty")
		if !done.Exists || k.Identity(done.Facts.Definition) == "" {
			t.Fatalf("the state would not find it: %+v", done)
		}
		if err := destroy(ctx, k, done.Facts.Definition); err != nil {
			t.Error(err)
		}
		absent(t, "pool-list --all", "faulty")
	})

	done, err := k.Create(ctx, planned, planned)
	if err != nil {
		t.Fatal(err)
	}
	state := done.Facts.Definition
	changed := state.SetAt("features.cow.state", tree.StringValue("no")).With("autostart", tree.BoolValue(false))
	t.Run("update is taken back", func(t *testing.T) {
		remove := virttest.Install(h, virttest.Fail(virttest.Nth(1, virttest.Op("set autostart of pool")), virttest.PermissionDenied))
		done, err := k.Update(ctx, kind.Update{Prior: state, Planned: changed, Config: changed})
		remove()
		says(t, err, "set autostart of pool", "The previous definition is in force again")
		if !done.Exists || !tree.Equal(done.Facts.Definition.With("allocation", tree.NullValue).With("available", tree.NullValue), state.With("allocation", tree.NullValue).With("available", tree.NullValue)) {
			t.Errorf("it is not as it was:\n%s\n%s", state, done.Facts.Definition)
		}
	})
	t.Run("delete", func(t *testing.T) {
		for _, op := range []string{"stop pool", "undefine pool"} {
			remove := virttest.Install(h, virttest.Fail(virttest.Nth(1, virttest.Op(op)), virttest.PermissionDenied))
			says(t, destroy(ctx, k, state), op)
			remove()
			if info := lab.Virsh(t, "pool-info", "faulty"); !strings.Contains(info, "running") {
				t.Errorf("after %q failed, the pool does not run any more:\n%s", op, info)
			}
		}
		says(t, destroy(ctx, k, state.With("name", tree.StringValue("another"))), "it is not the one in the state")
		remove := virttest.Install(h, virttest.Fail(virttest.Op("list domains"), virttest.PermissionDenied))
		says(t, destroy(ctx, k, state), "list domains")
		remove()
		if err := destroy(ctx, k, state); err != nil {
			t.Error(err)
		}
		if err := destroy(ctx, k, state); err != nil {
			t.Errorf("gone already: %v", err)
		}
	})
}

func TestAccVolume_faults(t *testing.T) {
	acctest.Case(t, "wherever the making of a volume breaks, no half volume is left; where even that cannot be done, the message says where it is; a failure is never 'gone'")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	ctx := context.Background()
	dir := vault(t, "faults")
	source := t.TempDir() + "/source"
	if err := os.WriteFile(source, bytes.Repeat([]byte("content "), 100000), 0o600); err != nil {
		t.Fatal(err)
	}
	planned := object(map[string]any{"name": "v", "pool": "faults", "capacity": 1 << 20, "create.content.url": source})
	none := func(t *testing.T) {
		t.Helper()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	}
	for _, op := range []string{"look up pool", "read the XML of pool", "create volume", "upload to volume", "resize volume", "read the XML of volume", "list domains"} {
		for when, make := range map[string]func(virttest.Match, virttest.Answer) virt.Hook{"instead": virttest.Fail, "afterwards": virttest.FailAfter} {
			if op == "create volume" && when == "afterwards" {
				continue // only a lost connection does that: below
			}
			t.Run(op+" "+when, func(t *testing.T) {
				remove := virttest.Install(h, make(virttest.Nth(1, virttest.Op(op)), virttest.PermissionDenied))
				done, err := k.Create(ctx, planned, planned)
				remove()
				says(t, err, op)
				if done.Exists {
					t.Error("it claims that there is a volume")
				}
				none(t)
			})
		}
	}
	t.Run("given up", func(t *testing.T) {
		cancelled, cancel := context.WithCancel(ctx)
		defer virttest.Install(h, virttest.FailAfter(virttest.Op("upload to volume"), func(virt.Call) error { cancel(); return context.Canceled }))()
		done, err := k.Create(cancelled, planned, planned)
		if !errors.Is(err, context.Canceled) || done.Exists {
			t.Errorf("%+v, %v", done, err)
		}
		none(t)
	})
	t.Run("lost while it is made", func(t *testing.T) {
		remove := virttest.Install(h, virttest.FailAfter(virttest.Op("create volume"), virttest.ConnectionLost))
		done, err := k.Create(ctx, planned, planned)
		remove()
		says(t, err, "create volume", "virsh vol-delete v faults")
		if done.Exists {
			t.Error("it claims to know that there is a volume")
		}
		lab.Virsh(t, "vol-delete", "v", "faults")
	})
	t.Run("cannot be deleted", func(t *testing.T) {
		remove := virttest.Install(h, virttest.Fail(virttest.Op("upload to volume"), virttest.PermissionDenied))
		keep := virttest.Install(h, virttest.Fail(virttest.Op("delete volume"), virttest.PermissionDenied))
		_, err := k.Create(ctx, planned, planned)
		remove()
		keep()
		says(t, err, "upload to volume", "is not complete", "virsh vol-delete v faults", dir+"/v")
		lab.Virsh(t, "vol-delete", "v", "faults")
	})

	done, err := k.Create(ctx, planned, planned)
	if err != nil {
		t.Fatal(err)
	}
	state := planned.Known()
	for _, name := range []string{"id", "key", "path"} {
		state = state.With(name, done.Facts.Definition.Attr(name))
	}
	state = state.With("status", done.Facts.Status)
	t.Run("read", func(t *testing.T) {
		for _, op := range []string{"look up pool", "read the state of pool", "look up volume", "read the XML of volume"} {
			for name, answer := range map[string]virttest.Answer{"denied": virttest.PermissionDenied, "lost": virttest.ConnectionLost} {
				remove := virttest.Install(h, virttest.Fail(virttest.Op(op), answer))
				_, err := k.Read(ctx, state)
				remove()
				var gone *kind.GoneError
				if err == nil || errors.As(err, &gone) {
					t.Errorf("%s %s: %v", op, name, err)
				}
			}
		}
	})
	t.Run("update", func(t *testing.T) {
		larger := state.With("capacity", tree.IntValue(2<<20))
		remove := virttest.Install(h, virttest.Fail(virttest.Op("resize volume"), virttest.PermissionDenied))
		done, err := k.Update(ctx, kind.Update{Prior: state, Planned: larger, Config: larger})
		remove()
		says(t, err, "resize volume")
		if n, _ := done.Facts.Definition.Attr("capacity").Uint(); !done.Exists || n != 1<<20 {
			t.Errorf("the state would say %s", done.Facts.Definition)
		}
		smaller := state.With("capacity", tree.IntValue(1<<19)) // what no plan lets through
		_, err = k.Update(ctx, kind.Update{Prior: state, Planned: smaller, Config: smaller})
		says(t, err, `Refusing to shrink volume "v"`)
		if info, err := os.Stat(dir + "/v"); err != nil || info.Size() != 1<<20 {
			t.Errorf("%v, %v", info, err)
		}
	})
	t.Run("delete", func(t *testing.T) {
		for _, op := range []string{"refresh pool", "list domains", "list pools", "list the volumes of pool", "delete volume"} {
			remove := virttest.Install(h, virttest.Fail(virttest.Op(op), virttest.PermissionDenied))
			says(t, destroy(ctx, k, state), op)
			remove()
			if _, err := os.Stat(dir + "/v"); err != nil {
				t.Fatalf("after %q failed, the volume is gone", op)
			}
		}
		if err := destroy(ctx, k, state); err != nil {
			t.Error(err)
		}
		none(t)
		if err := destroy(ctx, k, state); err != nil {
			t.Errorf("gone already: %v", err)
		}
	})
}

// destroy is Delete without what it warns of.
func destroy(ctx context.Context, k kind.Kind, state tree.Value) error {
	_, err := k.Delete(ctx, state)
	return err
}
