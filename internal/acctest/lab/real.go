package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// built is the provider's binary, built once for this test process.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binaries returns the directory with the provider's binary.
func binaries(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "libvirt-plugins-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-tags", "libvirt_dlopen", "-buildvcs=false", "-o", filepath.Join(built.dir, "terraform-provider-libvirt"), ".")
		cmd.Dir = acctest.Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the provider: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// Project runs the core of a case as a person does: with the provider as a
// process of its own. It is for what the test framework cannot do, as for_each
// and several configurations side by side.
type Project struct {
	t    testing.TB
	core core.Core
	dir  string
	env  []string
	// attributes of the core's process, nil for those of this one.
	attributes *syscall.SysProcAttr
}

// NewProject copies a directory of configuration into one of its own. env are
// settings (NAME=value) for every run.
func NewProject(t testing.TB, c core.Core, from string, env ...string) *Project {
	t.Helper()
	plugins := binaries(t)
	p := &Project{t: t, core: c, dir: filepath.Join(t.TempDir(), "project")}
	if err := os.CopyFS(p.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(t.TempDir(), "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides { \"driftsafe/libvirt\" = %q }\n  direct {}\n}\n", plugins)
	if err := os.WriteFile(rc, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TF_") && !strings.HasPrefix(e, "LIBVIRT_") {
			p.env = append(p.env, e)
		}
	}
	p.env = append(append(p.env, "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1"), env...)
	return p
}

// With is the same project with more settings (NAME=value) for its runs.
func (p *Project) With(env ...string) *Project {
	with := *p
	with.env = append(slices.Clip(p.env), env...)
	return &with
}

// For is the project for a part of its case.
func (p *Project) For(t testing.TB) *Project {
	part := *p
	part.t = t
	return &part
}

// Env is the environment of the runs: what another program needs that runs the
// core with this provider.
func (p *Project) Env() []string { return slices.Clone(p.env) }

// Dir is the directory of the configuration.
func (p *Project) Dir() string { return p.dir }

// Run runs the core and returns what it printed and its exit code.
func (p *Project) Run(args ...string) (out string, code int) {
	p.t.Helper()
	cmd := exec.Command(p.core.Path, append(args, "-no-color")...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir, p.env, p.attributes
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Interrupt runs the core, and interrupts it as a person does with Ctrl-C once
// when says so, which is asked again and again. It returns as Run does.
func (p *Project) Interrupt(when func() bool, args ...string) (out string, code int) {
	p.t.Helper()
	var text bytes.Buffer
	cmd := exec.Command(p.core.Path, append(args, "-no-color")...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, &text, &text
	// The core's children are not in the foreground, where the terminal would
	// interrupt them too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	interrupted := false
	for {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				p.t.Fatal(err)
			}
			if !interrupted {
				p.t.Fatalf("%s ended before it could be interrupted:\n%s", strings.Join(args, " "), text.String())
			}
			return text.String(), cmd.ProcessState.ExitCode()
		case <-time.After(200 * time.Millisecond):
			if !interrupted && when() {
				interrupted = true
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					p.t.Fatal(err)
				}
			}
		}
	}
}

// Must runs the core and fails the test unless it ends with the code.
func (p *Project) Must(want int, args ...string) string {
	p.t.Helper()
	out, code := p.Run(args...)
	if code != want {
		p.t.Fatalf("%s %s: exit code %d, want %d\n%s", p.core.Name, strings.Join(args, " "), code, want, out)
	}
	return out
}
