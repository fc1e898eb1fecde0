package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// demo is the stage: a host, a working directory, a core, and what was proved.
type demo struct {
	host   *host.Host
	dir    string // working directory of the core
	core   string
	keep   bool
	acts   int
	proofs [][2]string
	env    []string
}

// prepare starts the host, builds the provider and lays out the example.
func prepare(ctx context.Context, core string, keep bool) (*demo, error) {
	d := &demo{keep: keep}
	d.act("The stage")
	var err error
	if d.core, err = findCore(core); err != nil {
		return nil, err
	}
	if d.dir, err = os.MkdirTemp("", "libvirt-demo-"); err != nil {
		return nil, err
	}
	err = d.step("build the provider", func() (string, error) {
		return "", d.command(ctx, "", "go", "build", "-tags", "libvirt_dlopen", "-buildvcs=false", "-o", filepath.Join(d.dir, "plugins", "terraform-provider-libvirt"), ".")
	})
	if err != nil {
		return d, err
	}
	err = d.step("start a private libvirtd", func() (string, error) {
		d.host, err = host.Start(ctx, host.Options{Log: os.Stderr})
		if err != nil {
			return "", err
		}
		return d.host.URI(), nil
	})
	if err != nil {
		return d, err
	}
	return d, d.layOut()
}

// findCore finds the core to play with.
func findCore(core string) (string, error) {
	if core != "" {
		return exec.LookPath(core)
	}
	if path, err := exec.LookPath("tofu"); err == nil {
		return path, nil
	}
	path, err := filepath.Abs(filepath.Join("bin", "tofu"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("there is no tofu on the PATH and none in ./bin; make bin/tofu builds it: %w", err)
	}
	return path, nil
}

// layOut copies the example and points the core at the provider just built.
func (d *demo) layOut() error {
	if err := os.CopyFS(filepath.Join(d.dir, "two-machines"), os.DirFS(filepath.Join("examples", "two-machines"))); err != nil {
		return err
	}
	cli := filepath.Join(d.dir, "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides { \"driftsafe/libvirt\" = %q }\n  direct {}\n}\n", filepath.Join(d.dir, "plugins"))
	if err := os.WriteFile(cli, []byte(text), 0o600); err != nil {
		return err
	}
	for _, e := range os.Environ() {
		// Nothing of the user's own settings speaks into the demo.
		if !strings.HasPrefix(e, "TF_") && !strings.HasPrefix(e, "LIBVIRT_") {
			d.env = append(d.env, e)
		}
	}
	d.env = append(d.env, "TF_CLI_CONFIG_FILE="+cli, "TF_IN_AUTOMATION=1",
		"TF_VAR_uri="+d.host.URI(), "TF_VAR_image="+d.host.Guest().Disk, "TF_VAR_domain_type=qemu",
		"TF_VAR_pool_path="+filepath.Join(d.host.Dir(), "machines"), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	return nil
}

// cleanUp ends the host and removes the working directory.
func (d *demo) cleanUp() error {
	if d.keep {
		fmt.Printf("\nKept: host %s, working directory %s\n", d.host.Dir(), d.dir)
		return nil
	}
	var err error
	if d.host != nil {
		err = d.host.Stop()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// tearDown destroys what the demo made and looks that nothing stays.
func (d *demo) tearDown(ctx context.Context) error {
	d.act("Cleaning up")
	err := d.step("destroy everything: LIBVIRT_PROTECT=false "+filepath.Base(d.core)+" destroy", func() (string, error) {
		out, err := d.run(ctx, []string{"LIBVIRT_PROTECT=false"}, "destroy", "-auto-approve")
		return strings.TrimPrefix(lastLine(out), "Destroy complete! "), err
	})
	if err != nil || d.keep {
		return err
	}
	dir := d.host.Dir()
	return d.step("stop the private libvirtd", func() (string, error) {
		if err := d.host.Stop(); err != nil {
			return "", err
		}
		d.host = nil
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is still there", dir)
		}
		return "no process, no file left", nil
	})
}

// run runs the core in the example's directory and returns what it printed.
func (d *demo) run(ctx context.Context, env []string, args ...string) (string, error) {
	return d.runIn(ctx, "two-machines", env, args...)
}

// runIn is run in another directory of the stage.
func (d *demo) runIn(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.core, append(args, "-no-color")...)
	cmd.Dir = filepath.Join(d.dir, dir)
	cmd.Env = append(append([]string(nil), d.env...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = &coreError{args: args, out: string(out), err: err}
	}
	return string(out), err
}

// coreError is a run of the core that failed, with what it printed.
type coreError struct {
	args []string
	out  string
	err  error
}

func (e *coreError) Error() string {
	return fmt.Sprintf("%s: %v\n%s", strings.Join(e.args, " "), e.err, e.out)
}

func (e *coreError) Unwrap() error { return e.err }

func (d *demo) command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// act begins a new part of the story.
func (d *demo) act(title string) {
	fmt.Printf("\n%d. %s\n", d.acts, title)
	d.acts++
}

// step does one thing and prints a line for it, with the time it took.
func (d *demo) step(what string, do func() (result string, err error)) error {
	fmt.Printf("   %s …", what)
	begin := time.Now()
	result, err := do()
	took := time.Since(begin).Round(100 * time.Millisecond)
	switch {
	case err != nil:
		fmt.Printf(" failed after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	case result == "":
		fmt.Printf(" %s\n", took)
	default:
		fmt.Printf(" %s (%s)\n", result, took)
	}
	return nil
}

// quote prints what the core said, as far as it matters to the story.
func quote(lines []string) {
	for _, l := range lines {
		fmt.Printf("      | %s\n", l)
	}
}

// proved remembers a statement that was checked, and how.
func (d *demo) proved(statement, evidence string) {
	fmt.Printf("   ✓ %s\n", statement)
	d.proofs = append(d.proofs, [2]string{statement, evidence})
}

func (d *demo) table(took time.Duration) {
	fmt.Printf("\nProved on a real libvirtd in %s\n\n", took.Round(time.Second))
	width := 0
	for _, p := range d.proofs {
		width = max(width, len([]rune(p[0])))
	}
	for _, p := range d.proofs {
		fmt.Printf("  %-*s  %s\n", width, p[0], p[1])
	}
	fmt.Println()
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
