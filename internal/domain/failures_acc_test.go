package domain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The table of failures: applies that go wrong on a real host, and all that is
// true after them. A row says what goes wrong and the words in which the apply
// says so; the rest is the same for every row. After the failure the guest runs
// on untouched, its definition is the same byte for byte, and the state is what
// it was and needs no refresh. Then the cause is mended, the next apply does all
// of it, and a plan after that is empty.

// failure is one row.
type failure struct {
	what    string                  // it is that goes wrong
	change  func(m machine) machine // of the configuration that is in force
	prepare action                  // what somebody does on the host before, if not nil
	says    []string                // parts of the error, in this order
	// noticed says that what somebody did shows in status.boot_problems.
	noticed bool
	// restarted says that a restart was under way: the guest is another run of the
	// old definition.
	restarted bool
	// mend is what somebody does on the host before the next apply, and next the
	// configuration of that, made from the one that failed; nil: nothing, and the
	// one that failed.
	mend action
	next func(m machine) machine
	// then is what the state says after the next apply, beside that it is settled.
	then map[string]string
	// defined says of a creation that it leaves a definition: its start failed.
	defined bool
	// interrupt, if not 0, is after how long ^C is pressed for the core.
	interrupt time.Duration
	// also is what else is seen right after the failure.
	also action
}

// failures are rows one after another on one guest. Between two rows the first
// configuration is applied again.
type failures struct {
	on   machine
	rows []failure
}

func (f failures) run(t *testing.T, c core.Core) {
	t.Helper()
	p := project(t, c, f.on.block(t))
	forget(t, f.on.name)
	for _, r := range f.rows {
		configure(t, p, f.on.block(t))
		p.Must(0, "apply", "-auto-approve")
		p.Must(0, "plan", "-detailed-exitcode")
		// The plan of a restart has the number of the run before it, so that the state
		// has the new one only after a refresh.
		p.Must(0, "apply", "-refresh-only", "-auto-approve")
		if !t.Run(r.what, func(t *testing.T) { r.fail(t, p.For(t), f.on) }) {
			return // what the next row would begin with is not known
		}
	}
}

// fail plays a row on the guest of a machine.
func (r failure) fail(t *testing.T, p *lab.Project, m machine) {
	guest := lab.Observe(t, m.name)
	definition, state := definitions(t, []string{m.name})[m.name], stateOf(t, p, m.name)
	m = r.change(m)
	r.attempt(t, p, m)
	if now := definitions(t, []string{m.name})[m.name]; now != definition {
		t.Errorf("the definition was\n%s\nand is\n%s", definition, now)
	}
	after := "untouched"
	if r.restarted {
		if again := lab.Observe(t, m.name); again.Report().BootID == guest.Report().BootID {
			t.Error("the guest was never down, so that this does not show how it comes back")
		}
		after = "runs again with the old definition"
		delete(state.Values, "id")
	} else {
		guest.Untouched(t, m.name)
	}
	if r.also != nil {
		r.also(t, m.name)
	}
	r.compare(t, state, stateOf(t, p, m.name))
	isTrue(t, p)
	r.converge(t, p, m)
	r.report(t, after)
}

// attempt makes the apply that fails.
func (r failure) attempt(t *testing.T, p *lab.Project, m machine) {
	t.Helper()
	if r.prepare != nil {
		r.prepare(t, m.name)
	}
	configure(t, p, m.block(t))
	run := p.Run
	if begin := time.Now(); r.interrupt > 0 {
		run = func(args ...string) (string, int) {
			return p.Interrupt(func() bool { return time.Since(begin) > r.interrupt }, args...)
		}
	}
	out, code := run("apply", "-auto-approve")
	if code != 1 {
		t.Fatalf("the apply ends with the code %d:\n%s", code, out)
	}
	if !lab.Says(r.says...).MatchString(out) {
		t.Errorf("the apply does not say %q:\n%s", r.says, out)
	}
}

// converge mends the cause and applies again.
func (r failure) converge(t *testing.T, p *lab.Project, m machine) {
	t.Helper()
	if r.mend != nil {
		r.mend(t, m.name)
	}
	if r.next != nil {
		configure(t, p, r.next(m).block(t))
	}
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "plan", "-detailed-exitcode")
	want := map[string]string{"status.state": "settled"}
	maps.Copy(want, r.then)
	state := stateOf(t, p, m.name)
	for path, v := range want {
		if got := fmt.Sprint(at(state.Values, path)); got != v {
			t.Errorf("after the next apply %s is %s, want %s", path, got, v)
		}
	}
}

