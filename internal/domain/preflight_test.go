package domain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// A pool that is stopped is no reason while the guest does not start, and what was
// mended a moment ago is none either.
func TestObstaclesAreAskedForTwice(t *testing.T) {
	const volume = "<disk type='volume' device='disk'><source pool='late' volume='v'/><target dev='vda'/></disk>"
	document := domainWith("", volume)
	flown := func(starts bool) flight {
		return flight{name: "d", starts: starts, changes: true, gets: func(string, string) bool { return false }}
	}
	for _, c := range []struct {
		what           string
		starts, mended bool
		broken         bool // libvirt cannot build it, until it is mended
		want           int
	}{
		{"off, and not needed now", false, false, false, 0}, {"off, and needed", true, false, false, 1}, {"started meanwhile", true, true, false, 0},
		{"not to be built", false, false, true, 1}, {"not to be built until now", false, true, true, 0},
	} {
		host := well()
		host.pools["late"] = virt.PoolStanding{Standing: offStanding, Type: "dir", Target: "/late"}
		if c.broken {
			host.builds = func(string) error { return &virt.Error{Code: virt.ErrOperationFailed, Message: "no firmware"} }
		}
		if c.mended {
			host.mended = func(f *fakeView) {
				f.pools["late"] = virt.PoolStanding{Standing: settledStanding, Type: "dir", Target: "/late"}
				f.builds = nil
			}
		}
		found, reason, err := obstacles(context.Background(), host, flown(c.starts), document)
		got := len(found)
		if reason != nil {
			got++
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, %v", c.what, found, reason, err)
		}
	}
}

// poolOf makes volumes in a pool of libvirt's own driver without storage.
func poolOf(t *testing.T, formats map[string]string) *Kind {
	t.Helper()
	ctx := context.Background()
	h := virt.NewHost(virt.Options{URI: "test:///default"})
	if err := h.Connect(ctx); err != nil {
		t.Skip("libvirt library missing: " + err.Error())
	}
	t.Cleanup(func() { _ = h.Close() })
	pool, err := h.DefinePool(ctx, "<pool type='dir'><name>formats</name><target><path>/formats</path></target></pool>")
	if err == nil {
		err = pool.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pool.Stop(ctx)
		_ = pool.Undefine(ctx)
	})
	for name, format := range formats {
		if _, err := pool.CreateVolume(ctx, fmt.Sprintf("<volume><name>%s</name><capacity>4096</capacity><target><format type='%s'/></target></volume>", name, format), virt.CreateFlags{}); err != nil {
			t.Fatal(err)
		}
	}
	return New(func() *virt.Host { return h })
}

// formatted is a disk of the volume, with a format unless that is null.
func formatted(volume string, format tree.Value) tree.Value {
	disk := tree.NullValue.SetAt("source.volume.pool", tree.StringValue("formats")).SetAt("source.volume.volume", tree.StringValue(volume)).SetAt("target.dev", tree.StringValue("vda"))
	if !format.IsNull() {
		disk = disk.SetAt("driver.type", format)
	}
	return disk
}

func withDisk(disk tree.Value) tree.Value {
	return tree.NullValue.SetAt("devices.disks", tree.ListValue([]tree.Value{disk}))
}

// The format that the provider gave a disk goes with the volume that had it. One
// that the plan names stays, and is refused if it is wrong.
func TestFormatOfAMovedDisk(t *testing.T) {
	k := poolOf(t, map[string]string{"old": "qcow2", "raw": "raw", "new": "qcow2"})
	str := tree.StringValue
	for what, c := range map[string]struct {
		to         string
		definition tree.Value // driver.type before, and still in what is wanted
		planned    tree.Value
		want       string // "" if it is refused
	}{
		"from qcow2 to raw, not named":   {"raw", str("qcow2"), tree.NullValue, "raw"},
		"from qcow2 to raw, not known":   {"raw", str("qcow2"), tree.UnknownValue, "raw"},
		"from qcow2 to qcow2, not named": {"new", str("qcow2"), tree.NullValue, "qcow2"},
		"new, not named":                 {"raw", tree.NullValue, tree.NullValue, "raw"},
		"from qcow2 to raw, named right": {"raw", str("raw"), str("raw"), "raw"},
		"from qcow2 to raw, named wrong": {"raw", str("qcow2"), str("qcow2"), ""},
		"another format, not named":      {"raw", str("vmdk"), tree.NullValue, "vmdk"},
	} {
		f := flight{
			name: "d", before: withDisk(formatted("old", str("qcow2"))),
			wanted: withDisk(formatted(c.to, c.definition)), inConfig: withDisk(formatted(c.to, c.planned)),
		}
		wanted, problems, err := k.withFormats(context.Background(), f)
		if err != nil || (len(problems) > 0) != (c.want == "") {
			t.Errorf("%s: got %v, %v", what, problems, err)
			continue
		}
		if len(problems) > 0 {
			if p := problems[0]; p.Path.String() != "devices.disks[vda].driver.type" || !strings.Contains(p.Detail, `Set driver.type to "raw".`) {
				t.Errorf("%s: got %s: %s", what, p.Path, p.Detail)
			}
			continue
		}
		if got := wanted.At("devices.disks").Elems()[0].At("driver.type").Str(); got != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	// A disk that the plan does not know is refused with what there is to set.
	_, problems, err := k.withFormats(context.Background(), flight{name: "d", before: withDisk(formatted("old", str("qcow2"))), wanted: withDisk(formatted("raw", str("qcow2")))})
	var refused *kind.ProblemError
	if len(problems) != 1 || errors.As(err, &refused) {
		t.Errorf("of a disk that is in no plan: %v, %v", problems, err)
	}
}

// Storage that does not answer is waited for a few seconds, and then says nothing.
func TestPreflightOfSilentStorage(t *testing.T) {
	t.Parallel()
	k := poolOf(t, map[string]string{"old": "qcow2", "raw": "raw"})
	ctx := context.Background()
	for _, silent := range []string{"read the sizes of volume", "read the XML of volume"} {
		hold := make(chan struct{})
		remove := virttest.Install(k.host(), virttest.Observe(virttest.Op(silent), func(virt.Call) { <-hold }))
		f := flight{name: "d", before: withDisk(formatted("old", tree.StringValue("qcow2"))), wanted: withDisk(formatted("raw", tree.NullValue))}
		wanted, problems, err := k.withFormats(ctx, f)
		if problems = append(problems, k.refuseEmptied(ctx, f, wanted)...); len(problems) > 0 || err != nil {
			t.Errorf("%s: got %v, %v", silent, problems, err)
		}
		close(hold) // the storage was silent all the time
		remove()
	}
}
