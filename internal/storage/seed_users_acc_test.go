package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// exchanging is a volume with a seed in it, and another seed that is to come.
type exchanging struct {
	t        *testing.T
	h        *virt.Host
	dir      string // of the pool "exchange"
	old, new string // user data
	from, to string // files
	state    tree.Value
}

// startExchange makes the volume s.iso in a pool of that target.
func startExchange(t *testing.T, target string) *exchanging {
	t.Helper()
	e := &exchanging{t: t, h: connect(t), dir: target, old: userData("alpha"), new: userData("beta") + strings.Repeat("# a long comment\n", 9000)}
	lab.Virsh(t, "pool-define-as", "exchange", "dir", "--target", target)
	lab.Virsh(t, "pool-start", "exchange")
	t.Cleanup(func() {
		_, _ = lab.Host(t).Virsh(context.Background(), "pool-destroy", "exchange")
		_, _ = lab.Host(t).Virsh(context.Background(), "pool-undefine", "exchange")
	})
	store := t.TempDir()
	e.from, e.to = seedFile(t, store, e.old), seedFile(t, store, e.new)
	done, err := e.kind().Create(context.Background(), object(map[string]any{"name": "s.iso", "pool": "exchange", "create.content.url": e.from}), tree.NullValue)
	if err != nil {
		t.Fatal(err)
	}
	e.state = done.Facts.Definition
	return e
}

// kind is one that has not asked who uses what.
func (e *exchanging) kind() *storage.Volume {
	return storage.NewVolume(func() *virt.Host { return e.h })
}

// plan reads the host and plans the exchange.
func (e *exchanging) plan() (kind.Facts, kind.Update) {
	e.t.Helper()
	k := e.kind()
	facts, err := k.Read(context.Background(), e.state)
	if err != nil {
		e.t.Fatal(err)
	}
	return facts, exchangeOf(k, facts, e.from, e.to)
}

// apply carries an exchange out, and returns the writes that it made.
func (e *exchanging) apply(u kind.Update) (kind.Done, []virt.Call, error) {
	rec := virttest.Record(e.h)
	defer rec.Stop()
	done, err := e.kind().Update(context.Background(), u)
	return done, rec.Writes(), err
}

// holds checks which seed is in the volume.
func (e *exchanging) holds(user string) {
	e.t.Helper()
	got, err := os.ReadFile(e.dir + "/s.iso")
	if err != nil || !bytes.HasPrefix(got, isoOf(e.t, user)) {
		e.t.Errorf("the volume does not hold the seed of %.30q: %v", user, err)
	}
}

// refuses applies, and checks that nothing was written.
func (e *exchanging) refuses(u kind.Update, parts ...string) {
	e.t.Helper()
	_, writes, err := e.apply(u)
	says(e.t, err, parts...)
	if len(writes) > 0 {
		e.t.Errorf("it wrote: %v", writes)
	}
	e.holds(e.old)
}

func hasMedium(t testing.TB, guest, file string) {
	t.Helper()
	if list := lab.Virsh(t, "domblklist", guest); !strings.Contains(list, file) {
		t.Errorf("%s has not %s in its drive:\n%s", guest, file, list)
	}
}

// asGuest starts a transient guest with devices.
func asGuest(t *testing.T, name, devices string) {
	t.Helper()
	file := t.TempDir() + "/d.xml"
	text := fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory>32768</memory><os><type machine='q35'>hvm</type></os><devices>%s</devices></domain>`, name, devices)
	if err := writeText(file, text); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "create", file)
	t.Cleanup(func() { _, _ = lab.Host(t).Virsh(context.Background(), "destroy", name) })
}

const byPool = `<disk type='volume' device='cdrom'><driver name='qemu' type='raw'/><source pool='exchange' volume='s.iso'/><target dev='sda' bus='sata'/><readonly/></disk>`

func TestAccSeedVolume_otherNames(t *testing.T) {
	acctest.Case(t, "a guest that has the seed by another name of the file is a user like any other: its medium comes out before the volume is written and in again after, and its disk keeps the volume from being written")
	target := t.TempDir()
	e := startExchange(t, link(t, target, filepath.Join(t.TempDir(), "pool")))
	drives(t, target+"/s.iso", "real")
	drives(t, link(t, target+"/s.iso", filepath.Join(t.TempDir(), "link.iso")), "linked")
	facts, u := e.plan()
	if s := facts.Status; !s.Attr("medium").Bool() || !s.Attr("running").Bool() || s.Attr("users").Len() != 4 || u.Effect != change.EffectLive {
		t.Errorf("%v, with the effect %s", s, u.Effect)
	}
	done, writes, err := e.apply(u)
	if err != nil || len(done.Steps) != 3 {
		t.Fatalf("%v, %v", done.Steps, err)
	}
	order := ""
	for _, c := range writes {
		order += c.String() + "; "
	}
	before, after, _ := strings.Cut(order, "upload to volume")
	for _, name := range []string{`"real"`, `"linked"`} {
		if strings.Count(before, name) != 1 || strings.Count(after, name) != 1 {
			t.Errorf("%s does not come out before the upload, and in after: %v", name, writes)
		}
	}
	e.holds(e.new)
	hasMedium(t, "real", target+"/s.iso")
	hasMedium(t, "linked", "link.iso")

	e.old, e.new, e.from, e.to = e.new, e.old, e.to, e.from
	_, u = e.plan()
	asGuest(t, "disk", fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s/s.iso'/><target dev='vda' bus='virtio'/><readonly/></disk>`, target))
	e.refuses(u, `Refusing to change the content of volume "s.iso"`, "domain disk (running), disk vda")
}

