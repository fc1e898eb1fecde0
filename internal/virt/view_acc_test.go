package virt_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccView_files(t *testing.T) {
	acctest.Case(t, "a file of the host is gone if its daemon says so, near or far, and of nothing else is it said")
	ctx := context.Background()
	there := lab.Host(t)
	uri, _ := far(t, there.URI())
	pool, outside := there.PoolDir(), t.TempDir()
	volume(t, open(t, virt.Options{URI: there.URI()}), volumeXML("listed.img", 1<<20, ""))
	volume(t, open(t, virt.Options{URI: there.URI()}), volumeXML("removed.img", 1<<20, ""))
	for _, f := range []string{pool + "/unlisted.img", outside + "/there"} {
		try(t, os.WriteFile(f, []byte("x"), 0o600))
		defer os.Remove(f)
	}
	try(t, os.Remove(pool+"/removed.img"))
	// Only the daemon sees this one.
	const private = "/var/lib/libvirt/private.img"
	got(there.Exec(ctx, "touch", private))(t)
	defer func() { _, _ = there.Exec(ctx, "rm", private) }()

	cases := map[string]struct{ near, far virt.Presence }{
		pool:                     {virt.Present, virt.Unknown},
		pool + "/listed.img":     {virt.Present, virt.Present},
		pool + "//listed.img":    {virt.Present, virt.Present},
		pool + "/removed.img":    {virt.Gone, virt.Gone},
		pool + "/unlisted.img":   {virt.Present, virt.Unknown},
		pool + "/never.img":      {virt.Gone, virt.Gone},
		pool + "/sub/never.img":  {virt.Gone, virt.Unknown},
		outside + "/there":       {virt.Present, virt.Unknown},
		outside + "/gone":        {virt.Gone, virt.Unknown},
		outside + "/no/gone":     {virt.Gone, virt.Unknown},
		outside + "/there/never": {virt.Unknown, virt.Unknown},
		private:                  {virt.Unknown, virt.Unknown},
		"/var/lib/libvirt/never": {virt.Gone, virt.Unknown},
		"":                       {virt.Unknown, virt.Unknown},
	}
	near, beyond := open(t, virt.Options{URI: there.URI()}), open(t, virt.Options{URI: uri})
	rec := virttest.Record(beyond)
	for name, c := range cases {
		if f := near.View().File(ctx, name); f != c.near {
			t.Errorf("near: %s is %v, want %v", name, f, c.near)
		}
		if f := beyond.View().File(ctx, name); f != c.far {
			t.Errorf("far: %s is %v, want %v", name, f, c.far)
		}
	}
	for name, want := range map[string]virt.Presence{"listed.img": virt.Present, "removed.img": virt.Gone, "never.img": virt.Gone, "unlisted.img": virt.Gone} {
		if f := beyond.View().Volume(ctx, "default", name); f != want {
			t.Errorf("volume %s is %v, want %v", name, f, want)
		}
	}
	if f := beyond.View().Suspect(ctx, outside+"/gone"); f != virt.Gone {
		t.Errorf("a suspected file is %v", f)
	}
	if f := beyond.View().Suspect(ctx, outside+"/there"); f != virt.Unknown {
		t.Errorf("a suspected file that is there is %v", f)
	}
	if w := rec.Writes(); len(w) > 0 {
		t.Errorf("looking wrote: %v", w)
	}
	if there := lab.Virsh(t, "vol-list", "default"); strings.Contains(there, "unlisted") {
		t.Errorf("looking refreshed the pool:\n%s", there)
	}
}

