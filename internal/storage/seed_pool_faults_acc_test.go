package storage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccSeedPool_faults(t *testing.T) {
	acctest.Case(t, "wherever the making of a seed's volume breaks, none is left; an old volume is deleted only if all that speaks for it was answered: a seed of this run has superseded it, none has it, it has its own content, and nobody needs it")
	h := connect(t)
	k := storage.NewVolume(func() *virt.Host { return h })
	ctx := context.Background()
	dir := vault(t, "seeds")
	a, b := userData("alpha"), userData("beta")
	image := func(user string) storage.SeedImage {
		return storage.SeedImage{Bytes: isoOf(t, user), Digest: seed.CloudInit(user, instance, nil).Digest()}
	}
	at := func(name, user string) storage.SeedVolume {
		return storage.SeedVolume{Pool: "seeds", Name: pooledVolume(name, user)}
	}
	there := func(v storage.SeedVolume) bool {
		_, err := os.Stat(filepath.Join(dir, v.Name))
		return err == nil
	}
	put := func(name, user string) {
		t.Helper()
		if sight, err := k.PutSeed(ctx, at(name, user), image(user)); err != nil || sight.Digest != image(user).Digest.Tagged() {
			t.Fatalf("%+v, %v", sight, err)
		}
	}
	medium := func(v storage.SeedVolume) kind.Medium { return kind.Medium{Pool: v.Pool, Volume: v.Name} }
	// breaking runs f with its nth call failing, for each n, until it makes fewer.
	breaking := func(f func() error, check func(call string, err error)) (calls int) {
		t.Helper()
		for n := 1; ; n++ {
			var call string
			remove := virttest.Install(h, virttest.Fail(virttest.Nth(n, func(c virt.Call) bool {
				call = c.Op + " " + c.Object
				return true
			}), virttest.Internal("out of order")))
			err := f()
			remove()
			if err == nil {
				return n - 1
			}
			check(call, err)
			if n > 200 {
				t.Fatal("it never succeeds")
			}
		}
	}

	calls := breaking(func() error { _, err := k.PutSeed(ctx, at("made", a), image(a)); return err }, func(call string, err error) {
		if there(at("made", a)) {
			t.Errorf("a volume is left after %q: %v", call, err)
		}
	})
	if !there(at("made", a)) || calls < 4 {
		t.Errorf("the volume is there: %v, %d calls", there(at("made", a)), calls)
	}

	put("web", a)
	put("web", b)
	keeps := func(why string, old kind.Medium, v storage.SeedVolume) {
		t.Helper()
		if retired, err := k.Retire(ctx, old); err != nil || retired != "" || !there(v) {
			t.Errorf("%s: %q, %v; there: %v", why, retired, err, there(v))
		}
	}
	keeps("no seed has said anything", medium(at("web", a)), at("web", a))
	k.KeepSeed(at("web", b))
	keeps("another one is current", medium(at("web", a)), at("web", a))
	k.SupersedeSeed(at("web", a))
	keeps("it is the current one that comes out", medium(at("web", b)), at("web", b))
	calls = breaking(func() error { _, err := k.Retire(ctx, medium(at("web", a))); return err }, func(call string, err error) {
		if !there(at("web", a)) {
			t.Fatalf("the old volume is gone after %q: %v", call, err)
		}
	})
	if there(at("web", a)) || !there(at("web", b)) || calls < 4 {
		t.Errorf("old: %v, new: %v, %d calls", there(at("web", a)), there(at("web", b)), calls)
	}

	put("web", a)
	k.KeepSeed(at("web", a))
	keeps("another seed has it now", medium(at("web", a)), at("web", a))
	k.ForgetSeeds()
	keeps("that was another run", medium(at("web", a)), at("web", a))
	k.SupersedeSeed(at("web", a))
	keeps("nothing was in the drive", kind.Medium{}, at("web", a))
	if err := os.WriteFile(filepath.Join(dir, at("web", a).Name), isoOf(t, userData("evil")), 0o600); err != nil {
		t.Fatal(err)
	}
	keeps("it holds something else than its name says", medium(at("web", a)), at("web", a))
	mine := storage.SeedVolume{Pool: "seeds", Name: "web-0123456789ab.iso"}
	if err := os.WriteFile(filepath.Join(dir, mine.Name), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "pool-refresh", "seeds")
	k.SupersedeSeed(mine)
	keeps("an image of somebody that is called so", medium(mine), mine)
	if err := os.WriteFile(filepath.Join(dir, at("web", a).Name), isoOf(t, a), 0o600); err != nil {
		t.Fatal(err)
	}
	xml := t.TempDir() + "/d.xml"
	text := fmt.Sprintf(`<domain type='qemu'><name>keeper</name><memory>16384</memory><os><type>hvm</type></os><devices><disk type='file' device='cdrom'><source file='%s/%s'/><target dev='sda' bus='sata'/></disk></devices></domain>`, dir, at("web", a).Name)
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", xml)
	keeps("a domain names its file", medium(at("web", a)), at("web", a))
	if need, err := k.SeedNeeds(ctx, at("web", a)); err != nil || !need.Found || len(need.By) != 1 {
		t.Errorf("%+v, %v", need, err)
	}
	lab.Virsh(t, "undefine", "keeper")
	release := k.Hold([]kind.Medium{medium(at("web", a))})
	keeps("an update may come back to it", medium(at("web", a)), at("web", a))
	release()
	file := func(v storage.SeedVolume) kind.Medium { return kind.Medium{File: filepath.Join(dir, v.Name)} }
	if retired, err := k.Retire(ctx, file(at("web", a))); err != nil || retired != at("web", a).String() || there(at("web", a)) {
		t.Errorf("by its file: %q, %v; there: %v", retired, err, there(at("web", a)))
	}

	// What is another file, or holds something else, is not what a seed had.
	put("web", a)
	strayed := at("web", a)
	strayed.Path = "/no/such/place/" + strayed.Name
	refuses := func(why string, v storage.SeedVolume, says ...string) {
		t.Helper()
		if needs, err := k.RemoveSeed(ctx, v, storage.SeedVolume{}, false); err == nil || len(needs) > 0 || !lab.Says(says...).MatchString(err.Error()) || !there(v) {
			t.Errorf("%s: %q, %v; there: %v", why, needs, err, there(v))
		}
	}
	refuses("the pool was moved", strayed, "is another one now", "/no/such/place/", "It was not touched")
	if err := os.WriteFile(filepath.Join(dir, at("web", a).Name), isoOf(t, userData("evil")), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("it holds another seed", at("web", a), "holds something else than the seed left there", image(userData("evil")).Digest.Tagged(), "it was not deleted")
	if need, err := k.SeedNeeds(ctx, at("web", a)); err != nil || !need.Found || len(need.By) > 0 || need.Other == nil {
		t.Errorf("it holds another seed: %+v, %v", need, err)
	}
	right := at("web", a)
	right.Path = filepath.Join(dir, right.Name)
	if needs, err := k.RemoveSeed(ctx, right, storage.SeedVolume{}, true); err != nil || len(needs) > 0 || there(right) {
		t.Errorf("that it does is known: %q, %v; there: %v", needs, err, there(right))
	}
	if need, err := k.SeedNeeds(ctx, storage.SeedVolume{Pool: "no-such", Name: right.Name}); err == nil || !need.Found || !lab.Says("Pool \"no-such\" is gone", "knows no older volume").MatchString(err.Error()) {
		t.Errorf("a pool that is gone: %+v, %v", need, err)
	}
}
