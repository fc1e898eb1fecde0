package provider_test

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// secretSeed is a seed whose user data are not kept, with whatever comes from the
// variables of the run.
func secretSeed(t *testing.T, more string) string {
	return lab.Config(t, `
variable "secret" {
  type      = string
  ephemeral = true
  default   = "#cloud-config\n"
}
variable "revision" { default = 1 }
resource "libvirt_cloudinit_disk" "it" {
  name                 = "secretive"
  pool                 = "default"
  user_data_wo         = var.secret
  user_data_wo_version = var.revision
  meta_data            = "instance-id: one\n"
`+more+"}\n")
}

// secretReader is a machine that has the seed in its drive, by the name that no
// plan knows.
func secretReader(t *testing.T) string {
	h := lab.Host(t)
	return fmt.Sprintf(`
resource "libvirt_domain" "reader" {
  name    = "secret-reader"
  type    = "qemu"
  memory  = 131072
  vcpu    = 1
  running = true
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
  devices = {
    disks   = [{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "default", volume = libvirt_cloudinit_disk.it.volume_name } }, target = { dev = "sda", bus = "sata" } }]
    serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }]
  }
}`, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog("secret-reader"))
}

// secretText is user data with a text in it that is to be found nowhere.
func secretText(canary string) string { return "#cloud-config\npassword: " + canary + "\n" }

// readsSecret fails the test unless the machine reads the user data with the text
// on its CD, and is the same as before.
func readsSecret(t *testing.T, before *lab.Guest, canary string) {
	t.Helper()
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(secretText(canary))))
	if _, err := lab.Host(t).WaitReport(context.Background(), "secret-reader", 4*time.Minute, func(r host.Report) bool { return r.Seed()["user-data"] == want }); err != nil {
		t.Errorf("the machine does not read %q: %v", canary, err)
	}
	before.Untouched(t, "secret-reader")
}

// secretVolume is the file of its one volume.
func secretVolume(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(lab.Host(t).PoolDir(), "secretive-*.iso"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the pool has %q, %v", files, err)
	}
	return files[0]
}

