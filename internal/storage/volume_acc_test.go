package storage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// vault is a pool of a case's own, made behind the provider's back.
func vault(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	lab.Virsh(t, "pool-define-as", name, "dir", "--target", dir)
	lab.Virsh(t, "pool-start", name)
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = lab.Host(t).Virsh(ctx, "pool-destroy", name)
		_, _ = lab.Host(t).Virsh(ctx, "pool-undefine", name)
	})
	return dir
}

// in is a volume of a pool.
func in(t testing.TB, pool, name, more string) string {
	t.Helper()
	return strings.Replace(volumeConfig(t, name, more), `"default"`, fmt.Sprintf("%q", pool), 1)
}

func TestAccVolume_sizes(t *testing.T) {
	acctest.Case(t, "a size is what was asked for, whatever the storage makes of it; a size somebody changed is told, held, and taken over")
	dir := vault(t, "sizes")
	qcow2 := func(capacity string) string {
		return in(t, "sizes", "odd.qcow2", `target = { format = { type = "qcow2" } }`+"\n  capacity = "+capacity)
	}
	raw := func(capacity string) string { return in(t, "sizes", "plain", "capacity = "+capacity) }
	byHand := func(name, size string) resource.TestStep {
		return behind(t, resource.TestStep{RefreshState: true}, "vol-resize "+name+" "+size+" sizes")
	}
	is := func(name string, bytes int64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && info.Size() != bytes {
				err = fmt.Errorf("%s has %d bytes, not %d", name, info.Size(), bytes)
			}
			return err
		}
	}
	lab.Steps(t,
		lab.Apply(qcow2("1000001"), resource.TestCheckResourceAttr(vol, "capacity", "1000001"), resource.TestCheckResourceAttr(vol, "status.capacity", "1000448")),
		behind(t, planned(qcow2("1000001")), "pool-refresh sizes"),
		// The storage gives that much already.
		lab.Apply(qcow2("1000448"), resource.TestCheckResourceAttr(vol, "status.last_steps.0.outcome", "already_configured")),
		updates(vol, "none", lab.Apply(qcow2("1000449"), resource.TestCheckResourceAttr(vol, "status.capacity", "1000960"))),
		resource.TestStep{Config: qcow2("1000449"), Destroy: true},

		// A volume group would have rounded 1 MiB up to 4 MiB. A file has not.
		lab.Apply(raw("1048576"), is("plain", 1<<20)),
		updates(vol, "none", lab.Apply(raw("4194304"), is("plain", 4<<20))),
		// Less than a sector is a change too.
		updates(vol, "none", lab.Apply(raw("4194305"), is("plain", 4<<20+1))),

		byHand("plain", "8M"),
		planned(raw("4194305")), // held: no plan shrinks it
		planned(raw("8388608")), // taken over
		resource.TestStep{Config: raw("8388607"), ExpectError: lab.Says(`Refusing to shrink volume "plain"`)},
		updates(vol, "none", lab.Apply(raw("8388609"), is("plain", 8<<20+1))),
		updates(vol, "none", lab.Apply(in(t, "sizes", "plain", "capacity = 9\n  capacity_unit = \"MB\""), is("plain", 9_000_000))),
		planned(in(t, "sizes", "plain", "capacity = 9000\n  capacity_unit = \"kb\"")),
	)
}

