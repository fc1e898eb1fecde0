package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// goldenHead explains the golden file to whoever opens it.
const goldenHead = `# The acceptance cases that the test host cannot do, and why. Written by: make test UPDATE=1
# A case that is missing here, or is here and runs, fails the test run.
`

// UnavailableLines lists the cases that this host could not do on some core, one line each:
// package, test, a colon, the reason.
func (r *Report) UnavailableLines() []string {
	var lines []string
	for _, key := range r.Cases() {
		for _, run := range r.Cores {
			if t := run.Tests[key]; t != nil && t.Result == Unavailable {
				lines = append(lines, goldenLine(key, t.Reason))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func goldenLine(key Key, reason string) string { return key.String() + ": " + reason }

// goldenProblems compares the unavailable cases with the golden file, for the cases that were
// asked for.
func (r *Report) goldenProblems() []string {
	if len(r.Cores) == 0 {
		return nil
	}
	var problems []string
	lines := r.UnavailableLines()
	for _, line := range lines {
		if !slices.Contains(r.Golden, line) {
			problems = append(problems, "unavailable, but not in the golden file: "+line)
		}
	}
	seen := map[string]bool{}
	for _, key := range r.Cases() {
		seen[key.String()] = true
	}
	for _, line := range r.Golden {
		name, _, _ := strings.Cut(line, ":")
		if !slices.Contains(lines, line) && (seen[name] || !r.Partial) {
			problems = append(problems, "in the golden file, but not unavailable for this reason: "+line)
		}
	}
	return problems
}

// updatedGolden is the new content: what was seen, and of a partial run also the old lines of
// the cases that were not asked for.
func (r *Report) updatedGolden() []string {
	lines := r.UnavailableLines()
	if !r.Partial {
		return lines
	}
	seen := map[string]bool{}
	for _, key := range r.Cases() {
		seen[key.String()] = true
	}
	for _, line := range r.Golden {
		if name, _, _ := strings.Cut(line, ":"); !seen[name] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// readGolden returns the lines of the file without comments. A missing file has none.
func readGolden(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read golden file: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func writeGolden(path string, lines []string) error {
	content := goldenHead
	for _, line := range lines {
		content += line + "\n"
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write golden file: %w", err)
	}
	return nil
}
