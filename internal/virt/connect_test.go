package virt_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Each case causes the failure for real. What it says must name the host, what
// libvirt said, and a way out.
func TestConnectErrors(t *testing.T) {
	needLibrary(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	try(t, os.WriteFile(plain, nil, 0o600))
	closed := func() string { // a port where nobody listens
		l, err := net.Listen("tcp", "127.0.0.1:0")
		try(t, err)
		defer l.Close()
		return l.Addr().String()
	}()
	ssh := filepath.Join(dir, "ssh")
	// Like ssh, it is slower than the library, which has said something by then.
	try(t, os.WriteFile(ssh, []byte("#!/bin/sh\nhead -c 1 >/dev/null\necho 'root@h: Permission denied (publickey).' >&2\nexit 255\n"), 0o700))
	for name, c := range map[string]struct {
		uri   string
		parts []string
	}{
		"no daemon": {
			"qemu+unix:///system?socket=" + dir + "/none",
			[]string{dir + "/none", "No such file or directory", "libvirtd or virtqemud", "virsh -c 'qemu+unix:///system?socket=" + dir + "/none'"},
		},
		"stale socket":   {"qemu+unix:///system?socket=" + plain, []string{"refused", "check that the daemon runs there"}},
		"nobody listens": {"qemu+tcp://" + closed + "/system", []string{closed, "refused", "check that the daemon runs there and listens"}},
		"unknown host":   {"qemu+tcp://nobody.invalid/system", []string{"nobody.invalid", "check the name of the host"}},
		"unknown driver": {"kvm:///system", []string{`libvirt has no driver "kvm"`, "qemu:///system"}},
		"no URI at all":  {"%zz", []string{"not well-formed", "qemu+ssh://USER@HOST/system"}},
		"transport":      {"qemu+carrier://h/system", []string{"transport"}},
		"certificates":   {"qemu+tls://" + closed + "/system?pkipath=" + dir, []string{dir, "certificate", "pkipath"}},
		"login": {
			"qemu+ssh://root:s3cret@h/system?no_tty=1&command=" + ssh,
			[]string{"root:xxxxx@h", "Permission denied (publickey)", "log in there by ssh"},
		},
		"ssh missing": {"qemu+ssh://h/system?command=" + dir + "/nossh", []string{"ssh"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, virt.Options{URI: c.uri})
			for what, err := range map[string]error{
				"connect": h.Connect(context.Background()),
				"a call":  second(h.LookupDomainByName(context.Background(), "web")),
			} {
				want(t, err, c.parts...)
				if err != nil && containsAny(err.Error(), "s3cret") {
					t.Errorf("%s shows the password: %v", what, err)
				}
				if virt.IsNotFound(err) {
					t.Errorf("%s: no connection is taken for no such object: %v", what, err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// The test runs itself again with a library that cannot be opened.
func TestLibraryMissing(t *testing.T) {
	if os.Getenv("VIRT_TEST_NO_LIBRARY") != "" {
		want(t, virt.NewHost(virt.Options{URI: testDriver}).Connect(context.Background()),
			"libvirt.so.0", "install libvirt's client library", "Debian and Ubuntu: libvirt0")
		h := virt.NewHost(virt.Options{URI: testDriver})
		want(t, h.Connect(context.Background()), "install libvirt's client library") // not only the first time
		_, err := h.LookupDomainByName(context.Background(), "test")
		want(t, err, `look up domain "test"`, "install libvirt's client library")
		return
	}
	dir := t.TempDir()
	try(t, os.WriteFile(filepath.Join(dir, "libvirt.so.0"), []byte("no library\n"), 0o600))
	cmd := exec.Command(os.Args[0], "-test.run=^TestLibraryMissing$", "-test.v")
	cmd.Env = append(os.Environ(), "VIRT_TEST_NO_LIBRARY=1", "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLibraryMissing") {
		t.Fatalf("%v\n%s", err, out)
	}
}
