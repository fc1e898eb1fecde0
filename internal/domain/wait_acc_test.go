package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// maker creates domains without a core, to see what a creation hands on.
type maker struct {
	host *virt.Host
	kind *domain.Kind
}

func newMaker(t testing.TB) *maker {
	t.Helper()
	b := &maker{host: virt.NewHost(virt.Options{URI: lab.Host(t).URI()})}
	b.kind = domain.New(func() *virt.Host { return b.host })
	t.Cleanup(func() { _ = b.host.Close() })
	return b
}

// machine is a configuration of the tiny guest with interfaces, and with the
// agent's channel.
func (b *maker) machine(t testing.TB, name string, nics ...tree.Value) tree.Value {
	t.Helper()
	str, image := tree.StringValue, lab.Host(t).Guest()
	agent := tree.NullValue.SetAt("source.unix", tree.ObjectValue(nil)).SetAt("target.virt_io.name", str("org.qemu.guest_agent.0"))
	serial := tree.NullValue.SetAt("source.file.path", str(lab.Host(t).ConsoleLog(name))).SetAt("source.file.append", str("on"))
	return tree.ObjectValue(map[string]tree.Value{
		"name": str(name), "type": str("qemu"), "memory": tree.IntValue(163840), "vcpu": tree.IntValue(1), "running": tree.BoolValue(true),
	}).SetAt("os.type", str("hvm")).SetAt("os.type_machine", str("q35")).SetAt("os.kernel", str(image.Kernel)).SetAt("os.initrd", str(image.Initrd)).SetAt("os.cmdline", str(image.Cmdline)).
		SetAt("features.acpi", tree.BoolValue(true)).SetAt("devices.serials", tree.ListValue([]tree.Value{serial})).
		SetAt("devices.channels", tree.ListValue([]tree.Value{agent})).SetAt("devices.interfaces", tree.ListValue(nics))
}

// nic is an interface on the network default with a wait_for_ip.
func nic(mac string, pairs ...any) tree.Value {
	v := tree.NullValue.SetAt("source.network.network", tree.StringValue("default")).SetAt("model.type", tree.StringValue("virtio"))
	if mac != "" {
		v = v.SetAt("mac.address", tree.StringValue(mac))
	}
	for i := 0; i < len(pairs); i += 2 {
		switch x := pairs[i+1].(type) {
		case string:
			v = v.SetAt("wait_for_ip."+pairs[i].(string), tree.StringValue(x))
		case int:
			v = v.SetAt("wait_for_ip."+pairs[i].(string), tree.IntValue(int64(x)))
		case []string:
			list := make([]tree.Value, len(x))
			for j, e := range x {
				list[j] = tree.StringValue(e)
			}
			v = v.SetAt("wait_for_ip."+pairs[i].(string), tree.ListValue(list))
		}
	}
	return v
}

// create makes the domain, which is gone after the test.
func (b *maker) create(ctx context.Context, t testing.TB, config tree.Value) (kind.Done, error) {
	t.Helper()
	t.Cleanup(func() { b.remove(t, config.Attr("name").Str()) })
	return b.kind.Create(ctx, config, config)
}

func (b *maker) remove(t testing.TB, name string) {
	t.Helper()
	if !strings.Contains(lab.Virsh(t, "list", "--all", "--name"), name) {
		return
	}
	_, _ = lab.Host(t).Virsh(context.Background(), "destroy", name)
	_, _ = lab.Host(t).Virsh(context.Background(), "undefine", name)
}

// runs says whether a domain is there and runs.
func runs(t testing.TB, name string) bool {
	power, err := lab.Host(t).Virsh(context.Background(), "domstate", name)
	return err == nil && strings.TrimSpace(power) == "running"
}

// untilItRuns waits for a machine that is being created, a minute at most.
func untilItRuns(t testing.TB, name string) {
	for end := time.Now().Add(time.Minute); !runs(t, name) && time.Now().Before(end); {
		time.Sleep(200 * time.Millisecond)
	}
}

// warned fails the test unless a warning about an interface has all the parts.
func warned(t testing.TB, warnings []kind.Problem, index int, parts ...string) {
	t.Helper()
	at := fmt.Sprintf("devices.interfaces[%d].wait_for_ip", index)
	for _, w := range warnings {
		if w.Path.String() != at {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(w.Summary+"\n"+w.Detail, part) {
				t.Errorf("interface %d: no %q in %q: %q", index, part, w.Summary, w.Detail)
			}
		}
		return
	}
	t.Errorf("no warning about interface %d in %v", index, warnings)
}

