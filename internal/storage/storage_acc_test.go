package storage_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

const (
	pool = "libvirt_pool.it"
	vol  = "libvirt_volume.it"
)

func poolConfig(t testing.TB, name, dir, more string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf("resource \"libvirt_pool\" \"it\" {\n  name = %q\n  type = \"dir\"\n  target = { path = %q }\n  %s\n}\n", name, dir, more))
}

// volumeConfig is a volume of the host's own pool.
func volumeConfig(t testing.TB, name, more string) string {
	t.Helper()
	return lab.Config(t, fmt.Sprintf("resource \"libvirt_volume\" \"it\" {\n  name = %q\n  pool = \"default\"\n  %s\n}\n", name, more))
}

func content(url, more string) string {
	return fmt.Sprintf("create = { content = { url = %q %s } }", url, more)
}

// updates is a step whose plan changes the resource in place, with an effect.
func updates(address, effect string, step resource.TestStep) resource.TestStep {
	step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(address, tfjsonpath.New("change").AtMapKey("effect"), knownvalue.StringExact(effect)),
	}
	return step
}

func TestAccPool_lifeCycle(t *testing.T) {
	acctest.Case(t, "a directory pool is made, changed in place, imported, and removed without its files")
	dir := t.TempDir() + "/deep/pool"
	precious := filepath.Join(dir, "precious")
	uuid := ""
	same := resource.TestCheckResourceAttrWith(pool, "uuid", func(v string) error {
		if uuid != "" && uuid != v {
			return fmt.Errorf("the UUID was %s and is %s", uuid, v)
		}
		uuid = v
		return nil
	})
	behind := func(step resource.TestStep, commands ...[]string) resource.TestStep {
		step.PreConfig = func() {
			for _, c := range commands {
				lab.Virsh(t, c...)
			}
		}
		return step
	}
	cfg := poolConfig(t, "mine", dir+"/", "")
	auto := poolConfig(t, "mine", dir, "autostart = true")
	lab.Steps(t,
		lab.Apply(cfg, same, resource.TestCheckResourceAttr(pool, "active", "true")),
		updates(pool, "none", lab.Apply(auto, same, resource.TestCheckResourceAttr(pool, "autostart", "true"))),
		behind(updates(pool, "none", lab.Apply(auto, same, resource.TestCheckResourceAttr(pool, "active", "true"), resource.TestCheckResourceAttr(pool, "autostart", "true"))),
			[]string{"pool-destroy", "mine"}, []string{"pool-autostart", "mine", "--disable"}),
		resource.TestStep{ResourceName: pool, ImportState: true, ImportStateId: "mine", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"change", "status.last_steps", "source", "target.permissions", "target.path", "allocation", "available"}},
		resource.TestStep{Config: poolConfig(t, "mine", dir+"-other", ""), ExpectError: lab.Says(`Cannot change target.path of pool "mine"`)},
		resource.TestStep{Config: poolConfig(t, "default", dir, ""), ExpectError: lab.Says(`Cannot change name of pool "mine"`)},
		behind(lab.Apply(auto), []string{"vol-create-as", "mine", "precious", "1M"}),
	)
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the pool's file went with the pool: %v", err)
	}
}

func TestAccPool_refusals(t *testing.T) {
	acctest.Case(t, "a pool is neither taken over, nor removed while protected or while domains name its volumes")
	t.Setenv("LIBVIRT_PROTECT", "true")
	dir := t.TempDir()
	file := dir + "/d.xml"
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`<domain type='qemu'><name>tenant</name><memory>16384</memory><os><type>hvm</type></os><devices><disk type='file'><source file='%s/pool/x.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>`, dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	free := poolConfig(t, "let", dir+"/pool", "protect = false")
	lab.Steps(t,
		resource.TestStep{Config: poolConfig(t, "default", dir+"/pool", ""), ExpectError: lab.Says(`Pool "default" exists already`, "import ADDRESS")},
		lab.Apply(poolConfig(t, "let", dir+"/pool", "")),
		resource.TestStep{Config: lab.Config(t, ""), ExpectError: lab.Says(`Refusing to destroy protected pool "let"`)},
		lab.Apply(free),
		resource.TestStep{Config: free, Destroy: true, ExpectError: lab.Says(`Refusing to destroy pool "let"`, "domain tenant (defined), disk vda")},
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "undefine", "tenant") }, Config: free, Destroy: true},
	)
}

