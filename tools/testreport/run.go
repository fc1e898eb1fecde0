package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// stopDelay is how long the tests have to end after an interrupt before they are killed.
const stopDelay = 30 * time.Second

// A progress writes one line per finished case or package-level event, from several runs.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	began time.Time
}

// finished writes the line of one test. Left out is what would only be noise: unit tests that
// pass, subtests that are no cases, and cases that the other core runs.
func (p *progress) finished(run *Run, t *Test) {
	if t.Result == Elsewhere || t.Result == NotForCore || (t.Case == "" && (t.Result == Passed || !isTop(t.Key))) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := ""
	if t.Result == Unavailable {
		reason = ": " + t.Reason
	}
	fmt.Fprintf(p.w, "%7s  %-9s  %-11s  %7s  %s%s\n",
		seconds(time.Since(p.began)), run.Name, t.Result, seconds(t.Elapsed), t.Key, reason)
}

// goTest runs `go test -json` with the arguments and environment, reads its events into run,
// and keeps a copy of them in the directory keep, if given. Whatever goes wrong is in run.Err.
func goTest(ctx context.Context, run *Run, args, env []string, keep string, p *progress) {
	began := time.Now()
	defer func() { run.Elapsed = time.Since(began) }()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = env
	// A group of its own, so that an interrupt reaches the test binaries also when it was sent
	// to this process alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopDelay
	cmd.Stderr = &run.Stderr
	pipe, feed := io.Pipe()
	cmd.Stdout = feed
	if keep != "" {
		file, err := keepFile(keep, run.Name)
		if err != nil {
			run.Err = err
			return
		}
		defer func() {
			if err := file.Close(); err != nil && run.Err == nil {
				run.Err = fmt.Errorf("keep the events: %w", err)
			}
		}()
		cmd.Stdout = io.MultiWriter(file, feed)
	}
	read := make(chan error, 1)
	go func() { read <- run.Read(pipe, func(t *Test) { p.finished(run, t) }) }()
	run.Err = cmd.Run()
	feed.Close()
	if err := <-read; err != nil && run.Err == nil {
		run.Err = err
	}
	if ctx.Err() != nil {
		run.Err = fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}

func keepFile(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("keep the events: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, name+".json"))
	if err != nil {
		return nil, fmt.Errorf("keep the events: %w", err)
	}
	return file, nil
}

// unitEnv is the environment of the unit tests: without TF_ACC, whatever the caller has set.
func unitEnv(env []string) []string {
	return slices.DeleteFunc(core.Environ(env), func(entry string) bool {
		return strings.HasPrefix(entry, "TF_ACC=")
	})
}

// coreEnv is the environment of the acceptance cases on one of the cores.
func coreEnv(env []string, c core.Core, all []core.Core, split string) []string {
	var names []string
	for _, other := range all {
		names = append(names, other.Name)
	}
	env = append(core.Environ(env), "TF_ACC=1",
		core.EnvCore+"="+c.Name, core.EnvSplit+"="+split, core.EnvCores+"="+strings.Join(names, ","))
	for name, value := range c.Settings() {
		env = append(env, name+"="+value)
	}
	return env
}