func TestAccVolume_whatLibvirtForgets(t *testing.T) {
	acctest.Case(t, "an encrypted volume, and one without copy on write, are what was agreed, though libvirt forgets it when it looks at the files again")
	const uuid = "11111111-2222-3333-4444-555555555555"
	secret := t.TempDir() + "/secret.xml"
	if err := os.WriteFile(secret, []byte("<secret ephemeral='no' private='yes'><uuid>"+uuid+"</uuid></secret>"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "secret-define", secret)
	lab.Virsh(t, "secret-set-value", uuid, "--base64", "cGFzcw==")
	defer lab.Virsh(t, "secret-undefine", uuid)
	vault(t, "forgetful")
	plain := in(t, "forgetful", "locked", "capacity = 2097152")
	locked := in(t, "forgetful", "locked", fmt.Sprintf(`capacity = 2097152
  target = {
    format = { type = "raw" }
    no_cow = true
    encryption = {
      format = "luks"
      secret = { type = "passphrase", uuid = %q }
      cipher = { name = "aes", size = 256, mode = "xts", hash = "sha256" }
      ivgen  = { name = "plain64", hash = "sha256" }
    }
  }`, uuid))
	lab.Steps(t,
		// A key that the host does not have: no volume, and none that is not encrypted.
		resource.TestStep{Config: strings.Replace(locked, uuid, "99999999-2222-3333-4444-555555555555", 1), ExpectError: lab.Says(`Could not create volume "locked"`, "no secret with matching uuid")},
		lab.Apply(locked, shows(t, "vol-dumpxml locked forgetful", "<encryption format='luks'>", uuid)),
		behind(t, planned(locked), "pool-refresh forgetful"),
		behind(t, resource.TestStep{RefreshState: true}, "pool-destroy forgetful", "pool-start forgetful"),
		planned(locked),
		resource.TestStep{Config: strings.Replace(locked, uuid, "99999999-2222-3333-4444-555555555555", 1), ExpectError: lab.Says(`Cannot change target.encryption.secret.uuid of volume "locked"`)},
		lab.Apply(plain), // left out, it stays
		resource.TestStep{Config: plain, Destroy: true},
		resource.TestStep{PreConfig: func() {
			lab.Virsh(t, "vol-create-as", "forgetful", "locked", "2M")
		}, Config: plain, ResourceName: vol, ImportState: true, ImportStateId: "forgetful/locked", ImportStatePersist: true},
		// What libvirt does not tell of an imported volume is believed.
		updates(vol, "none", lab.Apply(in(t, "forgetful", "locked", "capacity = 2097152\n  target = { no_cow = true }"))),
		resource.TestStep{Config: locked, ExpectError: lab.Says(`Cannot change target.encryption.format of volume "locked"`, "It is not set on the host")},
	)
}

func TestAccVolume_chain(t *testing.T) {
	acctest.Case(t, "an overlay is no smaller than what it lies over; no link of a chain is deleted or grown under another, also if libvirt has not seen it yet")
	dir := vault(t, "chain")
	chain := func(more, size string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_volume" "it" {
  name     = "bottom.qcow2"
  pool     = "chain"
  capacity = %s
  target   = { format = { type = "qcow2" } }
}
resource "libvirt_volume" "middle" {
  name          = "middle.qcow2"
  pool          = "chain"
  backing_store = { path = libvirt_volume.it.path }
  %s
}`, size, more))
	}
	bottom := in(t, "chain", "bottom.qcow2", `capacity = 4194304
  target = { format = { type = "qcow2" } }`)
	full := chain("", "2097152")
	prepare := func(step resource.TestStep, f func()) resource.TestStep { step.PreConfig = f; return step }
	lab.Steps(t,
		resource.TestStep{Config: chain("capacity = 20", "2097152"), ExpectError: lab.Says(`Volume "middle.qcow2" is smaller than what it lies over`, "capacity_unit")},
		resource.TestStep{Config: strings.Replace(full, "libvirt_volume.it.path", `"/no/such/file"`, 1), ExpectError: lab.Says(`The format below volume "middle.qcow2" is not clear`, "in no pool")},
		resource.TestStep{Config: strings.Replace(full, "libvirt_volume.it.path", `"/no/such/file", format = { type = "raw" }`, 1), ExpectError: lab.Says(`Volume "middle.qcow2" has no size`, "in no pool")},
		resource.TestStep{Config: strings.Replace(chain("capacity = 1048576", "2097152"), "libvirt_volume.it.path", `"/no/such/file", format = { type = "raw" }`, 1), ExpectError: lab.Says(`Could not create volume "middle.qcow2"`, "No such file")},
		lab.Apply(full, resource.TestCheckResourceAttr("libvirt_volume.middle", "capacity", "2097152")),
		// The overlay's name is spelt with a path that means the same.
		planned(strings.Replace(full, "libvirt_volume.it.path", `"`+dir+`//bottom.qcow2"`, 1)),
		resource.TestStep{Config: strings.Replace(full, "libvirt_volume.it.path", `"`+dir+`/other.qcow2"`, 1), ExpectError: lab.Says(`Cannot change backing_store.path of volume "middle.qcow2"`)},
		// Nobody runs: the bottom may grow.
		updates(vol, "none", lab.Apply(chain("", "3145728"))),
		prepare(resource.TestStep{RefreshState: true, Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttr(vol, "status.beneath", "true"), resource.TestCheckResourceAttr("libvirt_volume.middle", "status.beneath", "true"),
			resource.TestCheckResourceAttr(vol, "status.users.0", "domain stacked (running), disk vda"),
		)}, func() {
			lab.Virsh(t, "vol-create-as", "chain", "top.qcow2", "4M", "--format", "qcow2", "--backing-vol", "middle.qcow2", "--backing-vol-format", "qcow2")
			define(t, "stacked", "", disk(dir+"/top.qcow2", "qcow2", "vda"))
			lab.Virsh(t, "start", "stacked")
		}),
		planned(chain("", "3145728")),
		resource.TestStep{Config: chain("", "4194304"), ExpectError: lab.Says(`Refusing to grow volume "bottom.qcow2" under a running guest`)},
		resource.TestStep{Config: chain("", "3145728"), Destroy: true, ExpectError: lab.Says("is in use", "domain stacked (running), disk vda")},
		prepare(updates(vol, "none", lab.Apply(chain("", "4194304"))), func() {
			lab.Virsh(t, "destroy", "stacked")
			lab.Virsh(t, "pool-refresh", "chain")
		}),
		// The definition of a guest that is off names the top alone; the volumes of
		// the pool tell the rest.
		resource.TestStep{Config: bottom, ExpectError: lab.Says(`Refusing to destroy volume "middle.qcow2"`, "volume top.qcow2 of pool chain")},
		prepare(lab.Apply(bottom), func() {
			lab.Virsh(t, "undefine", "stacked")
			lab.Virsh(t, "vol-delete", "top.qcow2", "chain")
		}),
		// An overlay that was made by hand, and is not on libvirt's list.
		prepare(resource.TestStep{Config: bottom, Destroy: true, ExpectError: lab.Says(`Refusing to destroy volume "bottom.qcow2"`, "volume late.qcow2 of pool chain")}, func() {
			if _, err := lab.Host(t).Exec(context.Background(), "qemu-img", "create", "-q", "-f", "qcow2", "-b", dir+"/bottom.qcow2", "-F", "qcow2", dir+"/late.qcow2"); err != nil {
				t.Fatal(err)
			}
		}),
		prepare(resource.TestStep{Config: bottom, Destroy: true}, func() { lab.Virsh(t, "vol-delete", "late.qcow2", "chain") }),
	)
}

func TestAccVolume_growsForAllWhoShareIt(t *testing.T) {
	acctest.Case(t, "a raw volume that two running guests share grows for both; one that is a CD or not written to grows by itself")
	dir := vault(t, "shared")
	body := func(size string) string { return in(t, "shared", "both.img", "capacity = "+size) }
	shared := func(name, more string) {
		define(t, name, "", fmt.Sprintf("<disk type='file'><driver name='qemu' type='raw' cache='none'/><source file='%s/both.img'/><target dev='vda' bus='virtio'/>%s</disk>", dir, more))
		lab.Virsh(t, "start", name)
		t.Cleanup(func() {
			_, _ = lab.Host(t).Virsh(context.Background(), "destroy", name)
			_, _ = lab.Host(t).Virsh(context.Background(), "undefine", name)
		})
	}
	start := resource.TestStep{RefreshState: true, PreConfig: func() { shared("first", "<shareable/>"); shared("second", "<shareable/>") },
		Check: resource.TestCheckResourceAttr(vol, "status.running", "true")}
	lab.Steps(t,
		lab.Apply(body("1048576")),
		start,
		updates(vol, "live", lab.Apply(body("3145728"),
			shows(t, "domblkinfo first vda", "Capacity: 3145728"), shows(t, "domblkinfo second vda", "Capacity: 3145728"))),
		resource.TestStep{RefreshState: true, PreConfig: func() {
			for _, name := range []string{"first", "second"} {
				lab.Virsh(t, "destroy", name)
				lab.Virsh(t, "undefine", name)
			}
			shared("reader", "<readonly/>")
		}},
		updates(vol, "live", lab.Apply(body("4194304"), shows(t, "vol-info both.img shared", "Capacity: 4.00 MiB"))),
		resource.TestStep{Config: body("4194304"), Destroy: true, ExpectError: lab.Says("domain reader (running), disk vda")},
		behind(t, resource.TestStep{Config: body("4194304"), Destroy: true}, "destroy reader", "undefine reader"),
	)
}

func TestAccVolume_owner(t *testing.T) {
	acctest.Case(t, "the owner of a file is libvirt's business while a guest runs with it, and drift afterwards")
	dir := vault(t, "owned")
	body := in(t, "owned", "mine", "capacity = 1048576\n  target = { permissions = { mode = \"600\", owner = \"0\", group = \"0\" } }")
	chown := func(id int) {
		if err := os.Chown(dir+"/mine", id, id); err != nil {
			t.Fatal(err)
		}
	}
	owner := func(id string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(vol, "target.permissions.owner", id)
	}
	lab.Steps(t,
		lab.Apply(body),
		resource.TestStep{RefreshState: true, PreConfig: func() {
			define(t, "tenant", "", disk(dir+"/mine", "raw", "vda"))
			lab.Virsh(t, "start", "tenant")
			chown(33) // what libvirt does with its standard settings
		}, Check: owner("0")},
		planned(body),
		behind(t, resource.TestStep{RefreshState: true, Check: owner("33")}, "destroy tenant", "undefine tenant"),
		planned(body), // held
		planned(strings.ReplaceAll(body, `"0"`, `"33"`)),
		resource.TestStep{Config: strings.ReplaceAll(body, `"0"`, `"34"`), ExpectError: lab.Says(`Cannot change target.permissions.group of volume "mine"`)},
	)
}

func TestAccVolume_stranger(t *testing.T) {
	acctest.Case(t, "a file that libvirt has not seen is not overwritten; a volume that became another one is told, and not touched")
	dir := vault(t, "strange")
	other := t.TempDir()
	body := in(t, "strange", "file", `capacity = 65536
  target = { format = { type = "qcow2" } }`)
	content := []byte("precious")
	file := func(path string) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(path string) {
		if got, err := os.ReadFile(path); err != nil || string(got) != string(content) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	lab.Steps(t,
		resource.TestStep{PreConfig: func() { file(dir + "/file") }, Config: body, ExpectError: lab.Says(`Volume "file" exists already in pool "strange"`, "import ADDRESS strange/file")},
		resource.TestStep{PreConfig: func() {
			kept(dir + "/file")
			lab.Virsh(t, "vol-delete", "file", "strange")
		}, Config: body, ConfigPlanChecks: lab.EmptyAfterwards},
		resource.TestStep{PreConfig: func() {
			file(other + "/file")
			lab.Virsh(t, "pool-destroy", "strange")
			lab.Virsh(t, "pool-undefine", "strange")
			lab.Virsh(t, "pool-define-as", "strange", "dir", "--target", other)
			lab.Virsh(t, "pool-start", "strange")
		}, Config: body, Destroy: true, ExpectError: lab.Says(`Refusing to destroy volume "file": it is not the one in the state`, dir+"/file", other+"/file")},
		resource.TestStep{Config: strings.Replace(body, "65536", "131072", 1), ExpectError: lab.Says(`Refusing to change volume "file": it is not the one in the state`)},
		resource.TestStep{PreConfig: func() {
			kept(other + "/file")
			lab.Virsh(t, "pool-destroy", "strange")
			lab.Virsh(t, "pool-undefine", "strange")
			lab.Virsh(t, "pool-define-as", "strange", "dir", "--target", dir)
			lab.Virsh(t, "pool-start", "strange")
		}, Config: body, ConfigPlanChecks: lab.EmptyAfterwards},
		// The pool has another name now: the volume is found by its key.
		resource.TestStep{RefreshState: true, ExpectNonEmptyPlan: true, PreConfig: func() {
			lab.Virsh(t, "pool-destroy", "strange")
			lab.Virsh(t, "pool-undefine", "strange")
			lab.Virsh(t, "pool-define-as", "stranger", "dir", "--target", dir)
			lab.Virsh(t, "pool-start", "stranger")
		}, Check: resource.TestCheckResourceAttr(vol, "pool", "stranger")},
		planned(body), // held
	)
}

func TestAccVolume_import(t *testing.T) {
	acctest.Case(t, "a volume made by hand is imported by key, path or pool and name; the plan after it is empty, and it can grow")
	dir := vault(t, "found")
	lab.Virsh(t, "vol-create-as", "found", "by.hand", "2M", "--format", "qcow2")
	sparse := in(t, "found", "by.hand", "")
	block := func(config, id string) string {
		return config + fmt.Sprintf("import {\n  to = libvirt_volume.it\n  id = %q\n}\n", id)
	}
	imports := func(config, id string) resource.TestStep {
		return resource.TestStep{Config: block(config, id), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(vol, plancheck.ResourceActionNoop)},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		}}
	}
	full := in(t, "found", "by.hand", "capacity = 2048\n  capacity_unit = \"KiB\"\n  target = { format = { type = \"qcow2\" }, permissions = { mode = \"0600\" } }")
	lab.Steps(t,
		resource.TestStep{Config: block(sparse, "found/none"), ExpectError: lab.Says(`There is no volume "found/none"`, "POOL/NAME")},
		resource.TestStep{Config: block(sparse, dir+"/none"), ExpectError: lab.Says(`There is no volume "` + dir + `/none"`)},
		behind(t, resource.TestStep{Config: block(sparse, "found/by.hand"), ExpectError: lab.Says("not active")}, "pool-destroy found"),
		behind(t, resource.TestStep{Config: block(sparse, dir+"/by.hand"), ExpectError: lab.Says("not active")}),
		behind(t, imports(sparse, "found/by.hand"), "pool-start found"),
		updates(vol, "none", lab.Apply(in(t, "found", "by.hand", "capacity = 3145728"), shows(t, "vol-info by.hand found", "Capacity: 3.00 MiB"))),
	)
	lab.Virsh(t, "vol-create-as", "found", "by.hand", "2M", "--format", "qcow2")
	lab.Steps(t, imports(full, dir+"/by.hand"))
	// What it would be made from goes into the state, and does nothing.
	lab.Virsh(t, "vol-create-as", "found", "by.hand", "2M")
	if err := os.WriteFile(dir+"/by.hand", append([]byte("precious"), make([]byte, 2<<20-8)...), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Steps(t, resource.TestStep{
		Config: block(in(t, "found", "by.hand", `create = { content = { url = "/no/such/image" }, on_change = "replace" }`), "found/by.hand"),
		ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(vol, plancheck.ResourceActionUpdate)},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		},
		Check: func(*terraform.State) error {
			got, err := os.ReadFile(dir + "/by.hand")
			if err == nil && !strings.HasPrefix(string(got), "precious") {
				err = fmt.Errorf("it was written to: %.20q", got)
			}
			return err
		},
	})
}

func TestAccVolume_seedChain(t *testing.T) {
	acctest.Case(t, "a seed becomes a volume of format iso or none, whatever libvirt calls it; the guest has it as a CD")
	body := func(format string) string {
		return lab.Config(t, fmt.Sprintf(`
resource "libvirt_cloudinit_disk" "seed" {
  name      = "chained"
  user_data = "#cloud-config\n{}\n"
  meta_data = "instance-id: chained\n"
}
resource "libvirt_volume" "it" {
  name   = "chained.iso"
  pool   = "default"
  create = { content = { url = libvirt_cloudinit_disk.seed.path } }
  %s
}`, format), fmt.Sprintf("seed_store = %q", t.TempDir()))
	}
	for _, format := range []string{"", `target = { format = { type = "iso" } }`, `target = { format = { type = "raw" } }`} {
		b := body(format)
		lab.Steps(t,
			lab.Apply(b, resource.TestCheckResourceAttrSet(vol, "capacity")),
			behind(t, planned(b), "pool-refresh default"),
		)
	}
	lab.Steps(t, resource.TestStep{Config: body(`target = { format = { type = "qcow2" } }`), ExpectError: lab.Says("is not qcow2", `set target.format.type to "raw"`)})
}
