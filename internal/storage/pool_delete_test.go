package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// testHost is libvirt's own driver without storage: it deletes whatever it is
// asked to, and forgets it with the last connection.
func testHost(t *testing.T) *virt.Host {
	t.Helper()
	h := virt.NewHost(virt.Options{URI: "test:///default"})
	if err := h.Connect(context.Background()); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// testPool defines a pool there, of which nothing is left after the test.
func testPool(t *testing.T, h *virt.Host, name, typ string, start bool) *poolSight {
	t.Helper()
	ctx := context.Background()
	source := ""
	if typ != "dir" {
		source = "<source><host name='h'/><dir path='/x'/><device path='/dev/x'/><name>" + name + "</name></source>"
	}
	s := &poolSight{name: name, active: start, persistent: true}
	s.xml = fmt.Sprintf("<pool type='%s'><name>%s</name>%s<target><path>/dev/%s</path></target></pool>", typ, name, source, name)
	var err error
	if s.raw, err = spec.Pool().Decode(s.xml); err != nil {
		t.Fatal(err)
	}
	if s.pool, err = h.DefinePool(ctx, s.xml); err == nil && start {
		err = s.pool.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.pool.Stop(ctx)
		_ = s.pool.Undefine(ctx)
	})
	return s
}

func TestDeleteOfStorageThatCannotBeSeenEmpty(t *testing.T) {
	ctx := context.Background()
	h := testHost(t)
	k := NewPool(func() *virt.Host { return h })
	for name, c := range map[string]struct {
		typ     string
		started bool
		volume  bool
		says    string // "" if the storage is deleted
	}{
		"a volume group that is stopped":       {"logical", false, false, "it is not started"},
		"a volume group":                       {"logical", true, false, ""},
		"a volume group with a volume":         {"logical", true, true, "it is not empty"},
		"a disk that is stopped":               {"disk", false, false, "it is not started"},
		"a ZFS pool":                           {"zfs", true, false, "it is a ZFS pool"},
		"a ZFS pool that is stopped":           {"zfs", false, false, "it is a ZFS pool"},
		"a directory that is stopped":          {"dir", false, false, ""},
		"a directory":                          {"dir", true, false, ""},
		"a file system that is stopped":        {"fs", false, false, ""},
		"a file system of a server, stopped":   {"netfs", false, false, ""},
		"storage of a cluster that is stopped": {"rbd", false, false, "it is not started"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testPool(t, h, "doomed", c.typ, c.started)
			if c.volume {
				if _, err := s.pool.CreateVolume(ctx, "<volume><name>data</name><capacity>1</capacity></volume>", virt.CreateFlags{}); err != nil {
					t.Fatal(err)
				}
			}
			rec := virttest.Record(h)
			defer rec.Stop()
			err := k.deleteStorage(ctx, s)
			deleted := rec.Matching(virttest.Op("delete the storage of pool"))
			if c.says == "" {
				if err != nil || len(deleted) != 1 {
					t.Errorf("%v, %v", err, deleted)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "Nothing was changed") {
				t.Errorf("it says %v", err)
			}
			if w := rec.Matching(func(c virt.Call) bool { return c.Write && c.Op != "refresh pool" }); len(w) > 0 {
				t.Errorf("it did %v", w)
			}
			if active, err := s.pool.IsActive(ctx); err != nil || active != c.started {
				t.Errorf("started: %v, %v", active, err)
			}
		})
	}
}

// A refresh that fails makes libvirt stop the pool.
func TestDeleteOfStorageStartsAPoolAgain(t *testing.T) {
	ctx := context.Background()
	h, other := testHost(t), testHost(t)
	k := NewPool(func() *virt.Host { return h })
	s := testPool(t, h, "stumbles", "logical", true)
	defer h.AddHook(virt.Hook{Before: func(c virt.Call) error {
		if c.Op != "refresh pool" {
			return nil
		}
		p, err := other.LookupPool(ctx, s.pool.UUID())
		if err == nil {
			err = p.Stop(ctx)
		}
		if err != nil {
			t.Error(err)
		}
		return virttest.Internal("cannot open the volume group")(c)
	}})()
	err := k.deleteStorage(ctx, s)
	if err == nil || !strings.Contains(err.Error(), "cannot open the volume group") || !strings.Contains(err.Error(), "The pool was started again") {
		t.Errorf("it says %v", err)
	}
	if active, err := s.pool.IsActive(ctx); err != nil || !active {
		t.Errorf("started: %v, %v", active, err)
	}
}
