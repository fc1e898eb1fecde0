package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// occupant is a machine of somebody else, with some devices.
func occupant(t testing.TB, name, devices string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".xml")
	xml := fmt.Sprintf(`<domain type="qemu"><name>%s</name><memory unit="MiB">32</memory><vcpu>1</vcpu><os><type arch="x86_64" machine="q35">hvm</type></os><devices>%s</devices></domain>`, name, devices)
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "create", file) // without a definition: stopped, it is gone
	t.Cleanup(func() {
		if slices.Contains(strings.Fields(lab.Virsh(t, "list", "--all", "--name")), name) {
			lab.Virsh(t, "destroy", name)
		}
	})
}

func TestAccDomain_failedStarts(t *testing.T) {
	c := acctest.Case(t, "a machine whose first start fails is in the state as defined, failed and tainted; once the cause is mended the next apply works, whatever protect says, and nothing is left behind")
	const image = "contended.raw"
	disk := lab.Host(t).PoolDir() + "/" + image
	port := `graphics = [{ vnc = { port = 5977, auto_port = false, listen = "127.0.0.1" } }]`
	locked := fmt.Sprintf(`disks = [{ source = { file = { file = %q } }, driver = { name = "qemu", type = "raw" }, target = { dev = "vda", bus = "virtio" } }]`, disk)
	for _, f := range []struct {
		name, protect string
		m             machine
		occupy        func(t testing.TB)
		says          string
		mended        func(m machine) machine
	}{
		{"bogus-unset", "", machine{more: refusedByQEMU}, nil, "no-such-device", without(refusedByQEMU)},
		{"bogus-true", "protect = true", machine{more: refusedByQEMU}, nil, "no-such-device", without(refusedByQEMU)},
		{"bogus-false", "protect = false", machine{more: refusedByQEMU}, nil, "no-such-device", without(refusedByQEMU)},
		{"port-unset", "", machine{devices: port}, func(t testing.TB) {
			occupant(t, "occupant", `<graphics type="vnc" port="5977" autoport="no" listen="127.0.0.1"/>`)
		}, "5977", nil},
		{"lock-true", "protect = true", machine{devices: locked}, func(t testing.TB) {
			lab.Virsh(t, "vol-create-as", "default", image, "1M")
			t.Cleanup(func() { lab.Virsh(t, "vol-delete", image, "default") })
			occupant(t, "occupant", fmt.Sprintf(`<disk type="file"><driver name="qemu" type="raw"/><source file="%s"/><target dev="vda" bus="virtio"/></disk>`, disk))
		}, "lock", nil},
	} {
		f.m.name = f.name
		f.m.more += "\n  " + f.protect
		if !t.Run(f.name, func(t *testing.T) { failedStart(t, c, f.m, f.protect, f.says, f.occupy, f.mended) }) {
			return
		}
	}
}

