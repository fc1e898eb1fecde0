package virt_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(tunnelVariable); socket != "" {
		os.Exit(tunnel(socket))
	}
	lab.Main(m, nil)
}

// testDriver is libvirt's own driver without a hypervisor. Its objects live in
// this process, for as long as one connection is open; tests use names of their
// own and clean up.
const testDriver = "test:///default"

// library says why libvirt's client library cannot be used, "" if it can.
var library = sync.OnceValue(func() string {
	err := virt.NewHost(virt.Options{URI: testDriver}).Connect(context.Background())
	if err != nil && strings.Contains(err.Error(), "libvirt.so") {
		return err.Error()
	}
	return ""
})

// needLibrary skips where the library is not installed, as on a machine that
// only builds.
func needLibrary(t testing.TB) {
	t.Helper()
	if why := library(); why != "" {
		t.Skip("libvirt library missing: " + why)
	}
}

// fake is a host of the test driver.
func fake(t testing.TB) *virt.Host {
	t.Helper()
	return open(t, virt.Options{URI: testDriver})
}

// open is a host that is closed after the test.
func open(t testing.TB, o virt.Options) *virt.Host {
	t.Helper()
	needLibrary(t)
	h := virt.NewHost(o)
	h.SetPatience(5*time.Second, 20*time.Second, 2*time.Second)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// try fails the test if err is an error.
func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails the test unless err is an error whose text has all the parts.
func want(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// got returns the value of a call that must succeed.
func got[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		try(t, err)
		return v
	}
}

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
