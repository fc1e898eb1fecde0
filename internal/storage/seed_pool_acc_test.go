package storage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

const seedDisk = "libvirt_cloudinit_disk.it"

// pooled is a seed that lies in the host's own pool; body is what comes beside.
func pooled(t testing.TB, name, user, body string, more ...string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf(`
resource "libvirt_cloudinit_disk" "it" {
  name      = %q
  pool      = "default"
  user_data = %s
  meta_data = %q
  %s
}
%s`, name, user, instance, strings.Join(more, "\n  "), strings.ReplaceAll(body, "libvirt_volume.it.name", seedDisk+".volume_name")))
}

func pooledVolume(name, user string) string {
	return seed.VolumeName(name, seed.CloudInit(user, instance, nil).Digest())
}

// onlyVolumes checks which volumes of a seed there are, and that the first holds
// the content.
func onlyVolumes(t testing.TB, name string, users ...string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		var want []string
		for _, u := range users {
			want = append(want, pooledVolume(name, u))
		}
		slices.Sort(want)
		files, err := filepath.Glob(volumeFile(t, name+"-*"))
		if err != nil {
			return err
		}
		got := make([]string, len(files))
		for i, f := range files {
			got[i] = filepath.Base(f)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the pool has %q, want %q", got, want)
		}
		return begins(t, pooledVolume(name, users[0]), isoOf(t, users[0]))(s)
	}
}

// holdsIn checks what the state says of the volume.
func holdsIn(name, user string) resource.TestCheckFunc {
	tagged := seed.CloudInit(user, instance, nil).Digest().Tagged()
	return resource.ComposeAggregateTestCheckFunc(resource.TestCheckResourceAttr(seedDisk, "digest", tagged), resource.TestCheckResourceAttr(seedDisk, "content_digest", tagged),
		resource.TestCheckResourceAttr(seedDisk, "volume_name", pooledVolume(name, user)))
}

func does(step resource.TestStep, actions map[string]plancheck.ResourceActionType) resource.TestStep {
	for address, action := range actions {
		step.ConfigPlanChecks.PreApply = append(step.ConfigPlanChecks.PreApply, plancheck.ExpectResourceAction(address, action))
	}
	return step
}

