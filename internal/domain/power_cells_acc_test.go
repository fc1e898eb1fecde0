package domain_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// What an apply does to a guest in a state that lasts (power_states_acc_test.go)
// has a table of its own. Here are guests that are on their way down, saved or
// off, and one that a full disk has stopped.

// held has a guest hear the button and go down only when it is let go (letGo): so
// an apply surely meets it on its way down.
func held(t testing.TB, name string) {
	t.Helper()
	inGuestNow(t, name, `for f in /sbin/shutdown /etc/acpi/PWRF/00000080; do printf '#!/bin/sh\ntouch /heard\nwhile [ ! -e /go ]; do sleep 1; done\nexec poweroff -f\n' > $f; chmod +x $f; done`)
	pressed(t, name)
	inGuestNow(t, name, "for i in $(seq 60); do [ -e /heard ] && exit 0; sleep 1; done; exit 1")
}

// letGo lets such a guest go down, and waits for that.
func letGo(t testing.TB, name string) {
	t.Helper()
	inGuest("sleep 1; touch /go")(t, name)
	powerIs("shut off", func(testing.TB, string) {})(t, name)
}

// inGuestNow runs a shell command in the guest to its end.
func inGuestNow(t testing.TB, name, command string) {
	t.Helper()
	if _, err := lab.Host(t).GuestExec(context.Background(), name, command); err != nil {
		t.Fatal(err)
	}
}

// are fails the test unless machines are in these states, as libvirt says it
// with its reasons.
func are(t testing.TB, when string, want map[string]string) {
	t.Helper()
	for name, state := range want {
		if got := domstate(t, name); got != state {
			t.Errorf("%s: %s is %s, want %s", when, name, got, state)
		}
	}
}

