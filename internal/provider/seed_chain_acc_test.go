package provider_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// seedChain is two machines, each with a seed, a volume that holds it, and a
// drive with that.
const seedChain = `
terraform {
  required_providers {
    libvirt = { source = "driftsafe/libvirt" }
  }
}
variable "uri" {}
variable "kernel" {}
variable "initrd" {}
variable "cmdline" {}
variable "consoles" {}
variable "store" {}
variable "greeting" {}

provider "libvirt" {
  uri        = var.uri
  seed_store = var.store
}
locals { machines = toset(["chain-a", "chain-b"]) }

resource "libvirt_cloudinit_disk" "seed" {
  for_each  = local.machines
  name      = each.key
  user_data = "#cloud-config\nhostname: ${each.key}\n# ${var.greeting}\n"
  meta_data = "instance-id: ${each.key}\n"
}
resource "libvirt_volume" "seed" {
  for_each = local.machines
  name     = "${each.key}-seed.iso"
  pool     = "default"
  create   = { content = { url = libvirt_cloudinit_disk.seed[each.key].path } }
}
resource "libvirt_domain" "machine" {
  for_each = local.machines
  name     = each.key
  type     = "qemu"
  memory   = 131072
  vcpu     = 1
  os       = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = var.kernel, initrd = var.initrd, cmdline = var.cmdline }
  running  = true
  devices = {
    disks = [{
      device = "cdrom"
      driver = { name = "qemu", type = "raw" }
      source = { volume = { pool = "default", volume = libvirt_volume.seed[each.key].name } }
      target = { dev = "sda", bus = "sata" }
    }]
    serials = [{ source = { file = { path = "${var.consoles}/${each.key}.log", append = "on" } }, target = { port = 0 } }]
  }
}
`

// pooledChain is the same without the volumes: the seeds lie in the pool by
// themselves.
func pooledChain() string {
	volume := seedChain[strings.Index(seedChain, "resource \"libvirt_volume\""):strings.Index(seedChain, "resource \"libvirt_domain\"")]
	return strings.NewReplacer(
		volume, "",
		"  name      = each.key\n", "  name      = each.key\n  pool      = \"default\"\n",
		"libvirt_volume.seed[each.key].name", "libvirt_cloudinit_disk.seed[each.key].volume_name",
	).Replace(seedChain)
}

func chainUserData(machine, greeting string) string {
	return fmt.Sprintf("#cloud-config\nhostname: %s\n# %s\n", machine, greeting)
}

// chainWorld watches the machines of a seedChain from outside.
type chainWorld struct {
	t        *testing.T
	h        *host.Host
	machines []string
	pooled   bool
	files    map[string]seedFile
	guests   map[string]*lab.Guest
}

// seedFile is the file of a seed on the host: which one, and when it was last
// written.
type seedFile struct {
	inode   uint64
	written time.Time
}

func (w *chainWorld) file(machine string) seedFile {
	w.t.Helper()
	pattern := machine + "-seed.iso"
	if w.pooled {
		pattern = machine + "-????????????.iso"
	}
	files, err := filepath.Glob(filepath.Join(w.h.PoolDir(), pattern))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("the seed of %s is %q, %v", machine, files, err)
	}
	return statOf(w.t, files[0])
}

func statOf(t testing.TB, file string) seedFile {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return seedFile{info.Sys().(*syscall.Stat_t).Ino, info.ModTime()}
}

func (w *chainWorld) observe() {
	w.t.Helper()
	for _, m := range w.machines {
		w.guests[m] = lab.Observe(w.t, m)
	}
}

// same fails the test if a guest was touched, or the file of a seed replaced or
// written.
func (w *chainWorld) same(when string) {
	w.t.Helper()
	for _, m := range w.machines {
		w.guests[m].Untouched(w.t, m)
		if now := w.file(m); now != w.files[m] {
			w.t.Errorf("%s: the seed of %s was replaced or written: %+v became %+v", when, m, w.files[m], now)
		}
	}
}

func (w *chainWorld) sees(machine, greeting string) {
	w.t.Helper()
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(chainUserData(machine, greeting))))
	if _, err := w.h.WaitReport(context.Background(), machine, 4*time.Minute, func(r host.Report) bool { return r.Seed()["user-data"] == want }); err != nil {
		w.t.Errorf("%s does not see %q on its CD: %v", machine, greeting, err)
	}
}

