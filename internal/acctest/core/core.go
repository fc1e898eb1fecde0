// Package core knows the two programs that run the provider: OpenTofu and Terraform, called
// "cores" throughout the tests.
//
// An acceptance case runs on one core at a time, chosen by the environment of the test process.
// That is so because terraform-plugin-testing reads the path of the core from the environment
// and not from the test case. This package finds the cores on a machine, tells their versions,
// and names the environment variables and test attributes by which the runner
// (tools/testreport) and the cases (internal/acctest) talk to each other. It imports nothing of
// ours and no test framework, so both sides can use it.
package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Names of the cores, in the order in which they are preferred when a case may use either.
const (
	Tofu      = "tofu"
	Terraform = "terraform"
)

// Environment of a test process.
const (
	// EnvCore names the core that the cases of this process run on. Unset: the first one found.
	EnvCore = "ACC_CORE"
	// EnvSplit is SplitHalf or SplitAll. Unset means SplitAll.
	EnvSplit = "ACC_SPLIT"
	// EnvCores lists the cores among which SplitHalf shares out the cases, separated by commas.
	// Unset: all that are found.
	EnvCores = "ACC_CORES"
)

// Values of EnvSplit.
const (
	SplitHalf = "half" // each case runs on exactly one of the cores
	SplitAll  = "all"  // each case runs on every core that can run it
)

// Attributes (testing.T.Attr) by which a case tells the runner about itself.
const (
	AttrCase        = "acctest.case"         // value: what the case shows, one sentence
	AttrElsewhere   = "acctest.elsewhere"    // value: the core that runs the case instead
	AttrNotForCore  = "acctest.not-for-core" // value: why this core cannot run the case
	AttrUnavailable = "acctest.unavailable"  // value: what this host lacks
)

// ErrNotFound says that a core is not installed.
var ErrNotFound = errors.New("not found")

// A Core is one installed program.
type Core struct {
	Name    string // Tofu or Terraform
	Path    string // absolute
	Version string // as the program prints it, without the leading v: "1.12.6"
}

// Names lists all known cores, the preferred one first.
func Names() []string { return []string{Tofu, Terraform} }

// Find looks for the named core on the PATH, and for tofu also in bin/ below root, where
// `make` builds it. The error wraps ErrNotFound if it is in neither place.
func Find(root, name string) (Core, error) {
	if !slices.Contains(Names(), name) {
		return Core{}, fmt.Errorf("find core %q: the known ones are %s", name, strings.Join(Names(), ", "))
	}
	path, err := exec.LookPath(name)
	if err != nil && name == Tofu {
		path, err = exec.LookPath(filepath.Join(root, "bin", name))
	}
	if err != nil {
		return Core{}, fmt.Errorf("find core %s: %w", name, ErrNotFound)
	}
	found, err := Probe(path)
	if err != nil {
		return Core{}, err
	}
	if found.Name != name {
		return Core{}, fmt.Errorf("find core %s: %s says that it is %s", name, found.Path, found.Name)
	}
	return found, nil
}

// Available finds every core that is installed. A core that is not is left out; any other
// trouble with one is an error.
func Available(root string) ([]Core, error) {
	var all []Core
	for _, name := range Names() {
		found, err := Find(root, name)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, found)
		}
	}
	return all, nil
}

var banner = regexp.MustCompile(`(?m)^(OpenTofu|Terraform) v(\S+)`)

// Probe asks the program at path which core it is.
func Probe(path string) (Core, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Core{}, fmt.Errorf("probe core: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = Environ(os.Environ())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Core{}, fmt.Errorf("probe core %s: %w: %s", path, err, strings.TrimSpace(string(out)))
	}
	match := banner.FindStringSubmatch(string(out))
	if match == nil {
		return Core{}, fmt.Errorf("probe core %s: no OpenTofu or Terraform: it printed %q", path, firstLine(string(out)))
	}
	name := Tofu
	if match[1] == "Terraform" {
		name = Terraform
	}
	return Core{Name: name, Path: path, Version: match[2]}, nil
}

// Environ returns env without what would make a core behave differently from one machine to
// the next (the user's CLI configuration, extra arguments, a workspace), and with the look-up
// for newer versions turned off.
func Environ(env []string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "TF_CLI_") || name == "TF_WORKSPACE" || name == "TF_DATA_DIR" || name == "CHECKPOINT_DISABLE"
	})
	return append(kept, "CHECKPOINT_DISABLE=1")
}

// Settings returns the environment, as name and value, that makes terraform-plugin-testing use
// this core. It then serves the provider under test to configurations that leave its source out
// as well as to those that say "driftsafe/libvirt".
func (c Core) Settings() map[string]string {
	host := "registry.terraform.io"
	if c.Name == Tofu {
		// A short source address means this host to tofu. With the host above, and no namespace,
		// it fails: the framework then offers the provider under the namespace "-".
		host = "registry.opentofu.org"
	}
	return map[string]string{
		"TF_ACC_TERRAFORM_PATH":     c.Path,
		"TF_ACC_PROVIDER_HOST":      host,
		"TF_ACC_PROVIDER_NAMESPACE": "driftsafe",
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