func TestAccPower_downSavedOff(t *testing.T) {
	core := acctest.Case(t, "a guest on its way down is left to go, whether nothing changes or something that waits; running = false leaves a managed save as it is, also one that was made after the plan, and shuts down a guest that came from one; a machine that is off stays off, whatever changes")
	down, waits, saved, late, back := equipped("ce-down"), equipped("ce-waits"), machine{name: "ce-saved", more: pluggable}, machine{name: "ce-late", more: pluggable}, machine{name: "ce-back", more: pluggable}
	off := machine{name: "ce-off", more: pluggable}
	all := func(off machine, more ...machine) string { return blocks(t, more...) + loose(off.block(t)) }
	p := project(t, core, all(off, down, waits, saved, late, back))
	forget(t, down.name, waits.name, saved.name, late.name, back.name, off.name)
	p.Must(0, "apply", "-auto-approve")
	guests := map[string]*lab.Guest{}
	for _, m := range []machine{down, waits, saved, late, back} {
		guests[m.name] = lab.Observe(t, m.name)
	}
	virsh("managedsave ce-saved", "managedsave ce-back", "start ce-back")(t, "")
	held(t, down.name)
	held(t, waits.name)

	waits.memory = 160
	off = plus(off, `title = "asleep"`)
	configure(t, p, all(off, down, waits, isOff(saved), isOff(late), isOff(back)))
	seen := tell(t, p)
	planned(t, seen, down.name, "")
	planned(t, seen, waits.name, "next_boot", "memory: next_boot")
	planned(t, seen, saved.name, "")
	planned(t, seen, late.name, "shutdown", "running: shutdown")
	planned(t, seen, back.name, "shutdown", "running: shutdown")
	planned(t, seen, off.name, "none", "title: none")
	lab.Virsh(t, "managedsave", late.name)
	p.Must(0, "apply", "plan")
	are(t, "after the first apply", map[string]string{down.name: "running (booted)", waits.name: "running (booted)",
		saved.name: "shut off (saved)", late.name: "shut off (saved)", back.name: "shut off (shutdown)", off.name: "shut off (unknown)"})
	guests[down.name].Untouched(t, down.name)
	guests[waits.name].Untouched(t, waits.name)
	seen = tell(t, p)
	for _, m := range []machine{down, waits, saved, late, back, off} {
		planned(t, seen, m.name, "")
	}
	same(t, "ce-waits: status.pending", words(seen.state(waits.name), "status.pending"), []string{"memory"})

	letGo(t, down.name)
	letGo(t, waits.name)
	are(t, "let go", map[string]string{down.name: "shut off (shutdown)", waits.name: "shut off (shutdown)"})
	off.memory = 160
	configure(t, p, all(off, down, waits, saved, late, isOff(back)))
	seen = tell(t, p)
	for _, m := range []machine{down, waits, saved, late} {
		planned(t, seen, m.name, "none", "running: none")
	}
	planned(t, seen, off.name, "none", "memory: none")
	p.Must(0, "apply", "plan")
	for _, m := range []machine{down, waits, saved, late} {
		was, now := guests[m.name].Report(), lab.Observe(t, m.name).Report()
		if again := m.name == down.name || m.name == waits.name; (was.BootID != now.BootID) != again || (now.MemKiB > was.MemKiB+16<<10) != (m.name == waits.name) {
			t.Errorf("%s was %+v, and is %+v", m.name, was, now)
		}
	}

	off = plus(off, mayRestart)
	off.memory = 192
	configure(t, p, all(off, down, waits, saved, late, isOff(back)))
	seen = tell(t, p)
	planned(t, seen, off.name, "none", "memory: none")
	p.Must(0, "apply", "plan")
	configure(t, p, blocks(t, down, waits, saved, late, isOff(back), isOff(off)))
	// That it is off is something to be written down, and no more.
	if action, change := tell(t, p).change(off.name); action != "update" || at(change, "effect") != "none" || len(words(change, "fields")) > 0 {
		t.Errorf("running = false of a machine that is off: the plan is %s: %v", action, change)
	}
	p.Must(0, "apply", "plan")
	p.Must(0, "plan", "-detailed-exitcode")
	are(t, "in the end", map[string]string{off.name: "shut off (unknown)", back.name: "shut off (shutdown)"})
	if xml := lab.Virsh(t, "dumpxml", "--inactive", off.name); !strings.Contains(xml, "<title>asleep<") || !strings.Contains(xml, ">196608</memory>") {
		t.Errorf("the definition of ce-off is\n%s", xml)
	}
	p.Must(0, "destroy", "-auto-approve")
	if left := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(left, "ce-") {
		t.Errorf("left: %s", left)
	}
	// libvirt writes a log of every start.
	if _, err := lab.Host(t).Exec(context.Background(), "test", "!", "-e", "/var/log/libvirt/qemu/"+off.name+".log"); err != nil {
		t.Errorf("ce-off was started: %v", err)
	}
}

// starved is a file system of the host with an image that has no room for what it
// says it can hold.
type starved struct {
	t          *testing.T
	dir, image string
}

func newStarved(t *testing.T, name string) starved {
	t.Helper()
	s := starved{t: t, dir: lab.Host(t).Dir() + "/" + name}
	s.image = s.dir + "/disk.raw"
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.inside("mount", "-t", "tmpfs", "-o", "size=8M", "starved", s.dir)
	t.Cleanup(func() {
		s.inside("umount", "--lazy", s.dir)
		_ = os.Remove(s.dir)
	})
	s.empty(t, "")
	return s
}

func (s starved) inside(command ...string) {
	s.t.Helper()
	if _, err := lab.Host(s.t).Exec(context.Background(), command[0], command[1:]...); err != nil {
		s.t.Error(err)
	}
}

// empty takes the room away again, with all that was written.
func (s starved) empty(testing.TB, string) {
	s.inside("truncate", "-s", "0", s.image)
	s.inside("truncate", "-s", "32M", s.image)
	s.inside("mount", "-o", "remount,size=8M", s.dir)
}

func (s starved) room() { s.inside("mount", "-o", "remount,size=64M", s.dir) }

