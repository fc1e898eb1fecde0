package bounce

import "testing"

func TestEffects(t *testing.T) {
	got := Effects([]Row{
		{Name: "nic-link", Steps: []Step{{Change: Fields{"devices.interfaces": "[]"}, Want: Always(Live)}}},
		{Name: "two-steps", Steps: []Step{{Change: Fields{"memory": "1", "vcpu": "1"}, Want: Waits("memory")}, {Change: Fields{"title": "x"}, Want: Always(Live)}}},
		{Name: "by-hand", Steps: []Step{{Hand: []string{"x"}, Want: Always(None)}}},
		{Name: "elsewhere", Unavailable: "this host has no | pipe"},
		{Name: "some", Only: []Policy{AllowLive}, Steps: []Step{{Hand: []string{"x"}, Change: Fields{"a": "1"}, Want: Always(Want{})}}},
	})
	const want = "| change | attributes | `next_boot` (standard) | `live` | `restart` |\n|---|---|---|---|---|\n" +
		"| nic link | `devices.interfaces` | live | live | live |\n" +
		"| two steps | `memory`, `title`, `vcpu` | next_boot, then live | refused | restart, then live |\n" +
		"| elsewhere | | not tried: this host has no \\| pipe | | |\n" +
		"| some | `a` | – | nothing | – |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
