package storage_test

import (
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

// behind is a step before which commands of virsh are run.
func behind(t testing.TB, step resource.TestStep, commands ...string) resource.TestStep {
	t.Helper()
	step.PreConfig = func() {
		for _, c := range commands {
			lab.Virsh(t, strings.Fields(c)...)
		}
	}
	return step
}

// planned is a step that only plans, and expects nothing to do.
func planned(config string) resource.TestStep {
	return resource.TestStep{Config: config, PlanOnly: true}
}

// shows asserts what virsh prints.
func shows(t testing.TB, command string, parts ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		out := strings.Join(strings.Fields(lab.Virsh(t, strings.Fields(command)...)), " ")
		for _, p := range parts {
			if !strings.Contains(out, p) {
				return fmt.Errorf("%s does not show %q:\n%s", command, p, out)
			}
		}
		return nil
	}
}

// absent fails the test if virsh lists the object.
func absent(t testing.TB, command, name string) {
	t.Helper()
	for _, line := range strings.Split(lab.Virsh(t, strings.Fields(command)...), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == name {
			t.Errorf("%s still lists %s", command, name)
		}
	}
}

// define writes a domain with more in it, and defines it.
func define(t testing.TB, name, osMore, devices string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".xml")
	text := fmt.Sprintf("<domain type='qemu'><name>%s</name><memory>16384</memory><os><type arch='x86_64'>hvm</type>%s</os><devices>%s</devices></domain>", name, osMore, devices)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
}

func disk(file, format, target string) string {
	return fmt.Sprintf("<disk type='file'><driver name='qemu' type='%s'/><source file='%s'/><target dev='%s' bus='virtio'/></disk>", format, file, target)
}

// transient is a refresh of a pool that lost its definition, and only runs.
func transient(t testing.TB, name string) resource.TestStep {
	t.Helper()
	return resource.TestStep{RefreshState: true, PreConfig: func() {
		file := filepath.Join(t.TempDir(), "pool.xml")
		if err := os.WriteFile(file, []byte(lab.Virsh(t, "pool-dumpxml", name)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"pool-destroy " + name, "pool-undefine " + name, "pool-create " + file} {
			lab.Virsh(t, strings.Fields(c)...)
		}
	}, Check: resource.ComposeAggregateTestCheckFunc(resource.TestCheckResourceAttr(pool, "status.state", "degraded"), resource.TestCheckResourceAttr(pool, "status.persistent", "false"))}
}

func TestAccPool_halfMade(t *testing.T) {
	acctest.Case(t, "a pool that cannot be started, or is not what was asked for, is not left defined; the next apply simply works")
	dir := t.TempDir()
	loose := dir + "/loose"
	if err := os.Mkdir(loose, 0o775); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(loose, 0o775); err != nil { // whatever the umask
		t.Fatal(err)
	}
	none := func(step resource.TestStep) resource.TestStep {
		step.PreConfig = func() { absent(t, "pool-list --all", "half") }
		return step
	}
	lab.Steps(t,
		resource.TestStep{Config: poolConfig(t, "half", dir+"/none", "create = { build = false }"),
			ExpectError: lab.Says(`Could not create pool "half"`, "cannot open directory", "not defined any more", "no data was touched")},
		none(resource.TestStep{Config: strings.Replace(poolConfig(t, "half", dir+"/fs", "source = { device = [{ path = \"/no/such/device\" }] }"), `"dir"`, `"fs"`, 1),
			ExpectError: lab.Says(`Could not create pool "half"`, "not defined any more")}),
		none(resource.TestStep{Config: strings.Replace(poolConfig(t, "half", loose, "create = { build = false }"), "target = {", "target = {\n permissions = { mode = \"0750\" }\n", 1),
			ExpectError: lab.Says(`libvirt did not take target.permissions.mode of pool "half"`, `holds "0775"`, "not defined any more")}),
		none(lab.Apply(poolConfig(t, "half", loose, "create = { build = false }"), resource.TestCheckResourceAttr(pool, "active", "true"))),
	)
}

func TestAccPool_directory(t *testing.T) {
	acctest.Case(t, "a directory that is there keeps its mode and files; a mode that is asked for is set; drift in it is held, and nobody pretends to change it")
	dir := t.TempDir() + "/there"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o771); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/precious", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	mode := func(want os.FileMode) resource.TestCheckFunc {
		return func(*terraform.State) error {
			info, err := os.Stat(dir)
			if err == nil && info.Mode().Perm() != want {
				err = fmt.Errorf("the directory has the mode %o, not %o", info.Mode().Perm(), want)
			}
			return err
		}
	}
	with := func(mode string) string {
		return strings.Replace(poolConfig(t, "there", dir, ""), "target = {", "target = {\n permissions = { mode = \""+mode+"\" }\n", 1)
	}
	plain := poolConfig(t, "there", dir, "")
	drift := resource.TestStep{RefreshState: true, PreConfig: func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lab.Virsh(t, "pool-refresh", "there")
	}}
	lab.Steps(t,
		lab.Apply(plain, mode(0o771)),
		resource.TestStep{Config: plain, Destroy: true, Check: mode(0o771)},
		lab.Apply(with("750"), mode(0o750)),
		planned(with("0750")),
		resource.TestStep{Config: with("0700"), ExpectError: lab.Says(`Cannot change target.permissions.mode of pool "there"`, "chmod")},
		drift,
		planned(with("750")),  // held
		planned(with("0700")), // what the host has is written into the configuration
	)
	if text, err := os.ReadFile(dir + "/precious"); err != nil || string(text) != "precious" {
		t.Errorf("a file that was there before: %q, %v", text, err)
	}
}

