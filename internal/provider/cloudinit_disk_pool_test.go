package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

func pooledModel(pool, name, user string) *cloudinitDiskModel {
	m := &cloudinitDiskModel{Pool: types.StringValue(pool), storedFile: storedFile{Name: types.StringValue(name)}, UserData: types.StringValue(user), MetaData: types.StringValue(seedMeta)}
	digest := seed.CloudInit(user, seedMeta, nil).Digest()
	m.VolumeName, m.Path = types.StringValue(seed.VolumeName(name, digest)), types.StringValue("/pools/"+pool+"/"+seed.VolumeName(name, digest))
	m.Digest, m.ContentDigest = types.StringValue(digest.Tagged()), types.StringValue(digest.Tagged())
	m.setBefore(nil)
	return m
}

// Everything that follows from the inputs is known in the plan, also without a
// store of this machine. A pool that is not known may turn out to be none.
func TestComputeInPool(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	r := &cloudinitDisk{stored{kind: cloudinitDiskKind, settings: &Data{}}}
	prior := pooledModel("p", "web", seedUser)
	changed := pooledModel("p", "web", seedUser+"# more\n")
	compute := func(change func(*cloudinitDiskModel), prior *cloudinitDiskModel) *cloudinitDiskModel {
		t.Helper()
		m := *changed
		m.Path, m.Digest, m.VolumeName = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		change(&m)
		if diags := r.computeInPool(&m, prior); diags.HasError() {
			t.Fatal(diags)
		}
		return &m
	}
	as := func(m *cloudinitDiskModel) [4]string {
		return [4]string{m.VolumeName.String(), m.Path.String(), m.ContentDigest.String(), m.Superseded.String()}
	}
	const unknown = "<unknown>"
	q := pooledModel("q", "web", seedUser+"# more\n")
	for name, c := range map[string]struct {
		change func(*cloudinitDiskModel)
		prior  *cloudinitDiskModel
		want   [4]string
	}{
		"a new one":                {func(*cloudinitDiskModel) {}, nil, [4]string{changed.VolumeName.String(), unknown, changed.Digest.String(), "[]"}},
		"another content":          {func(*cloudinitDiskModel) {}, prior, [4]string{changed.VolumeName.String(), changed.Path.String(), changed.Digest.String(), unknown}},
		"another pool":             {func(m *cloudinitDiskModel) { m.Pool = q.Pool }, prior, [4]string{q.VolumeName.String(), unknown, q.Digest.String(), unknown}},
		"a pool that is not known": {func(m *cloudinitDiskModel) { m.Pool = types.StringUnknown() }, prior, [4]string{unknown, unknown, unknown, unknown}},
		"the same, of a new one":   {func(m *cloudinitDiskModel) { m.Pool = types.StringUnknown() }, nil, [4]string{unknown, unknown, unknown, unknown}},
		"a name that is not known": {func(m *cloudinitDiskModel) { m.Name = types.StringUnknown() }, prior, [4]string{unknown, unknown, changed.Digest.String(), unknown}},
		"user data that are not":   {func(m *cloudinitDiskModel) { m.UserData = types.StringUnknown() }, prior, [4]string{unknown, unknown, unknown, unknown}},
		"user data that are not kept": {func(m *cloudinitDiskModel) {
			m.UserData, m.UserDataWOVersion = types.StringNull(), types.Int64Value(1)
		}, prior, [4]string{unknown, unknown, unknown, unknown}},
	} {
		if got := as(compute(c.change, c.prior)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	large := *changed
	large.UserData = types.StringValue("#!/bin/sh\n" + strings.Repeat("#", seed.MaxContent))
	if diags := r.computeInPool(&large, nil); len(diags) != 1 || !strings.Contains(diags[0].Detail(), "larger than 10 MiB together") {
		t.Errorf("%v", diags)
	}
}

func TestSetBefore(t *testing.T) {
	m := pooledModel("p", "web", seedUser)
	one, two := pooledModel("p", "web", "#!a\n").volume(), pooledModel("p", "web", "#!b\n").volume()
	m.setBefore(append(m.before(), one, two, one))
	if got := m.before(); len(got) != 2 || got[0].String() != one.String() || got[1].String() != two.String() {
		t.Errorf("%v", got)
	}
	m.Pool = types.StringNull()
	if !m.inPools() || m.pooled() {
		t.Error("what a seed had before is in a pool, though the seed is not")
	}
	if m.setBefore(nil); !m.Superseded.IsNull() || m.inPools() {
		t.Errorf("a seed that is in no pool has %s", m.Superseded)
	}
}

// A state of another provider's older versions has a pool, too: what it lacks is
// the volume of ours, which has to be made.
func TestStaysAs(t *testing.T) {
	ours, theirs := pooledModel("p", "web", seedUser), pooledModel("p", "web", seedUser)
	theirs.VolumeName, theirs.Path, theirs.Digest, theirs.ContentDigest = types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull()
	stored := pooledModel("p", "web", seedUser)
	stored.Pool, stored.VolumeName = types.StringNull(), types.StringNull()
	for name, c := range map[string]struct {
		plan, prior *cloudinitDiskModel
		want        bool
	}{
		"the same":           {ours, ours, true},
		"a new one":          {ours, nil, false},
		"other content":      {pooledModel("p", "web", seedUser+"# more\n"), ours, false},
		"another pool":       {pooledModel("q", "web", seedUser), ours, false},
		"somebody else's":    {ours, theirs, false},
		"a file":             {stored, stored, true},
		"a file that was in": {stored, ours, false},
	} {
		if got := c.plan.staysAs(c.prior); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Where the volumes before lie is in the record, and only of those that are left.
func TestSeedRecordPaths(t *testing.T) {
	m := pooledModel("p", "web", seedUser)
	one, two := pooledModel("p", "web", "#!a\n").volume(), pooledModel("p", "web", "#!b\n").volume()
	m.setBefore([]storage.SeedVolume{one, two})
	var rec seedRecord
	if got := rec.placed(m.before()); got[0].Path != "" || got[1].Path != "" {
		t.Errorf("without a record: %+v", got)
	}
	rec.left([]storage.SeedVolume{one, two})
	if got := rec.placed(m.before()); got[0] != one || got[1] != two {
		t.Errorf("%+v", got)
	}
	rec.left([]storage.SeedVolume{two})
	if got := rec.placed(m.before()); got[0].Path != "" || got[1] != two {
		t.Errorf("one is gone: %+v", got)
	}
}

// What a plan deletes it names, and where only this host could be asked, it says so.
func TestWarnOfEnd(t *testing.T) {
	m := pooledModel("p", "web", seedUser)
	var diags diag.Diagnostics
	seedRecord{}.warnOfEnd(&diags, m)
	seedRecord{Unneeded: []string{m.volume().String()}}.warnOfEnd(&diags, m) // it is to be the current one again
	if len(diags) != 0 {
		t.Errorf("nothing is deleted: %v", diags)
	}
	seedRecord{Unneeded: []string{"p/a.iso", "q/b.iso"}, Shared: map[string]string{"q/b.iso": "netfs"}}.warnOfEnd(&diags, m)
	if len(diags) != 2 || diags.HasError() || !strings.Contains(diags[0].Summary(), `seed "web": p/a.iso`) || strings.Contains(diags[0].Detail(), "only this host") ||
		!strings.Contains(diags[1].Summary(), "q/b.iso") || !strings.Contains(diags[1].Detail(), "type netfs, which other hosts use at the same time, and only this host was asked") {
		t.Errorf("%v", diags)
	}
}
