package bounce

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// client runs the core on the configuration of a wave.
type client struct {
	t       testing.TB
	project *lab.Project
}

func newClient(t testing.TB, c core.Core) *client {
	return &client{t, lab.NewProject(t, c, t.TempDir())}
}

func (c *client) write(config string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.project.Dir(), "main.tf"), []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// message is an error or a warning of the core.
type message struct {
	Severity string
	Summary  string
	Detail   string
	Address  string
}

func (m message) String() string {
	return m.Summary + ": " + strings.Join(strings.Fields(m.Detail), " ")
}

// plan is one that was made.
type plan struct {
	file     string
	code     int // 0: no changes, 1: error, 2: changes
	output   string
	messages []message
	changes  map[string]change // by address
	drift    map[string]change // what the refresh before it saw otherwise than state had it, by address
}

// change is what a plan has for a resource. Before is what a refresh saw.
type change struct {
	Address string
	Change  struct {
		Actions []string
		Before  *values
		After   *values
	}
}

// values are the attributes of a domain that the matrix looks at.
type values struct {
	ID     *int64
	Change *struct {
		Outcome, Effect string
		Fields          []string
	}
	Status *struct {
		State              string
		Settled            bool
		Generation         int64
		ObservedGeneration int64 `json:"observed_generation"`
		Pending            []string
		Held               []struct{ Path string }
	}
}

func (c change) nothing() bool { return slices.Equal(c.Change.Actions, []string{"no-op"}) }

// effect is the plan's word, "" if it does nothing, and the actions if they are
// not those of an update.
func (c change) effect() string {
	switch {
	case c.nothing():
		return ""
	case !slices.Equal(c.Change.Actions, []string{"update"}):
		return strings.Join(c.Change.Actions, "+")
	case c.Change.After == nil || c.Change.After.Change == nil:
		return "unknown"
	}
	return c.Change.After.Change.Effect
}

func (c *client) plan(targets ...string) *plan {
	c.t.Helper()
	p := &plan{file: "saved.plan", changes: map[string]change{}, drift: map[string]change{}}
	args := []string{"plan", "-json", "-input=false", "-detailed-exitcode", "-out=" + p.file}
	for _, t := range targets {
		args = append(args, "-target="+t)
	}
	p.output, p.code = c.project.Run(args...)
	p.messages = messages(p.output)
	if p.code == 1 {
		return p
	}
	out := c.project.Must(0, "show", "-json", p.file)
	if err := p.read(out); err != nil {
		c.t.Fatalf("read the plan: %v\n%s", err, out)
	}
	return p
}

// read takes in what show -json prints.
func (p *plan) read(out string) error {
	_, text, _ := strings.Cut("\n"+out, "\n{")
	var doc struct {
		ResourceChanges []change `json:"resource_changes"`
		ResourceDrift   []change `json:"resource_drift"`
	}
	if err := json.Unmarshal([]byte("{"+text), &doc); err != nil {
		return err
	}
	for _, rc := range doc.ResourceChanges {
		p.changes[rc.Address] = rc
	}
	for _, rc := range doc.ResourceDrift {
		p.drift[rc.Address] = rc
	}
	return nil
}

// text is the plan as people read it.
func (c *client) text(p *plan) string {
	if p.code == 1 {
		return said(p.messages, "error")
	}
	out, _ := c.project.Run("show", p.file)
	return out
}

// apply applies a plan and returns the errors.
func (c *client) apply(p *plan) (errors []message) {
	c.t.Helper()
	out, code := c.project.Run("apply", "-json", "-input=false", p.file)
	all := messages(out)
	if code != 0 {
		errors = of(all, "error")
		if len(errors) == 0 {
			c.t.Fatalf("apply: exit code %d\n%s", code, out)
		}
	}
	return errors
}

// forget takes a domain out of the state.
func (c *client) forget(address string) {
	c.t.Helper()
	c.project.Must(0, "state", "rm", address)
}

// messages reads the lines that a core prints with -json.
func messages(out string) (all []message) {
	for _, line := range strings.Split(out, "\n") {
		var event struct {
			Diagnostic *message
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Diagnostic != nil {
			all = append(all, *event.Diagnostic)
		}
	}
	return all
}

func of(all []message, severity string) (out []message) {
	for _, m := range all {
		if m.Severity == severity {
			out = append(out, m)
		}
	}
	return out
}

// about filters messages by what they are about.
func about(all []message, address string) (out []message) {
	for _, m := range all {
		if m.Address == address {
			out = append(out, m)
		}
	}
	return out
}

func said(all []message, severity string) string {
	var lines []string
	for _, m := range of(all, severity) {
		lines = append(lines, fmt.Sprintf("%s %s: %s", severity, m.Address, m))
	}
	return strings.Join(lines, "\n")
}
