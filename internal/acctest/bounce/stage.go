package bounce

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// noticeTime is what a guest gets to notice what was done to it.
const noticeTime = 2 * time.Minute

// step plays the step with the index of all rows that have one.
func (w *wave) step(index int) {
	var acts, refused []*act
	for _, g := range w.guests {
		if g.ended || index >= len(g.row.Steps) {
			continue
		}
		s := &g.row.Steps[index]
		p := g.round.policy
		a := &act{guest: g, step: s, want: s.Want[p], fields: g.fields.over(s.Change)}
		a.result = &Result{Row: g.row.Name, Step: fmt.Sprint(index + 1), Last: g.row.last(index, p)}
		g.round.play = append(g.round.play, a.result)
		if a.want.Refused != "" {
			refused = append(refused, a)
		} else {
			acts = append(acts, a)
		}
	}
	stage := fmt.Sprintf("step %d", index+1)
	w.byHand(index, append(acts[:len(acts):len(acts)], refused...))
	w.refuse(stage, keep(refused))
	w.change(stage, acts)
}

// takeBack gives every row the configuration that it began with.
func (w *wave) takeBack() {
	var acts, refused []*act
	for _, g := range w.guests {
		if g.ended {
			continue
		}
		p := g.round.policy
		a := &act{guest: g, step: g.row.takenBack(), want: g.row.wantBack(p), fields: w.base(g.row, p)}
		a.result = &Result{Row: g.row.Name, Step: "back"}
		a.judge = func(r *Result) {
			r.judgePlan(a.want)
			r.judge(a.step, a.want)
			r.judgeBack(g.first, a.want, g.row.Stays)
		}
		g.round.back = a.result
		if a.want.Refused != "" {
			refused = append(refused, a)
		} else {
			acts = append(acts, a)
		}
	}
	w.refuse("take back", refused)
	w.change("take back", acts)
}

// turn gives every machine the next policy. That alone is a change of the
// configuration, and does nothing to a machine that is in order. One that is
// not, as what it did cannot be taken back, is started anew.
func (w *wave) turn(p Policy) {
	var acts []*act
	for _, g := range w.standing() {
		g.ended = false
		a := &act{guest: g, fields: w.base(g.row, p), result: &Result{Row: g.row.Name, Step: "turn"}}
		if g.round.undone() {
			a.judge = func(r *Result) {
				if r.Planned != "none" || r.Happened != nothing || len(r.Fields) > 0 {
					r.problem("update.allow alone changed to %s, and the plan says %s %q, and what happened is %s (%s)", p, word(r.Planned), r.Fields, word(r.Happened), r.differences())
				}
			}
		} else {
			a.judge = func(*Result) {}
		}
		acts = append(acts, a)
	}
	w.change("allow "+string(p), acts)
	var late []*guest
	for _, a := range keep(acts) {
		if a.result.waits() != "none" {
			for _, command := range []string{"destroy", "start"} {
				_, err := w.host.Virsh(context.Background(), command, "--domain", a.name())
				w.log(err)
			}
			late = append(late, a.guest)
		}
	}
	w.mark(fmt.Sprintf("allow %s, %d guests boot anew", p, len(late)))
	moments := w.lookAt(late, func(g *guest) func(host.Report) bool {
		return func(r host.Report) bool { return r.BootID != g.now.Report.BootID }
	})
	for i, m := range moments {
		late[i].now = m
		if m == nil {
			w.lose(late[i])
		}
	}
	for _, a := range acts {
		a.guest.first = a.guest.now
		for _, problem := range a.result.Problems {
			w.t.Errorf("row %s, turned to allow %s: %s", a.row.Name, p, problem)
		}
	}
}

// undone says whether the machine is as it was before the round.
func (rd *round) undone() bool {
	switch {
	case rd.back != nil:
		return rd.back.Planned != refusedWord && rd.back.waits() == "none"
	case len(rd.play) == 1:
		return rd.play[0].Planned == refusedWord
	}
	return len(rd.play) == 0
}

