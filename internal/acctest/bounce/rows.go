// Package bounce plays the bounce matrix: rows that change a running guest, each
// under every policy (update.allow), and that hold what the plan says against
// what happened to the machine.
//
// What happened is measured without the provider's word: QEMU's process and its
// start, libvirt's domain id, the guest's own boot id and uptime, and the two XML
// documents that libvirt has of the domain, the running one and the definition.
// From these follows one of the plan's words: none, live, next_boot or restart.
// A row passes only if the plan announced just that, if guest and definition have
// what the row says, if status lists what waits, and if a second plan is empty.
// In the end each row is taken back, and held to the same.
//
// Rows run in waves: one configuration with a guest for each row and policy, so
// that a plan, an apply and a look at the host serve all of them. A guest that a
// step does not concern must come out of it as it was.
package bounce

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// A Policy is a value of update.allow.
type Policy string

// The policies.
const (
	AllowLive     Policy = "live"
	AllowNextBoot Policy = "next_boot"
	AllowRestart  Policy = "restart"
)

// Policies are all, from the narrowest to the widest.
var Policies = []Policy{AllowLive, AllowNextBoot, AllowRestart}

// Fields are attributes of libvirt_domain by their path, with an expression of
// HCL each: "os.type_machine": `"pc"`. A path goes two levels deep at most;
// what lies deeper is part of the expression.
type Fields map[string]string

// Gone as an expression takes the attribute out of the configuration.
const Gone = ""

// Leaves are values in libvirt's XML by their place below <domain>:
// "currentMemory", "vcpu/@current", "devices/rng[2]/@model" (the first has no
// index). Absent as a value says that there is none.
type Leaves map[string]string

// Absent is the value of a leaf that is not in the XML.
const Absent = ""

// Autostart is the place of what is no part of the XML: "enable" or "disable".
const Autostart = "@autostart"

// Row is one line of the matrix.
type Row struct {
	// Name is unique; the guests of the row are called after it.
	Name string
	// Base is what the machine has when the row begins, beside what all have.
	Base  Fields
	Steps []Step
	// Back is what taking everything back does. Unset, it follows from the last
	// step: what waited is gone, what was live or restarted is so again.
	Back Wants
	// Stays are places in the definition that keep what the row put there when it
	// is taken back.
	Stays []string
	// Only are the policies under which the row means anything. Unset: all.
	Only []Policy
	// Unavailable says why this host cannot do the row. It is in the report.
	Unavailable string
}

// Step is an act of somebody on the host, a change of the configuration, or
// both; then a plan and an apply.
type Step struct {
	// Hand are commands of virsh, run before the plan. NAME stands for the domain.
	Hand []string
	// ByHand is what they do to the guest's run.
	ByHand Power
	// Seen is what the running guest's XML has before the plan is made: some acts
	// take time.
	Seen Leaves
	// Change is laid over the configuration.
	Change Fields

	Definition Leaves // what the definition gets, and only it has
	Live       Leaves // what guest and definition have at once
	Boot       Leaves // what the definition has at once, and the guest after its next start

	// Guest asks the running guest itself, where it must have noticed: at once for
	// what is live, else after the restart.
	Guest func(before, now host.Report) bool

	Want Wants

	may []string // leaves that the running guest may change beside those of Live
}

// Power is what an act of somebody does to the run of a guest.
type Power int

// Nothing leaves the guest alone, Reset boots it again in the same QEMU, Cycle
// starts it anew.
const (
	Nothing Power = iota
	Reset
	Cycle
)

// Want is what a step must do under one policy.
type Want struct {
	// Effect as the plan says it; "" if nothing is planned.
	Effect string
	// Fields are the lines of change.fields; nil: not looked at.
	Fields []string
	// Refused are words of the error by which the plan refuses the step. The row
	// ends there, with nothing changed.
	Refused string
	// Pending and Held are the paths in status afterwards.
	Pending, Held []string
}

// Wants has one for each policy.
type Wants map[Policy]Want

// Always wants the same under every policy.
func Always(w Want) Wants {
	return Wants{AllowLive: w, AllowNextBoot: w, AllowRestart: w}
}

// None, Live and Restart are effects that leave nothing to wait for.
var (
	None    = Want{Effect: "none"}
	Live    = Want{Effect: "live"}
	Restart = Want{Effect: "restart"}
)

