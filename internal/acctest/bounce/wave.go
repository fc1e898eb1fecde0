package bounce

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// guest is a row, with a machine of its own.
type guest struct {
	row    *Row
	fields Fields // the configuration now
	first  *Moment
	now    *Moment
	round  *round // that is played now
	rounds []*round
	ended  bool // the row goes no further in this round
	lost   bool // the machine is no part of the wave any more
}

// round is what a row does under one policy.
type round struct {
	policy Policy
	play   []*Result
	back   *Result
}

func (g *guest) address() string { return "libvirt_domain." + g.label() }
func (g *guest) label() string   { return strings.ReplaceAll(g.row.Name, "-", "_") }

// name is what the host knows the machine by, as the configuration is now.
func (g *guest) name() string {
	name, err := strconv.Unquote(g.fields["name"])
	if err != nil {
		panic(fmt.Sprintf("row %s: the name is %s", g.row.Name, g.fields["name"])) // it is written in the table
	}
	return name
}

// act is what a stage of the wave does to one guest.
type act struct {
	*guest
	step   *Step
	want   Want
	fields Fields // the configuration that is asked for
	result *Result
	judge  func(*Result) // instead of step and want
}

// wave plays rows on one configuration.
type wave struct {
	t      *testing.T
	title  string
	host   *host.Host
	core   *client
	guests []*guest
	absent []*Row // what this host cannot do
	began  time.Time
	stage  string
}

// Run plays the rows at once, under one policy after the other, and reports
// them under the title. It comes after acctest.Case. The machines are the same
// for all policies, as booting is what takes the time; whatever a round leaves
// undone is brought in order before the next.
func Run(t *testing.T, c core.Core, title string, rows []Row, policies ...Policy) {
	t.Helper()
	rows, err := chosen(rows, os.Getenv(RowsWanted))
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(rows); err != nil {
		t.Fatal(err)
	}
	w := &wave{t: t, title: fmt.Sprintf("%s, %s %s", title, c.Name, c.Version), host: lab.Host(t), core: newClient(t, c), began: time.Now()}
	steps := 0
	for i := range rows {
		r := &rows[i]
		if r.Unavailable != "" {
			w.absent = append(w.absent, r)
			continue
		}
		w.guests = append(w.guests, &guest{row: r, fields: w.base(r, policies[0])})
		steps = max(steps, len(r.Steps))
	}
	defer w.report()
	defer w.remove()
	if len(w.guests) == 0 {
		return
	}
	w.create()
	for i, p := range policies {
		if i > 0 {
			w.retire(policies[i:])
			w.turn(p)
		}
		w.begin(p)
		for step := range steps {
			w.step(step)
		}
		w.takeBack()
	}
}

// base is the configuration that a row begins with under a policy.
func (w *wave) base(r *Row, p Policy) Fields { return tiny(w.host, r.Name, p).over(r.Base) }

// begin begins a round.
func (w *wave) begin(p Policy) {
	for _, g := range w.guests {
		g.round = &round{policy: p}
		g.ended = g.lost || !g.row.runs(p)
		if g.row.runs(p) {
			g.rounds = append(g.rounds, g.round)
		}
		if g.lost && g.row.runs(p) {
			g.round.play = []*Result{{Row: g.row.Name, Step: "1", Planned: notPlayed, Last: true}}
		}
	}
}

// retire takes those guests out of the wave that have no more to do: what they
// cannot take back need not start.
func (w *wave) retire(left []Policy) {
	for _, g := range w.standing() {
		if !slices.ContainsFunc(left, g.row.runs) {
			w.lose(g)
		}
	}
}

// mark logs how long the stage before took.
func (w *wave) mark(stage string) {
	w.t.Logf("%6.1f s  %s", time.Since(w.began).Seconds(), stage)
	w.stage = stage
}

// create makes all machines, and waits until every guest reports.
func (w *wave) create() {
	w.mark(fmt.Sprintf("create %d guests", len(w.guests)))
	w.configure(nil)
	p := w.core.plan()
	if p.code != 2 {
		w.t.Fatalf("the plan that creates ends with %d:\n%s", p.code, p.output)
	}
	if errs := w.core.apply(p); len(errs) > 0 {
		w.t.Fatalf("create: %s", said(errs, "error"))
	}
	w.mark("guests boot")
	for i, m := range w.lookAt(w.guests, nil) {
		if m == nil {
			w.t.Fatal("a guest did not boot")
		}
		w.guests[i].first, w.guests[i].now = m, m
	}
	w.mark("plan again")
	if p := w.core.plan(); p.code != 0 {
		w.t.Fatalf("the plan after the creation is not empty:\n%s", w.core.text(p))
	}
}

// configure writes the configuration, with what the acts ask for.
func (w *wave) configure(acts []*act) {
	asked := map[*guest]Fields{}
	for _, a := range acts {
		asked[a.guest] = a.fields
	}
	var resources []string
	for _, g := range w.guests {
		if g.lost {
			continue
		}
		fields := g.fields
		if f, ok := asked[g]; ok {
			fields = f
		}
		resources = append(resources, fields.resource(g.label()))
	}
	w.core.write(configuration(w.host.URI(), resources...))
}

// lookAt measures guests, some at a time. Those that cannot be are nil.
func (w *wave) lookAt(guests []*guest, fresh func(*guest) func(host.Report) bool) []*Moment {
	out := make([]*Moment, len(guests))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 6)
	for i, g := range guests {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			var want func(host.Report) bool
			if fresh != nil {
				want = fresh(g)
			}
			m, err := look(context.Background(), w.host, g.name(), want)
			if err == nil && (g.now == nil || power(g.now, m) != Nothing) {
				m, err = settle(context.Background(), w.host, g.name(), m)
			}
			if err != nil {
				w.t.Errorf("%s: look at %s: %v", w.stage, g.name(), err)
				return
			}
			m.remember(g.now)
			out[i] = m
		}()
	}
	wg.Wait()
	return out
}

// standing are the guests that are part of the wave.
func (w *wave) standing() (out []*guest) {
	for _, g := range w.guests {
		if !g.lost {
			out = append(out, g)
		}
	}
	return out
}

// lose takes a guest out of the wave: something is wrong with it, and the
// others go on.
func (w *wave) lose(g *guest) {
	w.core.forget(g.address())
	g.lost, g.ended = true, true
}

// remove takes the machines off the host, behind the provider's back: how a
// domain is destroyed is tested elsewhere.
func (w *wave) remove() {
	ctx := context.Background()
	out, err := w.host.Virsh(ctx, "list", "--all", "--name")
	if err != nil {
		w.t.Error(err)
		return
	}
	there := strings.Fields(out)
	for _, g := range w.guests {
		for _, name := range slices.Compact([]string{g.row.Name, g.name()}) {
			if !slices.Contains(there, name) {
				continue
			}
			if _, err := w.host.Domain(ctx, name); err == nil {
				_, err = w.host.Virsh(ctx, "destroy", "--domain", name)
				w.log(err)
			}
			_, err := w.host.Virsh(ctx, "undefine", "--nvram", "--domain", name)
			w.log(err)
		}
	}
}

func (w *wave) log(err error) {
	if err != nil {
		w.t.Error(err)
	}
}
