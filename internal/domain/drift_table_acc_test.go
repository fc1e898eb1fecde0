package domain_test

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

// The table of drift: what somebody does behind the provider's back, and what
// becomes of it. A row is one action; its expectations are all that follows
// from it. Rows may share a machine: what is expected of the machine is then
// the sum of its rows, and nothing else may be seen. One configuration holds
// the machines of a group, so that a group costs five runs of the core: make
// the machines, see that nothing is to be done, see the drift, apply, see that
// nothing is to be done again.

// row is one out-of-band action.
type row struct {
	on   string // the machine
	does string // what somebody does to it
	act  action
	// What a refresh sees.
	sees    map[string]string // attributes of the state
	held    []hold            // of status.held
	pending []string          // of status.pending
	foreign []string          // of status.foreign
	boot    []string          // parts of the sentences of status.boot_problems
	// What the plan says: change.fields (none: an empty plan), and the parts of
	// its warnings beside those of the holds.
	fields []string
	warns  []string
	// What is true after the apply. A text must be in the XML, one that begins
	// with "!" must not.
	definition, guest []string
	waits             []string          // of status.pending then
	then              map[string]string // attributes of the state then
	// restarted says that the guest is another one after the action or the apply;
	// otherwise a guest that ran is untouched.
	restarted bool
}

// hold is one entry of status.held, and what the warning of the plan says.
type hold struct {
	path, tier, desired, actual string
	line                        string // to be pasted into the configuration; "" for drift of the guest alone
}

// action is what a row does to a machine.
type action func(t testing.TB, name string)

// virsh is an action: commands in which $ stands for the machine, and ” for
// an empty word.
func virsh(commands ...string) action {
	return func(t testing.TB, name string) {
		t.Helper()
		for _, c := range commands {
			args := strings.Fields(c)
			for i := range args {
				args[i] = strings.ReplaceAll(strings.ReplaceAll(args[i], "$", name), "''", "")
			}
			lab.Virsh(t, args...)
		}
	}
}

// edit is an action: what `virsh edit` does, with pairs of what is replaced
// and by what.
func edit(pairs ...string) action {
	return func(t testing.TB, name string) {
		t.Helper()
		xml := lab.Virsh(t, "dumpxml", "--inactive", "--security-info", name)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(xml, pairs[i]) {
				t.Fatalf("edit %s: no %q in\n%s", name, pairs[i], xml)
			}
			xml = strings.Replace(xml, pairs[i], pairs[i+1], 1)
		}
		lab.Virsh(t, "define", definition(t, xml))
	}
}

// definition writes XML into a file.
func definition(t testing.TB, xml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "domain.xml")
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// group are machines of one configuration, and what is done to them.
type group struct {
	machines []machine
	rows     []row
	adapt    func(block string) string // of the configuration, if not nil
}

// block is the resource of a machine, with its name as the label.
func (m machine) block(t testing.TB) string {
	t.Helper()
	_, block, found := strings.Cut(m.config(t), `resource "libvirt_domain" "it"`)
	if !found {
		t.Fatal("the configuration of a machine has no resource")
	}
	return fmt.Sprintf("resource \"libvirt_domain\" %q%s", m.name, block)
}

// project writes a configuration of some machines and returns the core's
// directory for it. Whatever the case leaves on the host goes at its end.
func project(t *testing.T, c core.Core, body string, env ...string) *lab.Project {
	t.Helper()
	dir := t.TempDir()
	p := lab.NewProject(t, c, dir, append([]string{"LIBVIRT_PROTECT=false"}, env...)...)
	configure(t, p, body)
	return p
}

