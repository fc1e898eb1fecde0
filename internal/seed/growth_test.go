package seed

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What somebody gives us must not keep a plan busy: what a check takes grows with
// the text, whatever is in there. The tests count memory, which is the same on
// every machine; the benchmarks show the time.

// hostile are texts of about n bytes that are much work for a careless check, and
// who checks them.
func hostile(n int) map[string]struct {
	text   string
	checks []func(string) []Finding
} {
	cloud := []func(string) []Finding{
		func(text string) []Finding { return CheckUserData("#cloud-config\n" + text) }, CheckUserData, CheckMetaData, CheckNetworkConfig,
	}
	others := []func(string) []Finding{CheckIgnition, CheckCombustion}
	type input = struct {
		text   string
		checks []func(string) []Finding
	}
	return map[string]input{
		"brackets":   {strings.Repeat("[", n), cloud},
		"one line":   {"a: [" + strings.Repeat("b,\t", n/3) + "]", cloud},
		"anchors":    {"a: &a [x]\nb: [" + strings.Repeat("*a,", n/3) + "]", cloud},
		"keys":       {strings.Repeat("a: 1\n", n/5), cloud},
		"dashes":     {strings.Repeat("- ", n), cloud},
		"indent":     {strings.Repeat(" ", n) + "a", cloud},
		"question":   {strings.Repeat("? ", n), cloud},
		"quotes":     {"a: \"" + strings.Repeat("\\n", n/2), cloud},
		"documents":  {strings.Repeat("---\n", n/4), cloud},
		"plain":      {"a: " + strings.Repeat("b ", n/2), cloud},
		"long lines": {strings.Repeat("a\n", n/2), cloud},
		"comments":   {strings.Repeat("#\n", n/2), cloud},
		"merges":     {"a0: &a0 {b: 1}\n" + strings.Join(merges(n>>13), "") + fmt.Sprintf("<<: *a%d\n", n>>13), cloud},
		"mime":       {multi(strings.Repeat("--MIMEBOUNDARY\r\n\r\n#!\r\n", n/24)), cloud},

		"JSON of brackets": {strings.Repeat("[", n), others},
		"nested":           {strings.Repeat("[", n/30) + strings.Repeat("]", n/30), others},
		"JSON of keys":     {`{"ignition":{"version":"3.4.0"}` + strings.Repeat(`,"a":1`, n/6) + "}", others},
		"markers":          {"#!/bin/sh\n" + strings.Repeat("#combustion:\n", n/13), others},
		"a long marker":    {strings.Repeat("# combustion:", n/13), others},
		"spaces":           {strings.Repeat(" ", n) + "{}", others},
	}
}

// merges are mappings each of which merges the one before it a hundred times.
func merges(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 100)))
	}
	return lines
}

// taken is how many bytes of memory a call asks for in all, also those that it
// gives back.
func taken(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestChecksGrowWithTheText(t *testing.T) {
	const small, times = 64 << 10, 4
	large := hostile(times * small)
	for name, in := range hostile(small) {
		for i, check := range in.checks {
			few, much := taken(func() { check(in.text) }), taken(func() { check(large[name].text) })
			if much > 2*times*few+1<<20 {
				t.Errorf("%s, check %d: %d bytes of memory for %d KiB, %d for %d times as much", name, i, few, small>>10, much, times)
			}
		}
	}
}

func BenchmarkChecks(b *testing.B) {
	const n = 256 << 10
	for name, in := range hostile(n) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in.text)))
			for b.Loop() {
				for _, check := range in.checks {
					check(in.text)
				}
			}
		})
	}
}
