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

// Only what a seed of this run has said to have had, and no seed of this run has,
// may go beside a change.
func TestMayRetire(t *testing.T) {
	one, two := seed.CloudInit("a", "b", nil).Digest(), seed.CloudInit("c", "d", nil).Digest()
	at := func(pool, name string, d seed.Digest) SeedVolume {
		return SeedVolume{Pool: pool, Name: seed.VolumeName(name, d), Path: "/pools/" + pool + "/" + seed.VolumeName(name, d)}
	}
	web := at("p", "web", one)
	elsewhere := web
	elsewhere.Pool = "renamed"
	for name, c := range map[string]struct {
		current, superseded []SeedVolume
		want                bool
	}{
		"nothing was said":                      {nil, nil, false},
		"another content":                       {[]SeedVolume{at("p", "web", two)}, []SeedVolume{web}, true},
		"another name":                          {[]SeedVolume{at("p", "db", two)}, []SeedVolume{web}, true},
		"another pool":                          {[]SeedVolume{at("q", "web", one)}, []SeedVolume{web}, true},
		"out of the pools":                      {nil, []SeedVolume{web}, true},
		"current, and nothing superseded":       {[]SeedVolume{web}, nil, false},
		"the content of another is current":     {[]SeedVolume{at("p", "web", two)}, nil, false},
		"another one is superseded":             {nil, []SeedVolume{at("p", "web", two)}, false},
		"one of another pool is":                {nil, []SeedVolume{at("q", "web", one)}, false},
		"one seed's old is another's":           {[]SeedVolume{web}, []SeedVolume{web}, false},
		"it is about to be put there again":     {[]SeedVolume{{Pool: web.Pool, Name: web.Name}}, []SeedVolume{web}, false},
		"the pool of the current one is called": {[]SeedVolume{elsewhere}, []SeedVolume{web}, false},
	} {
		k := NewVolume(nil)
		for _, at := range c.current {
			k.KeepSeed(at)
		}
		for _, at := range c.superseded {
			k.SupersedeSeed(at)
		}
		if got := k.run.mayRetire(web, func(path string) bool { return path == web.Path }); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if k.ForgetSeeds(); len(k.run.current)+len(k.run.superseded) > 0 || k.KeepsSeed(web) {
			t.Errorf("%s: another run knows of it", name)
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
