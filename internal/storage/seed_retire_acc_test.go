package storage_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// shelved is a machine that is off, with a volume of the host's own pool in its
// drive; volume is an expression.
func shelved(label, volume string) string {
	return fmt.Sprintf(`
resource "libvirt_domain" %[1]q {
  name   = "shelved-%[1]s"
  type   = "qemu"
  memory = 16384
  vcpu   = 1
  os     = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  devices = {
    disks = [{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { volume = { pool = "default", volume = %[2]s } }, target = { dev = "sda", bus = "sata" } }]
  }
}
`, label, volume)
}

// someSeed is a seed with a label and a name of its own; more are lines of it.
func someSeed(label, name, user string, more ...string) string {
	return fmt.Sprintf("resource \"libvirt_cloudinit_disk\" %q {\n  name = %q\n  user_data = %q\n  meta_data = %q\n  %s\n}\n", label, name, user, instance, strings.Join(more, "\n  "))
}

const inDefault = `pool = "default"`

// has checks that the pool has all these volumes.
func has(t testing.TB, volumes ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, v := range volumes {
			if _, err := os.Stat(volumeFile(t, v)); err != nil {
				return err
			}
		}
		return nil
	}
}

// hasNot checks that it has none of them.
func hasNot(t testing.TB, volumes ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, v := range volumes {
			if _, err := os.Stat(volumeFile(t, v)); err == nil {
				return fmt.Errorf("the pool still has %s", v)
			}
		}
		return nil
	}
}

// swaps says that a step changes the machine one, and touches nothing of these.
func swaps(step resource.TestStep, untouched ...string) resource.TestStep {
	actions := map[string]plancheck.ResourceActionType{"libvirt_domain.one": plancheck.ResourceActionUpdate}
	for _, address := range untouched {
		actions[address] = plancheck.ResourceActionNoop
	}
	return does(step, actions)
}

func TestAccSeedPool_whatOthersHaveStays(t *testing.T) {
	acctest.Case(t, "a machine that gets another volume into its drive takes nothing from anybody: not the current volume of a protected seed when it is pinned to an older one by hand, not a volume resource that is named like a seed's, not that of another seed of the same name; and the seed that did supersede its volume leaves none, also when it got another name or pool")
	a, b := userData("alpha"), userData("beta")
	va, vb := pooledVolume("web", a), pooledVolume("web", b)
	const current = "libvirt_cloudinit_disk.it.volume_name"
	pinned := func(user, volume string) string {
		return lab.Config(t, someSeed("it", "web", user, inDefault, "protect = true")+shelved("one", volume)+shelved("keeper", quoted(va)))
	}
	free := func(user string) string { return strings.Replace(pinned(user, current), "protect = true", "", 1) }

	store := fmt.Sprintf("seed_store = %q", t.TempDir())
	named := func(label, user string) string {
		return someSeed(label, "web", user) + fmt.Sprintf("resource \"libvirt_volume\" %[1]q {\n  name = %[2]q\n  pool = \"default\"\n  create = { content = { url = libvirt_cloudinit_disk.%[1]s.path } }\n  protect = PROTECT\n}\n", label, pooledVolume("web", user))
	}
	named2 := func(label, protect string) string {
		return lab.Config(t, strings.ReplaceAll(named("blue", a)+named("green", b), "PROTECT", protect)+shelved("one", "libvirt_volume."+label+".name"), store)
	}
	two := func(label string) string {
		return lab.Config(t, someSeed("blue", "web", a, inDefault)+someSeed("green", "web", b, inDefault)+shelved("one", "libvirt_cloudinit_disk."+label+".volume_name"))
	}
	moved := func(name, pool string) string {
		return lab.Config(t, someSeed("it", name, b, fmt.Sprintf("pool = %q", pool))+strings.Replace(shelved("one", current), `pool = "default"`, "pool = libvirt_cloudinit_disk.it.pool", 1))
	}
	other := vault(t, "moved")
	inOther := func(volume string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			_, err := os.Stat(other + "/" + volume)
			return err
		}
	}
	none := lab.Config(t, "")
	lab.Steps(t, slices.Concat(
		[]resource.TestStep{
			lab.Apply(pinned(a, current), has(t, va)),
			lab.Apply(pinned(b, current), has(t, va, vb)), // the keeper has the first one
			swaps(lab.Apply(pinned(b, quoted(va)), has(t, va, vb)), seedDisk),
			swaps(lab.Apply(pinned(b, current), has(t, va, vb)), seedDisk),
			lab.Apply(free(b)), lab.Apply(none, hasNot(t, va, vb)),
		},
		[]resource.TestStep{
			lab.Apply(named2("blue", "true"), has(t, va, vb)),
			swaps(lab.Apply(named2("green", "true"), has(t, va, vb)), "libvirt_volume.blue", "libvirt_volume.green"),
			lab.Apply(named2("green", "false")), lab.Apply(none, hasNot(t, va, vb)),
		},
		[]resource.TestStep{
			lab.Apply(two("blue"), has(t, va, vb)),
			swaps(lab.Apply(two("green"), has(t, va, vb)), "libvirt_cloudinit_disk.blue", "libvirt_cloudinit_disk.green"),
			lab.Apply(none, hasNot(t, va, vb)),
		},
		[]resource.TestStep{
			lab.Apply(moved("web", "default"), has(t, vb)),
			lab.Apply(moved("renamed", "default"), hasNot(t, vb), has(t, pooledVolume("renamed", b))),
			lab.Apply(moved("renamed", "moved"), hasNot(t, pooledVolume("renamed", b)), inOther(pooledVolume("renamed", b))),
			lab.Apply(none),
		},
	)...)
}

