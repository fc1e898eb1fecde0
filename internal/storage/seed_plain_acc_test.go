package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// plainText is an Ignition configuration with a volume of its content; body is
// what comes beside.
func plainText(t testing.TB, store, content, body string, more ...string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf(`
resource "libvirt_ignition" "it" {
  name    = "web"
  content = %q
}
resource "libvirt_volume" "it" {
  name   = "web.ign"
  pool   = "default"
  create = { content = { url = libvirt_ignition.it.path } }
  %s
}
%s`, content, strings.Join(more, "\n  "), body), fmt.Sprintf("seed_store = %q", store))
}

func configuration(hostname string) string {
	return fmt.Sprintf(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,%s"}}]}}`, hostname)
}

// exactly checks every byte that a volume has: behind the text there may be line
// ends, if it was longer once, and nothing else.
func exactly(t testing.TB, want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, err := os.ReadFile(volumeFile(t, "web.ign"))
		if err == nil && strings.TrimRight(string(got), "\n") != want {
			err = fmt.Errorf("the volume holds %q, want %q", got, want)
		}
		return err
	}
}

func plainDigest(content string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(vol, "status.content_digest", seed.Ignition(content).Digest().Tagged())
}

func TestAccSeedVolume_plain(t *testing.T) {
	acctest.Case(t, "a volume with an Ignition configuration is compared by what it holds, whatever the path; what was tampered with is put back; another one, longer or shorter, comes in place, and nothing but line ends is behind it")
	store, other, file := t.TempDir(), t.TempDir(), t.TempDir()+"/ignition-0123456789abcdef.ign"
	a, b := configuration("alpha"), configuration(strings.Repeat("beta", 30000))
	if err := os.WriteFile(file, []byte(a), 0o600); err != nil {
		t.Fatal(err)
	}
	var was uint64
	sameInode := func(*terraform.State) error {
		if now := inode(t, "web.ign"); now != was {
			return fmt.Errorf("the file was replaced: inode %d became %d", was, now)
		}
		return nil
	}
	conf := func(store, content string) string { return plainText(t, store, content, "") }
	elsewhere := planned(conf(other, a))
	elsewhere.PreConfig = func() { _ = os.RemoveAll(store) }
	lab.Steps(t,
		// As the incumbent fills it: from a path that tells nothing.
		lab.Apply(strings.Replace(conf(store, a), "libvirt_ignition.it.path", quoted(file), 1), plainDigest(a), exactly(t, a),
			func(*terraform.State) error { was = inode(t, "web.ign"); return nil }),
		planned(conf(store, a)),
		elsewhere,
		overwrite(t, "web.ign", []byte(configuration("evil")), updates(vol, "none", lab.Apply(conf(other, a), plainDigest(a), lastSteps("upload"), exactly(t, a), sameInode))),
		overwrite(t, "web.ign", bytes.Repeat([]byte{0xff}, 5000), resource.TestStep{RefreshState: true, ExpectNonEmptyPlan: true, Check: resource.TestCheckNoResourceAttr(vol, "status.content_digest")}),
		updates(vol, "none", lab.Apply(conf(other, a), plainDigest(a), lastSteps("upload"), exactly(t, a), sameInode)),
		updates(vol, "none", lab.Apply(conf(other, b), plainDigest(b), lastSteps("upload"), exactly(t, b), sameInode)),
		updates(vol, "none", lab.Apply(conf(other, a), plainDigest(a), lastSteps("upload"), exactly(t, a), sameInode)),
	)
}

// gets waits until a guest reports that it has a file by fw_cfg with every byte
// of the volume, and a script on a CD with the label and the name by which
// Combustion finds it.
func gets(t testing.TB, guest, script string) resource.TestCheckFunc {
	const entry = "opt/com.coreos/config"
	return func(*terraform.State) error {
		config, sum := fileSum(t, volumeFile(t, "web.ign")), fmt.Sprintf("%x", sha256.Sum256([]byte(script)))
		_, err := lab.Host(t).WaitReport(context.Background(), guest, 3*time.Minute, func(r host.Report) bool {
			cd := r.CDs["sr0"]
			return r.FwCfg[entry] == config && strings.EqualFold(cd.Label, "combustion") && cd.Files["combustion/script"] == sum
		})
		if err != nil {
			err = fmt.Errorf("guest %s does not get %s by %s and %s on its CD: %w", guest, config, entry, sum, err)
		}
		return err
	}
}

