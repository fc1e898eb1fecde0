package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// A Report judges the runs of one `make test`.
type Report struct {
	Unit     *Run     // nil if the unit tests did not run
	Cores    []*Run   // the acceptance cases, one run per core, in the order of core.Names
	Split    string   // core.SplitHalf or core.SplitAll
	Partial  bool     // only some of the cases were asked for
	Required []string // cores that must have run
	Golden   []string // lines of the golden file; see UnavailableLines
	Elapsed  time.Duration
}

// Problems lists what is wrong, one sentence each, in a stable order. An empty list means
// that everything which was to run did, and passed.
func (r *Report) Problems() []string {
	var problems []string
	for _, run := range r.runs() {
		problems = append(problems, runProblems(run, run != r.Unit)...)
	}
	for _, name := range r.Required {
		if !slices.ContainsFunc(r.Cores, func(run *Run) bool { return run.Name == name }) {
			problems = append(problems, fmt.Sprintf("core %s is required and did not run", name))
		}
	}
	for _, key := range r.Cases() {
		problems = append(problems, r.caseProblems(key)...)
	}
	problems = append(problems, r.goldenProblems()...)
	if len(problems) == 0 && len(r.Cores) > 0 && len(r.Cases()) == 0 {
		problems = append(problems, "no acceptance case ran")
	}
	return problems
}

func (r *Report) runs() []*Run {
	if r.Unit == nil {
		return r.Cores
	}
	return append([]*Run{r.Unit}, r.Cores...)
}

// runProblems judges one stream by itself.
func runProblems(run *Run, acceptance bool) []string {
	var problems []string
	add := func(format string, args ...any) {
		problems = append(problems, run.Name+": "+fmt.Sprintf(format, args...))
	}
	for _, path := range slices.Sorted(maps.Keys(run.Packages)) {
		p := run.Packages[path]
		switch {
		case p.Result == Unfinished:
			add("%s: the stream broke off before the package was finished", short(path))
		case p.Result == Failed && !run.blames(path):
			add("%s failed outside of its tests (build, TestMain, a panic or exit)", short(path))
		}
	}
	for _, key := range run.keys() {
		t := run.Tests[key]
		switch {
		case t.Result == Failed && !run.anyBelow(key, isBad):
			add("%s failed", key)
		case t.Result == Unfinished && !run.anyBelow(key, isBad):
			add("%s did not finish: its process ended (a panic, or the timeout)", key)
		case t.Result == Skipped:
			add("%s was skipped without acctest.Unavailable", key)
		case acceptance && t.Result == Passed && t.Case == "" && isTop(key) && !run.anyBelow(key, isCase):
			add("%s passed without acctest.Case, so it is not known on which core it belongs", key)
		}
	}
	// An exit status says no more than the problems found above, if there are any.
	var status *exec.ExitError
	if run.Err != nil && (len(problems) == 0 || !errors.As(run.Err, &status)) {
		add("go test: %v", run.Err)
	}
	return problems
}

// caseProblems judges on which cores a case ran.
func (r *Report) caseProblems(key Key) []string {
	var problems, ran []string
	for _, run := range r.Cores {
		t := run.Tests[key]
		switch {
		case t != nil && t.executed():
			ran = append(ran, run.Name)
		case t == nil && r.Split == core.SplitAll:
			problems = append(problems, fmt.Sprintf("%s: %s did not run", run.Name, key))
		case t != nil && t.Result == Elsewhere && r.Split == core.SplitAll:
			problems = append(problems, fmt.Sprintf("%s: %s was left to %s, though every core is to run it", run.Name, key, t.Reason))
		}
	}
	if len(ran) == 0 && len(problems) == 0 && !r.waitsForCore(key) {
		problems = append(problems, fmt.Sprintf("%s ran on no core", key))
	}
	if len(ran) > 1 && r.Split == core.SplitHalf {
		problems = append(problems, fmt.Sprintf("%s ran on %s, though one of them is to run it", key, strings.Join(ran, " and ")))
	}
	return problems
}

// waitsForCore is true if the case can only run on a core that did not take part.
func (r *Report) waitsForCore(key Key) bool {
	if len(r.Cores) == len(core.Names()) {
		return false
	}
	return !slices.ContainsFunc(r.Cores, func(run *Run) bool {
		t := run.Tests[key]
		return t == nil || t.Result != NotForCore
	})
}

// Cases lists every acceptance case that any run knows, sorted.
func (r *Report) Cases() []Key {
	seen := map[Key]bool{}
	for _, run := range r.Cores {
		for key, t := range run.Tests {
			if t.Case != "" {
				seen[key] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), compareKeys)
}

// blames is true if a test explains the failure of its package.
func (r *Run) blames(path string) bool {
	for key, t := range r.Tests {
		if key.Package == path && isBad(t) {
			return true
		}
	}
	return false
}

// anyBelow is true if a subtest of key, at any depth, fulfils the predicate.
func (r *Run) anyBelow(key Key, is func(*Test) bool) bool {
	for other, t := range r.Tests {
		if other.Package == key.Package && strings.HasPrefix(other.Test, key.Test+"/") && is(t) {
			return true
		}
	}
	return false
}

func (r *Run) keys() []Key { return slices.SortedFunc(maps.Keys(r.Tests), compareKeys) }

// executed is true if the case did its work on this core, or found out that the host cannot.
func (t *Test) executed() bool {
	switch t.Result {
	case Passed, Failed, Unavailable, Unfinished, Skipped:
		return true
	case Elsewhere, NotForCore:
		return false
	}
	return false
}

func isBad(t *Test) bool  { return t.Result == Failed || t.Result == Unfinished }
func isCase(t *Test) bool { return t.Case != "" }
func isTop(key Key) bool  { return !strings.Contains(key.Test, "/") }

func compareKeys(a, b Key) int {
	if c := strings.Compare(a.Package, b.Package); c != 0 {
		return c
	}
	return strings.Compare(a.Test, b.Test)
}

// String is the name of a test as the report prints it: "internal/domain TestAccDomain_basic".
func (k Key) String() string { return short(k.Package) + " " + k.Test }

var module = func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path
}()

// short takes the path of this module off an import path.
func short(path string) string {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return rest
	}
	return path
}