// report prints the line of a row.
func (r failure) report(t testing.TB, after string) {
	t.Helper()
	verdict := "ok"
	if t.Failed() {
		verdict = "WRONG"
	}
	t.Logf("failure | %s | says %q | %s | the next apply converges | %s", r.what, r.says, after, verdict)
}

// compare holds the state after a failure against the one before it: only what
// the apply says of itself may differ.
func (r failure) compare(t testing.TB, before, after domainState) {
	t.Helper()
	if after.Tainted || after.Values == nil {
		t.Errorf("the state after the failure: tainted %v, %v", after.Tainted, after.Values)
		return
	}
	if _, there := before.Values["id"]; !there {
		delete(after.Values, "id")
	}
	for name, was := range before.Values {
		now := after.Values[name]
		if name == "change" {
			continue
		}
		if status, ok := now.(map[string]any); ok && name == "status" {
			status["last_steps"] = at(was, "last_steps")
			if r.noticed {
				if problems, _ := status["boot_problems"].([]any); len(problems) == 0 {
					t.Error("nothing in status.boot_problems")
				}
				status["boot_problems"] = at(was, "boot_problems")
			}
		}
		if !reflect.DeepEqual(was, now) {
			t.Errorf("%s of the state was\n%v\nand is\n%v", name, was, now)
		}
	}
}

// isTrue fails the test if a refresh changes the state. The exit code does not
// tell: to terraform, records that a read renews are a change.
func isTrue(t testing.TB, p *lab.Project) {
	t.Helper()
	if out, code := p.Run("plan", "-refresh-only", "-detailed-exitcode"); code == 1 || !strings.Contains(out, "No changes.") {
		t.Errorf("the state is not what the host says:\n%s", out)
	}
}

// domainState is a machine in a state.
type domainState struct {
	Address string         `json:"address"`
	Tainted bool           `json:"tainted"`
	Values  map[string]any `json:"values"`
}

// stateOf reads a machine from the state of a project, empty if it is not there.
func stateOf(t testing.TB, p *lab.Project, name string) domainState {
	t.Helper()
	var doc struct {
		Values struct {
			Root struct {
				Resources []domainState `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(p.Must(0, "show", "-json")), &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Values.Root.Resources {
		if r.Address == "libvirt_domain."+name {
			return r
		}
	}
	return domainState{}
}

// creations are rows each of which creates a machine that was not there before:
// either nothing is left of it, or a definition that the state has as failed, and
// that the next apply replaces.
type creations struct {
	of   machine
	rows []failure
}

func (f creations) run(t *testing.T, c core.Core) {
	t.Helper()
	p := project(t, c, "")
	forget(t, f.of.name)
	for _, r := range f.rows {
		if !t.Run(r.what, func(t *testing.T) { r.abort(t, p.For(t), f.of) }) {
			return
		}
	}
}

// abort plays a row of a creation.
func (r failure) abort(t *testing.T, p *lab.Project, m machine) {
	m = r.change(m)
	r.attempt(t, p, m)
	state, after := stateOf(t, p, m.name), "nothing is left"
	exists := slices.Contains(strings.Fields(lab.Virsh(t, "list", "--all", "--name")), m.name)
	switch {
	case exists != r.defined:
		t.Fatalf("the domain exists: %v, want %v", exists, r.defined)
	case !r.defined && state.Values != nil:
		t.Errorf("the state has a domain that is not there: %v", state.Values)
	case r.defined:
		after = "defined, off, tainted"
		if power := strings.TrimSpace(lab.Virsh(t, "domstate", m.name)); power != "shut off" || !state.Tainted || at(state.Values, "status.state") != "failed" {
			t.Errorf("the domain is %s, tainted %v, status %v", power, state.Tainted, state.Values["status"])
		}
	}
	isTrue(t, p)
	r.converge(t, p, m)
	if !m.off {
		lab.Observe(t, m.name)
	}
	p.Must(0, "destroy", "-auto-approve")
	r.report(t, after)
}
