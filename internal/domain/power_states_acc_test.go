package domain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// equipped is a machine that can be brought into every power state: it has an
// agent, a bell for panics, a watchdog, and sleeps if it is told to.
func equipped(name string) machine {
	return machine{name: name, more: pluggable + `
  on_crash = "preserve"
  pm = { suspend_to_mem = { enabled = "yes" } }`, devices: `channels  = [{ source = { unix = {} }, target = { virt_io = { name = "org.qemu.guest_agent.0" } } }]
    panics    = [{ model = "isa" }]
    watchdogs = [{ model = "i6300esb", action = "pause" }]`}
}

// inGuest is an action: a shell command in the guest that goes on by itself.
func inGuest(command string) action {
	return func(t testing.TB, name string) {
		t.Helper()
		if _, err := lab.Host(t).GuestExec(context.Background(), name, "("+command+") > /dev/null 2>&1 &"); err != nil {
			t.Fatal(err)
		}
	}
}

// powerState is a state in which an apply may find a guest.
type powerState struct {
	machine machine
	enter   action            // from running
	says    string            // domstate --reason
	sees    map[string]string // attributes of the state
	warns   []string          // parts of the warning of a plan
	deaf    bool              // it hears no button: only force ends it
	ends    string            // domstate --reason after a restart
	loose   bool              // its configuration says nothing of the power at first
	pc      bool              // QEMU's q35 cannot power off any more once it slept
}

// block is the resource of the machine, changed or not.
func (s powerState) block(t testing.TB, m machine) string {
	t.Helper()
	block := m.block(t)
	if s.loose && !strings.Contains(m.more, "# the power is said") {
		block = loose(block)
	}
	if s.pc {
		block = strings.Replace(block, `"q35"`, `"pc"`, 1)
	}
	return block
}

func powerStates() []powerState {
	return []powerState{
		{machine: equipped("st-steady"), enter: func(testing.TB, string) {}, says: "running (booted)",
			sees: map[string]string{"status.power": "running", "status.power_reason": "booted"}, ends: "running (booted)"},
		{machine: equipped("st-paused"), enter: powerIs("paused", virsh("suspend $")), says: "paused (user)",
			sees: map[string]string{"status.power": "paused", "status.power_reason": "user"}, ends: "paused (user)"},
		{machine: equipped("st-asleep"), enter: powerIs("pmsuspended", virsh("dompmsuspend $ mem")), says: "pmsuspended (unknown)",
			sees: map[string]string{"status.power": "pmsuspended", "status.power_reason": "<nil>"}, ends: "running (booted)", loose: true, pc: true},
		{machine: equipped("st-hung"), enter: powerIs("paused", inGuest("watchdog -F -t 60 -T 2 /dev/watchdog")), says: "paused (watchdog)",
			sees:  map[string]string{"status.power": "paused", "status.power_reason": "watchdog", "status.state": "degraded", "status.settled": "false"},
			warns: []string{`The guest of domain "st-hung" was paused by libvirt: watchdog`, "virsh resume st-hung"}, ends: "running (booted)"},
		// The bell is rung by hand: what the guest's kernel does in a panic.
		{machine: equipped("st-crashed"), enter: powerIs("crashed", inGuest(`sleep 1; printf '\001' | dd of=/dev/port bs=1 seek=1285`)), says: "crashed (panicked)",
			sees:  map[string]string{"status.power": "crashed", "status.power_reason": "panicked", "status.state": "degraded", "status.settled": "false"},
			warns: []string{`The guest of domain "st-crashed" has crashed`, "virsh destroy st-crashed", "update.shutdown.force"}, ends: "running (booted)", deaf: true},
	}
}

// world are the machines of a case, each in its state.
type world struct {
	t      *testing.T
	p      *lab.Project
	states []powerState
	runs   map[string]host.Machine // of QEMU, when the guest was last observed
	marks  map[string]string       // of the guest at that time; nil: only QEMU is looked at
}

// write configures all machines; each may have more of its own.
func (w *world) write(edit func(s powerState, m machine) machine) {
	w.t.Helper()
	body := ""
	for _, s := range w.states {
		body += s.block(w.t, edit(s, s.machine))
	}
	configure(w.t, w.p, body)
}

// enter brings every guest into its state.
func (w *world) enter() {
	w.t.Helper()
	for _, s := range w.states {
		if got := domstate(w.t, s.machine.name); strings.HasPrefix(got, "paused") {
			lab.Virsh(w.t, "resume", s.machine.name)
		}
	}
	for _, s := range w.states {
		// A guest that answers has its agent.
		if _, err := lab.Host(w.t).GuestExec(context.Background(), s.machine.name, "true"); err != nil {
			w.t.Fatal(err)
		}
		s.enter(w.t, s.machine.name)
	}
	for _, s := range w.states {
		if got := domstate(w.t, s.machine.name); got != s.says {
			w.t.Fatalf("%s is %s, not %s", s.machine.name, got, s.says)
		}
		w.runs[s.machine.name] = w.run(s.machine.name)
		if w.marks != nil {
			w.marks[s.machine.name] = w.mark(s)
		}
	}
}

