package domain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func withDrives(t *testing.T, disks string) tree.Value {
	t.Helper()
	def, err := spec.Domain().Decode(`<domain type="qemu"><name>x</name><os><type>hvm</type></os><devices>` + disks + `</devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

const (
	cdOf     = `<disk type="volume" device="cdrom"><source pool="p" volume="NAME"/><target dev="sda" bus="sata"/></disk>`
	cdOfFile = `<disk type="file" device="cdrom"><source file="/p/NAME"/><target dev="sdb" bus="sata"/></disk>`
	noCD     = `<disk type="file" device="cdrom"><target dev="sda" bus="sata"/></disk>`
	rootDisk = `<disk type="volume"><source pool="p" volume="root"/><target dev="vda" bus="virtio"/></disk>`
)

func cd(name string) string { return strings.Replace(cdOf, "NAME", name, 1) }

func cdFile(name string) string { return strings.Replace(cdOfFile, "NAME", name, 1) }

// When a guest gets another medium is what update.media says, and what that may
// cost is what update.allow says.
func TestJudgeMedia(t *testing.T) {
	str := tree.StringValue
	guest := withDrives(t, cd("old")+rootDisk)
	medium := change.Change{Path: tree.ParsePath("devices.disks[0].source.volume.volume"), Desired: str("new"), Actual: str("old"), Guest: str("old")}
	policy := change.Change{Path: tree.ParsePath("devices.disks[0].source.startup_policy"), Desired: str("optional")}
	for name, c := range map[string]struct {
		media, allow string
		power        string
		changed      change.Change
		effect       change.Effect
		refused      bool
	}{
		"unset":                   {"", "", "running", medium, change.EffectLive, false},
		"live":                    {"live", "restart", "running", medium, change.EffectLive, false},
		"waits":                   {"next_boot", "", "running", medium, change.EffectNextBoot, false},
		"waits and is restarted":  {"next_boot", "restart", "running", medium, change.EffectRestart, false},
		"waits and may not":       {"next_boot", "live", "running", medium, change.EffectNextBoot, true},
		"waits and is off":        {"next_boot", "restart", "shutoff", medium, change.EffectNone, false},
		"something else in there": {"next_boot", "", "running", policy, change.EffectLive, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := tree.NullValue
			if c.media != "" {
				config = config.SetAt("update.media", str(c.media))
			}
			if c.allow != "" {
				config = config.SetAt("update.allow", str(c.allow))
			}
			v := New(nil).Judge(kind.Judgement{
				Prior: tree.NullValue.With("name", str("x")).SetAt("status.power", str(c.power)), Config: config,
				Changes: []change.Change{c.changed}, Guest: guest, Definition: guest,
			})
			if v.Effect != c.effect || len(v.Refusals) > 0 != c.refused {
				t.Errorf("effect %s, %+v", v.Effect, v.Refusals)
			}
			if c.refused && !strings.Contains(v.Refusals[0].Detail, "keeps the medium that it has") {
				t.Errorf("the refusal does not say why: %+v", v.Refusals)
			}
		})
	}
	if p := validateSettings(tree.NullValue.SetAt("update.media", str("later"))); len(p) != 1 || !strings.Contains(p[0].Detail, "next_boot") {
		t.Errorf("an unknown time: %+v", p)
	}
	if p := validateSettings(tree.NullValue.SetAt("update.media", tree.UnknownValue)); len(p) != 0 {
		t.Errorf("one that is not known yet: %+v", p)
	}
}

// shelf takes media, and says what is held.
type shelf struct {
	held   []kind.Medium
	retire func(old kind.Medium) (string, error)
}

func (s *shelf) Hold(media []kind.Medium) (release func()) {
	s.held = append(s.held, media...)
	return func() { s.held = nil }
}

func (s *shelf) Retire(_ context.Context, old kind.Medium) (string, error) {
	return s.retire(old)
}

// What came out of a drive is handed over once, and only if neither definition nor
// guest has it there any more.
func TestRetireMedia(t *testing.T) {
	const off, runs = virt.StateShutoff, virt.StateRunning
	sightOf := func(definition, guest string, power virt.State) *sight {
		s := &sight{definition: withDrives(t, definition), power: power}
		if guest != "" {
			s.guest = withDrives(t, guest)
		}
		return s
	}
	for name, c := range map[string]struct {
		before, after *sight
		want          []string
	}{
		"swapped live":              {sightOf(cd("old"), "", runs), sightOf(cd("new"), "", runs), []string{"old"}},
		"swapped while off":         {sightOf(cd("old"), "", off), sightOf(cd("new"), "", off), []string{"old"}},
		"the guest keeps it":        {sightOf(cd("old"), "", runs), sightOf(cd("new"), cd("old"), runs), nil},
		"the guest had another":     {sightOf(cd("old"), cd("older"), runs), sightOf(cd("new"), "", runs), []string{"old", "older"}},
		"nothing changes":           {sightOf(cd("old"), "", runs), sightOf(cd("old"), "", runs), nil},
		"it was empty":              {sightOf(noCD, "", runs), sightOf(cd("new"), "", runs), nil},
		"it is empty":               {sightOf(cd("old"), "", runs), sightOf(noCD, "", runs), []string{"old"}},
		"a file":                    {sightOf(cdFile("old"), "", runs), sightOf(cdFile("new"), "", runs), []string{"/p/old"}},
		"a disk is no drive":        {sightOf(rootDisk, "", runs), sightOf(cd("new"), "", runs), nil},
		"two drives, one of them":   {sightOf(cd("old")+cdFile("other"), "", runs), sightOf(cd("new")+cdFile("other"), "", runs), []string{"old"}},
		"a restart brought it":      {sightOf(cd("new"), cd("old"), runs), sightOf(cd("new"), "", runs), []string{"old"}},
		"and one that was shut off": {sightOf(cd("old"), cd("older"), runs), sightOf(cd("new"), "", off), []string{"old", "older"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			shelf := &shelf{retire: func(old kind.Medium) (string, error) {
				got = append(got, old.Volume+old.File)
				return old.Volume, nil
			}}
			k := New(nil).Retiring(shelf)
			a := &apply{k: k, before: c.before}
			a.retireMedia(t.Context(), c.after)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	shelf := &shelf{retire: func(kind.Medium) (string, error) { return "", errors.New("the pool is busy") }}
	k := New(nil).Retiring(shelf)
	a := &apply{k: k, before: sightOf(cd("old"), "", runs)}
	a.before.name = "web"
	a.retireMedia(t.Context(), sightOf(cd("new"), "", runs))
	if len(a.warnings) != 1 || !strings.Contains(a.warnings[0].Summary, `drive sda of domain "web"`) || !strings.Contains(a.warnings[0].Detail, "the pool is busy") || len(a.steps) != 0 {
		t.Errorf("a failure: %+v, %v", a.warnings, a.steps)
	}
	a = &apply{k: k, before: sightOf(cd("old")+cdFile("other"), cd("older")+cdFile("other"), runs)}
	release := a.holdMedia()
	for _, m := range []kind.Medium{{Pool: "p", Volume: "old"}, {Pool: "p", Volume: "older"}, {File: "/p/other"}} {
		if !slices.Contains(shelf.held, m) {
			t.Errorf("%+v is not held: %+v", m, shelf.held)
		}
	}
	if release(); shelf.held != nil {
		t.Errorf("%+v is held still", shelf.held)
	}
}
