package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// poolOfTheDriver is told what its pool is: the test driver gives no definition of
// pools.
type poolOfTheDriver struct{ kind.Kind }

func (poolOfTheDriver) Read(_ context.Context, state tree.Value) (kind.Facts, error) {
	return kind.Facts{Definition: state.With("type", text("dir"))}, nil
}

// prepared is libvirt's test driver with two volumes in its pool, which the domain
// that it has uses: one as a file, the other by pool and name; and a reader of it.
func prepared(t *testing.T) *reader {
	t.Helper()
	ctx := context.Background()
	driver := filepath.Join(t.TempDir(), "driver.xml")
	disk := func(typ, source, dev string) string {
		return fmt.Sprintf("<disk type='%s'><source %s/><target dev='%s'/></disk>", typ, source, dev)
	}
	volume := func(name string) string {
		return fmt.Sprintf("<volume><name>%s</name><capacity>1048576</capacity><target><path>/srv/images/%[1]s</path></target></volume>", name)
	}
	if err := os.WriteFile(driver, []byte("<node><domain type='test'><name>web</name><uuid>7e1d5e3e-0000-4000-8000-00000000ad01</uuid><memory>8192</memory><vcpu>1</vcpu><os><type>hvm</type></os><devices>"+
		disk("file", "file='/srv/images/a.raw'", "vda")+disk("volume", "pool='images' volume='b.raw'", "vdb")+"</devices></domain>"+
		"<pool type='dir'><name>images</name><uuid>7e1d5e3e-0000-4000-8000-00000000ad02</uuid><target><path>/srv/images</path></target>"+volume("a.raw")+volume("b.raw")+"</pool></node>"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open("test://" + driver)
	r.kinds[kindPool] = poolOfTheDriver{r.kinds[kindPool]}
	t.Cleanup(func() { _ = r.close() })
	if all, err := r.handles(ctx, kindVolume); err != nil || len(all) != 2 {
		t.Fatalf("the test driver has %v, %v", all, err)
	}
	return r
}

// selectors are those of objects.
func selectors(objects []*object) string {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = o.selector()
	}
	return strings.Join(all, " ")
}

// TestOneThatIsNotThere shows that an object that the host lists and then does not
// find costs a note and nothing else.
func TestOneThatIsNotThere(t *testing.T) {
	readVolume, find := virttest.Op("read the XML of volume"), virttest.Op("look up volume")
	for name, row := range map[string]struct {
		fault virt.Hook
		left  string
		note  string
	}{
		"nothing is missing": {virttest.Fail(virttest.On("nobody"), virttest.NoSuchVolume), "pool/images volume/images/a.raw volume/images/b.raw domain/web", ""},
		"the file of a volume was removed": {virttest.Fail(virttest.And(readVolume, virttest.On("b.raw")), virttest.NoSuchVolume),
			"pool/images volume/images/a.raw domain/web", "volume/images/b.raw is left out: its pool lists it, but it is not there"},
		"a volume was deleted since": {virttest.Fail(virttest.And(find, virttest.On("/srv/images/a.raw")), virttest.NoSuchVolume),
			"pool/images volume/images/b.raw domain/web", "volume/images/a.raw is left out"},
		"a pool was stopped since": {virttest.Fail(virttest.And(find, virttest.On("/srv/images/a.raw")), virttest.PoolInactive),
			"pool/images volume/images/b.raw domain/web", "volume/images/a.raw is left out"},
		"a domain was undefined since": {virttest.Fail(virttest.Op("look up domain"), virttest.NoSuchDomain),
			"pool/images volume/images/a.raw volume/images/b.raw", "domain/web is left out: it went"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prepared(t)
			defer virttest.Install(r.Host, row.fault)()
			objects, notes, err := r.choose(context.Background(), options{chosen: []string{"pool/*", "volume/*/*", "domain/*"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := selectors(objects); got != row.left || len(notes) > 1 || !strings.HasPrefix(strings.Join(notes, " "), row.note) || (len(notes) == 0) != (row.note == "") {
				t.Errorf("%s\nwant %s\nnotes %q", got, row.left, notes)
			}
		})
	}
	t.Run("alone", func(t *testing.T) {
		r := prepared(t)
		defer virttest.Install(r.Host, virttest.Fail(virttest.And(readVolume, virttest.On("b.raw")), virttest.NoSuchVolume))()
		_, _, err := r.choose(context.Background(), options{chosen: []string{"volume/images/b.raw"}})
		if err == nil || !strings.Contains(err.Error(), "nothing was written. volume/images/b.raw is left out") {
			t.Errorf("%v", err)
		}
	})
	t.Run("another failure", func(t *testing.T) {
		r := prepared(t)
		defer virttest.Install(r.Host, virttest.Fail(readVolume, virttest.PermissionDenied))()
		if _, _, err := r.choose(context.Background(), options{all: true}); err == nil || !strings.Contains(err.Error(), "read volume/images/a.raw") {
			t.Errorf("%v", err)
		}
	})
}

// TestUses shows what is adopted with a machine, and that what cannot be asked
// costs a note.
func TestUses(t *testing.T) {
	for name, row := range map[string]struct {
		fault virt.Hook
		left  string
		notes []string
	}{
		"all of it": {virttest.Fail(virttest.On("nobody"), virttest.NoSuchVolume), "pool/images volume/images/a.raw volume/images/b.raw domain/web", nil},
		"a file below the target of a pool that is off": {virttest.Fail(virttest.And(virttest.Op("look up volume"), virttest.On("/srv/images/a.raw")), virttest.PoolInactive),
			"pool/images volume/images/b.raw domain/web", []string{"domain/web uses /srv/images/a.raw, and if that is a volume, it is not adopted"}},
		"a volume in a pool that is off": {virttest.Fail(virttest.And(virttest.Op("look up volume"), virttest.On("b.raw")), virttest.PoolInactive),
			"pool/images volume/images/a.raw domain/web", []string{"domain/web uses volume/images/b.raw, and if that is a volume, it is not adopted"}},
		"a file of no pool": {virttest.Fail(virttest.And(virttest.Op("look up volume"), virttest.On("/srv/images/a.raw")), virttest.NoSuchVolume),
			"pool/images volume/images/b.raw domain/web", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := prepared(t)
			defer virttest.Install(r.Host, row.fault)()
			objects, notes, err := r.choose(context.Background(), options{chosen: []string{"domain/*"}, uses: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := selectors(objects); got != row.left || len(notes) != len(row.notes) {
				t.Errorf("%s\nwant %s\nnotes %q", got, row.left, notes)
			}
			for i, want := range row.notes {
				if i < len(notes) && !strings.HasPrefix(notes[i], want) {
					t.Errorf("the note is %q, want %q", notes[i], want)
				}
			}
		})
	}
}

// TestOneKeyTwice shows that of two volumes with one key each is read and imported.
func TestOneKeyTwice(t *testing.T) {
	pool := func(name, uuid, capacity string) string {
		return fmt.Sprintf("<pool type='dir'><name>%s</name><uuid>7e1d5e3e-0000-4000-8000-00000000%s</uuid><target><path>/%[1]s</path></target>"+
			"<volume><name>web</name><key>rbd/web</key><capacity>%[3]s</capacity><target><path>rbd/web</path></target></volume></pool>", name, uuid, capacity)
	}
	driver := filepath.Join(t.TempDir(), "driver.xml")
	if err := os.WriteFile(driver, []byte("<node>"+pool("ceph-a", "ad03", "1048576")+pool("ceph-b", "ad04", "2097152")+"</node>"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open("test://" + driver)
	defer func() { _ = r.close() }()
	objects, notes, err := r.choose(context.Background(), options{chosen: []string{"volume/*/*"}})
	if err != nil || selectors(objects) != "volume/ceph-a/web volume/ceph-b/web" || len(notes) > 0 {
		t.Fatalf("%s, %q, %v", selectors(objects), notes, err)
	}
	ids := map[string]bool{}
	for i, size := range []string{"1", "2"} {
		o := objects[i]
		if o.essence.Attr("pool").Str() != o.pool || o.essence.Attr("capacity").String() != size {
			t.Errorf("%s is written as %s", o.selector(), o.essence)
		}
		found, err := r.kinds[kindVolume].Find(context.Background(), o.id)
		if err != nil || found.Attr("pool").Str() != o.pool {
			t.Errorf("%s is imported by %s, which finds %s, %v", o.selector(), o.id, found, err)
		}
		ids[o.id] = true
	}
	if len(ids) != 2 {
		t.Errorf("the imports are of %v", ids)
	}
}