// reboot is what a power cut makes of a host: the guests end, the daemon starts
// anew, and starts those guests that are to start by themselves.
func (w *chainWorld) reboot() {
	w.t.Helper()
	for _, m := range w.machines {
		lab.Virsh(w.t, "destroy", m)
	}
	// libvirtd starts guests once for each boot of the host, and notes that it has.
	if _, err := w.h.Exec(context.Background(), "sh", "-c", "rm -f /run/libvirt/qemu/autostarted"); err != nil {
		w.t.Fatal(err)
	}
	if err := w.h.RestartDaemon(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range w.machines {
		for end := time.Now().Add(time.Minute); strings.TrimSpace(lab.Virsh(w.t, "domstate", m)) != "running"; time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				w.t.Fatalf("%s was not started with the host", m)
			}
		}
	}
	w.observe()
}

func TestAccSeedChain_nothingHappens(t *testing.T) {
	c := acctest.Case(t, "seeds, volumes, machines: an emptied store, autostart set by hand, other directories, another user and a reboot of the host plan nothing and touch nothing; changed user data reaches the running guests; what -target leaves is in the next plan, and nothing of it on the host before")
	p, w := nothingHappens(t, c, seedChain, false)
	// Only the files on this machine: the volumes hold what they held.
	third := p.With("TF_VAR_greeting=" + later)
	third.Must(0, "apply", "-auto-approve", "-target=libvirt_cloudinit_disk.seed")
	w.same("an apply of the seeds alone")
	for _, m := range w.machines {
		w.sees(m, goodbye)
	}
	if out := third.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to add, 2 to change, 0 to destroy") {
		t.Errorf("the plan after -target:\n%s", out)
	}
	third.Must(0, "apply", "-auto-approve")
	for _, m := range w.machines {
		w.sees(m, later)
		w.guests[m].Untouched(t, m)
		if now := w.file(m); now.inode != w.files[m].inode {
			t.Errorf("the seed of %s is another file: %+v became %+v", m, w.files[m], now)
		}
	}
	third.Must(0, "plan", "-detailed-exitcode")
}

// What the user data say after hello.
const later = "and later"

var goodbye = "goodbye, with more to say than before: " + strings.Repeat("x", 5000)

func TestAccSeedChain_nothingHappensInPools(t *testing.T) {
	c := acctest.Case(t, "seeds in a pool, machines: an emptied store, autostart set by hand, other directories, another user and a reboot of the host plan nothing and touch nothing; changed user data reaches the running guests; what -target leaves is told, and is a change of the seeds once no machine has it")
	p, w := nothingHappens(t, c, pooledChain(), true)
	// Only the seeds: the machines keep the volumes that they have.
	third := p.With("TF_VAR_greeting=" + later)
	third.Must(0, "apply", "-auto-approve", "-target=libvirt_cloudinit_disk.seed")
	if got := w.volumes(); got != 4 {
		t.Errorf("%d volumes, want the two that the machines have, and two new ones", got)
	}
	for _, m := range w.machines {
		w.guests[m].Untouched(t, m)
	}
	if out := third.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to add, 2 to change, 0 to destroy") ||
		!lab.Says(`An old volume of seed "chain-a" is still on the host: default/chain-a-`, "needed by domain chain-a").MatchString(out) {
		t.Errorf("the plan after -target:\n%s", out)
	}
	third.Must(0, "apply", "-auto-approve")
	for _, m := range w.machines {
		w.sees(m, later)
		w.guests[m].Untouched(t, m)
	}
	// No seed has said in that apply what the machines had: nothing goes but what a
	// plan shows.
	if got := w.volumes(); got != 4 {
		t.Errorf("%d volumes, want the four that there were", got)
	}
	if out := third.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to add, 2 to change, 0 to destroy") || !strings.Contains(out, "superseded") {
		t.Errorf("the plan after the machines have changed:\n%s", out)
	}
	third.Must(0, "apply", "-auto-approve")
	third.Must(0, "plan", "-detailed-exitcode")
	if got := w.volumes(); got != 2 {
		t.Errorf("%d volumes, want two", got)
	}
	for _, m := range w.machines {
		w.guests[m].Untouched(t, m)
	}
}