func TestAccVolume_lifeCycle(t *testing.T) {
	acctest.Case(t, "a volume is made, grown in place, imported, never shrunk, and seen to be gone")
	gone := func(step resource.TestStep) resource.TestStep {
		step.PreConfig = func() {
			if err := os.Remove(lab.Host(t).PoolDir() + "/grow.qcow2"); err != nil {
				t.Fatal(err)
			}
		}
		step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{plancheck.ExpectResourceAction(vol, plancheck.ResourceActionCreate)}
		return step
	}
	qcow2 := `target = { format = { type = "qcow2" } }`
	small, large := volumeConfig(t, "grow.qcow2", qcow2+"\n  capacity = 10\n  capacity_unit = \"MiB\""), volumeConfig(t, "grow.qcow2", qcow2+"\n  capacity = 33554432")
	lab.Steps(t,
		resource.TestStep{Config: volumeConfig(t, "sizeless", ""), ExpectError: lab.Says(`Volume "sizeless" has no size`)},
		lab.Apply(small, resource.TestCheckResourceAttr(vol, "capacity", "10"), resource.TestCheckResourceAttrSet(vol, "path")),
		updates(vol, "none", lab.Apply(large, resource.TestCheckResourceAttr(vol, "change.outcome", "resize"), func(*terraform.State) error {
			if info := lab.Virsh(t, "vol-info", "grow.qcow2", "default"); !strings.Contains(info, "32.00 MiB") {
				return fmt.Errorf("not grown:\n%s", info)
			}
			return nil
		})),
		resource.TestStep{Config: small, ExpectError: lab.Says(`Refusing to shrink volume "grow.qcow2"`, "33554432 bytes")},
		resource.TestStep{Config: volumeConfig(t, "grow.qcow2", `target = { format = { type = "raw" } }`+"\n  capacity = 33554432"), ExpectError: lab.Says(`Cannot change target.format.type of volume "grow.qcow2"`)},
		resource.TestStep{ResourceName: vol, ImportState: true, ImportStateId: "default/grow.qcow2", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"change", "status.last_steps", "type", "target.permissions", "target.timestamps", "target.compat", "target.cluster_size", "target.features", "capacity_unit", "target.cluster_size_unit"}},
		gone(lab.Apply(large)),
	)
}

