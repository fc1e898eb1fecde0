package provider

import (
	"context"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestListDomains(t *testing.T) {
	ctx := context.Background()
	data := simulated(t, "web-1", "web-2", "web-gone", "web-broken", "other")
	m := &mapped{typeName: "libvirt_domain", kind: domain.New(data.Host), data: data, identity: "uuid"}
	calls := virttest.Record(data.Host())
	virttest.Install(data.Host(), virttest.Fail(virttest.And(virttest.Op("read the XML of domain"), virttest.On("web-gone")), virttest.NoSuchDomain))
	virttest.Install(data.Host(), virttest.Fail(virttest.And(virttest.Op("read the XML of domain"), virttest.On("web-broken")), virttest.PermissionDenied))
	for _, whole := range []bool{false, true} {
		found := map[string]protocol.Listed{}
		d := m.List(ctx, protocol.ListRequest{Config: object("name_regex", "^web-"), Whole: whole}, func(one protocol.Listed) bool {
			found[one.Name] = one
			return true
		})
		flawless(t, d)
		_, gone := found["web-gone"]
		if gone == whole || len(found) != map[bool]int{false: 4, true: 3}[whole] {
			t.Errorf("whole %v: found %v", whole, found)
		}
		if one := found["web-1"]; one.State.Attr("uuid").Str() == "" || one.State.Attr("title").IsNull() == whole || one.Diagnostics.HasErrors() {
			t.Errorf("whole %v: found %v", whole, one)
		}
		if broken := found["web-broken"]; broken.Diagnostics.HasErrors() != whole {
			t.Errorf("whole %v: what cannot be read is %v", whole, broken)
		}
		if whole {
			fits(t, m.Schema(), found["web-1"].State)
			if started := found["web-1"].State.At("status.started"); !started.Bool() {
				t.Errorf("of a machine that is off, and that nobody saw start, started is %s; an import says true", started)
			}
		}
	}
	if w := calls.Writes(); len(w) > 0 {
		t.Errorf("a list writes: %v", w)
	}
	refused(t, m.ValidateList(ctx, object("name_regex", "(")), "name_regex", "Not a regular expression")
	refused(t, (&mapped{kind: domain.New(nil), data: &Data{}}).List(ctx, protocol.ListRequest{Config: tree.ObjectValue(nil)}, nil), "", "the host is not known yet")
}

// A list stops when the core has heard enough.
func TestListDomainsStops(t *testing.T) {
	data := simulated(t, "web-1", "web-2")
	m := &mapped{typeName: "libvirt_domain", kind: domain.New(data.Host), data: data, identity: "uuid"}
	n := 0
	flawless(t, m.List(context.Background(), protocol.ListRequest{Config: tree.ObjectValue(nil)}, func(protocol.Listed) bool {
		n++
		return false
	}))
	if n != 1 {
		t.Errorf("%d objects after the core had heard enough", n)
	}
}