// failedStart plays one creation whose start fails.
func failedStart(t *testing.T, c core.Core, m machine, protect, says string, occupy func(testing.TB), mended func(machine) machine) {
	p := project(t, c, m.block(t), "LIBVIRT_PROTECT=")
	forget(t, m.name)
	if occupy != nil {
		occupy(t)
	}
	names := func() []string { return strings.Fields(lab.Virsh(t, "list", "--all", "--name")) }
	before := names()
	if out := p.Must(1, "apply", "-auto-approve"); !lab.Says(fmt.Sprintf("Could not create domain %q", m.name), "which is defined now", says).MatchString(out) {
		t.Fatalf("the apply does not say %q:\n%s", says, out)
	}
	state, uuid := stateOf(t, p, m.name), strings.TrimSpace(lab.Virsh(t, "domuuid", m.name))
	if power := strings.TrimSpace(lab.Virsh(t, "domstate", m.name)); power != "shut off" || !state.Tainted {
		t.Errorf("the domain is %s, tainted %v", power, state.Tainted)
	}
	for path, want := range map[string]string{"uuid": uuid, "status.state": "failed", "status.started": "false", "status.power": "shutoff", "status.generation": "1", "running": "false"} {
		if got := fmt.Sprint(at(state.Values, path)); got != want {
			t.Errorf("the state says %s %s, want %s", path, got, want)
		}
	}
	// The exit code is not asked for: Terraform's counts a tainted object as a change.
	if out := p.Must(0, "plan", "-refresh-only"); !lab.Says("No changes.").MatchString(out) {
		t.Errorf("a refresh finds something else than the creation left in the state:\n%s", out)
	}
	// As long as the cause is there, the next apply fails likewise, and piles
	// nothing up.
	p.Must(1, "apply", "-auto-approve")
	if now := len(names()); now != len(before)+1 {
		t.Errorf("there are %v, and were %v", names(), before)
	}
	if mended != nil {
		configure(t, p, mended(m).block(t))
	} else {
		lab.Virsh(t, "destroy", "occupant")
	}
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	state = stateOf(t, p, m.name)
	if got := at(state.Values, "status.state"); state.Tainted || got != "settled" || strings.TrimSpace(lab.Virsh(t, "domstate", m.name)) != "running" {
		t.Errorf("after the mend: tainted %v, %v", state.Tainted, state.Values["status"])
	}
	for _, n := range names() {
		if n != m.name && !slices.Contains(before, n) {
			t.Errorf("%s is left behind", n)
		}
	}
	// From now on it has run, and counts as any other.
	if protect != "protect = false" {
		if out := p.Must(1, "destroy", "-auto-approve"); !lab.Says("Refusing to destroy protected domain").MatchString(out) {
			t.Errorf("got %s", out)
		}
	}
}

func TestAccDomain_failedProvisioner(t *testing.T) {
	c := acctest.Case(t, "a machine that runs, and whose provisioner failed, is not replaced: the apply is refused with untaint as the way out, after which nothing is to be done; the guest is untouched")
	const name = "provisioned"
	m := machine{name: name, more: "provisioner \"local-exec\" {\n    command = \"exit 1\"\n  }"}
	p := project(t, c, m.block(t), "LIBVIRT_PROTECT=")
	forget(t, name)
	p.Must(1, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	if state := stateOf(t, p, name); !state.Tainted || at(state.Values, "status.state") != "settled" {
		t.Fatalf("tainted %v, %v", state.Tainted, state.Values["status"])
	}
	for range 2 { // the refusal can be repeated
		out := p.Must(1, "apply", "-auto-approve")
		if !lab.Says(`Refusing to destroy protected domain "provisioned"`, "It was not touched", "untaint ADDRESS").MatchString(out) {
			t.Fatalf("got %s", out)
		}
		guest.Untouched(t, name)
	}
	p.Must(0, "untaint", "libvirt_domain."+name)
	p.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, name)
	// What it loses by the refusal, its records, is made up for by the next reads:
	// an ordinary change goes on as ever.
	m.more += "\n  title = \"after all\""
	configure(t, p, m.block(t))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, name)
}

func TestAccDomain_interruptedWaits(t *testing.T) {
	c := acctest.Case(t, "a core that is interrupted while a new or a restarted machine is waited for has it in the state, untainted, with all of the plan, and the next plan is empty")
	const name = "interrupted"
	m := machine{name: name, more: pluggable + "\n  " + mayRestart,
		devices: `interfaces = [{ source = { network = { network = "default" } }, model = { type = "virtio" }, wait_for_ip = { timeout = 300, cidr = ["10.99.0.0/16"] } }]`}
	p := project(t, c, m.block(t), "LIBVIRT_PROTECT=")
	forget(t, name)
	interrupt := func(when func() bool) {
		t.Helper()
		begin := time.Now()
		out, _ := p.Interrupt(when, "apply", "-auto-approve")
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("it took %s", took)
		}
		if !lab.Says(`Domain "interrupted" runs, but interface 0`, "broken off").MatchString(out) {
			t.Errorf("got %s", out)
		}
		if state := stateOf(t, p, name); state.Values == nil || state.Tainted || at(state.Values, "status.power") != "running" {
			t.Errorf("tainted %v, %v", state.Tainted, state.Values["status"])
		}
		p.Must(0, "plan", "-detailed-exitcode")
	}
	interrupt(func() bool { return runs(t, name) })
	guest, id := lab.Observe(t, name), lab.Virsh(t, "domid", name)
	m.memory = 160
	configure(t, p, m.block(t))
	interrupt(func() bool {
		now, err := lab.Host(t).Virsh(context.Background(), "domid", name)
		return err == nil && now != id && runs(t, name)
	})
	if again := lab.Observe(t, name); again.Report().BootID == guest.Report().BootID {
		t.Error("the guest was not restarted, so that this proves nothing")
	}
}

