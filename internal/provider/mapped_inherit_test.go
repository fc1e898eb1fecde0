package provider

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// atSimulatedHost returns the mapped resources of a provider that is connected
// to libvirt's simulated host, by their type names.
func atSimulatedHost(t *testing.T) map[string]*mapped {
	t.Helper()
	data := &Data{}
	data.configure("test:///default", nil, "", nil, "")
	t.Cleanup(func() { _ = data.Host().Close() })
	all := map[string]*mapped{}
	for _, r := range data.resources() {
		m := r.(*mapped)
		all[m.typeName] = m
	}
	return all
}

const aUUID = "8d2a1c6e-58f1-4b0a-9a55-0f5f5e3d7a10"

func TestInherit(t *testing.T) {
	all := atSimulatedHost(t)
	for name, tc := range map[string]struct{ typ, from, stored, want string }{
		"domain of 0.8": {"libvirt_domain", "", `{"id":"` + aUUID + `","name":"web","memory":512,"cpu":[{"mode":"host-model"}],"metadata":"x"}`,
			`{name = "web", uuid = "` + aUUID + `"}`},
		"network of 0.8": {"libvirt_network", "", `{"id":"` + aUUID + `","name":"lan","bridge":"virbr7","autostart":true}`,
			`{id = "` + aUUID + `", name = "lan", uuid = "` + aUUID + `"}`},
		"pool of 0.8": {"libvirt_pool", "", `{"id":"` + aUUID + `","name":"vault","type":"dir","target":[{"path":"/srv"}]}`,
			`{id = "` + aUUID + `", name = "vault", uuid = "` + aUUID + `"}`},
		"volume of 0.8": {"libvirt_volume", "", `{"id":"/srv/root.qcow2","name":"root.qcow2","pool":"vault","size":10737418240,"format":"qcow2"}`,
			`{id = "/srv/root.qcow2", key = "/srv/root.qcow2", name = "root.qcow2", pool = "vault"}`},
		"volume without a path": {"libvirt_volume", "", `{"id":"rbd/root","name":"root","pool":"ceph"}`,
			`{id = "rbd/root", key = "rbd/root", name = "root", pool = "ceph"}`},
		"image of a seed of 0.8": {"libvirt_volume", "libvirt_cloudinit_disk", `{"id":"/srv/init.iso;` + aUUID + `","name":"init.iso","pool":"vault","user_data":"#cloud-config\n"}`,
			`{id = "/srv/init.iso", key = "/srv/init.iso", name = "init.iso", pool = "vault"}`},
		"image with a semicolon": {"libvirt_volume", "libvirt_cloudinit_disk", `{"id":"/srv/a;b.iso;` + aUUID + `","name":"a;b.iso","pool":"vault"}`,
			`{id = "/srv/a;b.iso", key = "/srv/a;b.iso", name = "a;b.iso", pool = "vault"}`},
		"a semicolon and no UUID": {"libvirt_volume", "libvirt_cloudinit_disk", `{"id":"/srv/a;b.iso","name":"a;b.iso","pool":"vault"}`, ""},
		"volume with a semicolon": {"libvirt_volume", "", `{"id":"/srv/a;b.raw","name":"a;b.raw","pool":"vault"}`,
			`{id = "/srv/a;b.raw", key = "/srv/a;b.raw", name = "a;b.raw", pool = "vault"}`},
		"nothing stored": {"libvirt_network", "", `{"id":"","uuid":null,"name":"lan"}`, ""},
		"domain of 0.9":  {"libvirt_domain", "", `{"id":7,"uuid":"` + aUUID + `","name":"web","memory":512}`, ""},
		"network of 0.9": {"libvirt_network", "", `{"id":"` + aUUID + `","uuid":"` + aUUID + `","name":"lan"}`, ""},
		"volume of 0.9":  {"libvirt_volume", "", `{"id":"/a","key":"/a","name":"a","pool":"p"}`, ""},
		"no UUID":        {"libvirt_domain", "", `{"id":"web","name":"web"}`, ""},
		"no place":       {"libvirt_volume", "libvirt_ignition", `{"id":"7f3a","name":"web"}`, ""},
		"a seed of ours": {"libvirt_volume", "libvirt_ignition", `{"id":"web","name":"web","pool":"vault"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := all[tc.typ]
			got := m.Upgrade(t.Context(), protocol.UpgradeRequest{Schema: m.Schema(), From: tc.from, JSON: []byte(tc.stored)})
			switch {
			case tc.want != "":
				if got.State.String() != tc.want || len(got.Diagnostics) > 0 || !isStub(plain(got.State), records{}) {
					t.Errorf("got %s, %v\nwant %s", got.State, got.Diagnostics, tc.want)
				}
			case tc.from != "":
				if !got.Diagnostics.HasErrors() || !strings.Contains(got.Diagnostics[0].Detail, "Remove the moved block") {
					t.Errorf("got %s, %v", got.State, got.Diagnostics)
				}
			case got.State.Attr("name").Str() == "" || got.Diagnostics.HasErrors():
				t.Errorf("got %s, %v", got.State, got.Diagnostics)
			case tc.typ == "libvirt_domain" && tc.stored[6:8] == "7," && got.State.Attr("memory").IsNull():
				t.Errorf("more was dropped than what has another shape: %s", got.State)
			}
		})
	}
}

// take does what a core does with a stored state: it is upgraded, read, and
// planned with a configuration.
func take(t *testing.T, m *mapped, stored string, config tree.Value) (state tree.Value, plan protocol.PlanResponse) {
	t.Helper()
	up := m.Upgrade(t.Context(), protocol.UpgradeRequest{Schema: m.Schema(), JSON: []byte(stored)})
	clean(t, "upgrade", up.Diagnostics)
	read := m.Read(t.Context(), protocol.ReadRequest{State: up.State, Private: protocol.Private{}})
	clean(t, "read", read.Diagnostics)
	return read.State, m.Plan(t.Context(), protocol.PlanRequest{Config: config, Prior: read.State, Proposed: read.State, Private: read.Private})
}

func clean(t *testing.T, what string, d protocol.Diagnostics) {
	t.Helper()
	if len(d) > 0 {
		t.Fatalf("%s: %+v", what, d)
	}
}

// theMachine is what libvirt's simulated host has.
const theMachine = "6695eb01-f6a4-8304-79aa-97f2502e193f"

// TestTakeOver: states of both generations are read back from the host, and a
// true configuration changes nothing; one that is not is told of at what differs.
func TestTakeOver(t *testing.T) {
	m := atSimulatedHost(t)["libvirt_domain"]
	found, err := m.kind.Find(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if uuid := found.Attr("uuid").Str(); uuid != theMachine {
		t.Fatalf("the simulated host has another machine: %s", uuid)
	}
	sparse := tree.NullValue.With("name", tree.StringValue("test")).With("type", tree.StringValue("test")).With("memory", tree.IntValue(8<<20)).With("autostart", tree.BoolValue(false))
	for name, stored := range map[string]string{
		"0.9":                  `{"id":4711,"uuid":"` + theMachine + `","name":"test","type":"test","memory":8388608,"memory_unit":null,"vcpu":2,"autostart":null,"devices":null}`,
		"0.9, of before":       `{"id":null,"uuid":"` + theMachine + `","name":"test","type":"test","memory":1,"memory_unit":"GiB","running":true}`,
		"0.8":                  `{"id":"` + theMachine + `","name":"test","type":"kvm","memory":8192,"vcpu":2,"cpu":[{"mode":"custom"}],"autostart":true}`,
		"0.8, renamed by hand": `{"id":"` + theMachine + `","name":"another","memory":512}`,
	} {
		t.Run(name, func(t *testing.T) {
			state, plan := take(t, m, stored, sparse)
			clean(t, "plan", plan.Diagnostics)
			if !tree.Equal(plan.Planned, state) {
				t.Errorf("the plan changes\n%s\nto\n%s", state, plan.Planned)
			}
			if state.Attr("autostart").IsNull() {
				t.Error("the host was not asked for autostart")
			}
			if full := !state.Attr("vcpu").IsNull() && !state.At("os.type").IsNull(); strings.HasPrefix(name, "0.8") && !full {
				t.Errorf("the state was not filled: %s", state)
			}
			other := sparse.With("vcpu", tree.IntValue(5))
			if _, plan = take(t, m, stored, other); len(plan.Diagnostics) > 0 && plan.Diagnostics.HasErrors() || tree.Equal(plan.Planned, state) {
				t.Errorf("another number of CPUs is no difference: %v", plan.Diagnostics)
			} else if fields := fmt.Sprint(plan.Planned.At("change.fields")); strings.Count(fields, ":") != 1 || !strings.Contains(fields, "vcpu") {
				t.Errorf("fields are %s", fields)
			}
		})
	}
}

// TestStubIsNotCompared: before the host was asked, nothing is known.
func TestStubIsNotCompared(t *testing.T) {
	m := atSimulatedHost(t)["libvirt_domain"]
	prior := tree.NullValue.With("name", tree.StringValue("test")).With("uuid", tree.StringValue(theMachine))
	config := tree.NullValue.With("name", tree.StringValue("test")).With("type", tree.StringValue("test"))
	plan := m.Plan(t.Context(), protocol.PlanRequest{Config: config, Prior: prior, Proposed: prior, Private: protocol.Private{}})
	if !plan.Diagnostics.HasErrors() || !strings.Contains(plan.Diagnostics[0].Detail, "without -refresh=false") {
		t.Errorf("got %v, %+v", plan.Planned, plan.Diagnostics)
	}
}

// TestStubThatIsNotListed: while the pool does not list the volume, nothing of it is
// recorded, and what was read of it is there as soon as the pool does.
func TestStubThatIsNotListed(t *testing.T) {
	ctx := t.Context()
	m := atSimulatedHost(t)["libvirt_volume"]
	dir := t.TempDir()
	p, err := m.data.Host().DefinePool(ctx, fmt.Sprintf("<pool type='dir'><name>takeover</name><target><path>%s</path></target></pool>", dir))
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Stop(context.Background())
		_ = p.Undefine(context.Background())
	})
	if err := os.WriteFile(dir+"/root.raw", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stored := `{"id":"` + dir + `/root.raw","name":"root.raw","pool":"takeover","size":1048576,"format":"raw"}`
	up := m.Upgrade(ctx, protocol.UpgradeRequest{Schema: m.Schema(), JSON: []byte(stored)})
	clean(t, "upgrade", up.Diagnostics)
	read := m.Read(ctx, protocol.ReadRequest{State: up.State, Private: protocol.Private{}})
	if len(read.Diagnostics) != 1 || read.Diagnostics.HasErrors() || !strings.Contains(read.Diagnostics[0].Detail, "virsh pool-refresh takeover") {
		t.Fatalf("read: %+v", read.Diagnostics)
	}
	if !tree.Equal(plain(read.State), up.State) || !isStub(plain(read.State), loadRecords(read.Private)) {
		t.Errorf("something was recorded of what nobody saw: %s", read.State)
	}
	config := object("name", "root.raw", "pool", "takeover", "capacity", tree.IntValue(1<<20))
	plan := m.Plan(ctx, protocol.PlanRequest{Config: config, Prior: read.State, Proposed: read.State, Private: read.Private})
	if !plan.Diagnostics.HasErrors() || !strings.Contains(plan.Diagnostics[0].Detail, "do first what it says") {
		t.Errorf("it is compared: %s, %+v", plan.Planned, plan.Diagnostics)
	}

	if _, err := p.CreateVolume(ctx, "<volume><name>root.raw</name><capacity>1048576</capacity></volume>", virt.CreateFlags{}); err != nil { // now it is listed
		t.Fatal(err)
	}
	read = m.Read(ctx, protocol.ReadRequest{State: read.State, Private: read.Private})
	clean(t, "read again", read.Diagnostics)
	plan = m.Plan(ctx, protocol.PlanRequest{Config: config, Prior: read.State, Proposed: read.State, Private: read.Private})
	clean(t, "plan", plan.Diagnostics)
	if size, _ := read.State.Attr("capacity").Uint(); size != 1<<20 || !tree.Equal(plan.Planned, read.State) {
		t.Errorf("the plan changes\n%s\nto\n%s", read.State, plan.Planned)
	}
}
