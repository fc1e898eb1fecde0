package provider

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/network"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func subjects() []*subject {
	text, yes := tree.StringValue, tree.BoolValue(true)
	return []*subject{
		newSubject(domain.New(nil), spec.Domain(), map[string]tree.Value{"name": text("web"), "type": text("kvm")}, map[string]tree.Value{"power": text("running")}),
		newSubject(network.New(nil), spec.Network(), map[string]tree.Value{"name": text("lan")}, map[string]tree.Value{"active": yes}),
		newSubject(storage.NewPool(nil), spec.Pool(), map[string]tree.Value{"name": text("images"), "type": text("dir")}, map[string]tree.Value{"active": yes}),
		newSubject(storage.NewVolume(nil), spec.Volume(), map[string]tree.Value{"name": text("disk"), "pool": text("images"), "capacity": tree.IntValue(1)}, map[string]tree.Value{"running": yes}),
	}
}

func (t *try) run() []error {
	var errs []error
	note := func(step string, err error) bool {
		if err != nil {
			errs = append(errs, t.s.fail(t.l, "%s: %v", step, err))
		}
		return err == nil
	}
	if t.role == lost {
		return nil
	}
	if t.role == computed_ || t.role == measured {
		return nil
	}
	w, err := t.s.settled(t.whole, t.with(t.a))
	if note("settled", err) {
		_, err = t.becomes(w, t.b)
		note("intent", err)
	}
	note("history", t.history(note))
	if t.role != setting && t.role != once && t.role != unit {
		note("omitted", t.omitted())
	}
	return errs
}

func (t *try) history(note func(string, error) bool) error {
	start := t.with(t.a)
	fromNone := t.bare && t.role != key
	if fromNone {
		start = t.with(tree.NullValue)
	}
	w, err := t.s.settled(t.small, start)
	if err != nil {
		return err
	}
	if fromNone {
		if _, err := t.becomes(w, t.a); !note("appears", err) {
			return nil
		}
	}
	if t.l.typ.Kind == tree.Bool && len(t.s.leavesOf(t.with(tree.BoolValue(false)))) == len(t.s.leavesOf(t.with(t.a))) {
		if _, err := t.becomes(w, t.b); !note("false", err) {
			return nil
		}
		if _, err := t.becomes(w, t.a); !note("true", err) {
			return nil
		}
	}
	if t.role != setting && t.role != once {
		if !note("drift", t.drifted(w, t.b)) {
			return nil
		}
		if fromNone && t.role != unit && !t.anonymous() && !note("vanished", t.drifted(w, tree.NullValue)) {
			return nil
		}
	}
	if fromNone && t.role != unit && t.l.typ.Kind != tree.Bool && t.s.holds(t.with(t.zero), t.s.leavesOf(t.none)...) {
		if _, err := t.becomes(w, t.zero); !note("zero", err) {
			return nil
		}
		if _, err := t.becomes(w, t.a); !note("again", err) {
			return nil
		}
	}
	if fromNone {
		note("withdrawn", t.withdrawn(w))
	}
	return nil
}

func TestEveryField(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.Noun(), func(t *testing.T) {
			counts := map[string]int{}
			effects := map[string]int{}
			for _, l := range s.leaves() {
				x := s.try(l)
				counts[x.role.String()]++
				if !x.bare {
					counts["not bare"]++
				}
				for _, err := range x.run() {
					t.Error(err)
				}
				effects[x.effect]++
			}
			t.Logf("%v %v", counts, effects)
		})
	}
}