// breaks are the places where a creation breaks off.
var breaks = []struct {
	what string
	hook func(cancel func()) []virt.Hook
	fail string // part of the error, "" if it succeeds all the same
	// What is true afterwards, of the host and of what goes into the state.
	defined, exists, runs, failed bool
}{
	{"the request to define is lost", func(func()) []virt.Hook {
		return []virt.Hook{virttest.Fail(virttest.Op("define domain"), virttest.ConnectionLost)}
	}, "was lost", false, false, false, false},
	{"the answer to it is lost", func(func()) []virt.Hook {
		return []virt.Hook{virttest.FailAfter(virttest.Op("define domain"), virttest.ConnectionLost)}
	}, "", true, true, true, false},
	{"the daemon ends after it", func(func()) []virt.Hook {
		gone := false
		return []virt.Hook{
			virttest.Fail(func(virt.Call) bool { return gone }, virttest.ConnectionLost),
			virttest.FailAfter(virttest.Op("define domain"), func(c virt.Call) error { gone = true; return virttest.ConnectionLost(c) }),
		}
	}, "the next refresh will", true, true, false, true},
	{"the user gives up after it", func(cancel func()) []virt.Hook {
		return []virt.Hook{virttest.FailAfter(virttest.Op("define domain"), func(virt.Call) error { cancel(); return nil })}
	}, "context canceled", true, true, false, true},
	{"the definition cannot be read back", func(func()) []virt.Hook {
		return []virt.Hook{virttest.Fail(virttest.Nth(1, virttest.Op("read the XML of domain")), virttest.Internal("no memory"))}
	}, "no memory", false, false, false, false},
	{"and cannot be taken back either", func(func()) []virt.Hook {
		return []virt.Hook{
			virttest.Fail(virttest.Nth(1, virttest.Op("read the XML of domain")), virttest.ConnectionLost),
			virttest.Fail(virttest.Op("undefine domain"), virttest.ConnectionLost),
		}
	}, "undefine", true, true, false, true},
	{"autostart is refused", func(func()) []virt.Hook {
		return []virt.Hook{virttest.Fail(virttest.Op("set autostart of domain"), virttest.PermissionDenied)}
	}, "access denied", true, true, false, true},
	{"the start is refused", func(func()) []virt.Hook {
		return []virt.Hook{virttest.Fail(virttest.Op("start domain"), virttest.Internal("no room for it"))}
	}, "no room for it", true, true, false, true},
	{"the request to start is lost", func(func()) []virt.Hook {
		return []virt.Hook{virttest.Fail(virttest.Op("start domain"), virttest.ConnectionLost)}
	}, "was lost", true, true, false, true},
	{"the answer to the start is lost", func(func()) []virt.Hook {
		return []virt.Hook{virttest.FailAfter(virttest.Op("start domain"), virttest.ConnectionLost)}
	}, "", true, true, true, false},
	{"the user gives up after the start", func(cancel func()) []virt.Hook {
		return []virt.Hook{virttest.FailAfter(virttest.Op("start domain"), func(virt.Call) error { cancel(); return nil })}
	}, "", true, true, true, false},
}

