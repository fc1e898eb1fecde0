// Package lab is where acceptance cases happen: a throwaway host of the test
// process, the guests on it as witnesses, and the provider under a real core,
// either inside the test process (Steps) or as a process of its own (Project).
package lab

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// shared is the throwaway host of this test process.
var shared struct {
	once sync.Once
	host *host.Host
	err  error
}

// Host returns the throwaway host of this process, started at first use. Call
// it after Case. The package's TestMain must be Main, which stops it.
func Host(t testing.TB) *host.Host {
	t.Helper()
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		shared.host, shared.err = host.Start(ctx, host.Options{Log: os.Stderr})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.host
}

// Main runs the tests of a package and stops the host that they used. server
// makes the provider that Steps tests.
func Main(m *testing.M, server func() tfprotov6.ProviderServer) {
	serve = server
	code := m.Run()
	if shared.host != nil {
		if err := shared.host.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// Virsh runs virsh on the host, behind the provider's back.
func Virsh(t testing.TB, args ...string) string {
	t.Helper()
	out, err := Host(t).Virsh(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Guest is the run of a guest at one moment: what proves that nothing touched
// it in the meantime.
type Guest struct {
	host    *host.Host
	machine host.Machine
	report  host.Report
}

// Observe waits until the guest of a domain reports, and remembers QEMU's
// process, the domain id, and what the guest says of itself.
func Observe(t testing.TB, name string) *Guest {
	t.Helper()
	g := &Guest{host: Host(t)}
	var err error
	if g.report, err = g.host.GuestReport(context.Background(), name, 8*time.Minute); err != nil {
		t.Fatal(err)
	}
	if g.machine, err = g.host.Domain(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	return g
}

// Report is what the guest said.
func (g *Guest) Report() host.Report { return g.report }

// Untouched fails the test unless the same guest still runs: the same QEMU
// process, domain id and boot, and an uptime that has grown by itself.
func (g *Guest) Untouched(t testing.TB, name string) {
	t.Helper()
	now, err := g.host.Domain(context.Background(), name)
	if err != nil {
		t.Fatalf("the guest was touched: %v", err)
	}
	if now.PID != g.machine.PID || now.Start != g.machine.Start || now.ID != g.machine.ID {
		t.Fatalf("the guest was touched: QEMU %+v became %+v", g.machine, now)
	}
	report, err := g.host.WaitReport(context.Background(), name, 5*time.Minute, func(r host.Report) bool { return r.Uptime > g.report.Uptime })
	if err != nil {
		t.Fatalf("the guest was touched, or is silent: %v", err)
	}
	if report.BootID != g.report.BootID {
		t.Fatalf("the guest was touched: it booted again (%s, then %s)", g.report.BootID, report.BootID)
	}
	t.Logf("untouched: pid %d, id %d, uptime %.1f s, then %.1f s", now.PID, now.ID, g.report.Uptime, report.Uptime)
}
