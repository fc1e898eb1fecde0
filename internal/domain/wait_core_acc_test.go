package domain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// awaitedMachine is a machine with the agent's channel and an interface for each
// of some wait_for_ip, which an apply may restart.
func awaitedMachine(name string, memory int, waits ...string) machine {
	nics := make([]string, len(waits))
	for i, wait := range waits {
		nics[i] = fmt.Sprintf(`{ mac = { address = %q }, source = { network = { network = "default" } }, model = { type = "virtio" }, wait_for_ip = { %s } }`, awaitedMAC(name, i), wait)
	}
	return machine{name: name, memory: memory, more: pluggable + "\n" + mayRestart, devices: fmt.Sprintf(`channels   = [{ source = { unix = {} }, target = { virt_io = { name = "org.qemu.guest_agent.0" } } }]
    interfaces = [%s]`, strings.Join(nics, ", "))}
}

// awaitedMAC is the MAC address of an interface of such a machine.
func awaitedMAC(name string, index int) string {
	return fmt.Sprintf("52:54:00:c0:%02x:%02x", name[0], index)
}

// knows says whether a source knows an address in 192.168.0.0/16 of an interface.
// An agent that is not up yet knows none.
func knows(t testing.TB, name, source, mac string) bool {
	t.Helper()
	out, err := lab.Host(t).Virsh(context.Background(), "domifaddr", name, "--source", source)
	if err != nil && source != "agent" {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, mac) && strings.Contains(line, " 192.168.") {
			return true
		}
	}
	return false
}

func TestAccDomain_waitFilters(t *testing.T) {
	c := acctest.Case(t, "an apply that creates a machine waits for each of its interfaces as it says: by source, family, network and the guest's own name; what does not come is a warning that says what was seen")
	const name = "picky"
	waits := []string{
		`source = "lease", family = "ipv4", cidr = ["10.99.0.0/16", "192.168.0.0/16"], timeout = 200`,
		`source = "agent", family = "ipv4", interface = "eth1", timeout = 200`,
		`family = "ipv6", timeout = 45`,
		`source = "lease", cidr = ["10.99.0.0/16"], timeout = 45`,
		`source = "agent", interface = "eth0", timeout = 45`,
	}
	p := project(t, c, awaitedMachine(name, 128, waits...).block(t))
	forget(t, name)
	out := p.Must(0, "apply", "-auto-approve")
	for i, parts := range [][]string{
		2: {"family ipv6", "192.168.", "is not ipv6", "fe80:", "is link-local"},
		3: {"source lease, in 10.99.0.0/16", "lease: 192.168.", "is not in 10.99.0.0/16"},
		4: {"the guest's interface eth0, of which the agent alone is asked", "agent: no such interface, only", "eth0 (" + awaitedMAC(name, 0) + ")"},
	} {
		about := fmt.Sprintf(`Domain %q runs, but interface %d`, name, i)
		if parts == nil {
			if lab.Says(about).MatchString(out) {
				t.Errorf("interface %d has what is waited for, and the apply says it has not:\n%s", i, out)
			}
			continue
		}
		if !lab.Says(append([]string{about, awaitedMAC(name, i), "within 45s"}, parts...)...).MatchString(out) {
			t.Errorf("of interface %d the apply does not say %q:\n%s", i, parts, out)
		}
	}
	if !knows(t, name, "lease", awaitedMAC(name, 0)) || !knows(t, name, "agent", awaitedMAC(name, 1)) {
		t.Error("the apply ended without the addresses that it was to wait for")
	}
	if state := stateOf(t, p, name); state.Tainted || at(state.Values, "status.state") != "settled" {
		t.Errorf("tainted %v, %v", state.Tainted, state.Values["status"])
	}
	p.Must(0, "plan", "-detailed-exitcode")
}

func TestAccDomain_waitForTheAgentAfterARestart(t *testing.T) {
	c := acctest.Case(t, "an apply that restarts a guest ends when the guest's agent tells the address again")
	const name, wait = "restarted", `source = "agent", cidr = ["192.168.0.0/16"], timeout = 200`
	p := project(t, c, awaitedMachine(name, 128, wait).block(t))
	forget(t, name)
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	configure(t, p, awaitedMachine(name, 160, wait).block(t))
	p.Must(0, "apply", "-auto-approve")
	if !knows(t, name, "agent", awaitedMAC(name, 0)) {
		t.Error("the apply ended before the agent told the address")
	}
	if again := lab.Observe(t, name); again.Report().BootID == guest.Report().BootID {
		t.Error("the guest was not restarted, so that this proves nothing")
	}
	p.Must(0, "plan", "-detailed-exitcode")
}
