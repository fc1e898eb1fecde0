package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/kdomanski/iso9660"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

func userData(hostname string) string { return "#cloud-config\nhostname: " + hostname + "\n" }

const instance = "instance-id: one\n"

// seeded is a seed with a volume of its content; body is what comes beside.
func seeded(t testing.TB, store, name, user, body string, more ...string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf(`
resource "libvirt_cloudinit_disk" "it" {
  name      = %q
  user_data = %s
  meta_data = %q
}
resource "libvirt_volume" "it" {
  name   = "%s.iso"
  pool   = "default"
  create = { content = { url = libvirt_cloudinit_disk.it.path } }
  %s
}
%s`, name, user, instance, name, strings.Join(more, "\n  "), body), fmt.Sprintf("seed_store = %q", store))
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func isoOf(t testing.TB, user string) []byte {
	t.Helper()
	image, err := seed.CloudInit(user, instance, nil).ISO()
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// foreignISO is an image that the incumbent's generator wrote.
func foreignISO(t testing.TB, user string) []byte {
	t.Helper()
	w, err := iso9660.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Cleanup() }()
	for name, content := range map[string]string{"user-data": user, "meta-data": instance} {
		if err := w.AddFile(strings.NewReader(content), name); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := w.WriteTo(&b, "cidata"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// volumeFile is the file of a volume of the host's own pool.
func volumeFile(t testing.TB, name string) string { return filepath.Join(lab.Host(t).PoolDir(), name) }

// begins checks that a volume holds an image, and behind it nothing but zeros.
func begins(t testing.TB, name string, image []byte) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, err := os.ReadFile(volumeFile(t, name))
		if err == nil && (!bytes.HasPrefix(got, image) || len(bytes.Trim(got[len(image):], "\x00")) > 0) {
			err = fmt.Errorf("%s holds something else (%d bytes), or more than zeros behind its image", name, len(got))
		}
		return err
	}
}

func inode(t testing.TB, name string) uint64 {
	t.Helper()
	info, err := os.Stat(volumeFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func lastSteps(names ...string) resource.TestCheckFunc {
	checks := []resource.TestCheckFunc{resource.TestCheckResourceAttr(vol, "status.last_steps.#", fmt.Sprint(len(names)))}
	for i, n := range names {
		checks = append(checks, resource.TestCheckResourceAttr(vol, fmt.Sprintf("status.last_steps.%d.name", i), n),
			resource.TestCheckResourceAttr(vol, fmt.Sprintf("status.last_steps.%d.outcome", i), "updated"))
	}
	return resource.ComposeAggregateTestCheckFunc(checks...)
}

func digestIs(user string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(vol, "status.content_digest", seed.CloudInit(user, instance, nil).Digest().Tagged())
}

// overwrite writes into a volume behind the provider's back.
func overwrite(t testing.TB, name string, content []byte, step resource.TestStep) resource.TestStep {
	step.PreConfig = func() {
		f, err := os.OpenFile(volumeFile(t, name), os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = f.Write(content)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return step
}

func TestAccSeedVolume_content(t *testing.T) {
	acctest.Case(t, "a volume is compared with its seed by what it holds: any store and any writer of the image will do; what was tampered with is put back, another seed comes in place")
	store, other := t.TempDir(), t.TempDir()
	a, b := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000)
	var was uint64
	sameFile := func(*terraform.State) error {
		if now := inode(t, "held.iso"); now != was {
			return fmt.Errorf("the file was replaced: inode %d became %d", was, now)
		}
		return nil
	}
	conf := func(store, user string) string { return seeded(t, store, "held", quoted(user), "") }
	elsewhere := planned(conf(other, a))
	elsewhere.PreConfig = func() { _ = os.RemoveAll(store) }
	lab.Steps(t,
		lab.Apply(conf(store, a), digestIs(a), begins(t, "held.iso", isoOf(t, a)), func(*terraform.State) error { was = inode(t, "held.iso"); return nil }),
		resource.TestStep{RefreshState: true, Check: digestIs(a)},
		elsewhere,
		// The generator of others.
		overwrite(t, "held.iso", foreignISO(t, a), planned(conf(other, a))),
		// Tampered with: another seed, and none at all.
		overwrite(t, "held.iso", isoOf(t, userData("evil")), updates(vol, "none", lab.Apply(conf(other, a), digestIs(a), lastSteps("upload"), begins(t, "held.iso", isoOf(t, a)), sameFile))),
		overwrite(t, "held.iso", make([]byte, 60000), resource.TestStep{RefreshState: true, ExpectNonEmptyPlan: true, Check: resource.TestCheckNoResourceAttr(vol, "status.content_digest")}),
		updates(vol, "none", lab.Apply(conf(other, a), digestIs(a), lastSteps("upload"), begins(t, "held.iso", isoOf(t, a)), sameFile)),
		// Another seed, larger, and back.
		updates(vol, "none", lab.Apply(conf(other, b), digestIs(b), lastSteps("upload"), begins(t, "held.iso", isoOf(t, b)), sameFile)),
		updates(vol, "none", lab.Apply(conf(other, a), digestIs(a), lastSteps("upload"), begins(t, "held.iso", isoOf(t, a)), sameFile)),
		// What has no digest in its name acts once, as ever.
		planned(strings.Replace(conf(other, a), "libvirt_cloudinit_disk.it.path", `"/no/such/image"`, 1)),
	)
}

func TestAccSeedVolume_takenOver(t *testing.T) {
	acctest.Case(t, "a volume that was filled from a path without a digest, by another generator, is equal to the seed of that content; an imported one likewise; another content comes in place")
	store, file := t.TempDir(), t.TempDir()+"/cloudinit-0123456789abcdef.iso"
	a, b := userData("alpha"), userData("beta")
	if err := os.WriteFile(file, foreignISO(t, a), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := func(user string) string { return seeded(t, store, "over", quoted(user), "") }
	lab.Steps(t,
		lab.Apply(strings.Replace(conf(a), "libvirt_cloudinit_disk.it.path", quoted(file), 1), digestIs(a)),
		planned(conf(a)),
		resource.TestStep{ResourceName: vol, ImportState: true, ImportStateId: "default/over.iso", ImportStateCheck: func(all []*terraform.InstanceState) error {
			if len(all) != 1 || all[0].Attributes["create.content.url"] != "" || all[0].Attributes["status.content_digest"] == "" {
				return fmt.Errorf("imported %v", all)
			}
			return nil
		}},
		updates(vol, "none", lab.Apply(conf(b), digestIs(b), begins(t, "over.iso", isoOf(t, b)))),
	)
}

func TestAccSeedVolume_unknown(t *testing.T) {
	acctest.Case(t, "while user data is not known, the effect on the volume is not known either; what turns out to be the same changes nothing")
	store := t.TempDir()
	conf := func(late, more string) string {
		return seeded(t, store, "late", "\"#cloud-config\\nhostname: ${terraform_data.late.output}\\n\"",
			fmt.Sprintf("resource \"terraform_data\" \"late\" {\n  input = %q\n  triggers_replace = %q\n}\n", late, more))
	}
	unknown := func(step resource.TestStep) resource.TestStep {
		step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(vol, plancheck.ResourceActionUpdate), plancheck.ExpectUnknownValue(vol, tfjsonpath.New("change")),
		}
		return step
	}
	a, b := userData("alpha"), userData("beta")
	sum := func(user string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(isoOf(t, user))) }
	summed := func(late, more string) string {
		return strings.Replace(conf(late, more), "libvirt_cloudinit_disk.it.path", fmt.Sprintf("libvirt_cloudinit_disk.it.path, checksum = %q", sum(userData(late))), 1)
	}
	lab.Steps(t,
		lab.Apply(conf("alpha", ""), digestIs(a)),
		unknown(lab.Apply(conf("beta", ""), digestIs(b), lastSteps("upload"))),
		unknown(lab.Apply(conf("beta", "again"), digestIs(b), lastSteps("upload"))),
		// The plan promises the checksum, though the content turns out to be the same.
		unknown(lab.Apply(summed("beta", "once more"), digestIs(b), resource.TestCheckResourceAttr(vol, "create.content.checksum", sum(b)))),
		// By itself it is no more than something to write down.
		updates(vol, "none", lab.Apply(conf("beta", "once more"), digestIs(b), resource.TestCheckNoResourceAttr(vol, "create.content.checksum"))),
	)
}

func TestAccSeedVolume_refusals(t *testing.T) {
	acctest.Case(t, "a seed is not written under a disk, not beyond a capacity that is set, and not from a file that is not what its name says")
	store := t.TempDir()
	a, b := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000)
	conf := func(user string, more ...string) string { return seeded(t, store, "hard", quoted(user), "", more...) }
	xml := t.TempDir() + "/d.xml"
	text := fmt.Sprintf(`<domain type='qemu'><name>reader</name><memory>16384</memory><os><type>hvm</type></os><devices><disk type='file'><source file='%s'/><target dev='vdc' bus='virtio'/></disk></devices></domain>`, volumeFile(t, "hard.iso"))
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	liar := filepath.Join(t.TempDir(), seed.FileName("hard", seed.CloudInit(b, instance, nil)))
	if err := os.WriteFile(liar, isoOf(t, userData("evil")), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(step resource.TestStep) resource.TestStep {
		step.PreConfig = func() {
			if err := begins(t, "hard.iso", isoOf(t, a))(nil); err != nil {
				t.Fatal(err)
			}
		}
		return step
	}
	lab.Steps(t,
		resource.TestStep{Config: strings.Replace(conf(a), "libvirt_cloudinit_disk.it.path", quoted(liar), 1), ExpectError: lab.Says("The image of a seed is not what its name says", "No volume was made")},
		lab.Apply(conf(a, "capacity = 60000"), digestIs(a)),
		resource.TestStep{Config: conf(b, "capacity = 60000"), ExpectError: lab.Says(`The content of volume "hard.iso" is larger than its capacity`, "Nothing was changed")},
		same(resource.TestStep{Config: strings.Replace(conf(a, "capacity = 60000"), "libvirt_cloudinit_disk.it.path", quoted(liar), 1), ExpectError: lab.Says("not what its name says", "Nothing was changed")}),
		behind(t, resource.TestStep{Config: conf(b), ExpectError: lab.Says(`Refusing to change the content of volume "hard.iso"`, "domain reader (defined), disk vdc", "Nothing was changed")}, "define "+xml),
		same(planned(conf(a))),
		behind(t, planned(conf(a)), "undefine reader"),
		updates(vol, "none", lab.Apply(conf(b), digestIs(b))),
	)
}

// reader is a guest with the volume in its CD drive.
func reader(t testing.TB, label, words string) string {
	h := lab.Host(t)
	return fmt.Sprintf(`
resource "libvirt_domain" %[1]q {
  name    = "reader-%[1]s"
  type    = "qemu"
  memory  = 131072
  vcpu    = 1
  running = true
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %[2]q, initrd = %[3]q, cmdline = "%[4]s %[5]s" }
  devices = {
    disks   = [{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "default", volume = libvirt_volume.it.name } }, target = { dev = "sda", bus = "sata" } }]
    serials = [{ source = { file = { path = %[6]q, append = "on" } }, target = { port = 0 } }]
  }
}`, label, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, words, h.ConsoleLog("reader-"+label))
}

// sees waits until the guest reports that its CD has that user data.
func sees(t testing.TB, guest, user string) resource.TestCheckFunc {
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(user)))
	return func(*terraform.State) error {
		_, err := lab.Host(t).WaitReport(context.Background(), guest, 4*time.Minute, func(r host.Report) bool { return r.Seed()["user-data"] == want })
		if err != nil {
			err = fmt.Errorf("guest %s does not see %q on its CD: %w", guest, user[:min(40, len(user))], err)
		}
		return err
	}
}

func untouched(t testing.TB, guests map[string]*lab.Guest) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for name, g := range guests {
			g.Untouched(t, name)
		}
		return nil
	}
}