func TestAccSeedPool_outOfThePool(t *testing.T) {
	acctest.Case(t, "a seed that has left its pool, while a machine keeps the old volume, is a stored file like others: put back when the store was emptied, its last file kept until the next change; what the machine let go of is a change of the seed that the plan names, and leaves the files alone")
	store := t.TempDir() + "/store"
	a, b, c, d := userData("alpha"), userData("beta"), userData("gamma"), userData("delta")
	old := pooledVolume("out", a)
	keeper := shelved("keeper", quoted(old))
	conf := func(user, more string, lines ...string) string {
		return lab.Config(t, someSeed("it", "out", user, lines...)+more, fmt.Sprintf("seed_store = %q", store))
	}
	stores := func(users ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			files, err := os.ReadDir(store)
			if err != nil {
				return err
			}
			var images []string
			for _, f := range files {
				if strings.HasSuffix(f.Name(), ".iso") {
					images = append(images, f.Name())
				}
			}
			if len(images) != len(users) {
				return fmt.Errorf("the store has %q, want %d images", images, len(users))
			}
			for _, u := range users {
				if name := seed.FileName("out", seed.CloudInit(u, instance, nil)); !slices.Contains(images, name) {
					return fmt.Errorf("the store has %q, and lacks %s", images, name)
				}
			}
			return nil
		}
	}
	superseded := func(n string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(seedDisk, "superseded.#", n)
	}
	emptied := lab.Apply(conf(b, keeper), stores(b), has(t, old), superseded("1"))
	emptied.PreConfig = func() {
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
	}
	lab.Steps(t,
		lab.Apply(conf(a, "", inDefault), has(t, old)),
		lab.Apply(conf(a, keeper, inDefault), has(t, old)),
		lab.Apply(conf(b, keeper), stores(b), has(t, old), superseded("1")),
		emptied,
		lab.Apply(conf(c, keeper), stores(b, c), has(t, old), superseded("1")),
		lab.Apply(conf(d, keeper), stores(c, d), has(t, old), superseded("1")),
		resource.TestStep{Config: conf(d, ""), ExpectNonEmptyPlan: true, Check: has(t, old)},
		does(lab.Apply(conf(d, ""), stores(c, d), hasNot(t, old)), map[string]plancheck.ResourceActionType{seedDisk: plancheck.ResourceActionUpdate}),
	)
}
