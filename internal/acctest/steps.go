package acctest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
)

// Factories serve the provider in this process.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"libvirt": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test"), nil },
	}
}

// Config is a configuration with the provider set to the throwaway host.
// extra, if given, are more lines of the provider block.
func Config(t testing.TB, body string, extra ...string) string {
	t.Helper()
	return fmt.Sprintf("provider \"libvirt\" {\n  uri = %q\n  %s\n}\n%s", Host(t).URI(), strings.Join(extra, "\n  "), body)
}

// Steps runs the steps of a case on the core of this process.
func Steps(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	// The test framework destroys what is left over at the end; protection
	// would keep it. A case that tests protection sets it itself.
	if _, set := os.LookupEnv("LIBVIRT_PROTECT"); !set {
		t.Setenv("LIBVIRT_PROTECT", "false")
	}
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
