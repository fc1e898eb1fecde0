package storage

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
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
		{"capacity", num(1 << 20), num(4 << 20), false},      // what storage rounds is known by asAgreed
		{"target.format.type", str("iso"), str("raw"), true}, // what a refresh makes of it
		{"target.format.type", str("qcow2"), str("raw"), false},
		{"create", url("/tmp/x/web-sha256-" + digest + ".iso"), url("/home/y/web-sha256-" + digest + ".iso"), true},
		{"create", url("/tmp/x/web-sha256-" + digest + ".iso"), url("/tmp/x/web-sha256-" + other + ".iso"), false},
		{"create", url("https://a/x.img"), url("https://b/x.img"), false},
		{"backing_store.path", str("/a//b"), str("/a/b"), true},
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

func TestAsAgreed(t *testing.T) {
	num, str := tree.IntValue, tree.StringValue
	size := func(v tree.Value) string { return sizeIn(v).String() }
	of := func(capacity int64) tree.Value { return tree.NullValue.With("capacity", num(capacity)) }
	device := func(capacity int64) tree.Value { return of(capacity).With("type", str("block")) }
	cases := map[string]struct {
		host  tree.Value
		asked int64
		seen  tree.Value
		want  string
	}{
		"as asked":                        {of(1000), 1000, num(1000), "1000"},
		"rounded up, as seen before":      {of(4 << 20), 1000, num(4 << 20), "1000"},
		"rounded up by a sector":          {of(1000448), 1000001, tree.NullValue, "1000001"},
		"rounded up by an extent":         {device(8 << 20), 5 << 20, tree.NullValue, "5242880"},
		"grown behind our back":           {of(8 << 20), 5 << 20, num(5 << 20), "8388608"},
		"grown again behind our back":     {of(8 << 20), 5 << 20, num(6 << 20), "8388608"},
		"shrunk behind our back":          {of(1000), 5000, num(5000), "1000"},
		"a file is not rounded like that": {of(8 << 20), 5 << 20, tree.NullValue, "8388608"},
		"nothing rounds like that":        {device(7 << 20), 5 << 20, tree.NullValue, "7340032"},
		"and never downwards":             {of(1000000), 1000448, tree.NullValue, "1000000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := asAgreed(c.host, of(c.asked), c.seen, false); size(got) != c.want {
				t.Errorf("%s", got)
			}
		})
	}
	t.Run("in the unit of the state", func(t *testing.T) {
		agreed := of(5).With("capacity_unit", str("MB"))
		if got := asAgreed(of(5000192), agreed, num(5000192), false); size(got) != "5000000" {
			t.Errorf("%s", got)
		}
	})

	agreed := tree.NullValue.SetAt("target.no_cow", tree.BoolValue(true)).SetAt("target.encryption.secret.uuid", str("u")).
		SetAt("target.encryption.format", str("luks")).SetAt("target.permissions.owner", str("33")).SetAt("target.permissions.mode", str("600"))
	host := tree.NullValue.SetAt("target.encryption.format", str("luks")).SetAt("target.permissions.owner", str("64055")).SetAt("target.permissions.mode", str("640"))
	at := func(v tree.Value, path, want string) {
		t.Helper()
		if got := v.At(path).String(); got != want {
			t.Errorf("%s is %s, not %s", path, got, want)
		}
	}
	off, on := asAgreed(host, agreed, tree.NullValue, false), asAgreed(host, agreed, tree.NullValue, true)
	for _, v := range []tree.Value{off, on} {
		at(v, "target.no_cow", "true")
		at(v, "target.encryption.secret.uuid", `"u"`)
		at(v, "target.permissions.mode", `"640"`) // nobody changes that but a person
	}
	at(off, "target.permissions.owner", `"64055"`)
	at(on, "target.permissions.owner", `"33"`)
	node := asAgreed(host.With("type", str("block")).SetAt("target.format", tree.NullValue), agreed.SetAt("target.format.type", str("raw")), tree.NullValue, false)
	at(node, "target.format.type", `"raw"`)
	at(node, "target.permissions.owner", `"33"`)
	at(node, "target.permissions.mode", `"600"`)
	file := asAgreed(host.SetAt("target.format.type", str("qcow2")), agreed.SetAt("target.format.type", str("raw")), tree.NullValue, false)
	at(file, "target.format.type", `"qcow2"`) // what a file is, the host knows
	plain := asAgreed(host.SetAt("target.encryption", tree.NullValue), agreed, tree.NullValue, false)
	at(plain, "target.encryption", "null") // the file is not encrypted any more: that is no lapse of memory
}

