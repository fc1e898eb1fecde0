package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// bench is one run of all measurements.
type bench struct {
	dir  string
	host *host.Host
	bins map[string]string // subject → real binary
}

// The subjects.
const (
	ours    = "provider"
	floor   = "echo"
	without = "terraform_data"
)

var subjects = []string{ours, floor, without}

func measure(ctx context.Context, numbers []int, runs int, cores []string) (r report, err error) {
	b := &bench{bins: map[string]string{}}
	if b.dir, err = os.MkdirTemp("", "libvirt-bench-"); err != nil {
		return r, err
	}
	defer os.RemoveAll(b.dir)
	if err := b.build(ctx, &r); err != nil {
		return r, err
	}
	if b.host, err = host.Start(ctx, host.Options{NoGuest: true, Log: os.Stderr}); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.host.Stop()) }()
	for _, name := range cores {
		core, lookErr := findCore(name)
		if lookErr != nil {
			r.Missing = append(r.Missing, fmt.Sprintf("%s: %v", name, lookErr))
			continue
		}
		if err := b.measureCore(ctx, &r, name, core, numbers, runs); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(r.Plans) == 0 {
		return r, fmt.Errorf("no core to measure with: %s", strings.Join(r.Missing, "; "))
	}
	return r, nil
}

func findCore(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path, err := filepath.Abs(filepath.Join("bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// build builds both providers the way a release does, and puts the wrapper in
// the place where the core looks for them.
func (b *bench) build(ctx context.Context, r *report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for subject, pkg := range map[string]string{ours: ".", floor: "./tools/bench/echo"} {
		bin := filepath.Join(b.dir, subject+"-real")
		cmd := exec.CommandContext(ctx, "go", "build", "-tags", "libvirt_dlopen", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
		b.bins[subject] = bin
		plugins := filepath.Join(b.dir, subject)
		if err := copyFile(self, filepath.Join(plugins, "terraform-provider-libvirt")); err != nil {
			return err
		}
		cli := fmt.Sprintf("provider_installation {\n  dev_overrides { \"driftsafe/libvirt\" = %q }\n  direct {}\n}\n", plugins)
		if err := os.WriteFile(filepath.Join(b.dir, subject+".tfrc"), []byte(cli), 0o600); err != nil {
			return err
		}
	}
	info, err := os.Stat(b.bins[ours])
	if err != nil {
		return err
	}
	r.BinaryMiB = float64(info.Size()) / (1 << 20)
	return os.WriteFile(filepath.Join(b.dir, without+".tfrc"), nil, 0o600)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func (b *bench) measureCore(ctx context.Context, r *report, name, core string, numbers []int, runs int) error {
	for _, n := range numbers {
		sample := map[string][]figures{}
		dirs := map[string]string{}
		for _, subject := range subjects {
			dir := filepath.Join(b.dir, fmt.Sprintf("%s-%s-%d", name, subject, n))
			if err := b.layOut(dir, subject, name, n); err != nil {
				return err
			}
			dirs[subject] = dir
			if subject == without {
				if _, err := b.run(ctx, core, subject, dir, "init"); err != nil {
					return err
				}
			}
			f, err := b.run(ctx, core, subject, dir, "apply", "-auto-approve")
			if err != nil {
				return err
			}
			r.Applies = append(r.Applies, row{name, subject, n, []figures{f}})
		}
		for range runs {
			for _, subject := range subjects {
				f, err := b.run(ctx, core, subject, dirs[subject], "plan", "-detailed-exitcode")
				if err != nil {
					return err
				}
				sample[subject] = append(sample[subject], f)
			}
		}
		for _, subject := range subjects {
			r.Plans = append(r.Plans, row{name, subject, n, sample[subject]})
		}
		bare, err := bareCalls(ctx, b.host.URI(), machineNames(name, n), runs)
		if err != nil {
			return err
		}
		r.Bare = append(r.Bare, bareRow{name, n, bare})
		fmt.Fprintf(os.Stderr, "bench: %s, %d machines: done\n", name, n)
	}
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-%s-%d", name, ours, numbers[0]))
	var schemas []figures
	for range runs {
		f, err := b.run(ctx, core, ours, dir, "providers", "schema", "-json")
		if err != nil {
			return err
		}
		schemas = append(schemas, f)
	}
	r.Schemas = append(r.Schemas, row{name, ours, 0, schemas})
	return nil
}

// figures is one run of a core.
type figures struct {
	Wall          time.Duration
	Core, Provide usage
}

func (b *bench) run(ctx context.Context, core, subject, dir string, args ...string) (f figures, err error) {
	usageFile := filepath.Join(b.dir, "usage")
	_ = os.Remove(usageFile)
	if args[0] != "providers" {
		args = append(args, "-no-color")
	}
	cmd := exec.CommandContext(ctx, core, args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TF_") && !strings.HasPrefix(e, "LIBVIRT_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE="+filepath.Join(b.dir, subject+".tfrc"),
		realVariable+"="+b.bins[subject], usageVariable+"="+usageFile)
	var out strings.Builder
	cmd.Stderr = &out
	if args[0] != "providers" {
		cmd.Stdout = &out
	}
	begin := time.Now()
	err = cmd.Run()
	f.Wall = time.Since(begin)
	if err != nil {
		return f, fmt.Errorf("%s of %s: %w\n%s", args[0], subject, err, out.String())
	}
	f.Core = usageOf(cmd.ProcessState)
	if subject == without {
		return f, nil
	}
	if f.Provide, _, err = readUsage(usageFile); err != nil {
		return f, err
	}
	f.Core.CPU -= f.Provide.CPU
	return f, nil
}