// Words of the two refusals.
const (
	needsRestart = "cannot be applied without a restart"
	whileRunning = "of the running domain"
)

// Waits wants what the next start brings: pending under next_boot, refused
// under live.
func Waits(pending ...string) Wants {
	return Wants{AllowLive: {Refused: needsRestart}, AllowNextBoot: {Effect: "next_boot", Pending: pending}, AllowRestart: Restart}
}

// Offline wants what can only be done to a machine that is off.
func Offline() Wants {
	return Wants{AllowLive: {Refused: whileRunning}, AllowNextBoot: {Refused: whileRunning}, AllowRestart: Restart}
}

// runs says whether the row means anything under the policy.
func (r *Row) runs(p Policy) bool { return len(r.Only) == 0 || slices.Contains(r.Only, p) }

// wantBack is what taking the row back must do under a policy.
func (r *Row) wantBack(p Policy) Want {
	if r.Back != nil {
		return r.Back[p]
	}
	last := r.Steps[len(r.Steps)-1]
	switch last.Want[p].Effect {
	case "next_boot": // the guest never got what waited
		if len(last.Live) > 0 {
			return Live
		}
		return None
	case "live":
		return Live
	case "restart":
		return Restart
	}
	return None
}

// takenBack is the step that stands for taking the row back: what the guest
// got while it ran, it may lose again.
func (r *Row) takenBack() *Step {
	s := &Step{}
	for _, step := range r.Steps {
		for _, all := range []Leaves{step.Live, step.Seen, step.Boot} {
			s.may = slices.AppendSeq(s.may, maps.Keys(all))
		}
	}
	return s
}

// last says whether a step is where the row ends under a policy.
func (r *Row) last(step int, p Policy) bool {
	return step == len(r.Steps)-1 || r.Steps[step].Want[p].Refused != ""
}

// RowsWanted is the environment variable that chooses rows by a regular
// expression, for whoever works on some of them. Unset: all.
const RowsWanted = "BOUNCE_ROWS"

// chosen are the rows that somebody wants to see.
func chosen(rows []Row, pattern string) ([]Row, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RowsWanted, err)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !re.MatchString(r.Name) }), nil
}

var rowName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Check finds what is wrong with a table.
func Check(rows []Row) error {
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		fail := func(format string, args ...any) error {
			return fmt.Errorf("row %q: %s", r.Name, fmt.Sprintf(format, args...))
		}
		switch {
		case !rowName.MatchString(r.Name):
			return fail("a name has small letters, digits and dashes")
		case seen[r.Name]:
			return fail("there are two")
		case r.Unavailable == "" && len(r.Steps) == 0:
			return fail("it has no steps")
		}
		seen[r.Name] = true
		for _, p := range Policies {
			if !r.runs(p) || r.Unavailable != "" {
				continue
			}
			if err := r.check(p); err != nil {
				return fail("under %s: %v", p, err)
			}
		}
	}
	return nil
}

func (r *Row) check(p Policy) error {
	for i, s := range r.Steps {
		w, ok := s.Want[p]
		switch {
		case !ok:
			return fmt.Errorf("step %d does not say what it wants", i+1)
		case w.Refused != "" && w.Effect != "":
			return fmt.Errorf("step %d is refused, and has the effect %s", i+1, w.Effect)
		case w.Effect != "" && !slices.Contains(effects, w.Effect):
			return fmt.Errorf("step %d has an unknown effect %q", i+1, w.Effect)
		case w.Refused == "" && w.Effect == "" && len(s.Hand) == 0:
			return fmt.Errorf("step %d plans nothing though nothing happened to the host", i+1)
		case (w.Effect == "live" || w.Refused == "" && w.Effect == "next_boot") && len(s.Live)+len(s.Boot) == 0:
			return fmt.Errorf("step %d changes nothing that can be looked for", i+1)
		}
		for name := range s.Change {
			if strings.Count(name, ".") > 1 {
				return fmt.Errorf("step %d: %s is more than two levels deep", i+1, name)
			}
		}
		if w.Refused != "" {
			return nil // the row ends here
		}
	}
	if r.Back != nil { // not reached where a step is refused
		if _, ok := r.Back[p]; !ok {
			return fmt.Errorf("it does not say what taking it back does")
		}
	}
	return nil
}

// effects from the least to the most.
var effects = []string{"none", "live", "next_boot", "restart"}
