package seed

import (
	"strings"
	"testing"
)

func TestVolumeName(t *testing.T) {
	one, two := CloudInit("a", "b", nil).Digest(), CloudInit("c", "d", nil).Digest()
	for _, name := range []string{"web", "web-1.example.org", "web-" + one.String()[:12], "Ä b/c", ".hidden", strings.Repeat("long", 100)} {
		volume := VolumeName(name, one)
		prefix, short, ok := ParseVolumeName(volume)
		if !ok || prefix != escapeName(name) || !one.Begins(short) || two.Begins(short) {
			t.Errorf("%q: %q is %q and %q, %v", name, volume, prefix, short, ok)
		}
		if len(volume) > 255 || strings.ContainsAny(volume, "/ ") {
			t.Errorf("%q cannot be the name of a file", volume)
		}
	}
	if a, b := VolumeName("web", one), VolumeName("web", two); a == b {
		t.Errorf("two contents have the volume %s", a)
	}
	for _, other := range []string{
		"", "web.iso", "web-seed.iso", "-0123456789ab.iso", "web-0123456789abc.iso", "web-0123456789AB.iso", "web-0123456789ab.img",
		".web-0123456789ab.iso", "a/web-0123456789ab.iso", FileName("web", CloudInit("a", "b", nil)),
	} {
		if prefix, short, ok := ParseVolumeName(other); ok {
			t.Errorf("%q is taken for the volume of %q, %q", other, prefix, short)
		}
	}
	if one.Begins("") || one.Begins(one.String()) {
		t.Error("what is no short digest begins a digest")
	}
}
