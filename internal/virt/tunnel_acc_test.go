package virt_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// libvirt's ssh transport runs a program that connects its standard input and
// output with the daemon. Here it is this test itself, so that the test can cut
// the connection, and needs no sshd.
const tunnelVariable = "VIRT_TEST_TUNNEL"

// tunnel is what the test does when libvirt runs it. Its pid is noted beside the
// script, so that it can be killed.
func tunnel(socket string) int {
	c, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(tunnelVariable+"_PIDS"), strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		_ = c.Close()
	}()
	_, _ = io.Copy(os.Stdout, c)
	return 0
}

// far is the URI of a host behind tunnels, and what kills them all.
func far(t testing.TB, uri string) (far string, cut func() int) {
	t.Helper()
	socket := strings.TrimPrefix(uri, "qemu+unix:///system?socket=")
	dir, pids := t.TempDir(), t.TempDir()
	script := filepath.Join(dir, "ssh")
	try(t, os.WriteFile(script, []byte(fmt.Sprintf("#!/bin/sh\n%s=%s %s_PIDS=%s exec %s\n", tunnelVariable, socket, tunnelVariable, pids, got(os.Executable())(t))), 0o700))
	return "qemu+ssh://far.example/system?no_tty=1&proxy=netcat&command=" + script + "&socket=" + socket, func() (n int) {
		for _, entry := range got(os.ReadDir(pids))(t) {
			if err := syscall.Kill(got(strconv.Atoi(entry.Name()))(t), syscall.SIGKILL); err == nil {
				n++
			}
			try(t, os.Remove(filepath.Join(pids, entry.Name())))
		}
		return n
	}
}

func TestAccHost_tunnelDrops(t *testing.T) {
	acctest.Case(t, "a tunnel that drops under a call is an error, never a missing object; one that drops in between is not noticed")
	ctx := context.Background()
	there := own(t)
	uri, cut := far(t, there.URI())
	h := open(t, virt.Options{URI: uri, MaxCalls: 3})
	d := bare(t, h, "web", "")
	overlap(t, d, 3)
	if n := cut(); n != 3 {
		t.Fatalf("%d tunnels, want 3", n)
	}
	time.Sleep(200 * time.Millisecond)
	if got(d.Autostart(ctx))(t) {
		t.Error("autostart is on")
	}
	overlap(t, d, 3)
	signal(t, there, "STOP")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, err := d.XML(ctx, 0)
			want(t, err, `read the XML of domain "web"`, "far.example", "was lost")
			if !virt.IsLost(err) || virt.IsNotFound(err) {
				t.Errorf("lost %v, not found %v: %v", virt.IsLost(err), virt.IsNotFound(err), err)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	cut()
	all.Wait()
	signal(t, there, "CONT")
	answers(t, h)
	got(d.XML(ctx, 0))(t)
}
