package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

func TestRun_refuses(t *testing.T) {
	t.Setenv("TESTHOST_DIR", "")
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: testhost"},
		{[]string{"fly"}, `unknown command "fly"`},
		{[]string{"up", "here"}, `unexpected argument "here"`},
		{[]string{"up", "--speed", "1"}, "flag provided but not defined"},
		{[]string{"down", "--dir", empty}, "not the directory of a host"},
		{[]string{"exec", "--dir", empty, "--", "true"}, "not the directory of a host"},
		{[]string{"uri", "--dir", filepath.Join(empty, "absent")}, "not the directory of a host"},
	} {
		var out, errs bytes.Buffer
		err := run(context.Background(), c.args, &out, &errs)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.args, err, c.want)
		}
		if out.Len() > 0 {
			t.Errorf("%q printed %q", c.args, out.String())
		}
	}
	if _, err := os.Stat(empty); err != nil {
		t.Errorf("a refusal removed the directory: %v", err)
	}
}

// The command as people use it: the host outlives "up" and ends with "down".
func TestAccCommand(t *testing.T) {
	acctest.Case(t, "the command testhost: up, exec, uri, list, restart, down")
	program := filepath.Join(t.TempDir(), "testhost")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "h")
	testhost := func(args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "TESTHOST_DIR="+dir)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			err = errors.Join(err, errors.New(errs.String()))
		}
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := testhost(args...)
		if err != nil {
			t.Fatalf("testhost %q: %v", args, err)
		}
		return out
	}
	up := must("up")
	t.Cleanup(func() { testhost("down") })
	uri := "qemu+unix:///system?socket=" + dir + "/sock/libvirt-sock\n"
	if up != "dir="+dir+"\nuri="+uri {
		t.Errorf("up printed %q", up)
	}
	if got := must("uri"); got != uri {
		t.Errorf("uri printed %q", got)
	}
	if got := must("list"); !strings.Contains(got, dir+"\n") {
		t.Errorf("list printed %q", got)
	}
	for _, list := range []string{"net-list", "pool-list"} {
		if got := must("exec", "--", "virsh", list); !strings.Contains(got, "default") || !strings.Contains(got, " active ") {
			t.Errorf("%s printed %q", list, got)
		}
	}
	if _, err := testhost("exec", "--", "sh", "-c", "echo reason >&2; exit 7"); err == nil ||
		!strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a failing command: %v", err)
	}
	if _, err := testhost("exec"); err == nil {
		t.Error("exec without a command succeeds")
	}
	if _, err := testhost("up"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("up twice: %v", err)
	}
	must("restart")
	if got := must("exec", "--", "virsh", "net-list"); !strings.Contains(got, "default") {
		t.Errorf("after the restart: %q", got)
	}
	must("down")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory stays: %v", err)
	}
	if got := must("list"); strings.Contains(got, dir) {
		t.Errorf("list still has it: %q", got)
	}
	if _, err := testhost("down"); err == nil {
		t.Error("down without a host succeeds")
	}
}