func TestAccSeedVolume_poolRenamed(t *testing.T) {
	acctest.Case(t, "a guest that has the seed by the name that its pool had is found; as libvirt could not put the medium in again, nothing is touched")
	e := startExchange(t, t.TempDir())
	asGuest(t, "former", byPool)
	lab.Virsh(t, "pool-destroy", "exchange")
	lab.Virsh(t, "pool-undefine", "exchange")
	lab.Virsh(t, "pool-define-as", "present", "dir", "--target", e.dir)
	lab.Virsh(t, "pool-start", "present")
	t.Cleanup(func() { lab.Virsh(t, "pool-destroy", "present"); lab.Virsh(t, "pool-undefine", "present") })
	facts, u := e.plan()
	if s := facts.Status; !s.Attr("medium").Bool() || !s.Attr("running").Bool() {
		t.Errorf("%v", s)
	}
	e.refuses(u, `Guest "former" has volume "s.iso" by a name that leads nowhere`, "virsh change-media former sda --eject --live", "Nothing was changed")
	lab.Virsh(t, "change-media", "former", "sda", "--eject", "--live")
	_, u = e.plan()
	present := tree.StringValue("present")
	u.Config, u.Planned = u.Config.With("pool", present), u.Planned.With("pool", present)
	if _, _, err := e.apply(u); err != nil {
		t.Fatal(err)
	}
	e.holds(e.new)
}

func TestAccSeedVolume_startedSince(t *testing.T) {
	acctest.Case(t, "a plan that was made while no guest ran announced that none is touched: a guest that was started since keeps its medium and its disk, and the volume what it holds")
	e := startExchange(t, t.TempDir())
	_, u := e.plan()
	if u.Effect != change.EffectNone {
		t.Fatalf("the effect is %s", u.Effect)
	}
	asGuest(t, "early", byPool)
	e.refuses(u, `Volume "s.iso" is not as it was when the plan was made`, "domain early (running), disk sda has it now", "the plan announced none", "Plan again")
	hasMedium(t, "early", "s.iso")
	_, u = e.plan()
	if done, _, err := e.apply(u); err != nil || len(done.Steps) != 3 {
		t.Fatalf("planned again: %v, %v", done.Steps, err)
	}

	// The same of a disk that is to grow.
	k := e.kind()
	done, err := k.Create(context.Background(), object(map[string]any{"name": "data", "pool": "exchange", "capacity": 1 << 20}), tree.NullValue)
	if err != nil {
		t.Fatal(err)
	}
	prior := done.Facts.Definition.With("status", done.Facts.Status)
	larger := kind.Update{Prior: prior, Planned: prior.With("capacity", tree.IntValue(2<<20)), Config: prior}
	asGuest(t, "grows", fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s/data'/><target dev='vda' bus='virtio'/></disk>`, e.dir))
	_, writes, err := e.apply(larger)
	says(t, err, `Volume "data" is not as it was when the plan was made`, "the plan announced none")
	if len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
	larger.Effect = change.EffectLive
	if _, _, err := e.apply(larger); err != nil {
		t.Error(err)
	}
}

func TestAccSeedVolume_savedGuest(t *testing.T) {
	acctest.Case(t, "a guest that was saved with the seed in its drive goes on with what it has read: the seed is not changed under it until it runs again, or its save is deleted")
	e := startExchange(t, t.TempDir())
	define(t, "asleep", "", byPool)
	lab.Virsh(t, "start", "asleep")
	lab.Virsh(t, "managedsave", "asleep")
	_, u := e.plan()
	e.refuses(u, `Saved guest "asleep" has volume "s.iso" in a drive`, "virsh start asleep", "virsh managedsave-remove asleep", "Nothing was changed")
	lab.Virsh(t, "managedsave-remove", "asleep")
	_, u = e.plan()
	if _, _, err := e.apply(u); err != nil {
		t.Error(err)
	}
	e.holds(e.new)
}

func TestAccSeedVolume_openTray(t *testing.T) {
	acctest.Case(t, "a medium on an open tray is not in: where an eject ends late, after libvirt gave it up, the medium is put in again so that the guest sees it")
	e := startExchange(t, t.TempDir())
	drives(t, e.dir+"/s.iso", "late")
	_, u := e.plan()
	xml := func() string { return lab.Virsh(t, "dumpxml", "late") }
	wait := func(what string) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); !strings.Contains(xml(), what); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the guest has no %s:\n%s", what, xml())
			}
		}
	}
	remove := virttest.Install(e.h, virttest.Fail(virttest.Nth(1, virttest.Op("update a device of domain")), func(c virt.Call) error {
		lab.Virsh(t, "qemu-monitor-command", "late", `{"execute":"blockdev-open-tray","arguments":{"id":"sata0-0-0","force":true}}`)
		wait("tray='open'")
		return virttest.Coded(virt.ErrOperationFailed, "timeout: the tray is not open")(c)
	}))
	_, _, err := e.apply(u)
	remove()
	says(t, err, `Guest "late" does not let go of the CD in drive sda`, "The volume holds what it held, and the guests have it in their drives")
	if now := xml(); strings.Contains(now, "tray='open'") || !strings.Contains(now, "s.iso") {
		t.Errorf("the medium is not in:\n%s", now)
	}
	e.holds(e.old)
	if done, _, err := e.apply(u); err != nil || len(done.Steps) != 3 {
		t.Errorf("%v, %v", done.Steps, err)
	}
	e.holds(e.new)
	hasMedium(t, "late", "s.iso")
}

