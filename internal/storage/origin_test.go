package storage

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// made is a value of `create`, from pairs of place and text.
func made(pairs ...string) tree.Value {
	v := tree.ObjectValue(nil)
	for i := 0; i < len(pairs); i += 2 {
		v = v.SetAt(pairs[i], tree.StringValue(pairs[i+1]))
	}
	return v
}

func TestSameOrigin(t *testing.T) {
	one, two := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	url, sum := "content.url", "content.checksum"
	cases := map[string]struct {
		a, b tree.Value
		want bool
	}{
		"another mirror of the same image":       {made(url, "https://a/x", sum, one), made(url, "https://b/y", sum, strings.ToUpper(one)), true},
		"the same URL with another image":        {made(url, "https://a/latest", sum, one), made(url, "https://a/latest", sum, two), false},
		"the same URL, a checksum written later": {made(url, "https://a/x"), made(url, "https://a/x", sum, one), true},
		"another URL, and one checksum":          {made(url, "https://a/x"), made(url, "https://b/y", sum, one), false},
		"another URL":                            {made(url, "https://a/x"), made(url, "https://a/y"), false},
		"what becomes of it":                     {made(url, "https://a/x"), made(url, "https://a/x", "on_change", "replace"), true},
		"the same clone":                         {made("clone.pool", "p", "clone.volume", "v"), made("clone.pool", "p", "clone.volume", "v", "on_change", "keep"), true},
		"another clone":                          {made("clone.pool", "p", "clone.volume", "v"), made("clone.pool", "p", "clone.volume", "w"), false},
		"a clone instead of content":             {made("clone.path", "/v"), made(url, "/v"), false},
		"made from nothing":                      {made("on_change", "keep"), made("on_change", "replace"), true},
		"filled, and made from nothing":          {made("on_change", "keep"), made(url, "/x"), false},
	}
	for name, c := range cases {
		if got := equalVolume("create", c.a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := equalVolume("create", c.b, c.a); got != c.want {
			t.Errorf("%s, the other way round: %v", name, got)
		}
	}
}

// planOf is the plan of a volume that is there, for another value of `create`.
func planOf(create, prior tree.Value) (change.Result, kind.Verdict, tree.Value, tree.Value) {
	k := NewVolume(nil)
	base := tree.NullValue.With("name", tree.StringValue("v")).With("pool", tree.StringValue("p"))
	config, state := base.With("create", create), base.With("create", prior).With("id", tree.StringValue("/v"))
	host := base.With("id", tree.StringValue("/v"))
	r := k.Rules().Plan(change.Input{Type: k.Type(), Config: config, Prior: state, Baseline: host, Actual: host})
	return r, k.Judge(kind.Judgement{Config: config, Prior: state, Planned: r.Planned, Changes: r.Changes}), config, state
}

func TestChangeOfOrigin(t *testing.T) {
	const url, clone = "content.url", "clone.path"
	unknown := made("on_change", "replace").SetAt(url, tree.UnknownValue)
	cases := map[string]struct {
		create, prior tree.Value
		want          string // nothing, warning, replacement
	}{
		"the same":                             {made(url, "/x"), made(url, "/x"), "nothing"},
		"another image":                        {made(url, "/y"), made(url, "/x"), "warning"},
		"another image, kept in so many words": {made(url, "/y", "on_change", "keep"), made(url, "/x"), "warning"},
		"another image, to be replaced":        {made(url, "/y", "on_change", "replace"), made(url, "/x"), "replacement"},
		"another clone":                        {made(clone, "/y"), made(clone, "/x"), "warning"},
		"another clone, to be replaced":        {made(clone, "/y", "on_change", "replace"), made(clone, "/x", "on_change", "replace"), "replacement"},
		"content instead of a clone":           {made(url, "/y", "on_change", "replace"), made(clone, "/x"), "replacement"},
		"to be replaced from now on":           {made(url, "/x", "on_change", "replace"), made(url, "/x"), "nothing"},
		"not known, to be replaced":            {unknown, made(url, "/x"), "replacement"},
		"not known":                            {made().SetAt(url, tree.UnknownValue), made(url, "/x"), "nothing"},
		"the same, to be replaced or not":      {made(url, "/x").With("on_change", tree.UnknownValue), made(url, "/x"), "nothing"},
		"the same checksum, likewise":          {made(url, "/y", "content.checksum", "sha256:a").With("on_change", tree.UnknownValue), made(url, "/x", "content.checksum", "sha256:a"), "nothing"},
		"another image, likewise":              {made(url, "/y").With("on_change", tree.UnknownValue), made(url, "/x"), "unresolved"},
		"another clone, likewise":              {made(clone, "/y").With("on_change", tree.UnknownValue), made(clone, "/x"), "unresolved"},
		"not known, likewise":                  {made().SetAt(url, tree.UnknownValue).With("on_change", tree.UnknownValue), made(url, "/x"), "unresolved"},
		"nothing is known":                     {tree.UnknownValue, made(url, "/x"), "unresolved"},
		"an image for a volume that was imported, to be replaced": {made(url, "/y", "on_change", "replace"), tree.NullValue, "noted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, v, config, state := planOf(c.create, c.prior)
			got := "nothing"
			switch {
			case len(v.Replace) == 1 && v.Replace[0].String() == "create" && v.Effect == change.EffectReplace && v.Outcome == "recreate" && tree.Equal(r.Planned.Attr("create"), c.create):
				got = "replacement"
			case len(r.Unresolved) == 1 && r.Unresolved[0].String() == onChange && tree.Equal(r.Planned, state) && len(r.Changes)+len(r.Ignored) == 0:
				got = "unresolved"
			case len(v.Replace)+len(v.Refusals)+len(r.Changes)+len(r.Unresolved) > 0:
				got = "something else"
			case len(r.Ignored) == 1 && r.Ignored[0].String() == "create" && tree.Equal(r.Planned, state):
				got = "warning"
			case !tree.Equal(r.Planned, state):
				got = "noted"
			}
			if got != c.want {
				t.Errorf("it is %s: %+v, %+v", got, r, v)
			}
			if bad := change.Expressible(NewVolume(nil).Type(), state, config, r.Planned); len(bad) > 0 {
				t.Errorf("no core accepts it: %v", bad)
			}
		})
	}
}

