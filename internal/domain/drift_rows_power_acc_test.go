package domain_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// loose takes the power of machines out of their configuration.
func loose(body string) string { return strings.ReplaceAll(body, "  running     = true\n", "") }

// powerIs is an action that ends when libvirt says that the machine is so.
func powerIs(state string, act action) action {
	return func(t testing.TB, name string) {
		t.Helper()
		act(t, name)
		for end := time.Now().Add(time.Minute); strings.TrimSpace(lab.Virsh(t, "domstate", name)) != state; time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is not %s: %s", name, state, lab.Virsh(t, "domstate", name))
			}
		}
	}
}

func TestAccDrift_power(t *testing.T) {
	core := acctest.Case(t, "a guest that somebody stopped, saved or undefined runs again if the configuration says so, and is defined again without being touched")
	group{
		machines: []machine{
			{name: "pow-destroyed", more: pluggable}, {name: "pow-down", more: pluggable}, {name: "pow-saved"}, {name: "pow-undefined", more: "autostart = true"},
		},
		rows: []row{
			{on: "pow-destroyed", does: "destroy", act: virsh("destroy $"), restarted: true,
				sees:   map[string]string{"running": "false", "status.power": "shutoff", "id": "<nil>"},
				fields: []string{"running: none"}, then: map[string]string{"running": "true", "status.power": "running"}},
			{on: "pow-down", does: "shutdown", act: powerIs("shut off", virsh("shutdown $")), restarted: true,
				sees:   map[string]string{"running": "false", "status.power": "shutoff"},
				fields: []string{"running: none"}, then: map[string]string{"running": "true", "status.power": "running"}},
			{on: "pow-saved", does: "managedsave", act: virsh("managedsave $"), restarted: true,
				sees:   map[string]string{"running": "false", "status.power": "shutoff", "status.managed_save": "true", "status.state": "pending"},
				fields: []string{"running: none"}, then: map[string]string{"running": "true", "status.managed_save": "false"}},
			{on: "pow-undefined", does: "undefine of the running guest", act: virsh("undefine $"),
				sees:   map[string]string{"status.persistent": "false", "status.state": "degraded", "autostart": "false"},
				fields: []string{"definition: defined again none", "autostart: none"}, warns: []string{"Somebody undefined it while it runs"},
				then: map[string]string{"status.persistent": "true", "autostart": "true"}},
		},
	}.run(t, core)
}

// A guest that was restored goes on where it was saved.
func TestAccDrift_loosePower(t *testing.T) {
	core := acctest.Case(t, "where the configuration leaves the power alone, suspend, resume, reboot, reset, a restarted daemon, managedsave, start and destroy change nothing in the plan")
	const name = "calm"
	p := project(t, core, loose(machine{name: name, more: "running = true\n" + pluggable}.block(t)))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	configure(t, p, loose(machine{name: name, more: pluggable}.block(t)))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	guest := lab.Observe(t, name)
	restart := func(t testing.TB, _ string) {
		t.Helper()
		if err := lab.Host(t).RestartDaemon(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	series{
		{on: name, does: "suspend", act: powerIs("paused", virsh("suspend $")), sees: map[string]string{"status.power": "paused"}},
		{on: name, does: "restart libvirtd while it is suspended", act: restart, sees: map[string]string{"status.power": "paused"}},
		{on: name, does: "resume", act: virsh("resume $"), sees: map[string]string{"status.power": "running"}},
	}.run(t, p)
	guest.Untouched(t, name)
	series{
		{on: name, does: "reboot", act: virsh("reboot $"), sees: map[string]string{"status.power": "running"}},
		{on: name, does: "reset", act: virsh("reset $"), sees: map[string]string{"status.power": "running"}},
		{on: name, does: "setmem --live, where the configuration says nothing", act: inflate("--live")},
		{on: name, does: "managedsave", act: virsh("managedsave $"), // the saved guest has another balloon, which is no boot problem
			sees: map[string]string{"status.power": "shutoff", "status.managed_save": "true", "status.state": "pending", "id": "<nil>"}},
		{on: name, does: "start", act: virsh("start $"), sees: map[string]string{"status.power": "running", "status.managed_save": "false"}},
		{on: name, does: "destroy", act: virsh("destroy $"), sees: map[string]string{"status.power": "shutoff"}},
	}.run(t, p)
}

func TestAccDrift_surroundings(t *testing.T) {
	core := acctest.Case(t, "what somebody does to the network, the pool and the volume of a machine is no drift of it: the state names it as a boot problem, the plan is empty, and other changes are applied")
	const name, net, pool = "lonely", "drift-net", "drift-pool"
	lab.Virsh(t, "net-define", netFile(t, net))
	lab.Virsh(t, "pool-define-as", pool, "dir", "--target", t.TempDir())
	for _, c := range []string{"net-start " + net, "net-autostart " + net, "pool-start " + pool, "pool-autostart " + pool, "vol-create-as " + pool + " root.img 1M"} {
		lab.Virsh(t, strings.Fields(c)...)
	}
	t.Cleanup(func() {
		lab.Virsh(t, "net-undefine", net)
		lab.Virsh(t, "pool-undefine", pool)
	})
	m := machine{name: name, off: true, more: "autostart = true", devices: `disks = [{ source = { volume = { pool = "drift-pool", volume = "root.img" } }, target = { dev = "vda", bus = "virtio" } }]
    interfaces = [{ source = { network = { network = "drift-net" } } }]`}
	p := project(t, core, m.block(t))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	const lateNet, noNet, latePool, noVolume, noPool = `network "drift-net" is not set to autostart, this domain is`, `network "drift-net" is not active`,
		`pool "drift-pool" is not set to autostart, this domain is`, `volume "root.img" of pool "drift-pool" is gone`, `pool "drift-pool" is not active`
	series{
		{on: name, does: "net-autostart --disable", act: virsh("net-autostart --disable " + net), boot: []string{lateNet}},
		{on: name, does: "net-destroy", act: virsh("net-destroy " + net), boot: []string{lateNet, noNet}},
		{on: name, does: "vol-delete", act: virsh("vol-delete --pool " + pool + " root.img"), boot: []string{lateNet, noNet, noVolume}},
		{on: name, does: "pool-destroy, pool-autostart --disable", act: virsh("pool-destroy "+pool, "pool-autostart --disable "+pool),
			boot: []string{lateNet, noNet, latePool, noPool}},
	}.run(t, p)
	m.more += "\n  title = \"all the same\""
	configure(t, p, m.block(t))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	if title := lab.Virsh(t, "desc", name, "--title"); !strings.Contains(title, "all the same") {
		t.Errorf("the title is %q", title)
	}
}