// agentLimit is how long libvirt waits for the agent of a running domain: -2 is
// for ever.
func agentLimit(t testing.TB, name string) string {
	t.Helper()
	out, err := lab.Host(t).Exec(context.Background(), "cat", "/run/libvirt/qemu/"+name+".xml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out, "<agentTimeout>")
	limit, _, found := strings.Cut(rest, "</agentTimeout>")
	if !found {
		t.Fatalf("libvirt's file of %s does not say how long it waits for the agent", name)
	}
	return limit
}

func TestAccDomain_waitForChosenAddresses(t *testing.T) {
	acctest.Case(t, "all interfaces are waited for at once, each for what it asks for, and what was seen and did not count is said; a timeout leaves the machine alone")
	b := newMaker(t)
	const name, timeout = "chooser", 45
	begin := time.Now()
	done, err := b.create(context.Background(), t, b.machine(t, name,
		nic("52:54:00:AD:00:01", "source", "agent", "family", "ipv4", "interface", "eth0", "timeout", 240),
		nic("", "source", "lease", "cidr", []string{"10.99.0.0/16", "192.168.0.0/16"}, "timeout", 240),
		nic("52:54:00:ad:00:03", "cidr", []string{"10.99.0.0/16"}, "timeout", timeout),
		nic("52:54:00:ad:00:04", "source", "agent", "family", "ipv6", "timeout", timeout),
		nic("52:54:00:ad:00:05", "interface", "eth0.20", "timeout", timeout),
		nic("52:54:00:ad:00:06"),
	))
	took := time.Since(begin)
	if err != nil || !done.Exists || done.Facts.Status.Attr("state").Str() != "settled" || !done.Facts.Active {
		t.Fatalf("exists %v, %s: %v", done.Exists, done.Facts.Status, err)
	}
	if len(done.Warnings) != 3 {
		t.Errorf("%d warnings, want one for each of three interfaces: %v", len(done.Warnings), done.Warnings)
	}
	if took < timeout*time.Second || took > 2*timeout*time.Second {
		t.Errorf("it took %s, as if one interface had been waited for after another", took)
	}
	warned(t, done.Warnings, 2, `Domain "chooser" runs`, "52:54:00:ad:00:03", "within 45s", "source any", "in 10.99.0.0/16", "lease: 192.168.", "is not in 10.99.0.0/16", "agent: 192.168.", "on eth2", "is link-local", "nothing was undone")
	warned(t, done.Warnings, 3, "family ipv6", "on eth3 is not ipv6", "fe80::5054:ff:fead:4 on eth3 is link-local")
	warned(t, done.Warnings, 4, "the agent alone is asked", "no such interface, only lo (00:00:00:00:00:00), eth0 (52:54:00:ad:00:01)")
	if limit := agentLimit(t, name); limit != "-2" {
		t.Errorf("libvirt still waits %s s only for the agent", limit)
	}
	for _, mac := range []string{"52:54:00:ad:00:01", done.Facts.Definition.At("devices.interfaces").Elems()[1].At("mac.address").Str()} {
		if out := lab.Virsh(t, "domifaddr", name); !strings.Contains(out, mac) {
			t.Errorf("%s has no address though the creation waited for it:\n%s", mac, out)
		}
	}
}

func TestAccDomain_waitForAnAgentThatHangs(t *testing.T) {
	acctest.Case(t, "an agent that is connected and stops answering holds neither the wait beyond its timeout, nor those who ask it afterwards")
	b := newMaker(t)
	ctx := context.Background()
	const name, timeout = "hanging", 50
	stopped := make(chan error, 1)
	go func() {
		untilItRuns(t, name)
		_, err := lab.Host(t).GuestExec(ctx, name, "(sleep 1; kill -STOP $(pidof qemu-ga)) > /dev/null 2>&1 &")
		stopped <- err
	}()
	begin := time.Now()
	done, err := b.create(ctx, t, b.machine(t, name, nic("", "source", "agent", "cidr", []string{"10.99.0.0/16"}, "timeout", timeout)))
	took := time.Since(begin)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if err != nil || !done.Facts.Active || len(done.Warnings) != 1 {
		t.Fatalf("%s, %v: %v", done.Facts.Status, done.Warnings, err)
	}
	if took > (timeout+10)*time.Second {
		t.Errorf("the timeout was %d s, and it took %s", timeout, took)
	}
	t.Logf("after %s: %s", took, done.Warnings[0].Detail)
	if text := done.Warnings[0].Detail; !strings.Contains(text, "no answer") && !strings.Contains(text, "not responding") && !strings.Contains(text, "not available") {
		t.Errorf("the message does not say that the agent hangs: %s", text)
	}
	if limit := agentLimit(t, name); limit != "-2" {
		t.Errorf("libvirt still waits %s s only for the agent", limit)
	}
	// Nothing of it stays: whoever asks the agent next is not kept from it.
	asked, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	if out, err := lab.Host(t).Virsh(asked, "domifaddr", name, "--source", "lease"); err != nil {
		t.Errorf("%s: %v", out, err)
	}
	begin = time.Now()
	out, err := lab.Host(t).Virsh(asked, "qemu-agent-command", "--domain", name, "--timeout", "5", "--cmd", `{"execute":"guest-ping"}`)
	if err == nil || !strings.Contains(err.Error(), "not responding") && !strings.Contains(err.Error(), "not available") {
		t.Errorf("after %s the agent, which is stopped, answers %q: %v", time.Since(begin), out, err)
	}
}

func TestAccDomain_waitWithoutAnAgent(t *testing.T) {
	acctest.Case(t, "a domain that has no agent is not waited for in vain, and neither is one that starts paused")
	b := newMaker(t)
	bare := b.machine(t, "agentless", nic("", "source", "agent", "timeout", 300)).SetAt("devices.channels", tree.NullValue)
	begin := time.Now()
	done, err := b.create(context.Background(), t, bare)
	if took := time.Since(begin); err != nil || !done.Facts.Active || took > 30*time.Second {
		t.Fatalf("after %s: %v", took, err)
	}
	warned(t, done.Warnings, 0, "agent: ", "is not configured", "org.qemu.guest_agent.0")
	begin = time.Now()
	paused := b.machine(t, "sleeper", nic("", "timeout", 300)).SetAt("create.paused", tree.BoolValue(true))
	done, err = b.create(context.Background(), t, paused)
	if took := time.Since(begin); err != nil || len(done.Warnings) != 0 || took > 30*time.Second {
		t.Fatalf("after %s: %v, %v", took, done.Warnings, err)
	}
}

func TestAccDomain_waitForAGuestThatGoesDown(t *testing.T) {
	acctest.Case(t, "a guest that is stopped, or whose QEMU dies, while its address is waited for is an error at once; the machine is in the state as one that has run")
	b := newMaker(t)
	why := map[string]string{"stopped": "shutoff (destroyed)", "killed": "shutoff (crashed)"}
	for name, end := range map[string]func(ctx context.Context, name string) error{
		"stopped": func(ctx context.Context, name string) error {
			_, err := lab.Host(t).Virsh(ctx, "destroy", name)
			return err
		},
		"killed": func(ctx context.Context, name string) error {
			m, err := lab.Host(t).Domain(ctx, name)
			if err != nil {
				return err
			}
			return syscall.Kill(m.PID, syscall.SIGKILL)
		},
	} {
		ended := make(chan error, 1)
		go func() {
			untilItRuns(t, name)
			time.Sleep(2 * time.Second)
			ended <- end(context.Background(), name)
		}()
		begin := time.Now()
		done, err := b.create(context.Background(), t, b.machine(t, name, nic("", "cidr", []string{"10.99.0.0/16"}, "timeout", 300)))
		took := time.Since(begin)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err == nil || took > time.Minute {
			t.Fatalf("%s: after %s: %v", name, took, err)
		}
		t.Logf("after %s: %v", took, err)
		for _, part := range []string{"does not run any more", "it is " + why[name], "untaint ADDRESS", name} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %v", name, part, err)
			}
		}
		status := done.Facts.Status
		if !done.Exists || done.Facts.Active || !status.Attr("started").Bool() || b.kind.NeverUsed(tree.NullValue.With("status", status)) {
			t.Errorf("%s: a machine that has run counts as one that has not: %s", name, status)
		}
	}
}

