package storage

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

func TestParseSeedVolume(t *testing.T) {
	for text, want := range map[string]SeedVolume{
		"default/web-0123456789ab.iso": {Pool: "default", Name: "web-0123456789ab.iso"},
		"a/b/web.iso":                  {Pool: "a/b", Name: "web.iso"},
	} {
		if got, ok := ParseSeedVolume(text); !ok || got != want || got.String() != text {
			t.Errorf("%q is %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "web.iso", "/web.iso", "default/"} {
		if got, ok := ParseSeedVolume(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// One volume takes the place of another only as another content of the same seed,
// in the same pool.
func TestSucceeds(t *testing.T) {
	one, two := seed.CloudInit("a", "b", nil).Digest(), seed.CloudInit("c", "d", nil).Digest()
	at := func(pool, name string, d seed.Digest) SeedVolume {
		return SeedVolume{Pool: pool, Name: seed.VolumeName(name, d)}
	}
	for name, c := range map[string]struct {
		was, is SeedVolume
		want    bool
	}{
		"another content":     {at("p", "web", one), at("p", "web", two), true},
		"the same":            {at("p", "web", one), at("p", "web", one), false},
		"another seed":        {at("p", "web", one), at("p", "db", two), false},
		"one that begins so":  {at("p", "web", one), at("p", "web-2", two), false},
		"another pool":        {at("p", "web", one), at("q", "web", two), false},
		"out of the drive":    {at("p", "web", one), SeedVolume{}, false},
		"somebody's image":    {SeedVolume{Pool: "p", Name: "debian-12.iso"}, at("p", "web", two), false},
		"somebody's image in": {at("p", "web", one), SeedVolume{Pool: "p", Name: "debian-12.iso"}, false},
		"both of somebody":    {SeedVolume{Pool: "p", Name: "debian-12.iso"}, SeedVolume{Pool: "p", Name: "debian-13.iso"}, false},
	} {
		if succeeds(c.was, c.is) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// Who is held twice is held until both have let go, and to let go twice is to let
// go once.
func TestHold(t *testing.T) {
	k := NewVolume(nil)
	web := kind.Medium{Pool: "p", Volume: "web.iso"}
	held := func() int { return k.holds.held["web.iso"] }
	one := k.Hold([]kind.Medium{web, {}})
	two := k.Hold([]kind.Medium{{File: "/pool/web.iso"}})
	for i, step := range []struct {
		do   func()
		want int
	}{{func() {}, 2}, {one, 1}, {one, 1}, {two, 0}} {
		if step.do(); held() != step.want {
			t.Errorf("step %d: held %d times, want %d", i, held(), step.want)
		}
	}
	if len(k.holds.held) != 0 {
		t.Errorf("%v", k.holds.held)
	}
}
