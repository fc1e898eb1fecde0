package domain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// slowly has a guest take its time to power off, whoever asks it to.
func slowly(seconds int) action {
	return inGuest(fmt.Sprintf(`for f in /sbin/shutdown /etc/acpi/PWRF/00000080; do printf '#!/bin/sh\nsleep %d\nexec poweroff -f\n' > $f; chmod +x $f; done`, seconds))
}

// pressed is the power button, and a look that it was heard: the guest is on its
// way down, and runs still.
func pressed(t testing.TB, name string) {
	t.Helper()
	lab.Virsh(t, "shutdown", name, "--mode", "acpi")
	if got := domstate(t, name); !strings.HasPrefix(got, "running") {
		t.Fatalf("%s is %s", name, got)
	}
}

func TestAccPower_shuttingDown(t *testing.T) {
	core := acctest.Case(t, "a guest on its way down when an apply comes: running = false waits for it, a restart waits and starts it, a live change works while it runs, and the next apply starts what has to run; a destroy waits; an agent that hangs holds nothing up")
	machines := map[string]machine{}
	for _, name := range []string{"sd-off", "sd-restart", "sd-live", "sd-hung", "sd-deaf"} {
		machines[name] = equipped(name)
	}
	machines["sd-deaf"] = plus(machines["sd-deaf"], "destroy = { shutdown = { timeout = 2 } }")
	all := func(edit func(name string, m machine) machine) (body string) {
		for _, name := range []string{"sd-off", "sd-restart", "sd-live", "sd-hung", "sd-deaf"} {
			block := edit(name, machines[name]).block(t)
			if name == "sd-deaf" {
				block = deafened(block)
			}
			body += block
		}
		return body
	}
	p := project(t, core, all(func(_ string, m machine) machine { return m }))
	forget(t, "sd-off", "sd-restart", "sd-live", "sd-hung", "sd-deaf")
	p.Must(0, "apply", "-auto-approve")
	const patience = 45
	for name, act := range map[string]action{"sd-off": slowly(15), "sd-restart": slowly(15), "sd-live": slowly(30),
		"sd-hung": inGuest("sleep 2; kill -STOP $(pidof qemu-ga)"), "sd-deaf": inGuest("sleep 2; kill -STOP $(pidof qemu-ga)")} {
		act(t, name)
	}
	time.Sleep(3 * time.Second) // until the agents are stopped
	guests := map[string]*lab.Guest{}
	for name := range machines {
		guests[name] = lab.Observe(t, name)
	}
	configure(t, p, all(func(name string, m machine) machine {
		switch name {
		case "sd-off", "sd-hung":
			return isOff(plus(m, fmt.Sprintf("update = { shutdown = { timeout = %d } }", patience)))
		case "sd-deaf":
			return isOff(plus(m, "update = { shutdown = { timeout = 4 } }"))
		case "sd-restart":
			m.memory = 160
			return plus(m, fmt.Sprintf(`update = { allow = "restart", shutdown = { timeout = %d } }`, patience))
		}
		return plus(m, `title = "still here"`)
	}))
	seen := tell(t, p)
	planned(t, seen, "sd-off", "shutdown", "running: shutdown")
	planned(t, seen, "sd-hung", "shutdown", "running: shutdown")
	planned(t, seen, "sd-deaf", "shutdown", "running: shutdown")
	planned(t, seen, "sd-restart", "restart", "memory: restart")
	planned(t, seen, "sd-live", "live", "title: live")
	for _, name := range []string{"sd-off", "sd-restart", "sd-live"} {
		pressed(t, name)
	}
	begin := time.Now()
	out := p.Must(1, "apply", "plan")
	took := time.Since(begin)
	if !lab.Says(`"sd-deaf" did not shut down within 4s`).MatchString(out) || strings.Count(out, "Error:") != 1 {
		t.Errorf("the apply says:\n%s", out)
	}
	// Without its own limits libvirt waits a minute for an agent.
	if took > (patience+10)*time.Second {
		t.Errorf("the apply took %s", took)
	}
	t.Logf("the apply took %s", took.Round(time.Second))
	for name, want := range map[string]string{"sd-off": "shut off (shutdown)", "sd-hung": "shut off (shutdown)", "sd-deaf": "running (booted)", "sd-restart": "running (booted)"} {
		if got := domstate(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	guests["sd-deaf"].Untouched(t, "sd-deaf")
	if now := lab.Observe(t, "sd-restart"); now.Report().BootID == guests["sd-restart"].Report().BootID {
		t.Error("sd-restart was not restarted")
	}
	powerIs("shut off", func(testing.TB, string) {})(t, "sd-live")
	seen = tell(t, p)
	planned(t, seen, "sd-off", "")
	planned(t, seen, "sd-restart", "")
	planned(t, seen, "sd-hung", "")
	planned(t, seen, "sd-live", "none", "running: none")
	if title := at(seen.state("sd-live"), "title"); title != "still here" {
		t.Errorf("the title of sd-live is %v", title)
	}
	p.Must(0, "apply", "-auto-approve", "-target=libvirt_domain.sd-live")
	slowly(10)(t, "sd-live")
	lab.Observe(t, "sd-live")
	pressed(t, "sd-live")
	p.Must(0, "destroy", "-auto-approve")
	if left := lab.Virsh(t, "list", "--all", "--name"); strings.Contains(left, "sd-") {
		t.Errorf("left: %s", left)
	}
	if log, err := lab.Host(t).Exec(context.Background(), "cat", "/var/log/libvirt/qemu/sd-live.log"); err != nil || !strings.HasSuffix(strings.TrimSpace(log), "reason=shutdown") {
		t.Errorf("sd-live was not waited for (%v): %s", err, log)
	}
}

func TestAccPower_saved(t *testing.T) {
	core := acctest.Case(t, "a start from a managed save brings the guest back as it was: what changes in the same plan waits, with a warning before, or comes with a restart if that is allowed; the name cannot change")
	plain, restart, named := machine{name: "sv-plain", more: pluggable}, machine{name: "sv-restart", more: pluggable}, machine{name: "sv-named", more: pluggable}
	p := project(t, core, blocks(t, plain, restart, named))
	forget(t, plain.name, restart.name, named.name)
	p.Must(0, "apply", "-auto-approve")
	guests := map[string]*lab.Guest{}
	for _, m := range []machine{plain, restart, named} {
		guests[m.name] = lab.Observe(t, m.name)
		lab.Virsh(t, "managedsave", m.name)
	}
	grown := func(m machine, more string) machine {
		m.memory = 160
		return plus(plus(m, `title = "grown"`), more)
	}
	allowed := grown(restart, `update = { allow = "restart", shutdown = { timeout = 120 } }`)

	// A machine that is off and saved changes without a start, and says so.
	configure(t, p, blocks(t, isOff(plus(named, `title = "asleep"`))))
	p.Must(0, "apply", "-auto-approve", "-target=libvirt_domain.sv-named")
	seen := tell(t, p, "-target=libvirt_domain.sv-named")
	planned(t, seen, named.name, "")
	if state := seen.state(named.name); at(state, "status.state") != "pending" || !strings.Contains(fmt.Sprint(at(state, "status.boot_problems")), "differs in title (") || at(state, "status.power_reason") != "saved" {
		t.Errorf("the status of a saved machine: %v", at(state, "status"))
	}
	_, block, _ := strings.Cut(isOff(named).block(t), "{")
	configure(t, p, "resource \"libvirt_domain\" \"sv-named\" {"+strings.Replace(block, `"sv-named"`+"\n", `"sv-other"`+"\n", 1))
	if out := p.Must(1, "plan", "-target=libvirt_domain.sv-named"); !lab.Says(`Cannot change name of domain "sv-named", which has a managed save`, "virsh managedsave-remove sv-named").MatchString(out) {
		t.Errorf("the plan says:\n%s", out)
	}

	configure(t, p, blocks(t, grown(plain, ""), allowed, isOff(plus(named, `title = "asleep"`))))
	seen = tell(t, p)
	planned(t, seen, plain.name, "next_boot", "memory: next_boot", "running: none", "title: next_boot")
	planned(t, seen, restart.name, "restart", "memory: restart", "running: none", "title: restart")
	planned(t, seen, named.name, "")
	if said := strings.Join(seen.about(plain.name), "\n"); !strings.Contains(said, "is started from its managed save") || !strings.Contains(said, "memory, title") {
		t.Errorf("the plan for %s warns: %q", plain.name, said)
	}
	if said := seen.about(restart.name); len(said) > 0 {
		t.Errorf("the plan for %s warns: %q", restart.name, said)
	}
	p.Must(0, "apply", "plan")
	if now := lab.Observe(t, plain.name).Report(); now.BootID != guests[plain.name].Report().BootID || now.Uptime < guests[plain.name].Report().Uptime {
		t.Errorf("the saved guest did not go on: %+v", now)
	}
	if now := lab.Observe(t, restart.name).Report(); now.BootID == guests[restart.name].Report().BootID || now.MemKiB <= guests[restart.name].Report().MemKiB {
		t.Errorf("the saved guest was not restarted: %+v", now)
	}
	if log, err := lab.Host(t).Exec(context.Background(), "cat", "/var/log/libvirt/qemu/sv-restart.log"); err != nil || !strings.Contains(log, "reason=shutdown") || strings.Contains(log, "reason=destroyed") {
		t.Errorf("sv-restart was not shut down in order (%v): %s", err, log)
	}
	seen = tell(t, p)
	for _, m := range []machine{plain, restart, named} {
		planned(t, seen, m.name, "")
	}
	same(t, "sv-plain: status.pending", words(seen.state(plain.name), "status.pending"), []string{"memory", "title"})
	same(t, "sv-restart: status.pending", words(seen.state(restart.name), "status.pending"), nil)
	if state := at(seen.state(plain.name), "status.state"); state != "pending" {
		t.Errorf("sv-plain is %v", state)
	}
}