// byHand runs the commands of a step, and remembers the machines as they are
// then.
func (w *wave) byHand(index int, acts []*act) {
	var touched []*guest
	var by []*act
	for _, a := range acts {
		if len(a.step.Hand) == 0 || a.lost {
			continue
		}
		for _, command := range a.step.Hand {
			if _, err := w.host.Virsh(context.Background(), strings.ReplaceAll(command, "NAME", a.name())); err != nil {
				a.result.problem("by hand: %v", err)
			}
		}
		touched, by = append(touched, a.guest), append(by, a)
	}
	if len(by) == 0 {
		return
	}
	w.mark(fmt.Sprintf("step %d by hand, on %d guests", index+1, len(by)))
	moments := w.lookAt(touched, func(g *guest) func(host.Report) bool {
		if g.row.Steps[index].ByHand == Nothing {
			return nil
		}
		return func(r host.Report) bool { return r.BootID != g.now.Report.BootID }
	})
	for i, a := range by {
		m := moments[i]
		if m == nil {
			a.result.problem("by hand: the guest cannot be looked at afterwards")
			w.lose(a.guest)
			continue
		}
		if m, ok := w.see(a, m); ok {
			a.result.ByHand = handWord(a.step.Hand)
			if did := power(a.now, m); did != a.step.ByHand {
				a.result.problem("by hand: the run of the guest was to be %d, and is %d", a.step.ByHand, did)
			}
			a.now = m
		}
	}
}

// see waits until the running guest's XML has what the step says.
func (w *wave) see(a *act, m *Moment) (*Moment, bool) {
	for deadline := time.Now().Add(noticeTime); ; time.Sleep(200 * time.Millisecond) {
		missing := ""
		for at, value := range a.step.Seen {
			if m.Guest[at] != value {
				missing = fmt.Sprintf("%s is %q, not %q", at, m.Guest[at], value)
			}
		}
		if missing == "" {
			return m, true
		}
		if time.Now().After(deadline) {
			a.result.problem("by hand: %s within %s", missing, noticeTime)
			w.lose(a.guest)
			return m, false
		}
		var err error
		if m, err = look(context.Background(), w.host, a.name(), nil); err != nil {
			a.result.problem("by hand: %v", err)
			w.lose(a.guest)
			return m, false
		}
		m.remember(a.now)
	}
}

func handWord(commands []string) string {
	return strings.ReplaceAll(strings.Join(commands, "; "), " NAME", "")
}

// refuse plans what must be refused, and shows that nothing changed.
func (w *wave) refuse(stage string, acts []*act) {
	if len(acts) == 0 {
		return
	}
	w.mark(fmt.Sprintf("%s, plan for %d that are refused", stage, len(acts)))
	var targets []string
	var guests []*guest
	for _, a := range acts {
		targets, guests = append(targets, a.address()), append(guests, a.guest)
		a.ended = true
	}
	w.configure(acts)
	p := w.core.plan(targets...)
	w.configure(nil)
	for i, m := range w.lookAt(guests, nil) {
		a := acts[i]
		a.result.Before, a.result.After, a.result.Planned, a.result.Second = a.now, m, refusedWord, "empty"
		errs := about(of(p.messages, "error"), a.address())
		if p.code != 1 || len(errs) == 0 {
			a.result.Planned = p.changes[a.address()].effect()
			a.result.problem("it is not refused; the plan says %s", word(a.result.Planned))
		} else if !strings.Contains(errs[0].String(), a.want.Refused) {
			a.result.problem("it is refused for another reason than %q: %s", a.want.Refused, errs[0])
		}
		if m == nil {
			a.result.problem("the guest cannot be looked at after the refusal")
			w.lose(a.guest)
			continue
		}
		a.result.Happened = happened(a.now, m)
		if a.result.Happened != nothing || m.Raw != a.now.Raw {
			a.result.problem("a plan that is refused changed the host: %s", a.result.differences())
		}
		a.now = m
	}
}