func TestAccSeedPool_lifeCycle(t *testing.T) {
	acctest.Case(t, "a seed in a pool: other content is another volume, known in the plan, and the old one goes; what was tampered with, or deleted, is seen and put back; a stopped pool is an error; equal content is taken over, another is not touched")
	a, b := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000)
	conf := func(user string) string { return pooled(t, "alone", quoted(user), "") }
	update := map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate}
	changed := does(lab.Apply(conf(b), holdsIn("alone", b), onlyVolumes(t, "alone", b), resource.TestCheckResourceAttr(seedDisk, "superseded.#", "0"),
		resource.TestCheckResourceAttr(seedDisk, "path", volumeFile(t, pooledVolume("alone", b)))), update)
	changed.ConfigPlanChecks.PreApply = append(changed.ConfigPlanChecks.PreApply,
		plancheck.ExpectKnownValue(seedDisk, tfjsonpath.New("volume_name"), knownvalue.StringExact(pooledVolume("alone", b))),
		plancheck.ExpectKnownValue(seedDisk, tfjsonpath.New("path"), knownvalue.StringExact(volumeFile(t, pooledVolume("alone", b)))))
	var was uint64
	sameFile := func(*terraform.State) error {
		if now := inode(t, pooledVolume("alone", b)); now != was {
			return fmt.Errorf("the file was replaced: inode %d became %d", was, now)
		}
		return nil
	}
	gone := func(step resource.TestStep) resource.TestStep {
		return behind(t, step, "vol-delete "+pooledVolume("alone", b)+" default")
	}
	removed := does(lab.Apply(conf(b), holdsIn("alone", b), onlyVolumes(t, "alone", b)), update)
	removed.PreConfig = func() {
		if err := os.Remove(volumeFile(t, pooledVolume("alone", b))); err != nil { // libvirt lists it still
			t.Fatal(err)
		}
	}
	stranger := resource.TestStep{Config: conf(a), ExpectError: lab.Says("exists already in pool", "holds something else", "It was not touched")}
	stranger.PreConfig = func() {
		if err := os.WriteFile(volumeFile(t, pooledVolume("alone", a)), isoOf(t, userData("evil")), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Virsh(t, "pool-refresh", "default")
	}
	adopted := does(lab.Apply(conf(a), holdsIn("alone", a), onlyVolumes(t, "alone", a)), update)
	adopted.PreConfig = func() {
		if err := os.WriteFile(volumeFile(t, pooledVolume("alone", a)), isoOf(t, a), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lab.Steps(t,
		lab.Apply(conf(a), holdsIn("alone", a), onlyVolumes(t, "alone", a), resource.TestCheckResourceAttr(seedDisk, "path", volumeFile(t, pooledVolume("alone", a)))),
		changed,
		resource.TestStep{RefreshState: true, Check: func(*terraform.State) error { was = inode(t, pooledVolume("alone", b)); return nil }},
		overwrite(t, pooledVolume("alone", b), isoOf(t, userData("evil")), does(lab.Apply(conf(b), holdsIn("alone", b), onlyVolumes(t, "alone", b), sameFile), update)),
		overwrite(t, pooledVolume("alone", b), make([]byte, 60000), resource.TestStep{RefreshState: true, ExpectNonEmptyPlan: true, Check: resource.TestCheckNoResourceAttr(seedDisk, "content_digest")}),
		does(lab.Apply(conf(b), holdsIn("alone", b), onlyVolumes(t, "alone", b), sameFile), update),
		gone(does(lab.Apply(conf(b), holdsIn("alone", b), onlyVolumes(t, "alone", b)), update)),
		removed,
		behind(t, resource.TestStep{Config: conf(b), ExpectError: lab.Says(`Could not read seed "alone"`, "is not started", "nothing was concluded")}, "pool-destroy default"),
		behind(t, planned(conf(b)), "pool-start default"),
		stranger, adopted,
	)
}

func TestAccSeedPool_runningGuests(t *testing.T) {
	acctest.Case(t, "two running guests share a seed in a pool: another content is in both drives, no guest is touched, the old volume goes, the second plan is empty; what was tampered with is exchanged in the drives; a guest that has its CD mounted keeps it, and the old volume, until it lets go; then the next plan shows the old volume as a change of the seed")
	a, b, c := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000), userData("gamma")
	both := reader(t, "one", "") + reader(t, "two", "")
	conf := func(user string) string { return pooled(t, "shared", quoted(user), both) }
	withHolder := func(user string) string {
		return pooled(t, "shared", quoted(user), both+reader(t, "holder", "guest.mountcd=1"))
	}
	guests := map[string]*lab.Guest{}
	observe := func(names ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for _, n := range names {
				guests[n] = lab.Observe(t, n)
			}
			return nil
		}
	}
	both1 := func(user string) resource.TestCheckFunc {
		return resource.ComposeAggregateTestCheckFunc(sees(t, "reader-one", user), sees(t, "reader-two", user), untouched(t, guests))
	}
	const one, two, holder = "libvirt_domain.one", "libvirt_domain.two", "libvirt_domain.holder"
	exchange := updates(one, "live", lab.Apply(conf(b), holdsIn("shared", b), both1(b), onlyVolumes(t, "shared", b)))
	exchange = does(exchange, map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate, two: plancheck.ResourceActionUpdate})
	tampered := overwrite(t, pooledVolume("shared", b), isoOf(t, userData("evil")), does(lab.Apply(conf(b), holdsIn("shared", b), both1(b), onlyVolumes(t, "shared", b)),
		map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate, one: plancheck.ResourceActionNoop, two: plancheck.ResourceActionNoop}))
	// What the holder has is not lost, and the next plan has it as its own change.
	kept := does(resource.TestStep{Config: withHolder(c), PlanOnly: true, ExpectNonEmptyPlan: true}, nil)
	kept.PreConfig = func() {
		for _, check := range []resource.TestCheckFunc{onlyVolumes(t, "shared", c, b), sees(t, "reader-one", c), sees(t, "reader-two", c), sees(t, "reader-holder", b), untouched(t, guests)} {
			if err := check(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	// No seed has said in this apply what the holder had: the next plan shows that.
	settled := does(resource.TestStep{Config: withHolder(c), ExpectNonEmptyPlan: true, Check: resource.ComposeAggregateTestCheckFunc(holdsIn("shared", c), both1(c), onlyVolumes(t, "shared", c, b),
		resource.TestCheckResourceAttr(holder, "devices.disks.0.source.volume.volume", pooledVolume("shared", c)))},
		map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionNoop, one: plancheck.ResourceActionNoop, holder: plancheck.ResourceActionUpdate})
	cleared := does(lab.Apply(withHolder(c), both1(c), sees(t, "reader-holder", c), onlyVolumes(t, "shared", c)),
		map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate, one: plancheck.ResourceActionNoop, holder: plancheck.ResourceActionNoop})
	lab.Steps(t,
		lab.Apply(conf(a), sees(t, "reader-one", a), sees(t, "reader-two", a), observe("reader-one", "reader-two")),
		exchange,
		resource.TestStep{RefreshState: true, Check: resource.TestCheckResourceAttr(seedDisk, "superseded.#", "0")},
		tampered,
		lab.Apply(withHolder(b), sees(t, "reader-holder", b), observe("reader-holder")),
		resource.TestStep{Config: withHolder(c), ExpectError: lab.Says("devices.disks", "the guest has locked the tray", "Unmount it in the guest and apply again")},
		kept,
		behind(t, settled, "change-media reader-holder sda --eject --force --live"), cleared,
		resource.TestStep{RefreshState: true, Check: resource.TestCheckResourceAttr(seedDisk, "superseded.#", "0")},
	)
}