func TestAccPool_redefinedInPlace(t *testing.T) {
	acctest.Case(t, "a started pool is redefined in place: what waits for its next start is pending until then")
	dir := t.TempDir() + "/pool"
	cow := poolConfig(t, "inplace", dir, `features = { cow = { state = "no" } }`)
	lab.Steps(t,
		lab.Apply(poolConfig(t, "inplace", dir, ""), resource.TestCheckResourceAttr(pool, "status.state", "settled")),
		updates(pool, "none", lab.Apply(cow,
			resource.TestCheckResourceAttr(pool, "status.state", "pending"),
			resource.TestCheckResourceAttr(pool, "status.settled", "false"),
			resource.TestCheckResourceAttr(pool, "status.pending.0", "features.cow.state"),
			resource.TestCheckResourceAttr(pool, "status.last_steps.0.outcome", "deferred"),
			shows(t, "pool-dumpxml --inactive inplace", "<cow state='no'/>"),
			shows(t, "pool-info inplace", "running"))),
		behind(t, resource.TestStep{RefreshState: true, Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttr(pool, "status.state", "settled"), resource.TestCheckResourceAttr(pool, "status.pending.#", "0"))},
			"pool-destroy inplace", "pool-start inplace"),
		planned(cow),
		// Somebody makes it transient: seen, and mended with the next change.
		transient(t, "inplace"),
		updates(pool, "none", lab.Apply(poolConfig(t, "inplace", dir, `features = { cow = { state = "no" } }`+"\n  autostart = true"),
			resource.TestCheckResourceAttr(pool, "status.state", "settled"),
			shows(t, "pool-info inplace", "Persistent: yes", "Autostart: yes"))),
	)
}

func TestAccPool_storage(t *testing.T) {
	acctest.Case(t, "a pool's storage is deleted only if that is asked for, and only if it is empty")
	dir := t.TempDir() + "/emptied"
	ask := poolConfig(t, "emptied", dir, "destroy = { delete = true }")
	foreign := func() {
		if err := os.WriteFile(dir+"/foreign", []byte("x"), 0o600); err != nil { // libvirt's list is older
			t.Fatal(err)
		}
	}
	lab.Steps(t,
		lab.Apply(ask),
		resource.TestStep{PreConfig: foreign, Config: ask, Destroy: true,
			ExpectError: lab.Says(`Refusing to delete the storage of pool "emptied"`, "It holds foreign", "destroy.delete = false")},
		lab.Apply(ask, shows(t, "pool-info emptied", "running", "Persistent: yes")),
		resource.TestStep{PreConfig: func() { lab.Virsh(t, "vol-delete", "foreign", "emptied") }, Config: ask, Destroy: true},
	)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	absent(t, "pool-list --all", "emptied")
	lab.Steps(t,
		lab.Apply(ask),
		// libvirt does not list such a thing, and so it is libvirt who refuses.
		resource.TestStep{PreConfig: func() {
			if err := os.Symlink("/no/such/file", dir+"/dangling"); err != nil {
				t.Fatal(err)
			}
		}, Config: ask, Destroy: true, ExpectError: lab.Says(`Could not destroy pool "emptied"`, "destroy.delete = true asks for that", "The pool was started again")},
		lab.Apply(ask, shows(t, "pool-info emptied", "running", "Persistent: yes")),
		resource.TestStep{PreConfig: func() {
			if err := os.Remove(dir + "/dangling"); err != nil {
				t.Fatal(err)
			}
		}, RefreshState: true},
		transient(t, "emptied"), // it would end with its stop, before its storage is deleted
		resource.TestStep{Config: ask, Destroy: true},
	)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	absent(t, "pool-list --all", "emptied")
}

