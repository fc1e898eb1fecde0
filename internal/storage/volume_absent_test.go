package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestStrayed(t *testing.T) {
	pool := func(typ, target, source string) tree.Value {
		def, err := spec.Pool().Decode(fmt.Sprintf("<pool type='%s'><name>p</name><source><name>%s</name></source><target><path>%s</path></target></pool>", typ, source, target))
		if err != nil {
			t.Fatal(err)
		}
		return def
	}
	state := func(file, key string) tree.Value {
		v := tree.NullValue.With("key", tree.StringValue(key))
		if file != "" {
			v = v.With("path", tree.StringValue(file))
		}
		return v
	}
	same := func(a, b string) bool { return path.Clean(a) == path.Clean(b) || a == "/link" && b == "/pool" }
	for name, c := range map[string]struct {
		pool, state tree.Value
		want        string
	}{
		"the same directory":               {pool("dir", "/pool/", ""), state("/pool/v", "/pool/v"), ""},
		"by its key alone":                 {pool("dir", "/other", ""), state("", "/pool/v"), "/other"},
		"a link to it":                     {pool("dir", "/pool", ""), state("/link/v", "/link/v"), ""},
		"another directory":                {pool("dir", "/other", ""), state("/pool/v", "/pool/v"), "/other"},
		"a directory below":                {pool("netfs", "/pool/v", ""), state("/pool/v", "/pool/v"), "/pool/v"},
		"a volume group":                   {pool("logical", "/dev/vg", "vg"), state("/dev/vg/v", "Xyz-123"), ""},
		"another volume group":             {pool("logical", "/dev/vh", "vh"), state("/dev/vg/v", "Xyz-123"), "/dev/vh"},
		"a volume group, by its key":       {pool("logical", "/dev/vg", "vg"), state("", "Xyz-123"), ""},
		"a directory, now a volume group":  {pool("logical", "/dev/vg", "vg"), state("/pool/v", "/pool/v"), "/dev/vg"},
		"a cluster's":                      {pool("rbd", "", "images"), state("images/v", "images/v"), ""},
		"another of a cluster":             {pool("rbd", "", "others"), state("images/v", "images/v"), "others"},
		"a directory, now a cluster's":     {pool("rbd", "", "images"), state("/pool/v", "/pool/v"), "of the type rbd"},
		"a cluster's, now a directory":     {pool("dir", "/pool", ""), state("images/v", "images/v"), "of the type dir"},
		"a disk, of which any name may be": {pool("disk", "/dev/disk/by-path", ""), state("/dev/sdb1", "/dev/sdb1"), ""},
	} {
		if got := strayed(c.pool, c.state, same); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// A plan concludes what it can from what libvirt lists and from the file, and
// refreshes no pool: a refresh that fails would stop it.
func TestReadOfWhatIsNotListedRefreshesNothing(t *testing.T) {
	ctx := context.Background()
	h := testHost(t)
	k := NewVolume(func() *virt.Host { return h })
	dir := t.TempDir()
	p, err := h.DefinePool(ctx, fmt.Sprintf("<pool type='dir'><name>listless</name><target><path>%s</path></target></pool>", dir))
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Stop(ctx)
		_ = p.Undefine(ctx)
	})
	if err := os.WriteFile(dir+"/there", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := func(file string) tree.Value {
		v := tree.NullValue.With("pool", tree.StringValue("listless")).With("name", tree.StringValue(path.Base(file))).
			With("capacity", tree.IntValue(7)).With("protect", tree.BoolValue(false)).SetAt("status.running", tree.BoolValue(true))
		for _, name := range []string{"id", "key", "path"} {
			v = v.With(name, tree.StringValue(file))
		}
		return v
	}
	rec := virttest.Record(h)
	defer rec.Stop()

	_, err = k.Read(ctx, state(dir+"/absent"))
	var gone *kind.GoneError
	if !errors.As(err, &gone) {
		t.Errorf("neither listed nor there: %v", err)
	}
	_, err = k.Read(ctx, state("/another/directory/v"))
	if err == nil || errors.As(err, &gone) || !strings.Contains(err.Error(), `Pool "listless" of volume "v" is another one now`) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the pool is another one: %v", err)
	}
	there := state(dir + "/there")
	f, err := k.Read(ctx, there)
	if err != nil || len(f.Warnings) != 1 || f.Warnings[0].Summary != `Pool "listless" does not list volume "there"` {
		t.Fatalf("there, and not listed: %v, %v", f.Warnings, err)
	}
	if n, _ := f.Definition.Attr("capacity").Uint(); n != 7 || !f.Definition.Attr("protect").IsNull() || !f.Active || f.Within != p.UUID() || f.Name != "there" {
		t.Errorf("the facts are %+v", f)
	}
	last := tree.NullValue.With("capacity", tree.IntValue(8))
	if f, err = k.Reread(ctx, there, last); err != nil || !tree.Equal(f.Definition, last) {
		t.Errorf("not what was read last: %s, %v", f.Definition, err)
	}
	if w := rec.Writes(); len(w) > 0 {
		t.Errorf("the plan did %v", w)
	}
	// An apply may look for it. This driver never finds any.
	if _, err := k.find(ctx, there); err == nil || errors.As(err, &gone) || !strings.Contains(err.Error(), "does not list volume there") {
		t.Errorf("not found: %v", err)
	}
	if w := rec.Writes(); len(w) != 1 || w[0].Op != "refresh pool" {
		t.Errorf("an apply did %v", w)
	}
}
