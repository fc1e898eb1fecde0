// Command testreport runs the tests and reports on them, or reports on stored runs.
//
// The acceptance cases run once per core (OpenTofu, Terraform) in a `go test -json` of their
// own, since a core is chosen by the environment of the test process. With -split half a case
// runs on exactly one of the cores, with -split all on each. The program follows the streams of
// events, prints one line per finished case, and at the end judges what no single stream can
// know: whether every case ran somewhere, and no more often than asked; whether anything was
// skipped without a reason; whether the cases that this host cannot do are the ones listed in
// the golden file; whether the required cores took part. It exits with 1 if anything is wrong.
//
// The environment variable REQUIRE_CORES ("tofu,terraform") makes a missing core an error.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// acceptance selects the acceptance tests by their name.
const acceptance = "^TestAcc"

type options struct {
	split    string
	cores    string
	unit     bool
	together bool
	update   bool
	run      string
	tags     string
	golden   string
	keep     string
	timeout  time.Duration
	packages int // at the same time
	parallel int // tests of one package at the same time
	stored   stored
	patterns []string
	required []string
}

// stored collects -read NAME=FILE.
type stored []string

func (s *stored) String() string { return strings.Join(*s, " ") }

// Set takes one NAME=FILE.
func (s *stored) Set(value string) error {
	if name, file, ok := strings.Cut(value, "="); !ok || name == "" || file == "" {
		return errors.New("want NAME=FILE")
	}
	*s = append(*s, value)
	return nil
}

func main() { os.Exit(command()) }

// command returns the exit code: 1 if anything is wrong with the tests, 2 if with the arguments.
func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(os.Args[1:], os.Getenv("REQUIRE_CORES"), os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2
	}
	ok, err := run(ctx, opts, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

func parse(args []string, required string, w io.Writer) (options, error) {
	var o options
	set := flag.NewFlagSet("testreport", flag.ContinueOnError)
	set.SetOutput(w)
	set.StringVar(&o.split, "split", core.SplitHalf, "half: each case on one core; all: each case on every core")
	set.StringVar(&o.cores, "cores", "", "the cores to use, separated by commas (default: those installed)")
	set.BoolVar(&o.unit, "unit", false, "run the unit tests first")
	// Cases mostly wait for guests: measured on two cores, both at once take half the time of one
	// after the other, and no case takes longer.
	set.BoolVar(&o.together, "together", true, "run the cores at the same time, not one after the other")
	set.BoolVar(&o.update, "update", false, "rewrite the golden file of unavailable cases")
	set.StringVar(&o.run, "run", acceptance, "run only the acceptance cases that match, as in go test")
	set.StringVar(&o.tags, "tags", "libvirt_dlopen", "build tags")
	set.StringVar(&o.golden, "golden", "internal/acctest/testdata/unavailable.golden", "golden `file` of unavailable cases")
	set.StringVar(&o.keep, "keep", "", "keep the events in this `directory`, one file per core")
	set.DurationVar(&o.timeout, "timeout", 0, "limit for the cases of one package on one core (default: an hour, or three with -split all)")
	set.IntVar(&o.packages, "p", 0, "packages that run at the same time (default: as go test)")
	set.IntVar(&o.parallel, "parallel", 0, "parallel tests of one package (default: as go test)")
	set.Var(&o.stored, "read", "report on stored events, `NAME=FILE`, instead of running tests; NAME is unit, tofu or terraform")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.split != core.SplitHalf && o.split != core.SplitAll {
		return o, fmt.Errorf("-split %s: want half or all", o.split)
	}
	if o.timeout == 0 {
		o.timeout = time.Hour
		if o.split == core.SplitAll {
			o.timeout = 3 * time.Hour // the bounce matrix under each update.allow, and nothing is left to the other core
		}
	}
	o.patterns = set.Args()
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	o.required = list(required)
	for _, name := range slices.Concat(o.required, list(o.cores)) {
		if !slices.Contains(core.Names(), name) {
			return o, fmt.Errorf("unknown core %q: the known ones are %s", name, strings.Join(core.Names(), ", "))
		}
	}
	return o, nil
}

// list splits at commas and drops what is empty.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// run does what the options ask and writes the report. It answers whether all is well.
func run(ctx context.Context, o options, w io.Writer) (bool, error) {
	golden, err := readGolden(o.golden)
	if err != nil {
		return false, err
	}
	report := &Report{
		Split: o.split, Required: o.required, Golden: golden,
		Partial: o.run != acceptance || !slices.Equal(o.patterns, []string{"./..."}),
	}
	began := time.Now()
	if len(o.stored) > 0 {
		err = report.readStored(o.stored)
	} else {
		err = report.runTests(ctx, o, &progress{w: w, began: began})
	}
	if err != nil {
		return false, err
	}
	report.Elapsed = time.Since(began)
	if o.update {
		report.Golden = report.updatedGolden()
		if err := writeGolden(o.golden, report.Golden); err != nil {
			return false, err
		}
	}
	report.Print(w)
	return len(report.Problems()) == 0, nil
}

func (r *Report) readStored(files []string) error {
	for _, entry := range files {
		name, file, _ := strings.Cut(entry, "=")
		events, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read stored events: %w", err)
		}
		run := NewRun(name, "")
		if err := run.Read(bytes.NewReader(events), func(*Test) {}); err != nil {
			return err
		}
		if name == "unit" {
			r.Unit = run
		} else {
			r.Cores = append(r.Cores, run)
		}
	}
	return nil
}

// runTests runs the unit tests, if asked for, and then the acceptance cases on each core.
func (r *Report) runTests(ctx context.Context, o options, p *progress) error {
	top, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	cores, err := core.Available(top)
	if err != nil {
		return err
	}
	if wanted := list(o.cores); len(wanted) > 0 {
		cores = slices.DeleteFunc(cores, func(c core.Core) bool { return !slices.Contains(wanted, c.Name) })
	}
	if len(cores) == 0 {
		return errors.New("no core to run the cases on: install tofu or terraform, or build tofu with `make bin/tofu`")
	}
	if o.unit {
		r.Unit = NewRun("unit", "")
		goTest(ctx, r.Unit, goArgs(o, "-skip", acceptance), unitEnv(os.Environ()), o.keep, p)
	}
	var started sync.WaitGroup
	for _, c := range cores {
		run := NewRun(c.Name, c.Version)
		r.Cores = append(r.Cores, run)
		work := func() {
			// -count=1: what a case shows depends on the host, so an earlier result proves nothing.
			args := goArgs(o, "-count=1", "-run", o.run)
			goTest(ctx, run, args, coreEnv(os.Environ(), c, cores, o.split), o.keep, p)
		}
		if o.together {
			started.Go(work)
		} else {
			work()
		}
	}
	started.Wait()
	return nil
}

// goArgs are the arguments of go test, with the packages last.
func goArgs(o options, more ...string) []string {
	args := []string{"-tags", o.tags, "-timeout", o.timeout.String()}
	if o.packages > 0 {
		args = append(args, fmt.Sprintf("-p=%d", o.packages))
	}
	if o.parallel > 0 {
		args = append(args, fmt.Sprintf("-parallel=%d", o.parallel))
	}
	return slices.Concat(args, more, o.patterns)
}