func TestAccPower_pausedByADisk(t *testing.T) {
	core := acctest.Case(t, "a guest that is paused as its disk is full: no change, a live one and one that waits leave it as it is; a restart that it cannot follow leaves it as it is too, and with room it follows; running = false with force, and destroy after its time, end it hard")
	disk := newStarved(t, "starved")
	m := equipped("st-stuck")
	m.devices += fmt.Sprintf(`
    disks = [{ source = { file = { file = %q } }, driver = { name = "qemu", type = "raw", error_policy = "stop" }, target = { dev = "vda", bus = "virtio" } }]`, disk.image)
	stuck := powerState{machine: m, enter: powerIs("paused", inGuest("sleep 5; dd if=/dev/zero of=/dev/vda bs=1M count=24")), says: "paused (I/O error)",
		sees:  map[string]string{"status.power": "paused", "status.power_reason": "I/O error", "status.state": "degraded", "status.settled": "false"},
		warns: []string{`The guest of domain "st-stuck" was paused by libvirt: I/O error`, "virsh domblkerror st-stuck", "virsh resume st-stuck"}, ends: "running (booted)"}
	w := &world{t: t, p: project(t, core, ""), states: []powerState{stuck}, runs: map[string]host.Machine{}, marks: map[string]string{}}
	forget(t, m.name)
	write := func(more string) {
		t.Helper()
		w.write(func(_ powerState, m machine) machine { m.memory = 160; return plus(m, more) })
	}
	w.write(func(_ powerState, m machine) machine { return m })
	w.p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, m.name)
	w.enter()
	w.plan("nothing changes", "", nil)
	w.still("nothing changes")
	w.write(func(_ powerState, m machine) machine { return plus(m, `title = "again"`) })
	w.plan("a title", "live", nil, "title: live")
	w.p.Must(0, "apply", "plan")
	w.still("a title")
	write(`title = "again"`)
	w.plan("memory", "next_boot", nil, "memory: next_boot")
	w.p.Must(0, "apply", "plan")
	w.still("memory")

	write(`title = "again"
  update = { allow = "restart", shutdown = { timeout = 4 } }`)
	w.plan("restart without room", "restart", []string{"memory"}, "memory: restart")
	out := w.p.Must(1, "apply", "plan")
	if !lab.Says("Restart st-stuck", `"st-stuck" did not shut down within 4s`, "update.shutdown.force").MatchString(out) {
		t.Errorf("the apply says:\n%s", out)
	}
	powerIs("paused", func(testing.TB, string) {})(t, m.name) // it was let go on, and its disk is full still
	if now := w.run(m.name); now != w.runs[m.name] || domstate(t, m.name) != stuck.says {
		t.Errorf("after a restart that failed the guest is %s in QEMU %+v, and was in %+v", domstate(t, m.name), now, w.runs[m.name])
	}

	disk.room()
	write(`title = "again"
  update = { allow = "restart", shutdown = { timeout = 120 } }`)
	w.plan("restart with room", "restart", []string{"memory"}, "memory: restart")
	w.p.Must(0, "apply", "plan")
	w.ended(stuck)
	if now := lab.Observe(t, m.name).Report(); now.BootID == guest.Report().BootID || now.MemKiB <= guest.Report().MemKiB {
		t.Errorf("the guest was %+v, and is %+v after its restart", guest.Report(), now)
	}

	hard := stuck
	hard.deaf = true // it hears the button, and cannot follow
	disk.empty(t, "")
	w.enter()
	w.write(func(_ powerState, m machine) machine {
		m.memory = 160
		return isOff(plus(m, `title = "again"
  update = { shutdown = { timeout = 3, force = true } }`))
	})
	w.plan("running = false", "shutdown", nil, "running: shutdown")
	w.p.Must(0, "apply", "plan")
	are(t, "running = false", map[string]string{m.name: "shut off (destroyed)"})
	w.ended(hard)

	write(`title = "again"
  destroy = { shutdown = { timeout = 3 } }`)
	w.p.Must(0, "apply", "-auto-approve")
	disk.empty(t, "")
	w.enter()
	begin := time.Now()
	w.p.Must(0, "destroy", "-auto-approve")
	t.Logf("the destroy took %s", time.Since(begin).Round(time.Second))
	w.ended(hard)
	if left := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(left, m.name) {
		t.Errorf("left: %s", left)
	}
}