// configure writes the configuration of a project.
func configure(t testing.TB, p *lab.Project, body string, provider ...string) {
	t.Helper()
	config := strings.Replace(lab.Config(t, body, provider...), lab.Source(), "driftsafe/libvirt", 1)
	if err := os.WriteFile(filepath.Join(p.Dir(), "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// forget removes machines at the end of a case.
func forget(t *testing.T, names ...string) {
	t.Helper()
	t.Cleanup(func() { scrap(t, names...) })
}

// scrap removes machines, those of them that are there.
func scrap(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if power := lab.Virsh(t, "list", "--all", "--name"); !slices.Contains(strings.Fields(power), name) {
			continue
		}
		if strings.TrimSpace(lab.Virsh(t, "domstate", name)) != "shut off" {
			lab.Virsh(t, "destroy", name)
		}
		if slices.Contains(strings.Fields(lab.Virsh(t, "list", "--all", "--name")), name) {
			lab.Virsh(t, "undefine", name, "--managed-save", "--keep-nvram")
		}
	}
}

// told is what a plan says, of all machines.
type told struct {
	Prior struct {
		Values struct {
			Root struct {
				Resources []resourceState `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	} `json:"prior_state"`
	Changes []struct {
		Address string `json:"address"`
		Change  struct {
			Actions       []string `json:"actions"`
			Before, After map[string]any
			Unknown       map[string]any `json:"after_unknown"`
		} `json:"change"`
	} `json:"resource_changes"`
	warnings []diagnostic
}

type resourceState struct {
	Address string         `json:"address"`
	Values  map[string]any `json:"values"`
}

type diagnostic struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
}

// tell makes a plan and reads it as a machine does; it is saved as "plan".
func tell(t testing.TB, p *lab.Project, args ...string) (s told) {
	t.Helper()
	out := p.Must(0, append([]string{"plan", "-json", "-out=plan"}, args...)...)
	for _, line := range strings.Split(out, "\n") {
		var event struct {
			Type       string     `json:"type"`
			Diagnostic diagnostic `json:"diagnostic"`
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Type == "diagnostic" {
			s.warnings = append(s.warnings, event.Diagnostic)
		}
	}
	if err := json.Unmarshal([]byte(p.Must(0, "show", "-json", "plan")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// state are the attributes of a machine after the refresh of a plan.
func (s told) state(name string) map[string]any {
	for _, r := range s.Prior.Values.Root.Resources {
		if r.Address == "libvirt_domain."+name {
			return r.Values
		}
	}
	return nil
}

// change is what the plan does to a machine: the core's action, and the
// attribute that says it to a machine.
func (s told) change(name string) (action string, change map[string]any) {
	for _, c := range s.Changes {
		if c.Address == "libvirt_domain."+name {
			change, _ = c.Change.After["change"].(map[string]any)
			return strings.Join(c.Change.Actions, "+"), change
		}
	}
	return "none", nil
}

// about are the warnings that name a machine in their summary.
func (s told) about(name string) (out []string) {
	for _, w := range s.warnings {
		if strings.Contains(w.Summary, fmt.Sprintf("%q", name)) {
			out = append(out, w.Summary+"\n"+w.Detail)
		}
	}
	return out
}

// at reads an attribute by its path: "devices.disks.0.target.dev".
func at(values any, path string) any {
	for _, part := range strings.Split(path, ".") {
		switch v := values.(type) {
		case map[string]any:
			values = v[part]
		case []any:
			i := 0
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				return nil
			}
			values = v[i]
		default:
			return nil
		}
	}
	return values
}

// words reads a list of texts.
func words(values any, path string) []string {
	list, _ := at(values, path).([]any)
	out := []string{}
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	slices.Sort(out)
	return out
}

// run does everything at once: the machines, the actions, the plan, the apply,
// the plan after it. It returns the project, with the drift as it is then.
func (g group) run(t *testing.T, c core.Core) *lab.Project {
	t.Helper()
	body := ""
	for _, m := range g.machines {
		body += m.block(t)
	}
	if g.adapt != nil {
		body = g.adapt(body)
	}
	p := project(t, c, body)
	for _, m := range g.machines {
		forget(t, m.name, m.name+"-by-hand")
	}
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	guests := map[string]*lab.Guest{}
	for _, m := range g.machines {
		if !m.off {
			guests[m.name] = lab.Observe(t, m.name)
		}
	}
	for _, r := range g.rows {
		r.act(t, r.on)
	}
	names := g.names()
	before := definitions(t, names)
	seen := tell(t, p)
	for name, xml := range definitions(t, names) {
		if xml != before[name] {
			t.Errorf("%s: a plan changed the definition from\n%s\nto\n%s", name, before[name], xml)
		}
	}
	for i := range g.machines {
		g.sum(i).checkPlan(t, seen)
	}
	p.Must(0, "apply", "plan")
	after := tell(t, p)
	now := definitions(t, names)
	for i := range g.machines {
		r := g.sum(i)
		if len(r.fields) == 0 && now[r.on] != before[r.on] {
			t.Errorf("%s: an apply of nothing changed the definition from\n%s\nto\n%s", r.on, before[r.on], now[r.on])
		}
		r.checkHost(t, now[r.on])
		r.checkAfter(t, after)
		if guests[r.on] != nil && !r.restarted {
			guests[r.on].Untouched(t, r.on)
		}
	}
	for _, r := range g.rows {
		t.Logf("%-14s %s: %s", r.on, r.does, r.verdict())
	}
	return p
}

// names are what the machines are called after the actions.
func (g group) names() []string {
	var names []string
	for i := range g.machines {
		names = append(names, g.sum(i).called())
	}
	return names
}

// sum is what all rows of a machine expect together.
func (g group) sum(i int) row {
	all := row{on: g.machines[i].name, sees: map[string]string{}, then: map[string]string{}}
	for _, r := range g.rows {
		if r.on != all.on {
			continue
		}
		all.held = append(all.held, r.held...)
		for list, more := range map[*[]string][]string{
			&all.pending: r.pending, &all.foreign: r.foreign, &all.fields: r.fields, &all.warns: r.warns,
			&all.definition: r.definition, &all.guest: r.guest, &all.waits: r.waits, &all.boot: r.boot,
		} {
			*list = append(*list, more...)
			slices.Sort(*list)
		}
		for k, v := range r.sees {
			all.sees[k] = v
		}
		for k, v := range r.then {
			all.then[k] = v
		}
		all.restarted = all.restarted || r.restarted
	}
	return all
}

// called is the name that the machine has on the host after the actions.
func (r row) called() string {
	if name := r.sees["name"]; name != "" {
		return name
	}
	return r.on
}

// verdict is the line of a report.
func (r row) verdict() string {
	switch {
	case len(r.held) > 0:
		return "held, " + r.held[0].tier
	case len(r.fields) > 0:
		return "put back: " + strings.Join(r.fields, ", ")
	case len(r.foreign) > 0:
		return "foreign: " + strings.Join(r.foreign, ", ")
	case len(r.pending) > 0:
		return "waits: " + strings.Join(r.pending, ", ")
	case len(r.boot) > 0:
		return "a boot problem"
	}
	return "nothing to do"
}

// word is what status.state is, unless a row says otherwise.
func word(held []hold, pending []string) string {
	switch {
	case len(held) > 0:
		return "held"
	case len(pending) > 0:
		return "pending"
	}
	return "settled"
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// same fails the test unless a list of the state is as expected.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// checkStatus holds the state after a refresh against the row.
func (r row) checkStatus(t testing.TB, when string, state map[string]any, pending []string, more map[string]string) {
	t.Helper()
	want := map[string]string{"status.state": word(r.held, pending)}
	for k, v := range more {
		want[k] = v
	}
	for path, v := range want {
		if got := fmt.Sprint(at(state, path)); got != v {
			t.Errorf("%s: %s %s is %s, want %s", r.on, when, path, got, v)
		}
	}
	same(t, r.on+": "+when+" status.pending", words(state, "status.pending"), pending)
	same(t, r.on+": "+when+" status.foreign", words(state, "status.foreign"), r.foreign)
	problems := strings.Join(words(state, "status.boot_problems"), "\n")
	if len(words(state, "status.boot_problems")) != len(r.boot) || !containsAll(problems, r.boot) {
		t.Errorf("%s: %s status.boot_problems: %q, want %q", r.on, when, problems, r.boot)
	}
	var got, held []string
	for i := range words(state, "status.held") {
		h := at(state, fmt.Sprintf("status.held.%d", i))
		got = append(got, fmt.Sprintf("%v is %v, not %v: %v", at(h, "path"), at(h, "actual"), at(h, "desired"), at(h, "tier")))
	}
	for _, h := range r.held {
		held = append(held, fmt.Sprintf("%s is %s, not %s: %s", h.path, h.actual, h.desired, h.tier))
	}
	slices.Sort(got)
	same(t, r.on+": "+when+" status.held", got, held)
}

// checkPlan holds a plan against the row.
func (r row) checkPlan(t testing.TB, seen told) {
	t.Helper()
	state := seen.state(r.on)
	r.checkStatus(t, "refreshed,", state, r.pending, r.sees)
	action, change := seen.change(r.on)
	want, effect := "no-op", 0
	if len(r.fields) > 0 {
		want = "update"
		same(t, r.on+": change.fields", words(change, "fields"), r.fields)
	}
	if action != want {
		t.Errorf("%s: the plan is %s, want %s; %v", r.on, action, want, change)
	}
	effects := []string{"none", "live", "next_boot", "restart", "shutdown"}
	for _, f := range r.fields {
		effect = max(effect, slices.Index(effects, f[strings.LastIndexByte(f, ' ')+1:]))
	}
	if got := at(change, "effect"); len(r.fields) > 0 && got != effects[effect] {
		t.Errorf("%s: change.effect is %v, want %s", r.on, got, effects[effect])
	}
	r.checkWarnings(t, seen, state)
}

// checkWarnings: a machine on which nothing is held and nothing is missing has
// none; a hold has its values, its way out, and the digest of the state.
func (r row) checkWarnings(t testing.TB, seen told, state map[string]any) {
	t.Helper()
	warnings := seen.about(r.on)
	if name := r.called(); name != r.on {
		warnings = append(warnings, seen.about(name)...)
	}
	text := strings.Join(warnings, "\n")
	if len(r.held)+len(r.warns) == 0 && text != "" {
		t.Errorf("%s: a warning about nothing: %s", r.on, text)
	}
	var want []string
	for _, h := range r.held {
		want = append(want, h.path+" is "+h.actual, "the configuration has "+h.desired)
		if h.line != "" {
			want = append(want, "write `"+h.line+"` into the configuration")
		}
	}
	for i := range words(state, "status.held") {
		if digest := at(state, fmt.Sprintf("status.held.%d.approve", i)); digest != nil {
			want = append(want, fmt.Sprintf("update = { approve = [%q] } or LIBVIRT_APPROVE=%s", digest, digest))
		}
	}
	for _, part := range append(want, r.warns...) {
		if !strings.Contains(text, part) {
			t.Errorf("%s: no warning says %q: %s", r.on, part, text)
		}
	}
}

// checkHost looks at the XML after the apply.
func (r row) checkHost(t testing.TB, definition string) {
	t.Helper()
	r.checkXML(t, "definition", definition, r.definition)
	if len(r.guest) > 0 {
		r.checkXML(t, "guest", lab.Virsh(t, "dumpxml", "--security-info", r.called()), r.guest)
	}
}

func (r row) checkXML(t testing.TB, what, xml string, parts []string) {
	t.Helper()
	for _, part := range parts {
		text, no := strings.CutPrefix(part, "!")
		if strings.Contains(xml, text) == no {
			t.Errorf("%s: the %s after the apply: want %q in\n%s", r.on, what, part, xml)
		}
	}
}

// checkAfter holds the plan after the apply against the row: it is empty.
func (r row) checkAfter(t testing.TB, after told) {
	t.Helper()
	if action, change := after.change(r.on); action != "no-op" {
		t.Errorf("%s: the plan after the apply is %s: %v", r.on, action, change)
	}
	r.checkStatus(t, "after the apply,", after.state(r.on), r.waits, r.then)
}

// definitions are those of some machines, as they are now.
func definitions(t testing.TB, names []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range names {
		out[name] = lab.Virsh(t, "dumpxml", "--inactive", "--security-info", name)
	}
	return out
}

// series are rows one after another on machines that a project has made, none
// of which the plan has an answer to: the state sees it, nothing is changed.
type series []row

func (s series) run(t *testing.T, p *lab.Project) {
	t.Helper()
	for _, r := range s {
		r.act(t, r.on)
		xml := lab.Virsh(t, "dumpxml", "--inactive", "--security-info", r.on)
		power := lab.Virsh(t, "domstate", r.on)
		r.checkPlan(t, tell(t, p))
		p.Must(0, "apply", "plan")
		if now := lab.Virsh(t, "dumpxml", "--inactive", "--security-info", r.on); now != xml {
			t.Errorf("%s: after %s, an apply of nothing changed the definition from\n%s\nto\n%s", r.on, r.does, xml, now)
		}
		if now := lab.Virsh(t, "domstate", r.on); now != power {
			t.Errorf("%s: after %s, an apply of nothing left it %s", r.on, r.does, now)
		}
		t.Logf("%-14s %s: %s", r.on, r.does, r.verdict())
	}
}