func TestValidateOrigin(t *testing.T) {
	k := NewVolume(nil)
	base := tree.NullValue.With("name", tree.StringValue("v")).With("pool", tree.StringValue("p"))
	cases := map[string]struct {
		config tree.Value
		at     string
	}{
		"a clone by pool and volume":       {base.With("create", made("clone.pool", "q", "clone.volume", "v")), ""},
		"a clone by path":                  {base.With("create", made("clone.path", "/v")), ""},
		"a clone by a path not known yet":  {base.SetAt("create.clone.path", tree.UnknownValue), ""},
		"a clone of nothing":               {base.SetAt("create.clone", tree.ObjectValue(nil)), "create.clone"},
		"a clone of a pool":                {base.With("create", made("clone.pool", "q")), "create.clone"},
		"a clone of a volume of no pool":   {base.With("create", made("clone.volume", "w")), "create.clone"},
		"a clone by both":                  {base.With("create", made("clone.pool", "q", "clone.volume", "w", "clone.path", "/v")), "create.clone"},
		"a clone of itself":                {base.With("create", made("clone.pool", "p", "clone.volume", "v")), "create.clone"},
		"a clone with content":             {base.With("create", made("clone.path", "/v", "content.url", "/x")), "create.clone"},
		"a clone over another":             {base.With("create", made("clone.path", "/v")).SetAt("backing_store.path", tree.StringValue("/b")), "backing_store"},
		"another word for what becomes of": {base.With("create", made("content.url", "/x", "on_change", "destroy")), "create.on_change"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			problems := k.Validate(c.config)
			if c.at == "" && len(problems) > 0 || c.at != "" && (len(problems) != 1 || problems[0].Path.String() != c.at) {
				t.Errorf("%+v", problems)
			}
		})
	}
}