func TestAccVolume_growsUnderARunningGuest(t *testing.T) {
	acctest.Case(t, "an image in qcow2 is larger as a volume, as asked for, and grows while a guest uses it: the guest sees the new size and is not touched")
	h := lab.Host(t)
	body := func(mib int) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_volume" "it" {
  name          = "live.qcow2"
  pool          = "default"
  capacity      = %d
  capacity_unit = "MiB"
  target        = { format = { type = "qcow2" } }
  create        = { content = { url = %q } }
}
resource "libvirt_domain" "user" {
  name = "grower"
  type = "qemu"
  memory = 131072
  vcpu = 1
  running = true
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
  devices = {
    disks = [{ driver = { name = "qemu", type = "qcow2" }, source = { volume = { pool = "default", volume = libvirt_volume.it.name } }, target = { dev = "vda", bus = "virtio" } }]
    serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }]
  }
}`, mib, h.Guest().Disk, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog("grower")))
	}
	var guest *lab.Guest
	// hasImage checks what the guest sees of the image of 64 MiB.
	hasImage := func(guest *lab.Guest, mib int64) error {
		if size := guest.Report().Disks["vda"]; size != mib<<20 {
			return fmt.Errorf("the guest sees %d bytes, not %d MiB", size, mib)
		}
		// -U: the guest has it open. What one has beyond the other has to be zeros.
		tool(t, "qemu-img", "compare", "-U", h.Guest().Disk, volumeFile(t, "live.qcow2"))
		return nil
	}
	grown := updates(vol, "live", lab.Apply(body(128), func(*terraform.State) error {
		guest.Untouched(t, "grower")
		return hasImage(lab.Observe(t, "grower"), 128)
	}))
	lab.Steps(t,
		lab.Apply(body(96), func(*terraform.State) error { guest = lab.Observe(t, "grower"); return hasImage(guest, 96) }),
		resource.TestStep{RefreshState: true, Check: resource.TestCheckResourceAttr(vol, "status.running", "true")},
		grown,
		resource.TestStep{Config: body(128), Destroy: true},
	)
}

func TestAccVolume_content(t *testing.T) {
	acctest.Case(t, "content comes from paths and from servers that fail, redirect and give no length; what is broken leaves no volume")
	data := bytes.Repeat([]byte("seventeen bytes, "), 10000)
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	file := t.TempDir() + "/data"
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var failures atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	mux.Handle("/moved", http.RedirectHandler("/chunked", http.StatusFound))
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(data[:1000])
		w.(http.Flusher).Flush()
		_, _ = w.Write(data[1000:])
	})
	mux.HandleFunc("/moody", func(w http.ResponseWriter, r *http.Request) {
		if failures.Add(1)%3 != 0 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(data)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	holds := func(name string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			got, err := os.ReadFile(lab.Host(t).PoolDir() + "/" + name)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("%s holds %d bytes that are not the content", name, len(got))
			}
			return err
		}
	}
	none := func(step resource.TestStep, name string) resource.TestStep {
		step.PreConfig = func() {
			if list := lab.Virsh(t, "vol-list", "default"); strings.Contains(list, name) {
				t.Fatalf("a volume was left behind:\n%s", list)
			}
		}
		return step
	}
	steps := []resource.TestStep{
		{Config: volumeConfig(t, "broken", content(server.URL+"/cut", "")), ExpectError: lab.Says(`Could not create volume "broken"`, "tried 4 times")},
		none(resource.TestStep{Config: volumeConfig(t, "broken", content(server.URL+"/none", "")), ExpectError: lab.Says("404")}, "broken"),
		none(resource.TestStep{Config: volumeConfig(t, "broken", content(file, `, checksum = "sha256:`+strings.Repeat("0", 64)+`"`)), ExpectError: lab.Says("has the checksum", sum)}, "broken"),
		none(resource.TestStep{Config: volumeConfig(t, "broken", content(file, "")+"\n capacity = 5"), ExpectError: lab.Says("larger than its capacity")}, "broken"),
		none(resource.TestStep{Config: volumeConfig(t, "broken", content(file, "")+"\n target = { format = { type = \"qcow2\" } }"), ExpectError: lab.Says("is not qcow2", "leave it out")}, "broken"),
		none(resource.TestStep{Config: volumeConfig(t, "broken", content("/no/such/file", "")), ExpectError: lab.Says("no such file")}, "broken"),
		none(resource.TestStep{Config: volumeConfig(t, "broken", content("ftp://x/y", "")), ExpectError: lab.Says("Cannot read content from there", "ftp")}, "broken"),
	}
	for i, url := range []string{file, "file://" + file, server.URL + "/good", server.URL + "/moved", server.URL + "/moody"} {
		name := fmt.Sprintf("content%d", i)
		body := volumeConfig(t, name, content(url, `, checksum = "`+sum+`"`)+"\n capacity = 262144")
		steps = append(steps, resource.TestStep{Config: body, ConfigPlanChecks: lab.EmptyAfterwards, Check: holdsPrefix(t, name, data)}, resource.TestStep{Config: body, Destroy: true})
	}
	last := volumeConfig(t, "exact", content(file, ""))
	steps = append(steps, lab.Apply(last, holds("exact")), lab.Apply(volumeConfig(t, "exact", content("/gone", "")), holds("exact")))
	lab.Steps(t, steps...)
}

// holdsPrefix asserts a volume that was grown after it was filled.
func holdsPrefix(t testing.TB, name string, data []byte) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, err := os.ReadFile(lab.Host(t).PoolDir() + "/" + name)
		if err == nil && (len(got) != 262144 || !bytes.HasPrefix(got, data)) {
			err = fmt.Errorf("%s has %d bytes, or other content", name, len(got))
		}
		return err
	}
}

func TestAccVolume_refusals(t *testing.T) {
	acctest.Case(t, "a volume is not taken over, not removed while protected or in use, and a stopped pool says nothing about it")
	t.Setenv("LIBVIRT_PROTECT", "true")
	dir := t.TempDir()
	in := func(more string) string {
		return lab.Config(t, fmt.Sprintf("resource \"libvirt_volume\" \"it\" {\n  name = \"held\"\n  pool = \"vault\"\n  capacity = 65536\n  %s\n}\n", more))
	}
	lab.Virsh(t, "pool-define-as", "vault", "dir", "--target", dir)
	lab.Virsh(t, "pool-start", "vault")
	lab.Virsh(t, "vol-create-as", "vault", "taken", "1M")
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte(`<domain type='qemu'><name>holder</name><memory>16384</memory><os><type>hvm</type></os><devices><disk type='volume'><source pool='vault' volume='held'/><target dev='vdc' bus='virtio'/></disk></devices></domain>`), 0o644); err != nil {
		t.Fatal(err)
	}
	free := in("protect = false")
	lab.Steps(t,
		resource.TestStep{Config: strings.Replace(in(""), `"held"`, `"taken"`, 1), ExpectError: lab.Says(`Volume "taken" exists already in pool "vault"`, "import ADDRESS vault/taken")},
		resource.TestStep{Config: strings.Replace(in(""), `"vault"`, `"nowhere"`, 1), ExpectError: lab.Says(`There is no pool "nowhere" for volume "held"`)},
		lab.Apply(in("")),
		resource.TestStep{Config: lab.Config(t, ""), ExpectError: lab.Says(`Refusing to destroy protected volume "held"`)},
		resource.TestStep{Config: strings.Replace(in(""), `"held"`, `"renamed"`, 1), ExpectError: lab.Says(`Refusing to replace protected volume "held"`)},
		lab.Apply(free),
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "define", file) }, Config: free, Destroy: true,
			ExpectError: lab.Says(`Refusing to destroy volume "held"`, "domain holder (defined), disk vdc")},
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "undefine", "holder")
			lab.Virsh(t, "vol-create-as", "vault", "over", "65536", "--format", "qcow2", "--backing-vol", "held", "--backing-vol-format", "raw")
		}, Config: free, Destroy: true, ExpectError: lab.Says(`Refusing to destroy volume "held"`, "volume over of pool vault")},
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "vol-delete", "over", "vault")
			lab.Virsh(t, "pool-destroy", "vault")
		}, Config: free, ExpectError: lab.Says(`Pool "vault" of volume "held" is not started`, "virsh pool-start vault")},
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "pool-start", "vault") }, Config: free, Destroy: true},
	)
	lab.Virsh(t, "pool-destroy", "vault")
	lab.Virsh(t, "pool-undefine", "vault")
}

func TestAccVolume_manyAtOnce(t *testing.T) {
	acctest.Case(t, "twelve volumes are made in one pool at the same time")
	body := lab.Config(t, `