// volumeStays is a step whose plan does nothing about the volume.
func volumeStays(step resource.TestStep) resource.TestStep {
	step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{plancheck.ExpectResourceAction(vol, plancheck.ResourceActionNoop)}
	return step
}

func TestAccSeedVolume_runningGuests(t *testing.T) {
	acctest.Case(t, "two running guests have a seed in their drives: another seed is exchanged in both, no definition changes; a guest that has its CD mounted keeps it, and so does the other one, until the user insists")
	store := t.TempDir()
	a, b, c := userData("alpha"), userData("beta")+strings.Repeat("# a long comment\n", 9000), userData("gamma")
	conf := func(user string, more ...string) string {
		return seeded(t, store, "shared", quoted(user), reader(t, "one", "")+reader(t, "two", ""), more...)
	}
	withHolder := func(user string, more ...string) string {
		return seeded(t, store, "shared", quoted(user), reader(t, "one", "")+reader(t, "two", "")+reader(t, "holder", "guest.mountcd=1"), more...)
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
	exchange := updates(vol, "live", lab.Apply(conf(b), digestIs(b), lastSteps("eject", "upload", "insert"), begins(t, "shared.iso", isoOf(t, b)),
		sees(t, "reader-one", b), sees(t, "reader-two", b), untouched(t, guests)))
	for _, label := range []string{"one", "two"} {
		exchange.ConfigPlanChecks.PreApply = append(exchange.ConfigPlanChecks.PreApply, plancheck.ExpectResourceAction("libvirt_domain."+label, plancheck.ResourceActionNoop))
	}
	unchanged := func(step resource.TestStep, user string) resource.TestStep {
		step.PreConfig = func() {
			for _, check := range []resource.TestCheckFunc{begins(t, "shared.iso", isoOf(t, user)), untouched(t, guests), sees(t, "reader-one", user), sees(t, "reader-holder", user)} {
				if err := check(nil); err != nil {
					t.Fatal(err)
				}
			}
			for name := range guests {
				if list := lab.Virsh(t, "domblklist", name); !strings.Contains(list, "shared.iso") {
					t.Fatalf("%s has lost its CD:\n%s", name, list)
				}
			}
		}
		return step
	}
	lab.Steps(t,
		lab.Apply(conf(a), sees(t, "reader-one", a), sees(t, "reader-two", a), observe("reader-one", "reader-two")),
		resource.TestStep{RefreshState: true, Check: resource.ComposeAggregateTestCheckFunc(resource.TestCheckResourceAttr(vol, "status.medium", "true"), resource.TestCheckResourceAttr(vol, "status.users.#", "4"))},
		exchange,
		updates(vol, "live", lab.Apply(conf(a), digestIs(a), sees(t, "reader-one", a), sees(t, "reader-two", a))),
		lab.Apply(withHolder(a), sees(t, "reader-holder", a), observe("reader-holder")),
		resource.TestStep{Config: withHolder(c), ExpectError: lab.Says(`Guest "reader-holder" does not let go of the CD in drive sda`, "force_media = true", "The volume holds what it held, and the guests have it in their drives")},
		unchanged(volumeStays(lab.Apply(withHolder(a), digestIs(a))), a),
		updates(vol, "live", lab.Apply(withHolder(c, "update = { force_media = true }"), digestIs(c), lastSteps("eject", "upload", "insert"),
			sees(t, "reader-one", c), sees(t, "reader-two", c), untouched(t, guests), begins(t, "shared.iso", isoOf(t, c)))),
	)
}