func TestAccDomain_waitIsBrokenOff(t *testing.T) {
	acctest.Case(t, "a user who gives up while an address is waited for has a machine that runs, and its state")
	b := newMaker(t)
	ctx, cancel := context.WithCancel(context.Background())
	config := b.machine(t, "abandoned", nic("", "cidr", []string{"10.99.0.0/16"}, "timeout", 300))
	go func() {
		untilItRuns(t, "abandoned")
		time.Sleep(3 * time.Second)
		cancel()
	}()
	begin := time.Now()
	done, err := b.create(ctx, t, config)
	if took := time.Since(begin); err != nil || took > 30*time.Second {
		t.Fatalf("after %s: %v", took, err)
	}
	warned(t, done.Warnings, 0, "broken off after", "Seen: lease: ", "agent: ")
	if status := done.Facts.Status; !done.Exists || !done.Facts.Active || status.Attr("state").Str() != "settled" || status.Attr("power").Str() != "running" {
		t.Errorf("what is said to be true: %s", status)
	}
	if limit := agentLimit(t, "abandoned"); limit != "-2" {
		t.Errorf("libvirt still waits %s s only for the agent", limit)
	}
}

func TestAccDomain_waitAfterAnUpdate(t *testing.T) {
	acctest.Case(t, "an address that does not come after a start or a restart by an update is an error of which nothing is undone: the machine runs untainted, and the next plan is empty")
	const name = "late"
	// The interfaces are alike but for the model, and the definition gets them in
	// another order than the configuration.
	config := func(m machine, timeout int, network string) string {
		m.name = name
		m.more += "\n" + pluggable + "\n" + mayRestart
		m.devices = fmt.Sprintf(`interfaces = [
      { source = { network = { network = "default" } }, model = { type = "virtio" }, wait_for_ip = { source = "lease", timeout = %d, cidr = [%q] } },
      { source = { network = { network = "default" } }, model = { type = "e1000e" } },
    ]`, timeout, network)
		return m.config(t)
	}
	var guest *lab.Guest
	missing := lab.Says(`Domain "late" runs, but interface 0`, "has no address yet", "within 2s", "in 10.99.0.0/16", "nothing of it was undone")
	remember := func() { guest = lab.Observe(t, name) }
	untouched := resource.ComposeAggregateTestCheckFunc(attr("status.power", "running"), attr("status.state", "settled"), func(*terraform.State) error { guest.Untouched(t, name); return nil })
	grown := machine{memory: 160}
	// The lease of the run before is still there after the restart.
	lease := ""
	restart := lab.Apply(config(machine{memory: 176}, 200, "192.168.0.0/16"), attr("change.effect", "restart"), func(*terraform.State) error {
		if now := leaseOf(t, name); now == lease {
			return fmt.Errorf("the update did not wait for the guest's own lease, but for that of the run before: %s", now)
		}
		return nil
	})
	restart.PreConfig = func() {
		for end := time.Now().Add(time.Minute); lease == "" && time.Now().Before(end); time.Sleep(time.Second) {
			lease = leaseOf(t, name)
		}
		if lease == "" {
			t.Fatal("the guest never got a lease, so that this proves nothing")
		}
		time.Sleep(2 * time.Second) // leases end at full seconds
	}
	lab.Steps(t,
		lab.Apply(config(machine{off: true}, 2, "10.99.0.0/16"), func(*terraform.State) error { return swapInterfaces(t, name) }),
		// Started by an update.
		resource.TestStep{Config: config(machine{}, 2, "10.99.0.0/16"), ExpectError: missing},
		resource.TestStep{PreConfig: remember, Config: config(machine{}, 2, "10.99.0.0/16"), PlanOnly: true},
		lab.Apply(config(machine{}, 2, "10.98.0.0/16"), untouched), // a setting alone starts nothing, and waits for nothing
		// Restarted by an update.
		resource.TestStep{Config: config(grown, 2, "10.99.0.0/16"), ExpectError: missing},
		resource.TestStep{PreConfig: func() {
			before := guest
			remember()
			if guest.Report().BootID == before.Report().BootID {
				t.Error("the guest was not restarted, so that this proves nothing")
			}
		}, Config: config(grown, 2, "10.99.0.0/16"), PlanOnly: true},
		lab.Apply(config(grown, 2, "10.98.0.0/16"), attr("memory", "160"), untouched),
		restart,
	)
}