// mark is what a reset of the guest in the same QEMU would change: the boot that a
// running guest reports, the registers of one that stands still.
func (w *world) mark(s powerState) string {
	w.t.Helper()
	if strings.HasPrefix(s.says, "running") {
		return lab.Observe(w.t, s.machine.name).Report().BootID
	}
	return lab.Virsh(w.t, "qemu-monitor-command", s.machine.name, "--hmp", "info registers")
}

func (w *world) run(name string) host.Machine {
	w.t.Helper()
	m, err := lab.Host(w.t).Domain(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// still holds each guest against what it was: the same QEMU in the same state, and
// the same boot of the guest.
func (w *world) still(when string) {
	w.t.Helper()
	for _, s := range w.states {
		name := s.machine.name
		if now, got := w.run(name), domstate(w.t, name); now != w.runs[name] || got != s.says {
			w.t.Errorf("%s: %s is %s in QEMU %+v, and was %s in %+v", when, name, got, now, s.says, w.runs[name])
		}
		if w.marks == nil {
			continue
		}
		if now := w.mark(s); now != w.marks[name] {
			w.t.Errorf("%s: %s was reset, or went on: it was at\n%s\nand is at\n%s", when, name, w.marks[name], now)
		}
	}
}

// plan holds what a plan says of all machines against what is wanted: of each its
// state, its warning and its change.
func (w *world) plan(when, effect string, pending []string, fields ...string) {
	w.t.Helper()
	seen := tell(w.t, w.p)
	for _, s := range w.states {
		name := s.machine.name
		planned(w.t, seen, name, effect, fields...)
		state := seen.state(name)
		want := map[string]string{"status.state": word(nil, pending)}
		for k, v := range s.sees {
			want[k] = v
		}
		for path, v := range want {
			if got := fmt.Sprint(at(state, path)); got != v {
				w.t.Errorf("%s: %s: %s is %s, want %s", when, name, path, got, v)
			}
		}
		same(w.t, when+": "+name+": status.pending", words(state, "status.pending"), pending)
		text, warns := strings.Join(seen.about(name), "\n"), s.warns
		if s.loose && effect == "shutdown" {
			warns = []string{"Somebody started domain"} // by hand, after it was made
		}
		if !containsAll(text, warns) || len(warns) == 0 && text != "" {
			w.t.Errorf("%s: %s: the plan warns: %q, want %q", when, name, text, warns)
		}
	}
}

func TestAccPower_states(t *testing.T) {
	core := acctest.Case(t, "a guest that runs, is paused by hand or by its watchdog, sleeps or has crashed: no change, a live one and one that waits leave it as it is; restart, running = false and destroy end it in order if it can hear, and hard only if that was asked for")
	w := &world{t: t, states: powerStates(), runs: map[string]host.Machine{}, marks: map[string]string{}}
	names := make([]string, len(w.states))
	for i, s := range w.states {
		names[i] = s.machine.name
	}
	w.p = project(t, core, "")
	forget(t, names...)
	asItIs := func(_ powerState, m machine) machine { return m }
	w.write(asItIs)
	w.p.Must(0, "apply", "-auto-approve")
	for _, s := range w.states {
		if s.loose {
			lab.Virsh(t, "start", s.machine.name)
		}
	}
	w.enter()
	w.plan("nothing changes", "", nil)
	w.still("nothing changes")

	titled := func(_ powerState, m machine) machine { return plus(m, `title = "again"`) }
	w.write(titled)
	w.plan("a title", "live", nil, "title: live")
	w.p.Must(0, "apply", "plan")
	w.still("a title")
	for _, name := range names {
		if title := lab.Virsh(t, "desc", name, "--live", "--title"); !strings.Contains(title, "again") {
			t.Errorf("the title of %s is %q", name, title)
		}
	}
	w.plan("after a title", "", nil)

	grown := func(s powerState, m machine) machine { m = titled(s, m); m.memory = 160; return m }
	w.write(grown)
	w.plan("memory", "next_boot", nil, "memory: next_boot")
	w.p.Must(0, "apply", "plan")
	w.still("memory")
	w.plan("after memory", "", []string{"memory"})

	w.restart(grown)
	w.off(grown)
	w.destroy(grown)
}

// restart: what waits comes with it. A guest that hears no button is left as it
// is until somebody says force.
func (w *world) restart(config func(powerState, machine) machine) {
	w.t.Helper()
	allow := func(force string) func(s powerState, m machine) machine {
		return func(s powerState, m machine) machine {
			more := ""
			if s.deaf {
				more = force
			}
			return plus(config(s, m), fmt.Sprintf(`update = { allow = "restart", shutdown = { timeout = 120 %s } }`, more))
		}
	}
	w.write(allow(""))
	w.plan("restart", "restart", []string{"memory"}, "memory: restart")
	out := w.p.Must(1, "apply", "plan")
	if !lab.Says("Restart st-crashed", "has crashed, and hears no power button", "virsh destroy st-crashed", "update.shutdown.force").MatchString(out) || strings.Count(out, "has crashed, and hears") != 1 {
		w.t.Errorf("the apply says:\n%s", out)
	}
	for _, s := range w.states {
		if s.deaf {
			if now := w.run(s.machine.name); now != w.runs[s.machine.name] || domstate(w.t, s.machine.name) != s.says {
				w.t.Errorf("%s was touched: %+v", s.machine.name, now)
			}
			w.write(allow(", force = true"))
			w.p.Must(0, "apply", "-auto-approve", "-target=libvirt_domain."+s.machine.name)
		}
		w.ended(s)
		if now, got := w.run(s.machine.name), domstate(w.t, s.machine.name); now == w.runs[s.machine.name] || got != s.ends {
			w.t.Errorf("after the restart %s is %s in QEMU %+v; want %s in another one", s.machine.name, got, now, s.ends)
		}
	}
	seen := tell(w.t, w.p)
	for _, s := range w.states {
		planned(w.t, seen, s.machine.name, "")
		if state := at(seen.state(s.machine.name), "status.state"); state != "settled" {
			w.t.Errorf("after the restart %s is %v", s.machine.name, state)
		}
	}
}

// ended holds how libvirt says that the last run of a guest ended against how it
// had to: in order, but for one that hears nothing.
func (w *world) ended(s powerState) {
	w.t.Helper()
	want := "shutdown"
	if s.deaf {
		want = "crashed|destroyed"
	}
	log, err := lab.Host(w.t).Exec(context.Background(), "cat", "/var/log/libvirt/qemu/"+s.machine.name+".log")
	if err != nil {
		w.t.Fatal(err)
	}
	_, reason, found := cutLast(log, "shutting down, reason=")
	reason, _, _ = strings.Cut(reason, "\n")
	if !found || !strings.Contains("|"+want+"|", "|"+strings.TrimSpace(reason)+"|") {
		w.t.Errorf("%s ended by %q, want %s", s.machine.name, reason, want)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// off: running = false, once more from each state.
func (w *world) off(config func(powerState, machine) machine) {
	w.t.Helper()
	w.write(config)
	w.p.Must(0, "apply", "-auto-approve")
	w.enter()
	w.write(func(s powerState, m machine) machine {
		m = plus(config(s, m), "# the power is said")
		m.off = true
		if s.deaf {
			m = plus(m, "update = { shutdown = { force = true } }")
		}
		return m
	})
	w.plan("running = false", "shutdown", nil, "running: shutdown")
	begin := time.Now()
	w.p.Must(0, "apply", "plan")
	w.t.Logf("all are off after %s", time.Since(begin).Round(time.Second))
	seen := tell(w.t, w.p)
	for _, s := range w.states {
		planned(w.t, seen, s.machine.name, "")
		if got := domstate(w.t, s.machine.name); !strings.HasPrefix(got, "shut off") {
			w.t.Errorf("%s is %s", s.machine.name, got)
		}
		w.ended(s)
	}
}

// destroy: running = true starts all again; then all go, from each state.
func (w *world) destroy(config func(powerState, machine) machine) {
	w.t.Helper()
	gracefully := func(s powerState, m machine) machine {
		return plus(plus(config(s, m), "# the power is said"), fmt.Sprintf("destroy = { graceful = %v, shutdown = { timeout = 120 } }", s.deaf))
	}
	w.write(gracefully)
	seen := tell(w.t, w.p)
	for _, s := range w.states {
		planned(w.t, seen, s.machine.name, "none", "running: none")
	}
	w.p.Must(0, "apply", "plan")
	w.p.Must(0, "plan", "-detailed-exitcode")
	w.enter()
	for _, s := range w.states {
		if !s.deaf {
			continue
		}
		out := w.p.Must(1, "destroy", "-auto-approve", "-target=libvirt_domain."+s.machine.name)
		if !lab.Says("has crashed, and hears no power button", "destroy.graceful forbids a hard stop", "virsh destroy "+s.machine.name).MatchString(out) {
			w.t.Errorf("the destroy says:\n%s", out)
		}
	}
	w.still("a destroy of one that hears nothing")
	w.write(func(s powerState, m machine) machine { s.deaf = false; return gracefully(s, m) })
	w.p.Must(0, "apply", "-auto-approve") // the setting is kept in the state
	w.still("another setting")
	begin := time.Now()
	w.p.Must(0, "destroy", "-auto-approve")
	w.t.Logf("all are gone after %s", time.Since(begin).Round(time.Second))
	left := strings.Fields(lab.Virsh(w.t, "list", "--all", "--name"))
	for _, s := range w.states {
		w.ended(s)
		if strings.Contains(" "+strings.Join(left, " ")+" ", " "+s.machine.name+" ") {
			w.t.Errorf("%s is still there", s.machine.name)
		}
	}
}
