package provider_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccDestroy_unreachable(t *testing.T) {
	core := acctest.Case(t, "a destroy on a host that cannot be reached fails, with and without a refresh, and every object stays in the state; when the host is back it works")
	config := lab.Config(t, fmt.Sprintf(`
resource "libvirt_cloudinit_disk" "it" {
  name      = "far"
  meta_data = "instance-id: far\n"
  user_data = "#cloud-config\n"
}
resource "libvirt_pool" "it" {
  name   = "far"
  type   = "dir"
  target = { path = %q }
}
resource "libvirt_volume" "it" {
  name   = "far.iso"
  pool   = libvirt_pool.it.name
  create = { content = { url = libvirt_cloudinit_disk.it.path } }
}
resource "libvirt_network" "it" {
  name = "far"
}
resource "libvirt_domain" "it" {
  name    = "far"
  type    = "qemu"
  memory  = 32768
  vcpu    = 1
  running = false
  os      = { type = "hvm", type_arch = "x86_64" }
  devices = {
    disks      = [{ device = "cdrom", source = { volume = { pool = libvirt_pool.it.name, volume = libvirt_volume.it.name } }, target = { dev = "hda", bus = "ide" } }]
    interfaces = [{ source = { network = { network = libvirt_network.it.name } } }]
  }
}`, t.TempDir()+"/pool"))
	p := lab.StartProject(t, core, config, "LIBVIRT_PROTECT=false", "XDG_STATE_HOME="+t.TempDir())
	p.Must(0, "apply", "-auto-approve")
	const five = "libvirt_cloudinit_disk.it libvirt_domain.it libvirt_network.it libvirt_pool.it libvirt_volume.it"
	all := func() {
		t.Helper()
		if list := strings.Join(strings.Fields(p.Must(0, "state", "list")), " "); list != five {
			t.Errorf("the state holds %s", list)
		}
	}
	p.Write(strings.Replace(config, "libvirt-sock", "no-such-socket", 1))
	p.Refuses([]string{"Could not read", "no-such-socket"}, "destroy", "-auto-approve")
	all()
	p.Refuses([]string{`Could not read domain "far"`, "no-such-socket"}, "destroy", "-auto-approve", "-refresh=false")
	all()
	// A core destroys what depends on an object before it, and stops there: the
	// others get their turn when nothing depends on them any more.
	alone := lab.StartProject(t, core, config, "LIBVIRT_PROTECT=false", "XDG_STATE_HOME="+t.TempDir())
	state, err := os.ReadFile(p.Dir() + "/terraform.tfstate")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(alone.Dir()+"/terraform.tfstate", state, 0o600); err != nil {
		t.Fatal(err)
	}
	alone.Write(strings.Replace(config, "libvirt-sock", "no-such-socket", 1))
	for _, noun := range []string{"domain", "network", "volume", "pool"} {
		one := "libvirt_" + noun + ".it"
		alone.Refuses([]string{fmt.Sprintf(`Could not read %s "far`, noun), "no-such-socket"}, "destroy", "-auto-approve", "-refresh=false", "-target="+one)
		if list := alone.Must(0, "state", "list"); !strings.Contains(list, one) {
			t.Errorf("%s is not in the state:\n%s", one, list)
		}
		alone.Must(0, "state", "rm", one)
	}
	p.Write(config)
	p.Must(0, "plan", "-detailed-exitcode")
	p.Must(0, "destroy", "-auto-approve")
	if list := strings.TrimSpace(p.Must(0, "state", "list")); list != "" {
		t.Errorf("the state still holds %s", list)
	}
}

func TestAccDestroy_lostConnection(t *testing.T) {
	acctest.Case(t, "whichever call of a destroy loses its connection: it fails, or the object is gone, and never both or neither; repeated it works")
	ctx := context.Background()
	host := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	defer func() { _ = host.Close() }()
	ask := func() *virt.Host { return host }
	dir := t.TempDir()
	document := func(command, text string) {
		file := filepath.Join(t.TempDir(), "x.xml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Virsh(t, command, file)
	}
	document("pool-define", "<pool type='dir'><name>store</name><target><path>"+dir+"</path></target></pool>")
	lab.Virsh(t, "pool-start", "store")
	t.Cleanup(func() { lab.Virsh(t, "pool-destroy", "store"); lab.Virsh(t, "pool-undefine", "store") })
	for _, c := range []struct {
		kind kind.Kind
		id   string
		make func()
	}{
		{domain.New(ask), "lost", func() {
			document("define", "<domain type='qemu'><name>lost</name><memory>16384</memory><os><type>hvm</type></os></domain>")
		}},
		{network.New(ask), "lost", func() {
			document("net-define", "<network><name>lost</name></network>")
			lab.Virsh(t, "net-start", "lost")
		}},
		{storage.NewPool(ask), "lost", func() {
			document("pool-define", "<pool type='dir'><name>lost</name><target><path>"+t.TempDir()+"</path></target></pool>")
			lab.Virsh(t, "pool-start", "lost")
		}},
		{storage.NewVolume(ask), "store/lost", func() { lab.Virsh(t, "vol-create-as", "store", "lost", "64K") }},
	} {
		c.make()
		state, err := c.kind.Find(ctx, c.id)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for n := 1; ; n++ {
			remove := virttest.Install(host, virttest.Fail(virttest.Nth(n, func(virt.Call) bool { return true }), virttest.ConnectionLost))
			_, err := c.kind.Delete(ctx, state)
			remove()
			_, findErr := c.kind.Find(ctx, c.id)
			if err == nil {
				if findErr == nil {
					t.Errorf("%s: destroyed, it says, and is still there", c.kind.Noun())
				}
				break
			}
			failed++
			if !virt.IsLost(err) {
				t.Errorf("%s, call %d: got %v", c.kind.Noun(), n, err)
			}
			if findErr != nil { // it is the last call that failed, which only looked
				if _, err := c.kind.Delete(ctx, state); err != nil {
					t.Errorf("%s, call %d: what is gone is destroyed: %v", c.kind.Noun(), n, err)
				}
				break
			}
		}
		t.Logf("%s: %d calls failed before it was destroyed", c.kind.Noun(), failed)
		if failed < 4 {
			t.Errorf("%s: only %d calls failed", c.kind.Noun(), failed)
		}
	}
}