func TestAccSeedVolume_daemonRestarts(t *testing.T) {
	acctest.Case(t, "a daemon that restarts while a seed is written takes nothing away: it is waited for, the old seed is written back and every guest has it in its drive; where that cannot be done, the message tells what is out and how it comes in")
	e := startExchange(t, t.TempDir())
	drives(t, e.dir+"/s.iso", "one", "two")
	_, u := e.plan()
	back := make(chan error, 1)
	remove := virttest.Install(e.h, virttest.Fail(virttest.Nth(1, virttest.Op("upload to volume")), func(c virt.Call) error {
		go func() { back <- lab.Host(t).RestartDaemon(context.Background()) }()
		time.Sleep(50 * time.Millisecond)
		return virttest.ConnectionLost(c)
	}))
	_, _, err := e.apply(u)
	remove()
	if restarted := <-back; restarted != nil {
		t.Fatal(restarted)
	}
	says(t, err, "The volume holds what it held, and the guests have it in their drives")
	e.holds(e.old)
	hasMedium(t, "one", "s.iso")
	hasMedium(t, "two", "s.iso")

	// What libvirt refuses to put in again is named.
	_, u = e.plan()
	refused := virttest.And(virttest.Op("update a device of domain"), virttest.On("two"))
	count := 0
	remove = virttest.Install(e.h, virttest.Fail(func(c virt.Call) bool {
		if refused(c) {
			count++
		}
		return refused(c) && count > 1
	}, virttest.PermissionDenied))
	_, _, err = e.apply(u)
	remove()
	says(t, err, "access denied", "no apply puts it in again", fmt.Sprintf("virsh change-media two sda %s/s.iso --insert --live", e.dir))
	if strings.Contains(err.Error(), "change-media one") {
		t.Errorf("one has it: %v", err)
	}
	hasMedium(t, "one", "s.iso")
	lab.Virsh(t, "change-media", "two", "sda", e.dir+"/s.iso", "--insert", "--live")
	_, u = e.plan()
	if done, _, err := e.apply(u); err != nil || len(done.Steps) != 3 {
		t.Errorf("%v, %v", done.Steps, err)
	}
	e.holds(e.new)
}

func TestAccSeedVolume_imageOfThatName(t *testing.T) {
	core := acctest.Case(t, "an image of a system whose name has the checksum of its own file is no seed: a volume is made of it, whatever its size, and nothing is planned after")
	file := filepath.Join(t.TempDir(), "debian-sha256-"+strings.Repeat("0123456789abcdef", 4)+".iso")
	image := append(bytes.Replace(foreignISO(t, "x"), []byte("cidata"), []byte("DEBIAN"), 1), make([]byte, 17<<20)...)
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "alpine-sha256-"+strings.Repeat("0123456789abcdef", 4)+".iso")
	if err := os.WriteFile(small, []byte("no image at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := ""
	for name, url := range map[string]string{"large": file, "small": small} {
		config += fmt.Sprintf("resource \"libvirt_volume\" %[1]q {\n  name   = \"named-%[1]s.iso\"\n  pool   = \"default\"\n  create = { content = { url = %[2]q } }\n}\n", name, url)
	}
	p := lab.StartProject(t, core, lab.Config(t, config), "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "destroy", "-auto-approve")
}