func TestVolumeJudge(t *testing.T) {
	k := NewVolume(nil)
	str, num := tree.StringValue, tree.IntValue
	prior := func(running, beneath bool) tree.Value {
		return tree.NullValue.With("name", str("v")).SetAt("status.running", tree.BoolValue(running)).SetAt("status.beneath", tree.BoolValue(beneath))
	}
	of := func(path string, kind change.Kind, actual, desired tree.Value) change.Change {
		return change.Change{Path: tree.ParsePath(path), Kind: kind, Actual: actual, Desired: desired}
	}
	cases := map[string]struct {
		prior   tree.Value
		change  change.Change
		outcome string
		effect  change.Effect
		refusal string
	}{
		"grows":                         {prior(false, false), of("capacity", change.Intent, num(1), num(2)), "resize", change.EffectNone, ""},
		"grows under a guest":           {prior(true, false), of("capacity", change.Intent, num(1), num(2)), "resize", change.EffectLive, ""},
		"grows under a copy":            {prior(true, false).SetAt("status.fw_cfg", tree.BoolValue(true)), of("capacity", change.Intent, num(1), num(2)), "resize", change.EffectNone, ""},
		"another seed":                  {prior(true, false), of(seedURL, change.Intent, str("/a"), str("/b")), "update", change.EffectLive, ""},
		"another seed, where a copy is": {prior(true, false).SetAt("status.fw_cfg", tree.BoolValue(true)), of(seedURL, change.Intent, str("/a"), str("/b")), "update", change.EffectNone, ""},
		"grows below an overlay in use": {prior(true, true), of("capacity", change.Intent, num(1), num(2)), "resize", change.EffectLive, `Refusing to grow volume "v" under a running guest`},
		"shrinks":                       {prior(false, false), of("capacity", change.Intent, num(2), num(1)), "resize", change.EffectNone, `Refusing to shrink volume "v"`},
		"a size not known yet":          {prior(true, false), of("capacity", change.Intent, num(2), tree.UnknownValue), "resize", change.EffectLive, ""},
		"another format":                {prior(false, false), of("target.format.type", change.Intent, str("raw"), str("qcow2")), "update", change.EffectNone, `Cannot change target.format.type of volume "v"`},
		"a format left out":             {prior(false, false), of("target.format.type", change.Withdrawal, str("raw"), tree.NullValue), "update", change.EffectNone, ""},
		"what libvirt does not tell":    {prior(false, false), of("target.encryption.secret.uuid", change.Intent, tree.NullValue, str("u")), "update", change.EffectNone, ""},
		"a format that it does not":     {prior(false, false), of("target.format.type", change.Intent, tree.NullValue, str("raw")), "update", change.EffectNone, ""},
		"what it does tell":             {prior(false, false), of("target.encryption.secret.uuid", change.Intent, str("t"), str("u")), "update", change.EffectNone, `Cannot change target.encryption.secret.uuid of volume "v"`},
		"another origin":                {prior(true, false), of("create", change.Intent, tree.ObjectValue(nil), tree.ObjectValue(nil)), "recreate", change.EffectReplace, ""},
		"another name":                  {prior(false, false), of("name", change.Intent, str("v"), str("w")), "recreate", change.EffectReplace, ""},
		"another pool":                  {prior(true, false), of("pool", change.Intent, str("p"), str("q")), "recreate", change.EffectReplace, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := k.Judge(kind.Judgement{Prior: c.prior, Changes: []change.Change{c.change}})
			refused := ""
			for _, p := range v.Refusals {
				refused += p.Summary
			}
			if v.Outcome != c.outcome || v.Effect != c.effect || refused != c.refusal || len(v.Replace) > 0 != (c.effect == change.EffectReplace) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// A volume that is in use and is to be replaced gets a word in the plan: who has it,
// and what the apply will end with.
func TestReplacementOfAVolumeInUse(t *testing.T) {
	k := NewVolume(nil)
	str := tree.StringValue
	free := tree.NullValue.With("name", str("v"))
	used := free.SetAt("status.users", texts([]string{"domain a (running), disk vda", "domain b (defined), disk vdb"}))
	of := func(path string) change.Change {
		return change.Change{Path: tree.ParsePath(path), Kind: change.Intent, Desired: str("x"), Actual: str("y")}
	}
	for name, c := range map[string]struct {
		prior   tree.Value
		changes []change.Change
		says    []string
	}{
		"another origin":          {used, []change.Change{of("create")}, []string{"The change of create", "write another name as well", "leave create.on_change out"}},
		"another name":            {used, []change.Change{of("name")}, []string{"The change of name", "or set lifecycle { create_before_destroy = true }"}},
		"another pool":            {used, []change.Change{of("pool")}, []string{"The change of pool"}},
		"all of them":             {used, []change.Change{of("create"), of("name"), of("pool")}, []string{"or set lifecycle"}},
		"nobody has it":           {free, []change.Change{of("create")}, nil},
		"nothing is replaced":     {used, []change.Change{of("capacity")}, nil},
		"its format cannot be so": {used, []change.Change{of("target.format.type")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := k.Judge(kind.Judgement{Prior: c.prior, Changes: c.changes})
			if c.says == nil {
				if len(v.Warnings) > 0 {
					t.Errorf("it warns: %+v", v.Warnings)
				}
				return
			}
			if len(v.Warnings) != 1 || v.Warnings[0].Summary != `Volume "v" is to be replaced, and is in use` {
				t.Fatalf("%+v", v.Warnings)
			}
			for _, part := range append(c.says, "domain a (running), disk vda; domain b (defined), disk vdb", "its destruction is refused") {
				if !strings.Contains(v.Warnings[0].Detail, part) {
					t.Errorf("it does not say %q: %s", part, v.Warnings[0].Detail)
				}
			}
		})
	}
}

func TestVolumeValidate(t *testing.T) {
	k := NewVolume(nil)
	str := tree.StringValue
	base := tree.NullValue.With("name", str("v")).With("pool", str("p"))
	filled := base.SetAt("create.content.url", str("/x"))
	cases := map[string]struct {
		config tree.Value
		at     string
	}{
		"plain":                        {base, ""},
		"filled":                       {filled.SetAt("create.content.checksum", str("sha256:"+strings.Repeat("aB", 32))), ""},
		"with a short checksum":        {filled.SetAt("create.content.checksum", str("sha256:abc")), "create.content.checksum"},
		"with another kind of sum":     {filled.SetAt("create.content.checksum", str("md5:"+strings.Repeat("a", 32))), "create.content.checksum"},
		"from nowhere":                 {base.SetAt("create.content.url", str("")), "create.content.url"},
		"from a URL not known yet":     {base.SetAt("create.content.url", tree.UnknownValue), ""},
		"filled, over another":         {filled.SetAt("backing_store.path", str("/b")), "backing_store"},
		"filled, over another perhaps": {filled.With("backing_store", tree.UnknownValue), ""},
		"filled and encrypted":         {filled.SetAt("target.encryption.format", str("luks")), "target.encryption"},
		"in a unit that is none":       {base.With("capacity_unit", str("GiBi")), "capacity_unit"},
		"of no size":                   {base.With("capacity", tree.IntValue(0)), "capacity"},
		"a directory":                  {base.With("capacity", tree.IntValue(0)).With("type", str("dir")), ""},
		"of half a byte":               {base.With("capacity", tree.NumberValue(big.NewFloat(.5))), "capacity"},
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

// A logical volume has a format and a node that libvirt says nothing of: what was
// asked for stands, and nothing is made in vain.
func TestCreateOfWhatHasNoFormat(t *testing.T) {
	ctx := context.Background()
	h := testHost(t)
	testPool(t, h, "group", "logical", true)
	k := NewVolume(func() *virt.Host { return h })
	planned := tree.NullValue.With("name", tree.StringValue("lv")).With("pool", tree.StringValue("group")).With("capacity", tree.IntValue(1<<20)).
		SetAt("target.format.type", tree.StringValue("raw"))
	done, err := k.Create(ctx, planned, planned)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = destroyed(ctx, k, done.Facts.Definition) }()
	state := done.Facts.Definition.With("status", done.Facts.Status)
	facts, err := k.Read(ctx, state)
	if err != nil {
		t.Fatal(err)
	}
	r := k.Rules().Plan(change.Input{Type: k.Type(), Config: planned, Prior: state, Baseline: facts.Definition, Actual: facts.Definition, Owned: planned})
	if len(r.Changes) > 0 || len(r.Held) > 0 {
		t.Errorf("the second plan is not empty: %+v", r)
	}
}
