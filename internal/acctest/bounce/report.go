package bounce

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// ReportFile is the environment variable that names the file to which every
// wave appends its part of the report, in Markdown.
const ReportFile = "BOUNCE_REPORT"

var columns = []string{
	"row", "update.allow", "by hand", "planned", "happened", "pid", "domain id", "uptime s", "pending", "second plan",
	"back: planned", "back: happened", "back: pending", "back: second plan", "verdict",
}

// lines are the rows of the report.
func (w *wave) lines() (out [][]string) {
	for _, g := range w.guests {
		for _, round := range g.rounds {
			for _, r := range round.play {
				out = append(out, round.line(r, len(g.row.Steps) > 1))
			}
		}
	}
	for _, r := range w.absent {
		line := make([]string, len(columns))
		line[0], line[len(line)-1] = r.Name, "unavailable: "+r.Unavailable
		out = append(out, line)
	}
	return out
}

// line is one of the report, the last of a row with what became of taking it
// back.
func (rd *round) line(r *Result, several bool) []string {
	name := r.Row
	if several {
		name += " " + r.Step
	}
	line := append([]string{name, string(rd.policy), r.ByHand}, r.cells()...)
	back := []string{"", "", "", ""}
	problems := len(r.Problems)
	if b := rd.back; r.Last && b != nil {
		back = []string{word(b.Planned), word(b.Happened), b.waits(), b.Second}
		problems += len(b.Problems)
	}
	verdict := "ok"
	if problems > 0 || r.Planned == notPlayed {
		verdict = "WRONG"
	}
	return append(append(line, back...), verdict)
}

// cells are what was planned, what happened and what is left.
func (r *Result) cells() []string {
	happened := word(r.Happened)
	if r.Graceful != "" {
		happened += ", " + r.Graceful
	}
	if r.Before == nil || r.After == nil || r.After.Off {
		return []string{word(r.Planned), happened, "", "", "", r.waits(), r.Second}
	}
	b, a := r.Before, r.After
	arrow := func(was, is any) string {
		if was == is {
			return fmt.Sprint(was)
		}
		return fmt.Sprintf("%v → %v", was, is)
	}
	return []string{
		word(r.Planned), happened, arrow(b.Machine.PID, a.Machine.PID), arrow(b.Machine.ID, a.Machine.ID),
		fmt.Sprintf("%.1f → %.1f", b.Report.Uptime, a.Report.Uptime), r.waits(), r.Second,
	}
}

// waits is what status lists.
func (r *Result) waits() string {
	if r.Status == nil || r.Status.Status == nil {
		return ""
	}
	out := strings.Join(r.Status.Status.Pending, " ")
	for _, h := range r.Status.Status.Held {
		out += " held:" + h.Path
	}
	if out == "" {
		return "none"
	}
	return strings.TrimSpace(out)
}

// report writes the table into the test's log and into the file of ReportFile,
// and fails the test for every row that is wrong.
func (w *wave) report() {
	w.t.Helper()
	w.mark("done")
	lines := w.lines()
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(columns, "\t"))
	for _, line := range lines {
		fmt.Fprintln(tw, strings.Join(line, "\t"))
	}
	tw.Flush()
	w.t.Logf("%s, %.0f s\n%s", w.title, time.Since(w.began).Seconds(), b.String())
	var problems []string
	for _, g := range w.guests {
		for _, round := range g.rounds {
			for _, r := range append(round.play[:len(round.play):len(round.play)], round.back) {
				if r == nil {
					continue
				}
				for _, p := range r.Problems {
					problems = append(problems, fmt.Sprintf("row %s, allow %s, step %s: %s", r.Row, round.policy, r.Step, p))
				}
			}
		}
	}
	for _, p := range problems {
		w.t.Error(p)
	}
	if file := os.Getenv(ReportFile); file != "" {
		if err := appendTo(file, markdown(w.title, lines, problems)); err != nil {
			w.t.Error(err)
		}
	}
}

func markdown(title string, lines [][]string, problems []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", title)
	row := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", "\\|")
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	row(append([]string(nil), columns...))
	fmt.Fprintf(&b, "|%s\n", strings.Repeat(" --- |", len(columns)))
	for _, line := range lines {
		row(append([]string(nil), line...))
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "\n- %s", strings.Join(strings.Fields(p), " "))
	}
	return strings.TrimRight(b.String(), "\n") + "\n\n"
}

// appendTo adds a text to a file in one piece: other processes do so too.
func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close()
		return fmt.Errorf("write the report: %w", err)
	}
	return f.Close()
}