func TestAccSeedVolume_plainByFwCfg(t *testing.T) {
	acctest.Case(t, "a guest reads an Ignition configuration by fw_cfg, and a script on the drive that Combustion looks for: another script is exchanged while it runs, another configuration comes into the volume in place, and is what the guest gets when it boots the next time; the guest is not touched, and its volume counts as used")
	store := t.TempDir()
	a, b := configuration("alpha"), configuration("b")
	h := lab.Host(t)
	guest := func(script string) string {
		return fmt.Sprintf(`
resource "libvirt_combustion" "drive" {
  name    = "web"
  format  = "iso"
  content = %q
}
resource "libvirt_volume" "drive" {
  name   = "web-combustion.iso"
  pool   = "default"
  create = { content = { url = libvirt_combustion.drive.path } }
}
resource "libvirt_domain" "it" {
  name    = "by-fw-cfg"
  type    = "qemu"
  memory  = 131072
  vcpu    = 1
  running = true
  features = { acpi = true }
  os       = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
  sys_info = [{ fw_cfg = { entry = [{ name = "opt/com.coreos/config", file = libvirt_volume.it.path }] } }]
  devices  = {
    disks   = [{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "default", volume = libvirt_volume.drive.name } }, target = { dev = "sda", bus = "sata" } }]
    serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }]
  }
}`, script, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog("by-fw-cfg"))
	}
	const first, second = "#!/bin/sh\necho one\n", "#!/bin/sh\necho two\n"
	conf := func(content, script string) string { return plainText(t, store, content, guest(script)) }
	guests := map[string]*lab.Guest{}
	again := behind(t, lab.Apply(conf(b, second), gets(t, "by-fw-cfg", second)), "destroy by-fw-cfg", "start by-fw-cfg")
	again.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	lab.Steps(t,
		lab.Apply(conf(a, first), exactly(t, a), gets(t, "by-fw-cfg", first), func(*terraform.State) error {
			guests["by-fw-cfg"] = lab.Observe(t, "by-fw-cfg")
			return nil
		}),
		resource.TestStep{RefreshState: true, Check: resource.ComposeAggregateTestCheckFunc(resource.TestCheckResourceAttr(vol, "status.users.#", "2"),
			resource.TestCheckResourceAttr(vol, "status.running", "true"), resource.TestCheckResourceAttr(vol, "status.fw_cfg", "true"))},
		lab.Apply(conf(a, second), gets(t, "by-fw-cfg", second), untouched(t, guests)),
		updates(vol, "none", lab.Apply(conf(b, second), plainDigest(b), lastSteps("upload"), exactly(t, b), untouched(t, guests))),
		again,
	)
}

func TestAccSeedVolume_imageBecomesText(t *testing.T) {
	acctest.Case(t, "the image of a seed in a volume becomes a script that begins like no script: the state says at once what the volume holds")
	store := t.TempDir()
	conf := func(content, format string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_combustion" "it" {
  name    = "web"
  content = %q
  format  = %q
}
resource "libvirt_volume" "it" {
  name   = "web.ign"
  pool   = "default"
  create = { content = { url = libvirt_combustion.it.path } }
}`, content, format), fmt.Sprintf("seed_store = %q", store))
	}
	const script = "echo a script without its first line\n"
	lab.Steps(t,
		lab.Apply(conf("#!/bin/sh\necho image\n", "iso"), resource.TestCheckResourceAttrPair(vol, "status.content_digest", "libvirt_combustion.it", "digest")),
		updates(vol, "none", lab.Apply(conf(script, "raw"), lastSteps("upload"), resource.TestCheckResourceAttr(vol, "status.content_digest", seed.PlainDigest([]byte(script)).Tagged()))),
	)
}
