package debian

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine makes a directory tree with the given files.
func machine(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var sample = []Requirement{
	{What: "daemon", Files: []string{"daemond"}, Packages: []string{"daemon"}},
	{What: "driver", Files: []string{"/usr/lib/*/drv/x.so"}, Packages: []string{"daemon-driver"}},
	{What: "helper", Files: []string{"/usr/lib/a/helper", "/usr/libexec/helper"}, Packages: []string{"helper", "daemon"}},
}

func names(reqs []Requirement) string {
	var out []string
	for _, r := range reqs {
		out = append(out, r.What)
	}
	return strings.Join(out, " ")
}

func TestMissing(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"bare machine", nil, "daemon driver helper"},
		{"program in sbin", []string{"usr/sbin/daemond"}, "driver helper"},
		{"program in local bin", []string{"usr/local/bin/daemond"}, "driver helper"},
		{"pattern", []string{"usr/lib/x86_64-linux-gnu/drv/x.so"}, "daemon helper"},
		{"second place", []string{"usr/libexec/helper"}, "daemon driver"},
		{"a program's name as a library", []string{"usr/lib/daemond"}, "daemon driver helper"},
		{"complete", []string{"usr/sbin/daemond", "usr/lib/a/drv/x.so", "usr/lib/a/helper"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := names(missingBelow(machine(t, c.files...), sample)); got != c.want {
				t.Errorf("missing %q, want %q", got, c.want)
			}
		})
	}
}

func TestMissingError_saysWhatAndHow(t *testing.T) {
	err := error(&MissingError{Missing: sample, Packages: firstPackages(sample)})
	want := "missing on this machine: daemon (package daemon), driver (package daemon-driver), helper (package helper or daemon); " +
		"install with: apt-get install -y --no-install-recommends daemon daemon-driver helper"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// Somebody who cannot install is told what to do; nothing is tried.
func TestEnsure_notRoot(t *testing.T) {
	geteuid = func() int { return 1000 }
	defer func() { geteuid = os.Geteuid }()
	var log strings.Builder
	a := &Archive{Log: &log}
	err := a.Ensure(context.Background(), []Requirement{{What: "x", Files: []string{"no-such-program"}, Packages: []string{"x"}}})
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Packages[0] != "x" {
		t.Errorf("got %v, want a MissingError for x", err)
	}
	if err := a.Update(context.Background()); err == nil || !strings.Contains(err.Error(), "needs root: run apt-get update") {
		t.Errorf("update: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("something was tried: %s", log.String())
	}
}

func TestEnsure_nothingMissing(t *testing.T) {
	if err := (&Archive{}).Ensure(context.Background(), []Requirement{{What: "sh", Files: []string{"sh"}}}); err != nil {
		t.Error(err)
	}
}

func TestPick(t *testing.T) {
	for _, c := range []struct {
		name, archive, want, unknown string
	}{
		{"all known", "daemon daemon-driver helper", "daemon daemon-driver helper", ""},
		{"second choice, named once", "daemon daemon-driver", "daemon daemon-driver", ""},
		{"one unknown", "daemon helper", "daemon helper", "driver"},
		{"empty archive", "", "", "daemon driver helper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			known := strings.Fields(c.archive)
			got, unknown := pick(sample, func(p string) bool {
				for _, k := range known {
					if k == p {
						return true
					}
				}
				return false
			})
			if strings.Join(got, " ") != c.want || strings.Join(unknown, " ") != c.unknown {
				t.Errorf("got %q, unknown %q; want %q, unknown %q", got, unknown, c.want, c.unknown)
			}
		})
	}
}

func TestForbidServices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	undo, err := forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := run(context.Background(), "", path, "libvirtd", "start"); err == nil || !strings.Contains(err.Error(), "101") {
		t.Errorf("policy answers %q, %v; want exit status 101", out, err)
	}
	undo()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the policy stays: %v", err)
	}

	// A machine's own policy is neither replaced nor removed.
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	undo, err = forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	undo()
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "exit 0") {
		t.Errorf("the machine's policy became %q, %v", data, err)
	}

	// One that an interrupted run of ours left behind is ours.
	if err := os.WriteFile(path, []byte(servicePolicy), 0o755); err != nil {
		t.Fatal(err)
	}
	undo, err = forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	undo()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a left-over policy stays: %v", err)
	}

	if _, err := forbidServices(filepath.Join(path, "no", "such", "directory")); err == nil {
		t.Error("no error where the policy cannot be written")
	}
}

func TestRun_errorHoldsTheEndOfStderr(t *testing.T) {
	_, err := run(context.Background(), "", "sh", "-c", "printf 'fir%s\\n' st >&2; yes filler | head -c 2000 >&2; echo the reason >&2; exit 3")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"exit status 3", "the reason"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	if strings.Contains(err.Error(), "first") {
		t.Error("the error holds everything that was printed")
	}
}
