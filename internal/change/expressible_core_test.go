package change

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The mirror agrees with the core: on every call, and on every path of it.
func TestExpressibleAgreesWithTheCore(t *testing.T) {
	program := buildOracle(t)
	t.Run("cases", func(t *testing.T) {
		var calls []planCall
		for _, c := range expressCases {
			calls = append(calls, planCall{expressType, obj(t, c.prior), obj(t, c.config), obj(t, c.planned)})
		}
		compareWithCore(t, program, calls)
	})
	t.Run("random schemas", func(t *testing.T) {
		rng := rand.New(rand.NewSource(1))
		var calls []planCall
		for range 200 * *effort {
			typ := randomType(rng, 1+rng.Intn(2))
			for range 40 {
				calls = append(calls, randomCall(rng, typ))
			}
		}
		compareWithCore(t, program, calls).wantVariety(t)
	})
	t.Run("domain schema", func(t *testing.T) {
		rng := rand.New(rand.NewSource(2))
		var calls []planCall
		for _, typ := range domainExcerpts(t) {
			for range 100 * *effort {
				calls = append(calls, randomCall(rng, typ))
			}
		}
		compareWithCore(t, program, calls).wantVariety(t)
	})
}

// outcomes counts what the calls were good for.
type outcomes struct {
	calls, accepted int
	reasons         map[string]int
}

func compareWithCore(t *testing.T, program string, calls []planCall) outcomes {
	t.Helper()
	out := outcomes{calls: len(calls), reasons: map[string]int{}}
	var wrong []string
	for i, core := range askCore(t, program, calls) {
		c := calls[i]
		ours := Expressible(c.typ, c.prior, c.config, c.planned)
		var paths []string
		crash := false
		for _, refused := range ours {
			paths = append(paths, refused.Path.String())
			out.reasons[kindOf(refused)]++
			crash = crash || strings.HasPrefix(refused.Reason, "is null")
		}
		slices.Sort(paths)
		if len(ours) == 0 {
			out.accepted++
		}
		// A crash hides what else the core would refuse.
		if crash != (core.crash != "") || !crash && !slices.Equal(paths, core.paths) {
			wrong = append(wrong, fmt.Sprintf("call %d\n%s\nwe refuse        %q\nthe core refuses %q %s", i, c, refusals(ours), core.paths, core.crash))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d calls judged otherwise than by the core; the shortest:\n%s", len(wrong), len(calls), shortest(wrong))
	}
	return out
}

func shortest(texts []string) string {
	return slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) })
}

// kindOf is the reason without its numbers.
func kindOf(i Inexpressible) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, i.Reason)
}

// wantVariety fails if the calls were too much alike to prove anything.
func (o outcomes) wantVariety(t *testing.T) {
	t.Helper()
	t.Logf("%d calls, %d accepted", o.calls, o.accepted)
	for reason, n := range o.reasons {
		t.Logf("%6d × %s", n, reason)
	}
	if refused := o.calls - o.accepted; o.accepted < o.calls/4 || refused < o.calls/4 {
		t.Errorf("of %d calls %d were accepted: too few of one kind", o.calls, o.accepted)
	}
	if len(o.reasons) < 9 {
		t.Errorf("only %d of the reasons occurred", len(o.reasons))
	}
}

// domainExcerpts are parts of the real schema, with the settings beside the
// XML that the user alone may set.
func domainExcerpts(t *testing.T) []*tree.Type {
	t.Helper()
	root := spec.Domain().Type()
	devices := root.Attrs["devices"].Type
	setting := &tree.Attribute{Name: "wait_for_ip", Type: tree.BoolType, Optional: true}
	nics := tree.ObjectOf(setting)
	for name, a := range devices.Attrs["interfaces"].Type.Elem.Attrs {
		nics.Attrs[name] = a
	}
	name := &tree.Attribute{Name: "name", Type: tree.StringType, Required: true}
	id := &tree.Attribute{Name: "id", Type: tree.NumberType, Computed: true}
	interfaces := &tree.Attribute{Name: "interfaces", Type: tree.ListOf(nics), Optional: true, Computed: true}
	protect := &tree.Attribute{Name: "protect", Type: tree.BoolType, Optional: true}
	return []*tree.Type{
		tree.ObjectOf(name, id, protect, root.Attrs["memory"], root.Attrs["memory_unit"], root.Attrs["vcpu"], root.Attrs["title"]),
		tree.ObjectOf(name, protect, devices.Attrs["disks"]),
		tree.ObjectOf(name, id, interfaces),
		tree.ObjectOf(name, root.Attrs["os"], root.Attrs["cpu"]),
		tree.ObjectOf(root.Attrs["clock"], root.Attrs["cpu_tune"], &tree.Attribute{
			Name: "devices", Optional: true, Computed: true,
			Type: tree.ObjectOf(devices.Attrs["disks"], interfaces, devices.Attrs["channels"], devices.Attrs["graphics"]),
		}),
	}
}
