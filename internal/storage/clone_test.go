package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// cloning is a pool of libvirt's own driver with a volume to copy.
func cloning(t *testing.T, name string) (h *virt.Host, k *Volume, pool *virt.Pool, source *virt.Volume) {
	t.Helper()
	h = testHost(t)
	pool = testPool(t, h, name, "dir", true).pool
	source, err := pool.CreateVolume(context.Background(), "<volume><name>golden</name><capacity>1048576</capacity><target><format type='qcow2'/></target></volume>", virt.CreateFlags{})
	if err != nil {
		t.Fatal(err)
	}
	return h, NewVolume(func() *virt.Host { return h }), pool, source
}

func cloned(pool string, more ...any) tree.Value {
	v := tree.NullValue.With("name", tree.StringValue("copy")).With("pool", tree.StringValue(pool)).
		SetAt("create.clone.pool", tree.StringValue(pool)).SetAt("create.clone.volume", tree.StringValue("golden"))
	for i := 0; i+1 < len(more); i += 2 {
		at, _ := more[i].(string)
		switch x := more[i+1].(type) {
		case string:
			v = v.SetAt(at, tree.StringValue(x))
		case int:
			v = v.SetAt(at, tree.IntValue(int64(x)))
		default:
			v = v.SetAt(at, tree.NullValue)
		}
	}
	return v
}

func volumesIn(t *testing.T, pool *virt.Pool) (names []string) {
	t.Helper()
	all, err := pool.Volumes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		names = append(names, v.Name())
	}
	return names
}

func TestCloneRefusals(t *testing.T) {
	ctx := context.Background()
	h, k, pool, _ := cloning(t, "cloning")
	testPool(t, h, "asleep", "dir", false)
	for name, c := range map[string]struct {
		planned tree.Value
		says    string
	}{
		"no such pool":       {cloned("cloning", "create.clone.pool", "nowhere"), `create.clone.pool: There is no pool "nowhere"`},
		"a stopped pool":     {cloned("cloning", "create.clone.pool", "asleep"), `create.clone.pool: Pool "asleep", from which volume "copy" is cloned, is not started`},
		"no such volume":     {cloned("cloning", "create.clone.volume", "none"), `create.clone.volume: There is no volume "none"`},
		"no such path":       {cloned("cloning", "create.clone", nil, "create.clone.path", "/dev/cloning/none"), "create.clone.path: There is no volume /dev/cloning/none"},
		"smaller":            {cloned("cloning", "capacity", 1000), `capacity: Volume "copy" is smaller than what it is cloned from`},
		"in a unit, smaller": {cloned("cloning", "capacity", 1, "capacity_unit", "KiB"), `capacity: Volume "copy" is smaller than what it is cloned from`},
	} {
		t.Run(name, func(t *testing.T) {
			done, err := k.Create(ctx, c.planned, c.planned)
			if got := withPath(err); done.Exists || !strings.Contains(got, c.says) || !strings.Contains(got, "No volume was made") {
				t.Errorf("%v, %s", done.Exists, got)
			}
			if all := volumesIn(t, pool); len(all) != 1 {
				t.Errorf("there are %v", all)
			}
		})
	}
}

