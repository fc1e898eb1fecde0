package virt_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// bare is a domain of QEMU's that boots nothing.
func bareXML(name, more string) string {
	return `<domain type="qemu"><name>` + name + `</name><memory unit="MiB">16</memory><vcpu>1</vcpu>` +
		`<os><type arch="x86_64" machine="pc">hvm</type></os>` + more + `</domain>`
}

// bare defines it on a host and removes it after the test.
func bare(t testing.TB, h *virt.Host, name, more string) *virt.Domain {
	t.Helper()
	return temporary(t, h, bareXML(name, more))
}

// shared is the throwaway host that the cases share.
func shared(t testing.TB) *virt.Host {
	t.Helper()
	return open(t, virt.Options{URI: lab.Host(t).URI()})
}

// own is a host of the test's own, whose daemon it may maltreat.
func own(t testing.TB) *host.Host {
	t.Helper()
	h, err := host.Start(context.Background(), host.Options{Log: os.Stderr, NoGuest: true})
	try(t, err)
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// signal sends a signal to the daemon of a host.
func signal(t testing.TB, h *host.Host, name string) {
	t.Helper()
	pid := strings.TrimSpace(string(got(os.ReadFile(filepath.Join(h.Dir(), "libvirtd.pid")))(t)))
	got(h.Exec(context.Background(), "sh", "-c", "kill -"+name+" "+pid))(t)
}

// answers waits until a host answers again.
func answers(t testing.TB, h *virt.Host) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := h.Connect(context.Background())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestAccHost_daemonKilledDuringAWrite(t *testing.T) {
	acctest.Case(t, "a daemon that is killed during a write is an error that says so; the write is not repeated, and the next call connects again")
	ctx := context.Background()
	there := own(t)
	h := open(t, virt.Options{URI: there.URI()})
	d := bare(t, h, "web", "")
	rec := virttest.Record(h)
	signal(t, there, "STOP")
	result := make(chan error)
	go func() { result <- d.SetAutostart(ctx, true) }()
	time.Sleep(300 * time.Millisecond)
	signal(t, there, "KILL")
	err := <-result
	want(t, err, `set autostart of domain "web"`, there.URI(), "lost during the call", "may have taken effect or not", "check that")
	if !virt.IsLost(err) || virt.IsNotFound(err) {
		t.Errorf("IsLost %v, IsNotFound %v: %v", virt.IsLost(err), virt.IsNotFound(err), err)
	}
	answers(t, h)
	if on := got(d.Autostart(ctx))(t); on {
		t.Error("autostart is on: the write was repeated")
	}
	try(t, d.SetAutostart(ctx, true))
	if !got(d.Autostart(ctx))(t) {
		t.Error("the handle does not work on the new connection")
	}
	if n := len(rec.Writes()); n != 2 {
		t.Errorf("%d writes, want 2: %v", n, rec.Writes())
	}
}

func TestAccHost_daemonGone(t *testing.T) {
	acctest.Case(t, "while the daemon is gone every call is an error, and never a missing object")
	ctx := context.Background()
	there := own(t)
	h := open(t, virt.Options{URI: there.URI()})
	d := bare(t, h, "web", "")
	// The supervisor would start another one: move its socket away.
	socket := strings.TrimPrefix(there.URI(), "qemu+unix:///system?socket=")
	try(t, os.Rename(socket, socket+".away"))
	defer func() { try(t, os.Rename(socket+".away", socket)); answers(t, h) }()
	try(t, h.Close())
	for what, err := range map[string]error{
		"read": second(d.XML(ctx, 0)), "write": d.SetAutostart(ctx, true), "look-up": second(h.LookupDomain(ctx, d.UUID())),
		"list": second(h.Domains(ctx)), "connect": h.Connect(ctx),
	} {
		want(t, err, there.URI(), "No such file or directory", "libvirtd or virtqemud")
		if virt.IsNotFound(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAccHost_daemonRestarts(t *testing.T) {
	acctest.Case(t, "a restart of the daemon between two calls is not noticed, on any number of connections")
	ctx := context.Background()
	there := own(t)
	h := open(t, virt.Options{URI: there.URI(), MaxCalls: 4})
	d := bare(t, h, "web", "")
	for range 3 {
		overlap(t, d, 4)
		if n := h.Connections(); n != 4 {
			t.Fatalf("%d connections, want 4", n)
		}
		try(t, there.RestartDaemon(ctx))
		time.Sleep(100 * time.Millisecond)
		try(t, d.SetAutostart(ctx, true))
		if xml := got(d.XML(ctx, 0))(t); !strings.Contains(xml, d.UUID()) {
			t.Errorf("another domain: %s", xml)
		}
	}
}

// overlap makes n calls at the same time, so that there are n connections.
func overlap(t testing.TB, d *virt.Domain, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := virt.Long(context.Background(), d, 500*time.Millisecond, func() {}, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAccHost_deadPeer(t *testing.T) {
	acctest.Case(t, "a daemon that says nothing any more is noticed by all calls under way, and costs neither the process nor the next call")
	ctx := context.Background()
	there := own(t)
	h := open(t, virt.Options{URI: there.URI(), MaxCalls: 4})
	h.SetPatience(time.Second, 2*time.Second, time.Second)
	d := bare(t, h, "web", "")
	overlap(t, d, 4)
	signal(t, there, "STOP")
	start := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			err := d.SetAutostart(ctx, true)
			want(t, err, "keepalive", there.URI())
			if !virt.IsLost(err) {
				t.Errorf("not lost: %v", err)
			}
		})
	}
	all.Wait()
	if d := time.Since(start); d < 5*time.Second || d > 20*time.Second {
		t.Errorf("it took %s, want about 7 s", d)
	}
	// It accepts connections as long as the kernel does so for it, and is silent.
	want(t, h.Connect(ctx), "no answer for 2s", there.URI())
	signal(t, there, "CONT")
	answers(t, h)
	got(d.XML(ctx, 0))(t)
}

func TestAccHost_longCallsHoldUpNobody(t *testing.T) {
	acctest.Case(t, "calls that wait for a stuck QEMU, as many as a daemon takes from one client, delay no other call")
	ctx := context.Background()
	there := own(t)
	// What libvirtd takes from one client if its administrator says nothing.
	configure(t, there, map[string]int{"max_client_requests": 5})
	h := open(t, virt.Options{URI: there.URI()})
	d := bare(t, h, "quick", "")
	const stuck = 6
	var all sync.WaitGroup
	var pids []int
	defer func() {
		for _, pid := range pids {
			try(t, syscall.Kill(pid, syscall.SIGCONT))
		}
		all.Wait()
	}()
	for i := range stuck {
		name := "stuck-" + strconv.Itoa(i)
		s := bare(t, h, name, "")
		try(t, s.Start(ctx, virt.StartFlags{}))
		pid := got(there.Domain(ctx, name))(t).PID
		try(t, syscall.Kill(pid, syscall.SIGSTOP))
		pids = append(pids, pid)
		all.Go(func() {
			if err := s.Suspend(ctx); err != nil { // QEMU's monitor must answer
				t.Error(err)
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	start, slowest, n := time.Now(), time.Duration(0), 0
	for ; time.Since(start) < 6*time.Second; n++ {
		before := time.Now()
		if _, _, err := d.State(ctx); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(before))
	}
	t.Logf("%d calls beside %d that are stuck, the slowest took %s", n, stuck, slowest)
	if slowest > 2*time.Second {
		t.Errorf("a call took %s", slowest)
	}
}

// configure sets values in the daemon's configuration.
func configure(t testing.TB, there *host.Host, values map[string]int) {
	t.Helper()
	file := filepath.Join(there.Dir(), "libvirtd.conf")
	var conf strings.Builder
	for line := range strings.Lines(string(got(os.ReadFile(file))(t))) {
		name, _, _ := strings.Cut(line, " =")
		if _, ours := values[name]; !ours {
			conf.WriteString(line)
		}
	}
	for name, value := range values {
		conf.WriteString(name + " = " + strconv.Itoa(value) + "\n")
	}
	try(t, os.WriteFile(file, []byte(conf.String()), 0o600))
	try(t, there.RestartDaemon(context.Background()))
}

func TestAccHost_fewConnections(t *testing.T) {
	acctest.Case(t, "a host that takes fewer connections than there are calls is used with those it takes")
	there := own(t)
	configure(t, there, map[string]int{"max_clients": 2, "max_anonymous_clients": 2})
	h := open(t, virt.Options{URI: there.URI(), MaxCalls: 8})
	h.SetPatience(5*time.Second, time.Second, time.Second)
	d := bare(t, h, "web", "")
	for range 2 {
		overlap(t, d, 8)
	}
	if n := h.Connections(); n > 2 {
		t.Errorf("%d connections, the host takes 2", n)
	}
}

func TestAccHost_sessionIsNotTheSystem(t *testing.T) {
	acctest.Case(t, "a URI that asks for the user's own daemon never reaches the system's")
	ctx := context.Background()
	uri := strings.Replace(lab.Host(t).URI(), "/system", "/session", 1)
	h := open(t, virt.Options{URI: uri})
	_, err := h.DefineDomain(ctx, bareXML("astray", ""), virt.DefineFlags{})
	want(t, err, uri, "session", "the system's answered", "/system")
	if _, err := shared(t).LookupDomainByName(ctx, "astray"); !virt.IsNotFound(err) {
		t.Errorf("it was defined there: %v", err)
	}
}

func TestAccHost_versions(t *testing.T) {
	acctest.Case(t, "a host says who it is and what it can do")
	ctx := context.Background()
	h := shared(t)
	v := got(h.Versions(ctx))(t)
	if v.Type != "QEMU" || v.Daemon < 5000000 || v.Hypervisor < 2000000 || v.HostName == "" {
		t.Errorf("got %+v", v)
	}
	for what, xml := range map[string]string{
		"<capabilities>": got(h.Capabilities(ctx))(t), "<domainCapabilities>": got(h.DomainCapabilities(ctx, "", "x86_64", "q35", "qemu"))(t),
	} {
		if !strings.Contains(xml, what) {
			t.Errorf("no %s: %s", what, xml)
		}
	}
}