func TestAccSeedPool_destroy(t *testing.T) {
	acctest.Case(t, "the volume of a seed that a machine needs is not destroyed, nor is that of a protected seed; what nobody needs any more is a change of the seed; a block that gets another label, and a move into a pool and out of it, leave nothing behind")
	store := t.TempDir()
	a, b := userData("alpha"), userData("beta")
	conf := func(user string, more ...string) string {
		return strings.Replace(pooled(t, "leaving", quoted(user), "", more...), "uri =", fmt.Sprintf("seed_store = %q\n  uri =", store), 1)
	}
	none := lab.Config(t, "")
	xml := t.TempDir() + "/d.xml"
	text := fmt.Sprintf(`<domain type='qemu'><name>stranger</name><memory>16384</memory><os><type>hvm</type></os><devices><disk type='volume' device='cdrom'><source pool='default' volume='%s'/><target dev='sda' bus='sata'/></disk></devices></domain>`, pooledVolume("leaving", a))
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	local := func(user string) string { return seedOnly(t, store, "leaving", user) }
	superseded := func(n string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(seedDisk, "superseded.#", n)
	}
	update := map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate}
	lab.Steps(t,
		lab.Apply(conf(a), onlyVolumes(t, "leaving", a)),
		behind(t, resource.TestStep{Config: none, ExpectError: lab.Says(`Could not destroy seed "leaving"`, "is in use", "domain stranger (defined), disk sda", "Nothing was changed")}, "define "+xml),
		// A stranger keeps the old volume, without a diff that never ends.
		lab.Apply(conf(b), holdsIn("leaving", b), onlyVolumes(t, "leaving", b, a), superseded("1")),
		behind(t, does(lab.Apply(conf(b), onlyVolumes(t, "leaving", b), superseded("0")), update), "undefine stranger"),
		lab.Apply(conf(b, "protect = true")),
		resource.TestStep{Config: none, ExpectError: lab.Says(`Refusing to destroy protected seed "leaving"`)},
		lab.Apply(conf(b), onlyVolumes(t, "leaving", b)),
		// Another label: the new object takes the volume over before the old one goes, or after.
		lab.Apply(strings.ReplaceAll(conf(b), `"it"`, `"other"`), onlyVolumes(t, "leaving", b)),
		lab.Apply(conf(b), onlyVolumes(t, "leaving", b)),
		// Out of the pool, and in again.
		does(lab.Apply(local(b), func(*terraform.State) error { return leftIn(t, "leaving-*", store, 1) }), update),
		does(lab.Apply(conf(b), onlyVolumes(t, "leaving", b), func(*terraform.State) error { return leftIn(t, "no-such-*", store, 1) }), update), // a machine may come back to it
		does(lab.Apply(conf(a), onlyVolumes(t, "leaving", a), func(*terraform.State) error { return leftIn(t, "no-such-*", store, 0) }), update),
		does(lab.Apply(local(b), func(*terraform.State) error { return leftIn(t, "leaving-*", store, 1) }), update),
		does(lab.Apply(conf(b), func(*terraform.State) error { return leftIn(t, "no-such-*", store, 1) }), update),
		lab.Apply(none, func(*terraform.State) error { return leftIn(t, "leaving-*", store, 0) }),
	)
}

