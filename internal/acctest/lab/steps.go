package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// serve makes the provider's server; Main sets it. The package does not import
// the provider, so that what the provider is made of can be tested with it.
var serve func() tfprotov6.ProviderServer

// Factories serve the provider in this process.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"libvirt": func() (tfprotov6.ProviderServer, error) {
			if serve == nil {
				return nil, errors.New("the package's TestMain does not call acctest.Main with the provider's server")
			}
			return serve(), nil
		},
	}
}

// Config is a configuration with the provider set to the throwaway host.
// extra, if given, are more lines of the provider block.
func Config(t testing.TB, body string, extra ...string) string {
	t.Helper()
	return fmt.Sprintf(`terraform {
  required_providers {
    libvirt = { source = %q }
  }
}
provider "libvirt" {
  uri = %q
  %s
}
%s`, Source(), Host(t).URI(), strings.Join(extra, "\n  "), body)
}

// Source is the address under which the test framework serves the provider.
// It adds this to a configuration by itself, but not to an import's.
func Source() string {
	host, namespace := os.Getenv("TF_ACC_PROVIDER_HOST"), os.Getenv("TF_ACC_PROVIDER_NAMESPACE")
	if host == "" {
		host = "registry.terraform.io"
	}
	if namespace == "" {
		namespace = "hashicorp"
	}
	return host + "/" + namespace + "/libvirt"
}

// Steps runs the steps of a case on the core of this process.
func Steps(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	// The test framework destroys what is left over at the end; protection
	// would keep it. A case that tests protection sets it itself.
	if _, set := os.LookupEnv("LIBVIRT_PROTECT"); !set {
		t.Setenv("LIBVIRT_PROTECT", "false")
	}
	t.Setenv("TF_ACC_TEMP_DIR", t.TempDir()) // where Core finds the case's directory
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: Factories(), Steps: steps})
}

// EmptyAfterwards are the plan checks of an apply: a second plan is empty,
// with and without a refresh.
var EmptyAfterwards = resource.ConfigPlanChecks{
	PostApplyPreRefresh:  []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
}

// Apply is a step that applies a configuration and expects that a second plan
// is empty.
func Apply(config string, checks ...resource.TestCheckFunc) resource.TestStep {
	return resource.TestStep{Config: config, ConfigPlanChecks: EmptyAfterwards, Check: resource.ComposeAggregateTestCheckFunc(checks...)}
}

// Core runs a command of the case's core in the directory of the running case,
// for what the test framework has no step for.
func Core(t testing.TB, args ...string) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(os.Getenv("TF_ACC_TEMP_DIR"), "plugintest*", "work*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no working directory of the case: %v", err)
	}
	cmd := exec.Command(os.Getenv("TF_ACC_TERRAFORM_PATH"), args...)
	cmd.Dir = dirs[len(dirs)-1]
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Says is a pattern for a message that has these parts in this order. Cores
// break lines and draw a frame between any two words.
func Says(parts ...string) *regexp.Regexp {
	patterns := make([]string, len(parts))
	for i, part := range parts {
		words := strings.Fields(part)
		for j, w := range words {
			words[j] = regexp.QuoteMeta(w)
		}
		patterns[i] = strings.Join(words, `[\s│]+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(patterns, `.*`))
}
