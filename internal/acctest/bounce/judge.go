package bounce

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is what one step of a row did under one policy.
type Result struct {
	Row  string
	Step string // "1", "2", …, or "back"
	Last bool   // of the row's own steps

	ByHand   string // what somebody did before
	Planned  string // the plan's effect, "" for nothing, or "refused"
	Fields   []string
	Happened string
	Graceful string // how a guest that was restarted ended
	Before   *Moment
	After    *Moment
	Status   *values // as a refresh sees it afterwards
	Second   string  // the second plan: "empty", or what it has

	Problems []string
}

func (r *Result) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// What a plan says beside the effects.
const (
	refusedWord = "refused"
	notPlayed   = "not played" // the machine was lost before
)

// word is an effect in reports.
func word(effect string) string {
	if effect == nothing {
		return "nothing"
	}
	return effect
}

// judgePlan holds a plan against what the row wants of it.
func (r *Result) judgePlan(want Want) {
	if r.Planned != want.Effect {
		r.problem("the plan says %s %q, the row wants %s", word(r.Planned), r.Fields, word(want.Effect))
	}
	if want.Fields != nil && !slices.Equal(r.Fields, want.Fields) {
		r.problem("change.fields is %q, the row wants %q", r.Fields, want.Fields)
	}
}

// judge holds what happened against the plan's word and against the row.
func (r *Result) judge(s *Step, want Want) {
	r.judgeEffect()
	if !r.After.Off {
		r.judgeRun(s)
		r.judgeLeaves(s)
		r.judgeStatus(want)
	}
	if r.Second != "empty" {
		r.problem("the second plan is not empty: %s", r.Second)
	}
}

// judgeEffect is the heart of the matrix: the plan's word is what happened.
func (r *Result) judgeEffect() {
	promised := r.Planned
	if promised == "none" && r.Happened == nothing {
		promised = nothing // it changed what the provider alone knows
	}
	if r.Happened != promised {
		r.problem("the plan said %s, and what happened is %s (%s)", word(r.Planned), word(r.Happened), r.differences())
	}
	if r.Graceful != "" && r.Graceful != "in order" {
		r.problem("the guest was not shut down in order: %s", r.Graceful)
	}
}

// judgeRun looks at the run of a guest that was not restarted: it goes on, and
// nothing of it changed but what the row names.
func (r *Result) judgeRun(s *Step) {
	if r.Happened == "restart" {
		return
	}
	if r.Before.Machine != r.After.Machine {
		r.problem("the machine %+v became %+v", r.Before.Machine, r.After.Machine)
	}
	b, a := r.Before.Report, r.After.Report
	if a.Uptime <= b.Uptime {
		r.problem("the guest's uptime went from %.2f s to %.2f s", b.Uptime, a.Uptime)
	}
	if len(s.Live)+len(s.may) == 0 && (a.CPUs != b.CPUs || a.MemKiB != b.MemKiB) {
		r.problem("the guest had %d CPUs and %d KiB, and has %d and %d", b.CPUs, b.MemKiB, a.CPUs, a.MemKiB)
	}
	named := map[string]bool{}
	for _, at := range slices.AppendSeq(slices.Clone(s.may), maps.Keys(s.Live)) {
		named[root(at)] = true
	}
	for _, at := range differ(r.Before.Guest, r.After.Guest) {
		if !named[root(at)] {
			r.problem("the running guest was touched: %s was %q and is %q; the plan's fields: %q", at, r.Before.Guest[at], r.After.Guest[at], r.Fields)
		}
	}
}

// root is the element below <domain> that a leaf is part of. A plural (vcpus)
// goes with its singular.
func root(at string) string {
	end := strings.IndexAny(at, "/[")
	if end > 0 {
		at = at[:end]
	}
	if at == "iothreadids" {
		at = "iothreads" // the list goes with the count
	}
	return strings.TrimSuffix(at, "s")
}

