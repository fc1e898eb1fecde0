// Package sample holds acceptance cases that need no host and no core. run_test.go runs them
// through the report, to see what `go test` really prints for each kind of ending.
package sample

import (
	"os"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

func TestAccOne(t *testing.T) { acctest.Case(t, "one passes") }

func TestAccTwo(t *testing.T) { acctest.Case(t, "two passes") }

func TestAccThree(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) { acctest.Case(t, "three "+name+" passes") })
	}
}

func TestAccTofuOnly(t *testing.T) {
	acctest.Case(t, "works with tofu alone", acctest.OnlyOn(core.Tofu, "terraform lacks it"))
}

func TestAccUnavailable(t *testing.T) {
	acctest.Case(t, "cannot be done here")
	acctest.Unavailable(t, "no\nhost  at all")
}

// TestAccEnding ends as the environment says.
func TestAccEnding(t *testing.T) {
	used := acctest.Case(t, "ends as asked")
	if os.Getenv("TF_ACC_TERRAFORM_PATH") != used.Path {
		t.Errorf("terraform-plugin-testing would not use %s", used.Path)
	}
	switch os.Getenv("SAMPLE_ENDING") {
	case "fail":
		t.Error("what the failing case said")
	case "panic":
		panic("what the panicking case said")
	case "skip":
		t.Skip("just so")
	case "exit":
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Hour)
	}
}

func TestUnit(t *testing.T) {
	if os.Getenv("TF_ACC") != "" {
		t.Error("a unit test ran with TF_ACC")
	}
}