func TestClone(t *testing.T) {
	ctx := context.Background()
	_, k, pool, source := cloning(t, "copies")
	for name, planned := range map[string]tree.Value{
		"by pool and volume": cloned("copies"),
		"by path":            cloned("copies", "create.clone", nil, "create.clone.path", source.Path()),
		"by key":             cloned("copies", "create.clone", nil, "create.clone.path", source.Key()),
		"as it is":           cloned("copies", "target.format.type", "qcow2", "capacity", 1, "capacity_unit", "MiB"),
	} {
		t.Run(name, func(t *testing.T) {
			done, err := k.Create(ctx, planned, planned)
			if err != nil {
				t.Fatal(err)
			}
			def := done.Facts.Definition
			if sizeIn(def).String() != "1048576" || def.At("target.format.type").Str() != "qcow2" || len(done.Steps) != 2 || done.Steps[1].Name != "clone" {
				t.Errorf("%s, %v", def, done.Steps)
			}
			if err := destroyed(ctx, k, def.With("pool", tree.StringValue("copies"))); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("what cannot be completed is taken away", func(t *testing.T) {
		larger := cloned("copies", "capacity", 2<<20) // this driver does not resize
		done, err := k.Create(ctx, larger, larger)
		if err == nil || done.Exists || !strings.Contains(err.Error(), "resize volume") || !strings.Contains(err.Error(), "No volume was left behind") {
			t.Errorf("%v, %v", done.Exists, err)
		}
		if all := volumesIn(t, pool); len(all) != 1 {
			t.Errorf("there are %v", all)
		}
	})
}

func destroyed(ctx context.Context, k *Volume, state tree.Value) error {
	_, err := k.Delete(ctx, state)
	return err
}

// withPath renders a refusal with the attribute that it is about.
func withPath(err error) string {
	var p *kind.ProblemError
	if !errors.As(err, &p) {
		return fmt.Sprint(err)
	}
	return p.Problems[0].Path.String() + ": " + err.Error()
}

func TestCloneOfWhatAGuestHas(t *testing.T) {
	ctx := context.Background()
	h, k, pool, source := cloning(t, "busy")
	guest := func(t *testing.T, disk string, start bool) (power func(bool)) {
		t.Helper()
		d, err := h.DefineDomain(ctx, fmt.Sprintf("<domain type='test'><name>writer</name><memory>1024</memory><os><type>hvm</type></os><devices>%s</devices></domain>", disk), virt.DefineFlags{})
		if err != nil {
			t.Fatal(err)
		}
		power = func(on bool) {
			if on {
				err = d.Start(ctx, virt.StartFlags{})
			} else {
				err = d.Destroy(ctx, false)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if start {
			power(true)
		}
		t.Cleanup(func() {
			_ = d.Destroy(ctx, false)
			_ = d.Undefine(ctx, virt.UndefineFlags{})
		})
		return power
	}
	file := func(more string) string {
		return fmt.Sprintf("<disk type='file'%s<source file='%s'/><target dev='vda' bus='virtio'/></disk>", more, source.Path())
	}
	cases := map[string]struct {
		disk    string
		started bool
		refused bool
	}{
		"it writes to it":          {file(">"), true, true},
		"it is off":                {file(">"), false, false},
		"it only reads it":         {strings.Replace(file(">"), "</disk>", "<readonly/></disk>", 1), true, false},
		"it has it as a CD":        {strings.Replace(file(" device='cdrom'>"), "vda' bus='virtio'", "sda' bus='sata'", 1), true, false},
		"it has it by volume":      {"<disk type='volume'><source pool='busy' volume='golden'/><target dev='vda' bus='virtio'/></disk>", true, true},
		"it writes to an overlay":  {fmt.Sprintf("<disk type='file'><driver name='qemu' type='qcow2'/><source file='/over'/><backingStore type='file'><format type='qcow2'/><source file='%s'/><backingStore/></backingStore><target dev='vda' bus='virtio'/></disk>", source.Path()), true, false},
		"it has it as a log":       {fmt.Sprintf("<serial type='file'><source path='%s'/><target port='0'/></serial>", source.Path()), true, true},
		"it has something besides": {"<disk type='file'><source file='/other'/><target dev='vda' bus='virtio'/></disk>", true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			guest(t, c.disk, c.started)
			planned := cloned("busy")
			done, err := k.Create(ctx, planned, planned)
			switch {
			case c.refused && (err == nil || !strings.Contains(err.Error(), "a running guest writes to what it is cloned from") || !strings.Contains(err.Error(), "domain writer (running)")):
				t.Errorf("%v", err)
			case !c.refused && err != nil:
				t.Error(err)
			}
			if done.Exists {
				if err := destroyed(ctx, k, done.Facts.Definition); err != nil {
					t.Fatal(err)
				}
			}
			if all := volumesIn(t, pool); len(all) != 1 {
				t.Errorf("there are %v", all)
			}
		})
	}
	t.Run("it starts while the copy is made", func(t *testing.T) {
		power := guest(t, file(">"), false)
		remove := virttest.Install(h, virt.Hook{Before: func(c virt.Call) error {
			if c.Op == "clone to volume" {
				power(true)
			}
			return nil
		}})
		planned := cloned("busy")
		done, err := k.Create(ctx, planned, planned)
		remove()
		if err == nil || done.Exists || !strings.Contains(err.Error(), "It was started while the copy was made") || !strings.Contains(err.Error(), "No volume was left behind") {
			t.Errorf("%v, %v", done.Exists, err)
		}
		if all := volumesIn(t, pool); len(all) != 1 {
			t.Errorf("there are %v", all)
		}
	})
}

// What a volume's storage tells of writes shows that a copy may be torn; what a
// start of a guest over it leaves behind does not.
func TestWritten(t *testing.T) {
	look := func(pairs ...string) tree.Value {
		v := tree.NullValue.With("type", tree.StringValue("file")).With("capacity", tree.IntValue(512)).With("physical", tree.IntValue(512)).
			SetAt("target.timestamps.mtime", tree.StringValue("1700000000.000000001")).SetAt("target.timestamps.ctime", tree.StringValue("1700000000.000000001"))
		for i := 0; i < len(pairs); i += 2 {
			v = v.SetAt(pairs[i], tree.StringValue(pairs[i+1]))
		}
		return v
	}
	const mtime, ctime = "target.timestamps.mtime", "target.timestamps.ctime"
	for name, c := range map[string]struct {
		before, after tree.Value
		says          string
	}{
		"nobody touched it":         {look(), look(), ""},
		"a guest was started on it": {look(), look(mtime, "1700000000.000000002", ctime, "1700000000.000000002"), "the time of its last change was 1700000000.000000001, and is 1700000000.000000002"},
		"its owner changed":         {look(), look(ctime, "1700000009.0", "target.permissions.owner", "64055"), ""},
		"it was read":               {look(), look("target.timestamps.atime", "1700000009.0"), ""},
		"it grew":                   {look(), look().With("capacity", tree.IntValue(1024)), "its capacity was 512, and is 1024"},
		"its file grew":             {look(), look().With("physical", tree.IntValue(1024)), "its physical was 512, and is 1024"},
		"a device's node":           {look("type", "block"), look("type", "block", mtime, "1700000009.0"), ""},
		"storage that tells none":   {look().SetAt("target.timestamps", tree.NullValue), look().SetAt("target.timestamps", tree.NullValue), ""},
	} {
		if got := written(c.before, c.after); (got == "") != (c.says == "") || !strings.HasPrefix(got, c.says) {
			t.Errorf("%s: it says %q, not %q", name, got, c.says)
		}
	}
}