// seedOnly is a seed in the store of this machine.
func seedOnly(t testing.TB, store, name, user string) string {
	return lab.Config(t, fmt.Sprintf("resource \"libvirt_cloudinit_disk\" \"it\" {\n  name = %q\n  user_data = %q\n  meta_data = %q\n}\n", name, user, instance), fmt.Sprintf("seed_store = %q", store))
}

// leftIn checks that no volume is called so, and how many images the store has.
func leftIn(t testing.TB, volumes, store string, images int) error {
	inPool, _ := filepath.Glob(volumeFile(t, volumes))
	inStore, _ := filepath.Glob(store + "/*.iso")
	if len(inPool) > 0 || len(inStore) != images {
		return fmt.Errorf("the pool has %q, the store %q, want none and %d", inPool, inStore, images)
	}
	return nil
}

func TestAccSeedPool_restart(t *testing.T) {
	acctest.Case(t, "who wants it has a changed seed wait for the next start of the machine, or restart it in order: the plan says so, the machine boots with the new one, and the old volume goes, in the same apply if that is the seed's too, else as a change that the next plan shows; without update.media nothing restarts")
	a, b, c := userData("alpha"), userData("beta"), userData("gamma")
	const one = "libvirt_domain.one"
	conf := func(user, update string) string {
		return pooled(t, "waiting", quoted(user), strings.Replace(reader(t, "one", ""), "running = true", "running = true\n  features = { acpi = true }\n  update = { "+update+" }", 1))
	}
	var guest *lab.Guest
	observe := func(*terraform.State) error { guest = lab.Observe(t, "reader-one"); return nil }
	same := func(*terraform.State) error { guest.Untouched(t, "reader-one"); return nil }
	restarted := func(*terraform.State) error {
		if now := lab.Observe(t, "reader-one"); now.Report().BootID == guest.Report().BootID {
			return fmt.Errorf("the guest was not restarted: %+v", now.Report())
		}
		return nil
	}
	pending := func(n string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(one, "status.pending.#", n)
	}
	lab.Steps(t,
		lab.Apply(conf(a, `media = "next_boot"`), sees(t, "reader-one", a), observe),
		updates(one, "next_boot", lab.Apply(conf(b, `media = "next_boot"`), holdsIn("waiting", b), same, sees(t, "reader-one", a), pending("1"), onlyVolumes(t, "waiting", b, a))),
		resource.TestStep{RefreshState: true, Check: resource.TestCheckResourceAttr(seedDisk, "superseded.#", "1")},
		updates(one, "restart", resource.TestStep{Config: conf(b, `media = "next_boot", allow = "restart"`), ExpectNonEmptyPlan: true,
			Check: resource.ComposeAggregateTestCheckFunc(sees(t, "reader-one", b), restarted, pending("0"), onlyVolumes(t, "waiting", b, a))}),
		does(lab.Apply(conf(b, `media = "next_boot", allow = "restart"`), observe, onlyVolumes(t, "waiting", b)),
			map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate, one: plancheck.ResourceActionNoop}),
		updates(one, "restart", lab.Apply(conf(c, `media = "next_boot", allow = "restart"`), holdsIn("waiting", c), sees(t, "reader-one", c), restarted, onlyVolumes(t, "waiting", c))),
		lab.Apply(conf(c, `allow = "restart"`), observe),
		updates(one, "live", lab.Apply(conf(a, `allow = "restart"`), sees(t, "reader-one", a), same, onlyVolumes(t, "waiting", a))),
	)
}
