// Package acctest helps the acceptance tests: ordinary Go tests called TestAcc… that run a real
// core (OpenTofu or Terraform) against a real, private libvirtd. They run if TF_ACC is set.
//
// Every acceptance test begins with Case, which says in one sentence what the case shows,
// settles which core it runs on, and skips it where another process runs it on the other core.
// A case that this host cannot do calls Unavailable. Any other skip is an error in the report
// of tools/testreport, as is a case that no core ran, so nothing is left out in silence.
//
// By hand, `TF_ACC=1 go test -run TestAccX ./internal/...` runs all the cases on the core that
// is found first, tofu before terraform; ACC_CORE=terraform chooses.
package acctest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// An Option of Case.
type Option func(*options)

type options struct {
	only []string
	why  string
}

// OnlyOn says that the case can run on the named core alone, because the other lacks a feature;
// why names it. On the other core the case counts as "not for this core".
func OnlyOn(name, why string) Option {
	return func(o *options) { o.only, o.why = append(o.only, name), why }
}

// Case registers t as an acceptance case. It comes first in the test, or in a subtest that is a
// case of its own, and before anything is started. what is the sentence that the report prints.
// It returns the core that the case runs on; the environment of the process is already set for
// terraform-plugin-testing.
func Case(t testing.TB, what string, opts ...Option) core.Core {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance case: runs with TF_ACC=1")
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s, err := settled()
	if err != nil {
		t.Fatalf("choose a core for %s: %v", t.Name(), err)
	}
	t.Attr(core.AttrCase, strings.Join(strings.Fields(what), " "))
	if len(o.only) > 0 && !slices.Contains(o.only, s.core.Name) {
		t.Attr(core.AttrNotForCore, o.why)
		t.Skipf("not for %s: %s", s.core.Name, o.why)
	}
	if s.split == core.SplitHalf {
		if runs := core.Assign(t.Name(), s.cores, o.only); runs != s.core.Name {
			t.Attr(core.AttrElsewhere, runs)
			t.Skipf("runs on %s", runs)
		}
	}
	return s.core
}

// Sampled says whether the run is the short one, in which each case runs once: there, a case
// that plays one thing in several ways may play it in one of them.
func Sampled() bool {
	s, err := settled()
	return err == nil && s.split == core.SplitHalf
}

// settings of this process; they come from its environment and never change.
type settings struct {
	core  core.Core
	cores []string // among which the cases are split
	split string
}

var settled = sync.OnceValues(func() (settings, error) {
	s, err := settle(os.Getenv, Root())
	if err != nil {
		return settings{}, err
	}
	// terraform-plugin-testing reads this whenever a case starts, so it is set for the whole
	// process; the runner starts one process per core and package.
	for name, value := range s.core.Settings() {
		if err := os.Setenv(name, value); err != nil {
			return settings{}, fmt.Errorf("set %s: %w", name, err)
		}
	}
	return s, dropPersonalSettings()
})

// settle reads the environment and finds the core.
func settle(getenv func(string) string, root string) (settings, error) {
	s := settings{split: getenv(core.EnvSplit)}
	switch s.split {
	case "":
		s.split = core.SplitAll
	case core.SplitAll, core.SplitHalf:
	default:
		return s, fmt.Errorf("%s=%s: want %s or %s", core.EnvSplit, s.split, core.SplitHalf, core.SplitAll)
	}
	var err error
	name, path := getenv(core.EnvCore), getenv("TF_ACC_TERRAFORM_PATH")
	switch {
	case path != "":
		s.core, err = core.Probe(path)
		if err == nil && name != "" && s.core.Name != name {
			err = fmt.Errorf("%s=%s, but TF_ACC_TERRAFORM_PATH=%s is %s", core.EnvCore, name, path, s.core.Name)
		}
	case name != "":
		s.core, err = core.Find(root, name)
	default:
		s.core, err = first(root)
	}
	if err != nil {
		return s, err
	}
	if s.split == core.SplitHalf {
		s.cores, err = among(getenv(core.EnvCores), root)
	}
	if err == nil && s.cores != nil && !slices.Contains(s.cores, s.core.Name) {
		err = fmt.Errorf("%s is not among the cores that share the cases: %s", s.core.Name, strings.Join(s.cores, ", "))
	}
	return s, err
}

func first(root string) (core.Core, error) {
	for _, name := range core.Names() {
		found, err := core.Find(root, name)
		if err == nil || !errors.Is(err, core.ErrNotFound) {
			return found, err
		}
	}
	return core.Core{}, errors.New("neither tofu nor terraform is installed: `make bin/tofu` builds tofu")
}

func among(list, root string) ([]string, error) {
	if list != "" {
		return strings.Split(list, ","), nil
	}
	found, err := core.Available(root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range found {
		names = append(names, c.Name)
	}
	return names, nil
}

// dropPersonalSettings gives the process the environment that core.Environ allows. A CLI
// configuration with dev_overrides, say, would bypass the provider under test.
func dropPersonalSettings() error {
	kept := core.Environ(os.Environ())
	for _, entry := range os.Environ() {
		if slices.Contains(kept, entry) {
			continue
		}
		name, _, _ := strings.Cut(entry, "=")
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("unset %s: %w", name, err)
		}
	}
	return os.Setenv("CHECKPOINT_DISABLE", "1")
}

// Root is the top directory of the checkout: the nearest one upwards that has a go.mod.
// Tests run in the directory of their package.
func Root() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