// unpacked is what the files of a saved plan hold.
func unpacked(t *testing.T, plan string) string {
	t.Helper()
	archive, err := zip.OpenReader(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var all strings.Builder
	for _, f := range archive.File {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(&all, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(all.String(), "secretive") {
		t.Fatal("the plan does not name the seed: this test shows nothing")
	}
	return all.String()
}

func holdsText(t *testing.T, file, text string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(content), text)
}

func TestAccCloudinitDisk_writeOnly(t *testing.T) {
	c := acctest.Case(t, "write-only user data are on the host, in the drive of a running machine, and nowhere else: not in state, plan, output or logs; another version exchanges them in the drive and touches nothing else, one with equal data nothing at all, another value alone neither; what was tampered with is put back from the configuration, or refused if that has another value")
	const first, second, third = "canary-one-7c1f", "canary-two-9d2e", "canary-three-3b4a"
	logs := t.TempDir() + "/provider.log"
	p := lab.StartProject(t, c, secretSeed(t, "")+secretReader(t), "LIBVIRT_PROTECT=false", "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH="+logs)
	with := func(canary string, revision int) *lab.Project {
		return p.With("TF_VAR_secret="+secretText(canary), fmt.Sprintf("TF_VAR_revision=%d", revision))
	}
	t.Cleanup(func() { _, _ = with(third, 9).Run("destroy", "-auto-approve") })
	var said strings.Builder
	say := func(out string) string { said.WriteString(out); return out }

	say(with(first, 1).Must(0, "apply", "-auto-approve"))
	if !holdsText(t, secretVolume(t), first) {
		t.Error("the volume does not hold the user data")
	}
	guest := lab.Observe(t, "secret-reader")
	readsSecret(t, guest, first)
	say(with(first, 1).Must(0, "plan", "-detailed-exitcode"))
	// Another value of the same version is nobody's business.
	say(with(second, 1).Must(0, "plan", "-detailed-exitcode"))
	if out := say(with(second, 2).Must(2, "plan", "-detailed-exitcode", "-out=changed")); !strings.Contains(out, "0 to add, 2 to change, 0 to destroy") {
		t.Errorf("the seed and the machine's drive change, nothing else:\n%s", out)
	}
	say(with(second, 2).Must(0, "show", "-json", "changed"))
	say(with(second, 2).Must(0, "apply", "changed"))
	if file := secretVolume(t); !holdsText(t, file, second) || holdsText(t, file, first) {
		t.Error("the volume does not hold the user data of the second version alone")
	}
	readsSecret(t, guest, second)
	say(with(second, 2).Must(0, "plan", "-detailed-exitcode"))

	tamper := func() {
		if err := os.WriteFile(secretVolume(t), make([]byte, 60000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tamper()
	if out, code := with(third, 2).Run("apply", "-auto-approve"); code != 1 || !lab.Says("user_data_wo of seed", "is another one, and its version is the same", "Raise user_data_wo_version").MatchString(say(out)) {
		t.Errorf("another value for the same version: exit code %d\n%s", code, out)
	}
	say(with(second, 2).Must(0, "apply", "-auto-approve"))
	if !holdsText(t, secretVolume(t), second) {
		t.Error("the volume was not put back")
	}
	readsSecret(t, guest, second)
	// Another version with the same data: no plan knows that nothing will change.
	before, drive := statOf(t, secretVolume(t)), lab.Virsh(t, "dumpxml", "secret-reader")
	say(with(second, 4).Must(0, "apply", "-auto-approve"))
	if now := statOf(t, secretVolume(t)); now != before {
		t.Errorf("equal user data: the volume was %+v and is %+v", before, now)
	}
	if now := lab.Virsh(t, "dumpxml", "secret-reader"); now != drive {
		t.Errorf("equal user data: the machine was\n%s\nand is\n%s", drive, now)
	}
	readsSecret(t, guest, second)
	say(with(second, 4).Must(0, "plan", "-detailed-exitcode"))
	// An input that is refused is not shown.
	if out, code := p.With("TF_VAR_secret=nonsense "+third, "TF_VAR_revision=5").Run("plan"); code != 1 || !lab.Says("Invalid user_data_wo of seed").MatchString(say(out)) {
		t.Errorf("user data of an unknown kind: exit code %d\n%s", code, out)
	}
	say(with(second, 4).Must(0, "show", "-json"))

	places := map[string]string{"what was printed": said.String()}
	for _, file := range []string{logs, p.Dir() + "/terraform.tfstate", p.Dir() + "/terraform.tfstate.backup", p.Dir() + "/changed"} {
		content, err := os.ReadFile(file)
		if err != nil || len(content) == 0 {
			t.Fatalf("%s: %d bytes, %v", file, len(content), err)
		}
		places[file] = string(content)
	}
	places["the plan"] = unpacked(t, p.Dir()+"/changed")
	for place, content := range places {
		for _, canary := range []string{first, second, third} {
			if strings.Contains(content, canary) {
				t.Errorf("%s has the user data in it", place)
			}
		}
	}
}

func TestAccCloudinitDisk_poolInputs(t *testing.T) {
	c := acctest.Case(t, "what does not go together is refused with what to do, in the plan; a pool that is not there, in the apply; user data in a pool are shown nowhere but in the state")
	conf := func(lines string) string {
		return lab.Config(t, "resource \"libvirt_cloudinit_disk\" \"it\" {\n  name = \"odd\"\n  meta_data = \"instance-id: one\\n\"\n"+lines+"\n}\n")
	}
	p := lab.StartProject(t, c, conf(""), "LIBVIRT_PROTECT=false", "XDG_STATE_HOME="+t.TempDir())
	for lines, says := range map[string]string{
		"":                    `Missing user_data of seed "odd"`,
		"user_data_wo = \"\"": `No pool for user_data_wo of seed "odd"`,
		"user_data_wo = \"\"\n  pool = \"default\"":                                                 `Missing user_data_wo_version of seed "odd"`,
		"user_data = \"\"\n  user_data_wo_version = 1":                                              `No user_data_wo of seed "odd"`,
		"user_data = \"\"\n  user_data_wo = \"\"\n  user_data_wo_version = 1\n  pool = \"default\"": `Two user data of seed "odd"`,
		"user_data = \"\"\n  pool = \"\"":                                                           `Empty pool of seed "odd"`,
	} {
		p.Write(conf("  " + lines))
		p.Refuses([]string{says}, "plan")
	}
	p.Write(conf("  user_data = \"#cloud-config\\npassword: canary-5e6f\\n\"\n  pool = \"no-such\""))
	if out := p.Must(2, "plan", "-detailed-exitcode"); strings.Contains(out, "canary") {
		t.Errorf("the plan shows user data:\n%s", out)
	}
	out := p.Must(1, "apply", "-auto-approve")
	if strings.Contains(out, "canary") || !lab.Says(`Could not create seed "odd"`, `There is no pool "no-such"`, "Nothing was made").MatchString(out) {
		t.Errorf("a pool that is not there:\n%s", out)
	}
}