// nothingHappens plays the chain, and returns it with changed user data.
func nothingHappens(t *testing.T, c core.Core, config string, pooled bool) (*lab.Project, *chainWorld) {
	h, from, user := lab.Host(t), t.TempDir(), t.TempDir()
	if err := os.WriteFile(from+"/main.tf", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	lives := func(name string) []string {
		dir := filepath.Join(user, name)
		for _, d := range []string{"tmp", "home", "state"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		return []string{"TMPDIR=" + dir + "/tmp", "HOME=" + dir + "/home", "XDG_STATE_HOME=" + dir + "/state"}
	}
	p := lab.NewProject(t, c, from, append(lives("first"), "LIBVIRT_PROTECT=false", "TF_VAR_uri="+h.URI(), "TF_VAR_kernel="+h.Guest().Kernel,
		"TF_VAR_initrd="+h.Guest().Initrd, "TF_VAR_cmdline="+h.Guest().Cmdline, "TF_VAR_consoles="+filepath.Dir(h.ConsoleLog("x")), "TF_VAR_greeting=hello",
		"TF_VAR_store="+user+"/first/store")...)
	w := &chainWorld{t: t, h: h, machines: []string{"chain-a", "chain-b"}, pooled: pooled, files: map[string]seedFile{}, guests: map[string]*lab.Guest{}}
	p.Must(0, "apply", "-auto-approve")
	t.Cleanup(func() { _, _ = p.Run("destroy", "-auto-approve") })
	w.observe()
	for _, m := range w.machines {
		w.files[m] = w.file(m)
		w.sees(m, "hello")
	}
	// nothing is asked of whoever runs the core: a plan is empty, and its apply
	// does nothing but write down what was read.
	nothing := func(run func(args ...string) (string, int), when string) {
		t.Helper()
		if out, code := run("plan", "-detailed-exitcode"); code != 0 || !strings.Contains(out, "No changes.") {
			t.Errorf("%s: exit code %d\n%s", when, code, out)
		}
		if out, code := run("apply", "-auto-approve"); code != 0 || !strings.Contains(out, "Resources: 0 added, 0 changed, 0 destroyed") {
			t.Errorf("%s: exit code %d\n%s", when, code, out)
		}
		w.same(when)
	}
	empty := func(p *lab.Project, when string) {
		t.Helper()
		nothing(p.Run, when)
	}
	// The second user can read nothing of the first one's.
	second, nobody := p.With(append(lives("second"), "TF_VAR_store="+user+"/second/elsewhere")...), lab.Nobody(t)
	emptyForSecond := func(when string) {
		t.Helper()
		nothing(func(args ...string) (string, int) { return nobody.Run(second, args...) }, when)
		if state, err := os.ReadFile(second.Dir() + "/terraform.tfstate"); err != nil || !strings.Contains(string(state), user+"/second/elsewhere/chain-a") && !pooled {
			t.Errorf("%s: the state does not have the path of the second user, %v:\n%s", when, err, state)
		}
	}
	wipe := func() {
		for _, d := range []string{"/first", "/second"} {
			_ = os.RemoveAll(user + d)
		}
		lives("first")
		lives("second")
		nobody.Owns(t, user+"/second")
	}

	empty(p, "at once")
	wipe()
	empty(p, "the store and all temporary directories emptied")
	for _, m := range w.machines {
		lab.Virsh(t, "autostart", m)
	}
	empty(p, "autostart set by hand")
	emptyForSecond("other directories, another user, another store")
	empty(p.With("TF_VAR_store="), "the standard store of the user")
	wipe()
	w.reboot()
	emptyForSecond("all together, after the host was started anew")
	empty(p, "and the first user again")

	// Changed user data.
	changed := p.With("TF_VAR_greeting=" + goodbye)
	out := changed.Must(2, "plan", "-detailed-exitcode", "-out=changed")
	if !strings.Contains(out, "0 to add, 4 to change, 0 to destroy") {
		t.Errorf("two seeds, and two volumes or the drives of two machines, change, nothing else:\n%s", out)
	}
	wipe() // between plan and apply
	changed.Must(0, "apply", "changed")
	for _, m := range w.machines {
		now := w.file(m)
		if same := now.inode == w.files[m].inode; same == pooled { // in a pool, other content is another volume
			t.Errorf("changed user data: the seed of %s was %+v and is %+v", m, w.files[m], now)
		}
		w.files[m] = now
	}
	for _, m := range w.machines {
		w.sees(m, goodbye)
	}
	w.same("changed user data")
	changed.Must(0, "plan", "-detailed-exitcode")
	w.same("the plan after it")
	if got := w.volumes(); got != 2 {
		t.Errorf("%d volumes, want two", got)
	}
	return changed, w
}

// volumes is how many of the machines' seeds the pool has; other cases may have
// left others there.
func (w *chainWorld) volumes() (n int) {
	w.t.Helper()
	for _, m := range w.machines {
		files, err := filepath.Glob(filepath.Join(w.h.PoolDir(), m+"-*.iso"))
		if err != nil {
			w.t.Fatal(err)
		}
		n += len(files)
	}
	return n
}