// differences shows where the XML differs from what it was, in a few words.
func (r *Result) differences() string {
	var b strings.Builder
	for _, side := range []struct {
		name    string
		was, is Leaves
	}{{"definition", r.Before.Definition, r.After.Definition}, {"guest", r.Before.Guest, r.After.Guest}} {
		all := differ(side.was, side.is)
		fmt.Fprintf(&b, "%s: %d changes; ", side.name, len(all))
		for _, at := range all[:min(4, len(all))] {
			fmt.Fprintf(&b, "%s from %q to %q; ", at, side.was[at], side.is[at])
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// judgeLeaves looks for what the row wants in the definition and in the guest.
func (r *Result) judgeLeaves(s *Step) {
	restarted := r.Happened == "restart"
	for _, part := range []struct {
		what    Leaves
		inGuest bool
		asked   bool // whether the guest is asked at all
	}{{s.Definition, false, false}, {s.Live, true, true}, {s.Boot, restarted, true}} {
		for _, at := range slices.Sorted(maps.Keys(part.what)) {
			value := part.what[at]
			if got := r.After.Definition[at]; got != value {
				r.problem("%s is %q in the definition, not %q", at, got, value)
			}
			got := r.After.Guest[at]
			switch {
			case !part.asked:
			case part.inGuest && got != value:
				r.problem("%s is %q in the running guest, not %q", at, got, value)
			case !part.inGuest && got == value && r.Happened == "next_boot":
				r.problem("%s is %q in the running guest already", at, got)
			}
		}
	}
}

// judgeStatus holds status, as a refresh shows it, against the row and against
// the marks in the XML.
func (r *Result) judgeStatus(want Want) {
	if r.Status == nil || r.Status.Status == nil {
		r.problem("there is no status")
		return
	}
	st := r.Status.Status
	same := func(what string, got, want []string) {
		got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			r.problem("status.%s is %q, not %q", what, got, want)
		}
	}
	same("pending", st.Pending, want.Pending)
	var held []string
	for _, h := range st.Held {
		held = append(held, h.Path)
	}
	same("held", held, want.Held)
	state := "settled"
	switch {
	case len(want.Held) > 0:
		state = "held"
	case len(want.Pending) > 0:
		state = "pending"
	}
	if st.State != state || st.Settled != (state == "settled") {
		r.problem("status.state is %q and settled %v, not %q", st.State, st.Settled, state)
	}
	if got := fmt.Sprint(st.Generation); got != r.After.Generation {
		r.problem("status.generation is %s, the definition is marked %q", got, r.After.Generation)
	}
	if got := fmt.Sprint(st.ObservedGeneration); got != r.After.Observed {
		r.problem("status.observed_generation is %s, the guest is marked %q", got, r.After.Observed)
	}
	if len(want.Pending) == 0 && len(want.Held) == 0 && r.After.Observed != r.After.Generation {
		r.problem("nothing waits, and the guest is at generation %s of %s", r.After.Observed, r.After.Generation)
	}
	if r.Planned == "next_boot" && r.After.Observed == r.After.Generation {
		r.problem("something waits, and the guest is at generation %s already", r.After.Observed)
	}
	if r.Planned != nothing && (r.Status.Change == nil || r.Status.Change.Effect != r.Planned || !slices.Equal(r.Status.Change.Fields, r.Fields)) {
		r.problem("change is %+v after the apply, and was %s %q in the plan", r.Status.Change, r.Planned, r.Fields)
	}
}

// judgeBack holds a machine that was taken back against what it was at first, but
// for the places that stay as they are.
func (r *Result) judgeBack(first *Moment, want Want, stays []string) {
	if r.After.Off {
		return
	}
	if d := differ(first.Definition, r.After.Definition); !slices.Equal(d, slices.Sorted(slices.Values(stays))) {
		r.problem("taken back, the definition differs from the first one in %q, not in %q", d, stays)
	}
	d := slices.DeleteFunc(differ(first.Guest, r.After.Guest), func(at string) bool {
		return strings.HasPrefix(at, "vcpus/") // which CPUs can be taken out, from the first plug on
	})
	if len(d) > 0 && len(want.Pending) == 0 {
		r.problem("taken back and settled, the guest still differs from the first one: %q", d)
	}
}

// judgeBystander holds a machine that a step does not concern against what it
// was before.
func (r *Result) judgeBystander() {
	if r.Planned != nothing || r.Happened != nothing || r.Second != "empty" {
		r.problem("it is not concerned, and yet: planned %s %q, happened %s (%s), second plan %s", word(r.Planned), r.Fields, word(r.Happened), r.differences(), r.Second)
	}
}
