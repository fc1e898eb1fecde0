package acctest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// checkout makes a directory with fake cores: bin/tofu, as make builds it, and terraform on the
// PATH.
func checkout(t *testing.T) (root, tofu, terraform string) {
	t.Helper()
	root, path := t.TempDir(), t.TempDir()
	tofu, terraform = filepath.Join(root, "bin", "tofu"), filepath.Join(path, "terraform")
	if err := os.Mkdir(filepath.Dir(tofu), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, banner := range map[string]string{tofu: "OpenTofu v1.12.6", terraform: "Terraform v1.11.4"} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho "+banner+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/bin/sh", filepath.Join(path, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	return root, tofu, terraform
}

func TestSettle(t *testing.T) {
	root, tofu, terraform := checkout(t)
	for name, tc := range map[string]struct {
		env   map[string]string
		core  string // path
		split string
		among []string
	}{
		"by hand":             {nil, tofu, core.SplitAll, nil},
		"by hand, one chosen": {map[string]string{"ACC_CORE": "terraform"}, terraform, core.SplitAll, nil},
		"by hand, a path":     {map[string]string{"TF_ACC_TERRAFORM_PATH": terraform}, terraform, core.SplitAll, nil},
		"by hand, half":       {map[string]string{"ACC_SPLIT": "half"}, tofu, core.SplitHalf, []string{"tofu", "terraform"}},
		"by the runner, half": {
			map[string]string{"ACC_CORE": "terraform", "TF_ACC_TERRAFORM_PATH": terraform, "ACC_SPLIT": "half", "ACC_CORES": "terraform"},
			terraform, core.SplitHalf, []string{"terraform"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settle(func(name string) string { return tc.env[name] }, root)
			if err != nil {
				t.Fatal(err)
			}
			if got.core.Path != tc.core || got.split != tc.split || !slices.Equal(got.cores, tc.among) {
				t.Errorf("settled on %+v", got)
			}
		})
	}
}

func TestSettleRefuses(t *testing.T) {
	root, _, terraform := checkout(t)
	for name, tc := range map[string]struct {
		env  map[string]string
		root string
		want string
	}{
		"a split it does not know": {map[string]string{"ACC_SPLIT": "third"}, root, "ACC_SPLIT=third"},
		"a core it does not know":  {map[string]string{"ACC_CORE": "pulumi"}, root, `"pulumi"`},
		"a core that is missing":   {map[string]string{"ACC_CORE": "tofu"}, t.TempDir(), "find core tofu: not found"},
		"a path of another core": {
			map[string]string{"ACC_CORE": "tofu", "TF_ACC_TERRAFORM_PATH": terraform}, root,
			"ACC_CORE=tofu, but TF_ACC_TERRAFORM_PATH=" + terraform + " is terraform",
		},
		"a core outside of the split": {
			map[string]string{"ACC_CORE": "tofu", "ACC_SPLIT": "half", "ACC_CORES": "terraform"}, root,
			"tofu is not among the cores that share the cases: terraform",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settle(func(name string) string { return tc.env[name] }, tc.root)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	t.Run("no core at all", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := settle(func(string) string { return "" }, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "neither tofu nor terraform is installed") {
			t.Errorf("error %v", err)
		}
	})
}

func TestDropPersonalSettings(t *testing.T) {
	t.Setenv("TF_CLI_CONFIG_FILE", "/home/me/.tofurc")
	t.Setenv("CHECKPOINT_DISABLE", "")
	t.Setenv("TF_VAR_kept", "yes")
	if err := dropPersonalSettings(); err != nil {
		t.Fatal(err)
	}
	if value, set := os.LookupEnv("TF_CLI_CONFIG_FILE"); set {
		t.Errorf("TF_CLI_CONFIG_FILE is still set: %q", value)
	}
	if os.Getenv("CHECKPOINT_DISABLE") != "1" || os.Getenv("TF_VAR_kept") != "yes" {
		t.Error("CHECKPOINT_DISABLE is not 1, or TF_VAR_kept is gone")
	}
}

func TestRootIsTheCheckout(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(), "GNUmakefile")); err != nil {
		t.Errorf("Root() = %s: %v", Root(), err)
	}
}
