package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// report holds all figures of a run.
type report struct {
	BinaryMiB float64
	Schemas   []row
	Applies   []row
	Plans     []row
	Bare      []bareRow
	Missing   []string
}

type row struct {
	Core, Subject string
	Machines      int
	Runs          []figures
}

type bareRow struct {
	Core     string
	Machines int
	Runs     []time.Duration
}

// bound is how much slower than the floor a plan may be, bare host calls
// aside.
const bound = 1.3

func (r *report) print(w io.Writer) {
	for _, m := range r.Missing {
		fmt.Fprintf(w, "not measured: %s\n", m)
	}
	fmt.Fprintf(w, "binary: %.1f MiB, stripped\n", r.BinaryMiB)
	for _, s := range r.Schemas {
		f := s.median()
		fmt.Fprintf(w, "schema by %s: %s wall, %s of the provider's CPU, %d MiB of its memory\n", s.Core, seconds(f.Wall), seconds(f.Provide.CPU), f.Provide.MaxRSS>>10)
	}
	head := "\n%-10s %5s  %-14s %8s %17s %9s %9s %10s %10s\n"
	line := "%-10s %5d  %-14s %8s %8s-%8s %9s %9s %6d MiB %6d MiB\n"
	for _, part := range []struct {
		title string
		rows  []row
	}{{"plans that change nothing (medians)", r.Plans}, {"the applies that made the machines (one run)", r.Applies}} {
		fmt.Fprintf(w, "\n%s", part.title)
		fmt.Fprintf(w, head, "core", "n", "subject", "wall", "min-max", "core CPU", "prov. CPU", "core mem.", "prov. mem.")
		for _, p := range part.rows {
			f := p.median()
			low, high := p.spread()
			fmt.Fprintf(w, line, p.Core, p.Machines, p.Subject, seconds(f.Wall), seconds(low), seconds(high), seconds(f.Core.CPU), seconds(f.Provide.CPU), f.Core.MaxRSS>>10, f.Provide.MaxRSS>>10)
		}
	}
	fmt.Fprintf(w, "\nbound: the provider's plan ≤ %.1f × echo's + bare host calls\n", bound)
	for _, b := range r.Bare {
		slices.Sort(b.Runs)
		bare := b.Runs[len(b.Runs)/2]
		mine, echo := r.plan(b.Core, ours, b.Machines), r.plan(b.Core, floor, b.Machines)
		limit := time.Duration(bound*float64(echo)) + bare
		verdict := "kept"
		if mine > limit {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%-10s %5d  %s ≤ %.1f × %s + %s = %s: %s\n", b.Core, b.Machines, seconds(mine), bound, seconds(echo), seconds(bare), seconds(limit), verdict)
	}
}

// plan returns the median wall time of a plan.
func (r *report) plan(core, subject string, n int) time.Duration {
	for _, p := range r.Plans {
		if p.Core == core && p.Subject == subject && p.Machines == n {
			return p.median().Wall
		}
	}
	return 0
}

// median takes the median of each figure by itself.
func (r row) median() figures {
	middle := func(get func(figures) int64) int64 {
		values := make([]int64, len(r.Runs))
		for i, f := range r.Runs {
			values[i] = get(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		Wall:    time.Duration(middle(func(f figures) int64 { return int64(f.Wall) })),
		Core:    usage{time.Duration(middle(func(f figures) int64 { return int64(f.Core.CPU) })), middle(func(f figures) int64 { return f.Core.MaxRSS })},
		Provide: usage{time.Duration(middle(func(f figures) int64 { return int64(f.Provide.CPU) })), middle(func(f figures) int64 { return f.Provide.MaxRSS })},
	}
}

func (r row) spread() (low, high time.Duration) {
	low = r.Runs[0].Wall
	for _, f := range r.Runs {
		low, high = min(low, f.Wall), max(high, f.Wall)
	}
	return low, high
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