func TestAccDomain_creationBreaks(t *testing.T) {
	acctest.Case(t, "wherever a creation breaks off, the state has what is there, or nothing is there; the next creation works")
	b := newMaker(t)
	for i, br := range breaks {
		name := fmt.Sprintf("broken-%d", i)
		config := b.machine(t, name).With("autostart", tree.BoolValue(true))
		ctx, cancel := context.WithCancel(context.Background())
		var remove []func()
		for _, h := range br.hook(cancel) {
			remove = append(remove, virttest.Install(b.host, h))
		}
		done, err := b.create(ctx, t, config)
		for _, r := range remove {
			r()
		}
		cancel()
		if br.fail == "" && err != nil || br.fail != "" && (err == nil || !strings.Contains(err.Error(), br.fail)) {
			t.Errorf("%s: %v, want %q", br.what, err, br.fail)
		}
		defined := slices.Contains(strings.Fields(lab.Virsh(t, "list", "--all", "--name")), name)
		runs := slices.Contains(strings.Fields(lab.Virsh(t, "list", "--name")), name)
		if defined != br.defined || runs != br.runs || done.Exists != br.exists {
			t.Fatalf("%s: defined %v, runs %v, goes into the state %v: %v", br.what, defined, runs, done.Exists, err)
		}
		if done.Exists {
			b.isTrue(t, br.what, name, config, done, br.failed)
		}
		b.goesOn(t, br.what, config, done, err)
	}
}

// isTrue holds what goes into the state against the host.
func (b *maker) isTrue(t *testing.T, what, name string, config tree.Value, done kind.Done, failed bool) {
	t.Helper()
	state := b.state(config, done)
	if uuid := strings.TrimSpace(lab.Virsh(t, "domuuid", name)); state.Attr("uuid").Str() != uuid {
		t.Errorf("%s: the UUID is %s, the state has %s", what, uuid, state.Attr("uuid"))
	}
	if b.kind.NeverUsed(state) != failed {
		t.Errorf("%s: failed %v, want %v: %s", what, !failed, failed, state.Attr("status"))
	}
	read, err := b.kind.Read(context.Background(), state)
	if err != nil {
		t.Fatalf("%s: what went into the state finds nothing: %v", what, err)
	}
	if now := state.With("status", read.Status); b.kind.NeverUsed(now) != failed {
		t.Errorf("%s: after a refresh: %s", what, read.Status)
	}
}

func (b *maker) state(config tree.Value, done kind.Done) tree.Value {
	return b.kind.Rules().Project(b.kind.Type(), config, done.Facts.Definition).With("uuid", done.Facts.Definition.Attr("uuid")).With("status", done.Facts.Status)
}

// goesOn does what the core does next: what failed is tainted, destroyed and
// created again.
func (b *maker) goesOn(t *testing.T, what string, config tree.Value, done kind.Done, failed error) {
	t.Helper()
	ctx := context.Background()
	if failed == nil {
		return
	}
	if done.Exists {
		if _, err := b.kind.Delete(ctx, b.state(config, done)); err != nil {
			t.Fatalf("%s: the next apply cannot take it away: %v", what, err)
		}
	}
	again, err := b.kind.Create(ctx, config, config)
	if err != nil || !again.Facts.Active || again.Facts.Status.Attr("state").Str() != "settled" {
		t.Errorf("%s: the next creation: %s, %v", what, again.Facts.Status, err)
	}
	b.remove(t, config.Attr("name").Str())
}

func TestAccDomain_guestThatEndsAtOnce(t *testing.T) {
	acctest.Case(t, "a guest that goes down before its creation is read back is an error, not an inconsistent result; it counts as one that has run")
	b := newMaker(t)
	const name = "brief"
	defer virttest.Install(b.host, virttest.Observe(virttest.Nth(2, virttest.Op("read the XML of domain")), func(virt.Call) { lab.Virsh(t, "destroy", name) }))()
	done, err := b.create(context.Background(), t, b.machine(t, name))
	if err == nil || !strings.Contains(err.Error(), "does not run any more") || !strings.Contains(err.Error(), "untaint ADDRESS") {
		t.Fatalf("got %v", err)
	}
	if status := done.Facts.Status; !done.Exists || !status.Attr("started").Bool() || b.kind.NeverUsed(tree.NullValue.With("status", status)) {
		t.Errorf("what is said to be true: %s", status)
	}
}
