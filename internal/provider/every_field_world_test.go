package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// world is one object between configuration, state and host, as plans and
// applies leave it. The host is a document: what is written into it goes through
// the codec and is read back from there.
type world struct {
	s   *subject
	typ *tree.Type

	config, state, owned, baseline tree.Value

	xml     string
	decoded tree.Value // xml
	actual  tree.Value // and what is kept beside it
}

// settled is the world after an apply of the configuration.
func (s *subject) settled(typ *tree.Type, m made) (*world, error) {
	w := &world{s: s, typ: typ, config: m.obj}
	if err := w.become(m); err != nil {
		return nil, err
	}
	w.baseline = w.actual
	w.state = s.Rules().Project(typ, m.obj, w.actual)
	w.owned = change.Order{Rules: s.Rules(), Type: typ, Config: m.obj, Planned: m.obj}.Identify(w.state)
	return w, w.quiet("an apply of the first configuration")
}

// become makes the host have what another one has.
func (w *world) become(m made) error {
	w.xml, w.decoded, w.actual = m.xml, m.decoded, m.actual
	return m.err
}

// put makes the host have exactly this.
func (w *world) put(obj tree.Value) (err error) {
	if w.xml, err = w.s.root.Encode(obj); err != nil {
		return err
	}
	return w.read(obj)
}

// read reads the document; beside is where the host keeps the rest.
func (w *world) read(beside tree.Value) (err error) {
	if w.decoded, err = w.s.root.Decode(w.xml); err != nil {
		return err
	}
	w.actual = w.s.onHost(w.decoded, beside)
	return nil
}

// onHost adds to what a document says what the host keeps beside it.
func (s *subject) onHost(decoded, beside tree.Value) tree.Value {
	for _, name := range beside.Names() {
		if s.root.Fields[name] == nil && !s.Rules().Setting(name) {
			decoded = decoded.With(name, beside.Attr(name))
		}
	}
	return decoded
}

// refresh is what a read makes of the state.
func (w *world) refresh() { w.state = w.s.Rules().Project(w.typ, w.state, w.actual) }

func (w *world) input() change.Input {
	return change.Input{Type: w.typ, Object: "id", Config: w.config, Prior: w.state, Baseline: w.baseline, Actual: w.actual, Owned: w.owned}
}

// expect plans, and holds the plan against what it is to say.
func (w *world) expect(in change.Input, want string) (change.Result, error) {
	r := w.s.Rules().Plan(in)
	if refused := change.Expressible(w.typ, w.state, w.config, r.Planned); len(refused) > 0 {
		return r, fmt.Errorf("no core accepts the plan: %v; %s", refused, w.shown(r))
	}
	if got := told(r); got != want {
		return r, fmt.Errorf("the plan says %q, want %q; %s", got, want, w.shown(r))
	}
	return r, nil
}

func (w *world) shown(r change.Result) string {
	return fmt.Sprintf("configuration %s, state %s, host %s, planned %s", w.config, w.state, w.actual, r.Planned)
}

// told is what a plan does, in short.
func told(r change.Result) string {
	var out []string
	for _, c := range r.Changes {
		out = append(out, fmt.Sprintf("%s %s", c.Kind, c.Path.Pattern()))
	}
	slices.Sort(out)
	for _, c := range r.Live {
		out = append(out, fmt.Sprintf("guest %s %s", c.Kind, c.Path.Pattern()))
	}
	for _, h := range r.Held {
		where := ""
		if h.Live {
			where = "guest "
		}
		out = append(out, fmt.Sprintf("%sheld %s %s", where, h.Tier, h.Path.Pattern()))
	}
	for _, p := range r.Ignored {
		out = append(out, "ignored "+p.Pattern())
	}
	for sort, paths := range map[string][]tree.Path{"left": r.Left, "unknown": r.Unknown, "undecided": r.Undecided} {
		for _, p := range paths {
			out = append(out, sort+" "+p.Pattern())
		}
	}
	for _, c := range r.Clashes {
		out = append(out, "clash "+c.List.Pattern())
	}
	return strings.Join(out, "; ")
}

