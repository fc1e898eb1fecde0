package bounce

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// change plans, applies and judges what the acts ask for, all together.
func (w *wave) change(stage string, acts []*act) {
	acts = keep(acts)
	if len(acts) == 0 {
		return
	}
	w.mark(fmt.Sprintf("%s, plan for %d guests", stage, len(acts)))
	p := w.plan(acts)
	acts = keep(acts)
	if p == nil {
		return
	}
	results, work := w.expect(acts, p), p.code == 2
	if work {
		w.mark(stage + ", apply")
		w.failures(acts, w.core.apply(p))
	}
	for _, a := range acts {
		a.guest.fields = a.fields
	}
	w.mark(stage + ", look")
	w.measure(results)
	if work {
		w.mark(stage + ", plan again")
		again := w.core.plan()
		if again.code == 1 {
			w.t.Fatalf("%s: the second plan fails:\n%s", stage, said(again.messages, "error"))
		}
		w.second(results, again)
		number(results, again)
		if again.code == 2 {
			w.t.Logf("%s: the second plan:\n%s", stage, w.core.text(again))
		}
	} else {
		w.second(results, p)
	}
	for _, g := range w.standing() {
		w.judge(g, acts, results[g])
	}
	for _, a := range acts {
		if len(a.result.Problems) > 0 && !a.lost {
			w.lose(a.guest) // what follows would be about the first failure
		}
	}
}

func keep(acts []*act) (out []*act) {
	for _, a := range acts {
		if !a.lost && !a.ended {
			out = append(out, a)
		}
	}
	return out
}

// plan plans for the acts. What is refused though the row does not want it
// leaves the wave, and the rest is planned again.
func (w *wave) plan(acts []*act) *plan {
	for range 2 {
		w.configure(acts)
		p := w.core.plan()
		if p.code != 1 {
			return p
		}
		lost := 0
		for _, a := range acts {
			if errs := about(of(p.messages, "error"), a.address()); len(errs) > 0 && !a.lost {
				a.result.Planned, a.result.Before, a.result.After = refusedWord, a.now, a.now
				a.result.problem("the plan is refused: %s", errs[0])
				w.lose(a.guest)
				lost++
			}
		}
		if lost == 0 {
			w.t.Fatalf("%s: the plan fails:\n%s", w.stage, p.output)
		}
		if acts = keep(acts); len(acts) == 0 {
			return nil
		}
	}
	w.t.Fatalf("%s: the plan fails also without the guests that it failed for", w.stage)
	return nil
}

// expect begins the results of a stage: what the plan says of every guest.
func (w *wave) expect(acts []*act, p *plan) map[*guest]*Result {
	results := map[*guest]*Result{}
	for _, a := range acts {
		results[a.guest] = a.result
	}
	for _, g := range w.standing() {
		if results[g] == nil {
			results[g] = &Result{Row: g.row.Name}
		}
		rc := p.changes[g.address()]
		r := results[g]
		r.Before, r.Planned = g.now, rc.effect()
		if after := rc.Change.After; !rc.nothing() && after != nil && after.Change != nil {
			r.Fields = after.Change.Fields
		}
	}
	return results
}

// failures notes which guests an apply failed for.
func (w *wave) failures(acts []*act, errs []message) {
	for _, e := range errs {
		found := false
		for _, a := range acts {
			if a.address() == e.Address {
				a.result.problem("the apply fails: %s", e)
				found = true
			}
		}
		if !found {
			w.t.Errorf("%s: %s: %s", w.stage, e.Address, e)
		}
	}
}

// measure looks at every guest after an apply.
func (w *wave) measure(results map[*guest]*Result) {
	guests := w.standing()
	for i, m := range w.lookAt(guests, func(g *guest) func(host.Report) bool { return nil }) {
		g := guests[i]
		r := results[g]
		if m == nil {
			r.problem("the guest cannot be looked at afterwards")
			r.After = &Moment{Off: true, Definition: Leaves{}, Guest: Leaves{}}
		} else {
			r.After = m
		}
		r.Happened = happened(r.Before, r.After)
		if r.Happened == "restart" {
			was := strings.Trim(r.Before.Definition["name"], `"`)
			ok, err := graceful(context.Background(), w.host, was)
			switch {
			case err != nil:
				r.Graceful = err.Error()
			case ok:
				r.Graceful = "in order"
			default:
				r.Graceful = "stopped hard"
			}
		}
		g.now = r.After
	}
}

// second takes the status and what is still planned from a plan that must be
// empty.
func (w *wave) second(results map[*guest]*Result, p *plan) {
	for g, r := range results {
		rc := p.changes[g.address()]
		r.Status, r.Second = rc.Change.Before, "empty"
		if !rc.nothing() {
			r.Second = rc.effect()
			if after := rc.Change.After; after != nil && after.Change != nil {
				r.Second += fmt.Sprintf(" %q", after.Change.Fields)
			}
		}
		if warnings := about(of(p.messages, "warning"), g.address()); len(warnings) > 0 && (r.Status == nil || r.Status.Status == nil || len(r.Status.Status.Held) == 0) {
			r.problem("a plan without changes warns: %s", warnings[0])
		}
	}
}

// number holds the number of the guest that the apply left in state against what
// the refresh of the next plan saw.
func number(results map[*guest]*Result, again *plan) {
	for g, r := range results {
		drift := again.drift[g.address()].Change
		if drift.Before == nil || drift.After == nil {
			continue
		}
		if was, is := drift.Before.ID, drift.After.ID; (was == nil) != (is == nil) || was != nil && *was != *is {
			r.problem("the apply left the guest's number %s in state, and it is %s", shown(was), shown(is))
		}
	}
}

func shown(id *int64) string {
	if id == nil {
		return "null"
	}
	return fmt.Sprint(*id)
}

func (w *wave) judge(g *guest, acts []*act, r *Result) {
	for _, a := range acts {
		switch {
		case a.guest != g:
			continue
		case a.judge != nil:
			a.judge(r)
		default:
			r.judgePlan(a.want)
			r.judge(a.step, a.want)
			if a.step.Guest != nil && !r.After.Off {
				w.ask(a, r)
			}
		}
		return
	}
	if r.judgeBystander(); len(r.Problems) > 0 {
		w.t.Errorf("%s: bystander %s: %s", w.stage, r.Row, strings.Join(r.Problems, "; "))
	}
}

// ask waits until the guest itself has noticed what was done to it, where it
// is to notice.
func (w *wave) ask(a *act, r *Result) {
	if r.Happened != "live" && r.Happened != "restart" && len(a.step.Live) == 0 {
		if a.step.Guest(r.Before.Report, r.After.Report) {
			r.problem("the guest has noticed already: %+v", r.After.Report)
		}
		return
	}
	now, err := w.host.WaitReport(context.Background(), a.name(), noticeTime, func(now host.Report) bool { return a.step.Guest(r.Before.Report, now) })
	if err != nil {
		r.problem("the guest has not noticed: %v", err)
		return
	}
	a.guest.now.Report = now
}