func TestAccView_backingFiles(t *testing.T) {
	acctest.Case(t, "a backing file that is gone is found through the whole chain, near and far, and one that was rightly deleted after a rebase is not")
	ctx := context.Background()
	there := lab.Host(t)
	uri, _ := far(t, there.URI())
	pool := there.PoolDir()
	h := open(t, virt.Options{URI: there.URI()})
	over := func(name, below string) {
		more := `<target><format type="qcow2"/></target>`
		if below != "" {
			more += fmt.Sprintf(`<backingStore><path>%s/%s</path><format type="qcow2"/></backingStore>`, pool, below)
		}
		volume(t, h, volumeXML(name, 1<<20, more))
	}
	over("low", "")
	over("mid", "low")
	over("top", "mid")
	expect := func(what, want string) {
		t.Helper()
		if want != "" {
			want = filepath.Join(pool, want)
		}
		for _, uri := range []string{there.URI(), uri} {
			h := open(t, virt.Options{URI: uri})
			if got := h.View().MissingBelow(ctx, pool+"/top", "qcow2"); got != want {
				t.Errorf("%s, %s: %q is gone, want %q", what, uri[:10], got, want)
			}
			if got := h.View().MissingBelow(ctx, pool+"/top", "raw"); got != "" {
				t.Errorf("%s, %s: a raw disk has a backing file %q", what, uri[:10], got)
			}
			try(t, h.Close())
		}
	}
	expect("whole", "")
	try(t, os.Rename(pool+"/low", pool+"/elsewhere"))
	expect("the lowest is away", "low")
	try(t, os.Rename(pool+"/elsewhere", pool+"/low"))
	expect("it is back", "")
	// Behind libvirt's back, which goes on telling what was.
	if out, err := exec.Command("qemu-img", "rebase", "-b", pool+"/low", "-F", "qcow2", pool+"/top").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	try(t, os.Remove(pool+"/mid"))
	if xml := lab.Virsh(t, "vol-dumpxml", "top", "default"); !strings.Contains(xml, pool+"/mid") {
		t.Fatalf("libvirt knows of the rebase, and so the case shows nothing:\n%s", xml)
	}
	expect("rebased", "")
	try(t, os.Remove(pool+"/low"))
	expect("the lowest is gone", "low")
}

func TestAccView_storageThatHangs(t *testing.T) {
	acctest.Case(t, "storage that does not answer delays a refresh once, for a bound time, and says nothing")
	ctx := context.Background()
	there := lab.Host(t)
	uri, _ := far(t, there.URI())
	h := open(t, virt.Options{URI: uri, MaxCalls: 4})
	h.SetFilePatience(300 * time.Millisecond)
	volume(t, open(t, virt.Options{URI: there.URI()}), volumeXML("hangs.img", 1<<20, ""))
	hold := make(chan struct{})
	remove := virttest.Install(h, virttest.Observe(virttest.Op("read the XML of volume"), func(virt.Call) { <-hold }))
	start := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for _, name := range []string{"hangs.img", "more.img"} {
				if f := h.View().File(ctx, there.PoolDir()+"/"+name); name == "hangs.img" && f != virt.Unknown {
					t.Errorf("%s is %v", name, f)
				}
			}
			got(h.View().Networks(ctx))(t)
		})
	}
	all.Wait()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("50 questions took %s", took)
	}
	remove()
	close(hold)
	for range 100 {
		if h.View().File(ctx, there.PoolDir()+"/hangs.img") == virt.Present {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("once it answers again, it is not asked again")
}

func TestAccView_manyFilesFarAway(t *testing.T) {
	acctest.Case(t, "of a host that is far away each file is asked for once, with one call")
	ctx := context.Background()
	there := lab.Host(t)
	uri, _ := far(t, there.URI())
	near := open(t, virt.Options{URI: there.URI()})
	const files = 200
	for i := range files {
		volume(t, near, volumeXML(fmt.Sprintf("many%d.img", i), 1<<20, ""))
	}
	h := open(t, virt.Options{URI: uri})
	try(t, h.Connect(ctx))
	rec := virttest.Record(h)
	start := time.Now()
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			for i := range files {
				if f := h.View().File(ctx, fmt.Sprintf("%s/many%d.img", there.PoolDir(), (i+worker)%files)); f != virt.Present {
					t.Errorf("file %d is %v", i, f)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d files, each asked for by 10: %s, %d calls", files, time.Since(start), len(rec.Calls()))
	if n := len(rec.Calls()); n > files+20 {
		t.Errorf("%d calls for %d files", n, files)
	}
}