func TestAccPool_inUse(t *testing.T) {
	acctest.Case(t, "a pool is in use by its own volumes alone: not by what lies in directories below, but by kernels and backing files too")
	dir := t.TempDir() + "/outer"
	free := poolConfig(t, "outer", dir, "protect = false")
	stopped := poolConfig(t, "outer", dir, "protect = false\n  active = false")
	refused := func(says string) resource.TestStep {
		return resource.TestStep{Config: free, Destroy: true, ExpectError: lab.Says(`Refusing to destroy pool "outer"`, says)}
	}
	prepare := func(step resource.TestStep, f func()) resource.TestStep { step.PreConfig = f; return step }
	lab.Steps(t,
		lab.Apply(free),
		prepare(refused("domain kernel (defined), os.kernel"), func() {
			define(t, "kernel", "<kernel>"+dir+"/vmlinuz</kernel>", "")
		}),
		prepare(refused("domain named (defined), disk vda"), func() {
			lab.Virsh(t, "undefine", "kernel")
			define(t, "named", "", "<disk type='volume'><source pool='outer' volume='x'/><target dev='vda' bus='virtio'/></disk>")
		}),
		prepare(resource.TestStep{Config: stopped, ExpectError: lab.Says(`Refusing to stop pool "outer"`, "domain runs (running), disk vda")}, func() {
			lab.Virsh(t, "undefine", "named")
			lab.Virsh(t, "vol-create-as", "outer", "x.img", "1M")
			define(t, "runs", "", disk(dir+"/x.img", "raw", "vda"))
			lab.Virsh(t, "start", "runs")
		}),
		prepare(lab.Apply(free, shows(t, "pool-info outer", "running")), func() { lab.Virsh(t, "pool-refresh", "outer") }),
		prepare(updates(pool, "none", lab.Apply(stopped, shows(t, "pool-info outer", "inactive"))), func() { lab.Virsh(t, "destroy", "runs") }),
		// The definition still names it.
		refused("domain runs (defined), disk vda"),
		prepare(resource.TestStep{Config: free, Destroy: true}, func() {
			lab.Virsh(t, "undefine", "runs")
			define(t, "below", "", disk(dir+"/inner/x.img", "raw", "vda"))
		}),
	)
	lab.Virsh(t, "undefine", "below")
	if _, err := os.Stat(dir + "/x.img"); err != nil {
		t.Errorf("a volume went with the pool: %v", err)
	}
}

func TestAccPool_import(t *testing.T) {
	acctest.Case(t, "a pool made by hand is imported by UUID or name; the plan after it is empty, and the next change is made in place")
	dir := t.TempDir()
	lab.Virsh(t, "pool-define-as", "byhand", "dir", "--target", dir)
	lab.Virsh(t, "pool-start", "byhand")
	uuid := strings.TrimSpace(lab.Virsh(t, "pool-uuid", "byhand"))
	block := func(id string) string {
		return poolConfig(t, "byhand", dir, "") + fmt.Sprintf("import {\n  to = libvirt_pool.it\n  id = %q\n}\n", id)
	}
	imports := func(id string) resource.TestStep {
		return resource.TestStep{Config: block(id), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(pool, plancheck.ResourceActionNoop)},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		}, Check: resource.TestCheckResourceAttr(pool, "uuid", uuid)}
	}
	lab.Steps(t,
		resource.TestStep{Config: block("none"), ExpectError: lab.Says(`There is no pool "none"`, "virsh pool-list --all")},
		imports("byhand"),
		updates(pool, "none", lab.Apply(poolConfig(t, "byhand", dir, "autostart = true"), resource.TestCheckResourceAttr(pool, "uuid", uuid))),
		// Left out again, it stays: what the host has is not what omission says.
		lab.Apply(poolConfig(t, "byhand", dir, ""), shows(t, "pool-info byhand", "Autostart: yes")),
	)
	lab.Virsh(t, "pool-define-as", "byhand", "dir", "--target", dir)
	lab.Virsh(t, "pool-start", "byhand")
	uuid = strings.TrimSpace(lab.Virsh(t, "pool-uuid", "byhand"))
	lab.Steps(t, imports(uuid))
}