resource "libvirt_volume" "it" {
  count    = 12
  name     = "many-${count.index}"
  pool     = "default"
  capacity = 1048576
}`)
	lab.Steps(t, lab.Apply(body))
}

func TestAccVolume_overlay(t *testing.T) {
	acctest.Case(t, "an overlay takes the format of what it lies over, and a wrong one is refused")
	overlay := func(format string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_volume" "base" {
  name     = "under.qcow2"
  pool     = "default"
  capacity = 1048576
  target   = { format = { type = "qcow2" } }
}
resource "libvirt_volume" "it" {
  name          = "over.qcow2"
  pool          = "default"
  backing_store = { path = libvirt_volume.base.path %s }
}`, format))
	}
	lab.Steps(t,
		resource.TestStep{Config: overlay(`, format = { type = "raw" }`), ExpectError: lab.Says(`The format below volume "over.qcow2" is not clear`, "is qcow2, not raw")},
		lab.Apply(overlay(""), func(*terraform.State) error {
			xml := lab.Virsh(t, "vol-dumpxml", "over.qcow2", "default")
			if strings.Count(xml, "<format type='qcow2'/>") != 2 || !strings.Contains(xml, "<capacity unit='bytes'>1048576</capacity>") {
				return fmt.Errorf("got %s", xml)
			}
			return nil
		}),
	)
}

func TestAccVolume_poolGone(t *testing.T) {
	acctest.Case(t, "a pool that somebody undefined says nothing about its volumes: they stay in the state, and are found again with the pool")
	dir := t.TempDir() + "/p"
	config := lab.Config(t, fmt.Sprintf(`
resource "libvirt_pool" "it" {
  name   = "fleeting"
  type   = "dir"
  target = { path = %q }
}
resource "libvirt_volume" "it" {
  name     = "stays"
  pool     = libvirt_pool.it.name
  capacity = 65536
}`, dir))
	lab.Steps(t,
		lab.Apply(config),
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "pool-destroy", "fleeting")
			lab.Virsh(t, "pool-undefine", "fleeting")
		}, Config: config, ExpectError: lab.Says(`Pool "fleeting" of volume "stays" is gone`, "-target")},
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "pool-define-as", "fleeting", "dir", "--target", dir)
			lab.Virsh(t, "pool-start", "fleeting")
		}, Config: config, ExpectNonEmptyPlan: true, PlanOnly: true},
		resource.TestStep{Config: config, Destroy: true},
	)
}
