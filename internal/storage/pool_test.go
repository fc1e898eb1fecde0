package storage

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestPoolHolds(t *testing.T) {
	cases := []struct {
		typ, target, file string
		want              bool
	}{
		{"dir", "/srv/a", "/srv/a/x.img", true},
		{"dir", "/srv/a/", "/srv/a/x.img", true},
		{"dir", "/srv/a", "/srv/a/b/x.img", false}, // another pool's
		{"dir", "/srv/a", "/srv/ab/x.img", false},
		{"netfs", "/srv/a", "/srv/a/x.img", true},
		{"logical", "/dev/vg", "/dev/vg/data", true},
		{"logical", "/dev/vg", "/dev/vg2/data", false},
		{"disk", "/dev", "/dev/vg/data", false}, // a directory that is everybody's
		{"disk", "/dev", "/dev/sdz9", true},     // listed by libvirt
		{"rbd", "", "/x", false},
	}
	for _, c := range cases {
		xml := "<pool type='" + c.typ + "'><name>p</name><target><path>" + c.target + "</path></target></pool>"
		raw, err := spec.Pool().Decode(xml)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&poolSight{raw: raw}).holds(c.file, map[string]bool{"/dev/sdz9": true}, func(a, b string) bool { return a == b }); got != c.want {
			t.Errorf("%s pool at %s holds %s: %v", c.typ, c.target, c.file, got)
		}
	}
}

func TestPoolJudge(t *testing.T) {
	k := NewPool(nil)
	str := tree.StringValue
	prior := tree.NullValue.With("name", str("p"))
	of := func(path string, kind change.Kind) change.Change {
		return change.Change{Path: tree.ParsePath(path), Kind: kind, Actual: str("a"), Desired: str("b")}
	}
	cases := map[string]struct {
		change  change.Change
		refusal string
		replace bool
	}{
		"name":               {of("name", change.Intent), `Cannot change name of pool "p"`, false},
		"type":               {of("type", change.Intent), `Cannot change type of pool "p"`, false},
		"target":             {of("target.path", change.Intent), `Cannot change target.path of pool "p"`, false},
		"mode":               {of("target.permissions.mode", change.Intent), `Cannot change target.permissions.mode of pool "p"`, false},
		"mode, left out":     {of("target.permissions.mode", change.Withdrawal), "", false},
		"uuid":               {of("uuid", change.Intent), "", true},
		"source, in place":   {of("source.format.type", change.Intent), "", false},
		"autostart in place": {of("autostart", change.Drift), "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := k.Judge(kind.Judgement{Prior: prior, Changes: []change.Change{c.change}})
			var refused []string
			for _, p := range v.Refusals {
				refused = append(refused, p.Summary)
			}
			if strings.Join(refused, "; ") != c.refusal || len(v.Replace) > 0 != c.replace || len(v.Fields) != 1 {
				t.Errorf("%+v", v)
			}
			if v.Effect != change.EffectNone && !c.replace {
				t.Errorf("effect %s", v.Effect)
			}
		})
	}
}

func TestPoolValidate(t *testing.T) {
	k := NewPool(nil)
	config := func(typ string, build, overwrite tree.Value) tree.Value {
		return tree.NullValue.With("name", tree.StringValue("p")).With("type", tree.StringValue(typ)).
			SetAt("create.build", build).SetAt("create.overwrite", overwrite)
	}
	yes, no, null := tree.BoolValue(true), tree.BoolValue(false), tree.NullValue
	cases := map[string]struct {
		config tree.Value
		says   string
	}{
		"a file system anew":         {config("fs", yes, yes), ""},
		"a file system":              {config("fs", yes, null), ""},
		"a directory anew":           {config("dir", yes, yes), "has nothing to overwrite"},
		"overwritten and not built":  {config("fs", null, yes), "create.overwrite without create.build"},
		"overwritten, built perhaps": {config("fs", tree.UnknownValue, yes), ""},
		"not overwritten":            {config("dir", null, no), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, p := range k.Validate(c.config) {
				said = append(said, p.Summary)
			}
			if len(said) > 1 || c.says == "" != (said == nil) || !strings.Contains(strings.Join(said, ""), c.says) {
				t.Errorf("it says %q", said)
			}
		})
	}
}
