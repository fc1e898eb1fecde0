package storage

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestEqualVolume(t *testing.T) {
	str, num := tree.StringValue, tree.IntValue
	url := func(u string) tree.Value { return tree.NullValue.SetAt("content.url", str(u)) }
	digest, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	cases := []struct {
		pattern string
		a, b    tree.Value
		want    bool
	}{
		{"capacity", num(1000001), num(1000448), true},       // a sector
		{"capacity", num(1 << 20), num(4 << 20), true},       // an extent of a volume group
		{"capacity", num(1 << 20), num(2 << 20), false},      // somebody grew it
		{"capacity", num(1 << 30), num(1<<30 + 1), false},    // nothing rounds to that
		{"target.format.type", str("iso"), str("raw"), true}, // what a refresh makes of it
		{"target.format.type", str("qcow2"), str("raw"), false},
		{"create", url("/tmp/x/web-sha256-" + digest + ".iso"), url("/home/y/web-sha256-" + digest + ".iso"), true},
		{"create", url("/tmp/x/web-sha256-" + digest + ".iso"), url("/tmp/x/web-sha256-" + other + ".iso"), false},
		{"create", url("https://a/x.img"), url("https://b/x.img"), false},
		{"target.permissions.mode", str("0644"), str("644"), true},
	}
	for _, c := range cases {
		for _, pair := range [][2]tree.Value{{c.a, c.b}, {c.b, c.a}} {
			if got := equalVolume(c.pattern, pair[0], pair[1]); got != c.want {
				t.Errorf("%s: %s and %s: %v", c.pattern, pair[0], pair[1], got)
			}
		}
	}
}

func TestCheckURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"/a/b": true, "a/b": true, "C:x": true, "file:///a": true, "http://h/x": true, "https://h/x?y": true,
		"": false, "ftp://h/x": false, "s3://b/k": false, "http://[": false,
	} {
		if err := checkURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