// leaseOf is the line of the lease of the virtio interface of a domain, with the
// moment at which it ends.
func leaseOf(t testing.TB, name string) string {
	for _, nic := range strings.Split(lab.Virsh(t, "domiflist", name), "\n") {
		f := strings.Fields(nic)
		if len(f) < 5 || f[3] != "virtio" {
			continue
		}
		for _, line := range strings.Split(lab.Virsh(t, "net-dhcp-leases", "default"), "\n") {
			if strings.Contains(line, f[4]) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// swapInterfaces puts the first interface of a definition behind the second.
func swapInterfaces(t testing.TB, name string) error {
	xml := lab.Virsh(t, "dumpxml", "--inactive", name)
	begin, end := strings.Index(xml, "<interface "), strings.LastIndex(xml, "</interface>")+len("</interface>")
	first, second, found := strings.Cut(xml[begin:end], "</interface>")
	if !found {
		return fmt.Errorf("not two interfaces:\n%s", xml)
	}
	file := filepath.Join(t.TempDir(), "swapped.xml")
	if err := os.WriteFile(file, []byte(xml[:begin]+strings.TrimSpace(second)+first+"</interface>"+xml[end:]), 0o644); err != nil {
		return err
	}
	lab.Virsh(t, "define", file)
	return nil
}
