package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/protocol"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// writer is a kind whose updates and destructions are only counted. It reads less
// than others, as libvirt's simulated hosts do not tell what is defined.
type writer struct {
	kind.Kind
	updates, deletions int
}

func (w *writer) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	found, err := w.Find(ctx, state.Attr("name").Str())
	return kind.Facts{Name: found.Attr("name").Str(), Definition: found.With("autostart", tree.BoolValue(false))}, err
}

func (w *writer) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	w.updates++
	done.Exists = true
	done.Facts, err = w.Read(ctx, u.Prior)
	return done, err
}

func (w *writer) Delete(context.Context, tree.Value) ([]kind.Problem, error) {
	w.deletions++
	return nil, nil
}

// atHost is a resource whose provider is connected to a simulated host, which has
// the pool of the state.
func atHost(t *testing.T) (*mapped, *writer) {
	t.Helper()
	data := &Data{}
	data.configure("test:///default", nil, "", nil, "")
	t.Cleanup(func() { _ = data.Host().Close() })
	w := &writer{Kind: storage.NewPool(data.Host)}
	return &mapped{typeName: "libvirt_pool", kind: w, data: data}, w
}

func TestApplyOnAnotherHost(t *testing.T) {
	ctx := context.Background()
	t.Setenv("LIBVIRT_PROTECT", "false")
	home, _ := atHost(t)
	found, err := home.kind.Find(ctx, "default-pool")
	if err != nil {
		t.Fatal(err)
	}
	read := home.Read(ctx, protocol.ReadRequest{State: found})
	if len(read.Diagnostics) > 0 || read.State.Attr("name").Str() != "default-pool" {
		t.Fatalf("the pool was not read: %v", read.Diagnostics)
	}
	config := tree.NullValue.With("name", tree.StringValue("default-pool")).With("autostart", tree.BoolValue(true))
	planned := read.State.With("autostart", tree.BoolValue(true))
	// As if another host had been asked, of another name: one name alone may be a
	// host that libvirt gives a new UUID at each start.
	rec := loadRecords(read.Private)
	rec.Host, rec.HostName = "libvirtd 11111111-1111-4111-8111-111111111111", "far.example.org"
	far, err := rec.store(read.Private)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what               string
		private            protocol.Private
		planned, config    tree.Value
		updates, deletions int
	}{
		{"update at home", read.Private, planned, config, 1, 0},
		{"update of its namesake", far, planned, config, 0, 0},
		{"destroy at home", read.Private, tree.NullValue, tree.NullValue, 0, 1},
		{"destroy of its namesake", far, tree.NullValue, tree.NullValue, 0, 0},
	} {
		m, w := atHost(t)
		if _, err := w.Read(ctx, read.State); err != nil {
			t.Fatalf("%s: the host has no such pool, so that this proves nothing: %v", c.what, err)
		}
		writes := virttest.Record(m.data.Host())
		resp := m.Apply(ctx, protocol.ApplyRequest{Prior: read.State, Planned: c.planned, Config: c.config, Private: c.private})
		if w.updates != c.updates || w.deletions != c.deletions || len(writes.Writes()) > 0 {
			t.Errorf("%s: %d updates, %d deletions, writes %v", c.what, w.updates, w.deletions, writes.Writes())
		}
		if c.updates+c.deletions > 0 {
			continue
		}
		if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Summary, `Pool "default-pool" is on another host`) {
			t.Errorf("%s: got %v", c.what, resp.Diagnostics)
		}
		if !tree.Equal(resp.State, read.State) || loadRecords(resp.Private).Host != rec.Host {
			t.Errorf("%s: the state or its records were not kept: %s", c.what, resp.State)
		}
	}
}
