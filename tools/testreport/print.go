package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

const slowest = 5 // how many of the slowest cases the summary names

// Print writes the whole report: the output of what failed, the product of cases and cores if
// every core ran every case, the summary, and the problems.
func (r *Report) Print(w io.Writer) {
	problems := r.Problems()
	for _, run := range r.runs() {
		printFailures(w, run)
	}
	if r.Split == core.SplitAll && len(r.Cores) > 0 {
		r.printProduct(w)
	}
	r.printSummary(w)
	r.printLists(w)
	if len(problems) == 0 {
		fmt.Fprintf(w, "\nresult: ok, in %s\n", seconds(r.Elapsed))
		return
	}
	fmt.Fprintf(w, "\nproblems:\n")
	for _, problem := range problems {
		fmt.Fprintf(w, "  %s\n", problem)
	}
	fmt.Fprintf(w, "\nresult: FAILED, %s, in %s\n", count(len(problems), "problem"), seconds(r.Elapsed))
}

// printFailures writes everything that can explain a failure of this run, in full.
func printFailures(w io.Writer, run *Run) {
	section := func(title, text string) {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(w, "\n---- %s: %s\n%s\n", run.Name, title, strings.TrimRight(text, "\n"))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(run.Builds)) {
		section("build of "+short(path), run.Builds[path].String())
	}
	for _, key := range run.keys() {
		t := run.Tests[key]
		if isBad(t) || t.Result == Skipped {
			section(fmt.Sprintf("%s (%s)", key, t.Result), t.Output.String())
		}
	}
	for _, path := range slices.Sorted(maps.Keys(run.Packages)) {
		if p := run.Packages[path]; p.Result == Failed || p.Result == Unfinished {
			section("package "+short(path), p.Output.String())
		}
	}
	if run.Err != nil {
		section("go test: "+run.Err.Error(), run.Stderr.String()+run.Noise.String())
	}
}

// printProduct writes the table case × core.
func (r *Report) printProduct(w io.Writer) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "case")
	for _, run := range r.Cores {
		fmt.Fprintf(table, "\t%s", run.title())
	}
	fmt.Fprintln(table, "\twhat it shows")
	for _, key := range r.Cases() {
		fmt.Fprint(table, key)
		what := ""
		for _, run := range r.Cores {
			cell := "did not run"
			if t := run.Tests[key]; t != nil {
				what = t.Case
				cell = string(t.Result)
				if t.Result == Passed || t.Result == Failed {
					cell += " " + seconds(t.Elapsed)
				}
			}
			fmt.Fprintf(table, "\t%s", cell)
		}
		fmt.Fprintf(table, "\t%s\n", what)
	}
	table.Flush()
}

// tally counts the cases of a run by result.
func (r *Run) tally() map[Result]int {
	counts := map[Result]int{}
	for _, t := range r.Tests {
		if t.Case != "" {
			counts[t.Result]++
		}
	}
	return counts
}

func (r *Report) printSummary(w io.Writer) {
	fmt.Fprintln(w)
	if r.Unit != nil {
		printUnit(w, r.Unit)
	}
	if len(r.Cores) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "core\tpassed\tfailed\tunavailable\tnot for core\tleft to other\ttime\t")
	for _, run := range r.Cores {
		n := run.tally()
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t\n", run.title(),
			n[Passed], n[Failed]+n[Unfinished]+n[Skipped], n[Unavailable], n[NotForCore], n[Elsewhere], seconds(run.Elapsed))
	}
	table.Flush()
	fmt.Fprintf(w, "%s in all, %s\n", count(len(r.Cases()), "acceptance case"), r.mode())
}

func (r *Report) mode() string {
	switch {
	case r.Split == core.SplitAll:
		return "each on every core"
	case len(r.Cores) == 1:
		return "each once, on the only core"
	default:
		return "each once, the cores alternating"
	}
}

func printUnit(w io.Writer, run *Run) {
	var passed, failed, cached int
	for key, t := range run.Tests {
		switch {
		case !isTop(key):
		case t.Result == Passed:
			passed++
		default:
			failed++
		}
	}
	for _, p := range run.Packages {
		if p.Cached {
			cached++
		}
	}
	fmt.Fprintf(w, "unit tests: %d passed, %d failed, in %s (%d unchanged), %s\n",
		passed, failed, count(len(run.Packages), "package"), cached, seconds(run.Elapsed))
}

// printLists writes what did not run and why, and where the time went.
func (r *Report) printLists(w io.Writer) {
	for _, name := range core.Names() {
		if len(r.Cores) > 0 && !slices.ContainsFunc(r.Cores, func(run *Run) bool { return run.Name == name }) {
			fmt.Fprintf(w, "core %s did not run\n", name)
		}
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(w, "%s:\n", title)
		for _, line := range lines {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	var lacking []string
	var timed []*Test
	for _, run := range r.Cores {
		for _, key := range run.keys() {
			t := run.Tests[key]
			if t.Result == NotForCore {
				lacking = append(lacking, fmt.Sprintf("%s, on %s: %s", key, run.Name, t.Reason))
			}
			if t.Case != "" && (t.Result == Passed || t.Result == Failed) {
				timed = append(timed, t)
			}
		}
	}
	list("unavailable on this host", r.UnavailableLines())
	list("not for this core", lacking)
	slices.SortStableFunc(timed, func(a, b *Test) int { return int(b.Elapsed - a.Elapsed) })
	var slow []string
	for _, t := range timed[:min(slowest, len(timed))] {
		slow = append(slow, fmt.Sprintf("%8s  %s", seconds(t.Elapsed), t.Key))
	}
	list("slowest cases", slow)
}

// title is the name of a run with the version of its core.
func (r *Run) title() string { return strings.TrimSpace(r.Name + " " + r.Version) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds prints a duration as people read it: 0.4s, 12.3s, 4m05s.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}