// quiet says whether there is nothing to do.
func (w *world) quiet(after string) error {
	r := w.s.Rules().Plan(w.input())
	if got := told(r); got != "" && !strings.HasPrefix(got, "ignored ") || !tree.Equal(r.Planned, w.state) {
		return fmt.Errorf("after %s, a plan says %q; %s", after, got, w.shown(r))
	}
	return nil
}

// apply makes a plan true, and holds what came of it against the plan, and
// against what the host is to have then.
func (w *world) apply(r change.Result, want tree.Value) error {
	rules, was := w.s.Rules(), w.state
	before, order := w.actual, change.Order{Rules: rules, Type: w.typ, Config: w.config, Prior: was, Planned: r.Planned, Owned: w.owned}
	next := order.Patch(before)
	var err error
	if w.xml, err = w.s.root.Edit(w.xml, w.decoded, next); err != nil {
		return err
	}
	if err := w.read(next); err != nil {
		return err
	}
	if unmet := rules.Unmet(w.typ, was, r.Planned, w.actual); len(unmet) > 0 {
		return fmt.Errorf("the host did not take %v; %s", unmet, w.shown(r))
	}
	if d := rules.Differences(w.typ, w.actual, want); len(d) > 0 {
		return fmt.Errorf("the host is otherwise than wanted in %v: it should have %s; %s", d, want, w.shown(r))
	}
	w.state = order.Settle(before, w.actual)
	w.owned = order.Identify(w.state)
	w.baseline = w.actual
	if err := agrees(nil, r.Planned, w.state); err != nil {
		return err
	}
	if fresh := rules.Project(w.typ, w.state, w.actual); !tree.Equal(fresh, w.state) {
		return fmt.Errorf("a refresh makes of the state %s %s", w.state, fresh)
	}
	return w.quiet("the apply")
}

// agrees holds a new state against the plan, as a core does.
func agrees(path tree.Path, planned, state tree.Value) error {
	switch {
	case planned.IsUnknown():
		return nil
	case planned.Kind() == tree.Object && state.Kind() == tree.Object:
		for _, name := range append(planned.Names(), state.Names()...) {
			if a, b := planned.Attr(name), state.Attr(name); !tree.Equal(a, b) {
				if err := agrees(path.Attr(name), a, b); err != nil {
					return err
				}
			}
		}
		return nil
	case planned.Kind() == tree.List && state.Kind() == tree.List && state.Len() == planned.Len():
		for i, e := range planned.Elems() {
			if err := agrees(path.Elem(i, ""), e, state.Elems()[i]); err != nil {
				return err
			}
		}
		return nil
	case !tree.Equal(planned, state):
		return fmt.Errorf("%s was planned as %s, and is %s after the apply", path, planned, state)
	}
	return nil
}

// effectIn is the effect that a line of change.fields ends in, the greatest of
// all where it names none.
func effectIn(line string) change.Effect {
	for e := change.EffectNone; e < change.EffectReplace; e++ {
		if strings.HasSuffix(line, " "+e.String()) {
			return e
		}
	}
	return change.EffectReplace
}

// judged asks the kind what the changes of a plan do to an object that runs.
func (w *world) judged(r change.Result) (effect string, err error) {
	v := w.s.Judge(kind.Judgement{
		Config: w.config, Prior: w.state.With("status", w.s.status), Planned: r.Planned, Changes: r.Changes, Guest: w.actual,
	})
	if len(v.Fields) != len(r.Changes) {
		return "", fmt.Errorf("%d changes have the lines %v", len(r.Changes), v.Fields)
	}
	greatest := change.EffectNone
	for i, line := range v.Fields {
		effect := effectIn(line)
		if path := r.Changes[i].Path.String(); !strings.HasPrefix(line, path+": ") || effect > v.Effect {
			return "", fmt.Errorf("the change of %s, in a plan with the effect %s, has the line %q", path, v.Effect, line)
		}
		greatest = max(greatest, effect)
	}
	if greatest != v.Effect && len(v.Fields) > 0 {
		return "", fmt.Errorf("the effect is %s, and no line of %q has it", v.Effect, v.Fields)
	}
	if len(v.Refusals) > 0 {
		return "refused", nil
	}
	if (v.Effect == change.EffectReplace) != (len(v.Replace) > 0) {
		return "", fmt.Errorf("the effect is %s, and what replaces is %v", v.Effect, v.Replace)
	}
	return v.Effect.String(), nil
}
