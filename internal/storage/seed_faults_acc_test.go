package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// seedFile puts the image of a seed into a store of the test's own.
func seedFile(t *testing.T, dir, user string) string {
	t.Helper()
	file := filepath.Join(dir, seed.FileName("s", seed.CloudInit(user, instance, nil)))
	if err := os.WriteFile(file, isoOf(t, user), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// exchangeOf is the update that a plan for another seed makes.
func exchangeOf(k *storage.Volume, facts kind.Facts, from, to string) kind.Update {
	config := object(map[string]any{"name": "s.iso", "pool": "exchange", "create.content.url": to})
	plain := facts.Definition.SetAt("create.content.url", tree.StringValue(from))
	p := k.Rules().Plan(change.Input{Type: k.Type(), Config: config, Prior: plain, Baseline: facts.Definition, Actual: facts.Definition})
	prior := plain.With("status", facts.Status)
	verdict := k.Judge(kind.Judgement{Config: config, Prior: prior, Planned: p.Planned, Changes: p.Changes})
	return kind.Update{Config: config, Prior: prior, Planned: p.Planned, Changes: p.Changes, Effect: verdict.Effect}
}

// drives starts guests that have the volume in their drives, with nothing in them
// that would lock a tray.
func drives(t *testing.T, file string, names ...string) {
	t.Helper()
	for _, name := range names {
		xml := t.TempDir() + "/d.xml"
		text := fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory>32768</memory><os><type machine='q35'>hvm</type></os><devices>
<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='%s'/><target dev='sda' bus='sata'/><readonly/></disk></devices></domain>`, name, file)
		if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Virsh(t, "create", xml)
		t.Cleanup(func() { _, _ = lab.Host(t).Virsh(context.Background(), "destroy", name) })
	}
}

func TestAccSeedVolume_faults(t *testing.T) {
	acctest.Case(t, "wherever the exchange of a seed breaks, the volume holds the old seed or the new one whole, and every guest has it in its drive")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	ctx := context.Background()
	dir, store := vault(t, "exchange"), t.TempDir()
	a, b := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000)
	from, to := seedFile(t, store, a), seedFile(t, store, b)
	done, err := k.Create(ctx, object(map[string]any{"name": "s.iso", "pool": "exchange", "create.content.url": from}), tree.NullValue)
	if err != nil {
		t.Fatal(err)
	}
	drives(t, dir+"/s.iso", "one", "two")
	k = storage.NewVolume(func() *virt.Host { return h }) // which has not asked who uses what
	facts, err := k.Read(ctx, done.Facts.Definition)
	if err != nil || !facts.Status.Attr("medium").Bool() {
		t.Fatalf("%v, %v", facts.Status, err)
	}
	whole := func(when string) (isNew bool) {
		t.Helper()
		got, err := os.ReadFile(dir + "/s.iso")
		if err != nil {
			t.Fatal(err)
		}
		image := isoOf(t, a)
		if isNew = bytes.HasPrefix(got, isoOf(t, b)); isNew {
			image = isoOf(t, b)
		}
		if !bytes.HasPrefix(got, image) || len(bytes.Trim(got[len(image):], "\x00")) > 0 {
			t.Fatalf("%s: the volume holds neither seed", when)
		}
		for _, name := range []string{"one", "two"} {
			if list := lab.Virsh(t, "domblklist", name); !strings.Contains(list, "s.iso") {
				t.Fatalf("%s: %s has lost its CD:\n%s", when, name, list)
			}
		}
		return isNew
	}
	putBack := func() {
		t.Helper()
		held := kind.Facts{Definition: facts.Definition.SetAt("create.content.url", tree.StringValue(seed.CloudInit(b, instance, nil).Digest().Tagged())), Status: facts.Status}
		if _, err := k.Update(ctx, exchangeOf(k, held, to, from)); err != nil || whole("put back") {
			t.Fatal(err)
		}
	}
	failures := 0
	// try breaks the nth of some calls. It returns the call, "" if there is none.
	try := func(when string, broken func(virttest.Match, virttest.Answer) virt.Hook, answer virttest.Answer, match virttest.Match, n int) (call string) {
		count, wrote := 0, false
		note := func(c virt.Call) bool {
			if match(c) {
				if count++; count == n {
					call, wrote = c.String(), c.Write
					return true
				}
			}
			return false
		}
		remove := virttest.Install(h, broken(note, answer))
		done, err := k.Update(ctx, exchangeOf(k, facts, from, to))
		remove()
		isNew := whole(when + ": " + call)
		digest := done.Facts.Definition.At("create.content.url").Str()
		switch {
		case err == nil && (!isNew || len(done.Steps) != 3):
			t.Fatalf("%s: no error, and %v", when, done.Steps)
		case err != nil && isNew && wrote:
			t.Errorf("%s (%s): it was not taken back: %v", when, call, err)
		case err != nil && !isNew && done.Exists && digest != seed.CloudInit(a, instance, nil).Digest().Tagged():
			t.Errorf("%s (%s): it claims %s", when, call, digest)
		}
		if err != nil {
			failures++
		}
		if isNew {
			putBack()
		}
		return call
	}
	all, internal := func(virt.Call) bool { return true }, virttest.Internal("broken")
	for n := 1; try(fmt.Sprintf("instead of call %d", n), virttest.Fail, internal, all, n) != ""; n++ {
	}
	for n := 1; try(fmt.Sprintf("after write %d", n), virttest.FailAfter, internal, virttest.Writes, n) != ""; n++ {
	}
	for n := 1; try(fmt.Sprintf("lost before write %d", n), virttest.Fail, virttest.ConnectionLost, virttest.Writes, n) != ""; n++ {
	}
	for n := 1; try(fmt.Sprintf("lost after write %d", n), virttest.FailAfter, virttest.ConnectionLost, virttest.Writes, n) != ""; n++ {
	}
	if failures < 50 {
		t.Errorf("only %d calls were broken", failures)
	}
	t.Logf("%d calls broken", failures)
}

func TestAccSeedVolume_readOnce(t *testing.T) {
	acctest.Case(t, "a seed that nobody wrote to is read once; an image of a disk is not read at all")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	ctx := context.Background()
	dir, store := vault(t, "once"), t.TempDir()
	a, b := userData("alpha"), userData("gamma")
	done, err := k.Create(ctx, object(map[string]any{"name": "s.iso", "pool": "once", "create.content.url": seedFile(t, store, a)}), tree.NullValue)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(state, last tree.Value) (digest string, downloads int) {
		t.Helper()
		rec := virttest.Record(h)
		defer rec.Stop()
		facts, err := k.Reread(ctx, state, last)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rec.Calls() {
			if c.Op == "download volume" {
				downloads++
			}
		}
		return facts.Status.Attr("content_digest").Str(), downloads
	}
	def := done.Facts.Definition
	digest := seed.CloudInit(a, instance, nil).Digest().Tagged()
	if got, n := reads(def, tree.NullValue); got != digest || n != 2 {
		t.Errorf("read %q with %d downloads", got, n)
	}
	if got, n := reads(def, def); got != digest || n != 0 {
		t.Errorf("read again: %q with %d downloads", got, n)
	}
	if err := os.WriteFile(dir+"/s.iso", isoOf(t, b), 0o600); err != nil { // of the same size
		t.Fatal(err)
	}
	if got, n := reads(def, def); got != seed.CloudInit(b, instance, nil).Digest().Tagged() || n != 2 {
		t.Errorf("tampered with: %q with %d downloads", got, n)
	}
	for name, planned := range map[string]map[string]any{
		"qcow2": {"capacity": 1 << 20, "target.format.type": "qcow2"}, "large": {"capacity": 64 << 20, "target.format.type": "raw"},
	} {
		planned["name"], planned["pool"] = name, "once"
		done, err := k.Create(ctx, object(planned), tree.NullValue)
		if err != nil {
			t.Fatal(err)
		}
		if got, n := reads(done.Facts.Definition, tree.NullValue); got != "" || n != 0 {
			t.Errorf("%s: %q with %d downloads", name, got, n)
		}
	}
}
