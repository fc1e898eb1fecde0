package core

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake writes a program that prints text and exits with code, and returns its path.
func fake(t *testing.T, dir, name, text string, code int) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%s\nEND\nexit %d\n", text, code)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	tofuBanner      = "OpenTofu v1.12.6\non linux_amd64"
	terraformBanner = "Terraform v1.11.4\non linux_amd64\n\nYour version of Terraform is out of date!"
)

// onlyPath makes dir the whole PATH, but for the tools that the fakes need.
func onlyPath(t *testing.T, dir string) {
	t.Helper()
	tools := t.TempDir()
	for _, name := range []string{"sh", "cat"} {
		if err := os.Symlink(filepath.Join("/bin", name), filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+tools)
}

func TestFind(t *testing.T) {
	onPath, root := t.TempDir(), t.TempDir()
	onlyPath(t, onPath)
	if _, err := Find(root, Tofu); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing installed: %v, want ErrNotFound", err)
	}
	if _, err := Find(root, "pulumi"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("unknown name: %v, want an error that says so", err)
	}

	built := fake(t, filepath.Join(root, "bin"), Tofu, tofuBanner, 0)
	if got, err := Find(root, Tofu); err != nil || got != (Core{Tofu, built, "1.12.6"}) {
		t.Errorf("built by make: %v, %v", got, err)
	}
	fake(t, filepath.Join(root, "bin"), Terraform, terraformBanner, 0)
	if _, err := Find(root, Terraform); !errors.Is(err, ErrNotFound) {
		t.Errorf("terraform is looked for in bin, where nothing builds it: %v", err)
	}

	installed := fake(t, onPath, Tofu, "OpenTofu v1.10.0", 0)
	if got, err := Find(root, Tofu); err != nil || got != (Core{Tofu, installed, "1.10.0"}) {
		t.Errorf("the PATH comes first: %v, %v", got, err)
	}
}

func TestFindRefusesWhatIsNotTheCore(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"terraform under the name of tofu": {terraformBanner, 0, "says that it is terraform"},
		"another program":                  {"hello", 0, `no OpenTofu or Terraform: it printed "hello"`},
		"fails":                            {"cannot start", 3, "exit status 3: cannot start"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			onlyPath(t, dir)
			fake(t, dir, Tofu, tc.text, tc.code)
			_, err := Find(t.TempDir(), Tofu)
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, ErrNotFound) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if _, err := Available(t.TempDir()); err == nil {
				t.Error("Available passes over a core that does not work")
			}
		})
	}
}

func TestAvailable(t *testing.T) {
	dir := t.TempDir()
	onlyPath(t, dir)
	if got, err := Available(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("nothing installed: %v, %v", got, err)
	}
	fake(t, dir, Terraform, terraformBanner, 0)
	fake(t, dir, Tofu, tofuBanner, 0)
	got, err := Available(t.TempDir())
	if err != nil || len(got) != 2 || got[0].Name != Tofu || got[1].Name != Terraform {
		t.Errorf("both installed: %v, %v", got, err)
	}
}

func TestEnviron(t *testing.T) {
	got := Environ([]string{"HOME=/root", "TF_CLI_CONFIG_FILE=x", "TF_CLI_ARGS_plan=-lock=false", "TF_WORKSPACE=prod", "TF_VAR_a=1", "CHECKPOINT_DISABLE="})
	want := []string{"HOME=/root", "TF_VAR_a=1", "CHECKPOINT_DISABLE=1"}
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}

func TestAssignGivesEachCaseToOneCore(t *testing.T) {
	both := []string{Tofu, Terraform}
	share := map[string]int{}
	const cases = 400
	for i := range cases {
		test := fmt.Sprintf("TestAccDomain_case%d", i)
		got := Assign(test, both, nil)
		if again := Assign(test, []string{Terraform, Tofu}, nil); got != again {
			t.Fatalf("%s: %s, but %s when the cores are listed in the other order", test, got, again)
		}
		share[got]++
	}
	for _, name := range both {
		if n := share[name]; n < cases*2/5 || n > cases*3/5 {
			t.Errorf("%s gets %d of %d cases: they do not alternate", name, n, cases)
		}
	}
}

func TestAssignKeepsToTheCoresThatCan(t *testing.T) {
	for i := range 20 {
		test := fmt.Sprintf("TestAcc%d", i)
		if got := Assign(test, []string{Tofu, Terraform}, []string{Terraform}); got != Terraform {
			t.Errorf("%s: only terraform can, but %q is to run it", test, got)
		}
		if got := Assign(test, []string{Tofu}, nil); got != Tofu {
			t.Errorf("%s: only tofu is there, but %q is to run it", test, got)
		}
		if got := Assign(test, []string{Tofu}, []string{Terraform}); got != "" {
			t.Errorf("%s: no core can, but %q is to run it", test, got)
		}
	}
}
