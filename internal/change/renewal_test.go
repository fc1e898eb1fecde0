package change

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// renewalRules are those of an object that is made from an image: any spelling
// of the same image is equal, and images of the kind "seed" can be exchanged.
func renewalRules() (*Rules, *tree.Type) {
	attr := func(name string, typ *tree.Type) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: typ, Optional: true, Computed: true}
	}
	typ := tree.ObjectOf(attr("name", tree.StringType), attr("size", tree.NumberType),
		&tree.Attribute{Name: "create", Type: tree.ObjectOf(&tree.Attribute{Name: "image", Type: tree.StringType, Optional: true}, &tree.Attribute{Name: "note", Type: tree.StringType, Optional: true}), Optional: true})
	isSeed := func(v tree.Value) bool { return strings.Contains(v.Attr("image").Str(), "seed") }
	base := func(v tree.Value) string { return v.Str()[strings.LastIndex(v.Str(), "/")+1:] }
	return &Rules{
		Equal: func(pattern string, a, b tree.Value) bool {
			return pattern == "create.image" && a.IsKnown() && b.IsKnown() && base(a) == base(b)
		},
		Keys:    func(string, tree.Value) []string { return nil },
		Tier:    func(string) Tier { return TierRoutine },
		Setting: func(pattern string) bool { return pattern == "create" },
		Chosen:  func(pattern string) bool { return pattern == "size" },
		Once:    func(pattern string) bool { return pattern == "create" },
		Follows: func(pattern string) []string {
			if pattern == "create.image" {
				return []string{"size"}
			}
			return nil
		},
		Renewal: func(_ string, desired, baseline, actual tree.Value) tree.Path {
			if (isSeed(baseline) || isSeed(actual)) && (isSeed(desired) || desired.HasUnknown()) {
				return tree.ParsePath("image")
			}
			return nil
		},
	}, typ
}

func TestRenewal(t *testing.T) {
	made := func(image string) tree.Value {
		v := tree.NullValue.With("name", tree.StringValue("x")).With("size", tree.IntValue(5))
		if image != "" {
			v = v.SetAt("create.image", tree.StringValue(image))
		}
		return v
	}
	wants := func(image string) tree.Value {
		v := tree.NullValue.With("name", tree.StringValue("x"))
		if image != "" {
			v = v.SetAt("create.image", tree.StringValue(image))
		}
		return v
	}
	unknown := wants("").SetAt("create.image", tree.UnknownValue)
	sized := wants("seed2").With("size", tree.IntValue(5))
	noted := wants("/b/seed1").SetAt("create.note", tree.StringValue("n"))
	cases := map[string]struct {
		desired, prior, baseline, actual tree.Value
		planned                          string // of create; "prior" and "desired" are whole
		kind                             string
		size                             string
	}{
		"equal, another spelling":          {wants("/b/seed1"), made("/a/seed1"), made("seed1"), made("seed1"), "prior", "", "5"},
		"equal, whatever state says":       {wants("/b/seed1"), made("/a/image"), made("seed1"), made("seed1"), "prior", "", "5"},
		"equal, with another beside it":    {noted, made("/a/seed1"), made("seed1"), made("seed1"), "desired", "", "5"},
		"equal, and not in the state":      {wants("/b/seed1"), made(""), made("seed1"), made("seed1"), "desired", "", "5"},
		"intent":                           {wants("/b/seed2"), made("/a/seed1"), made("seed1"), made("seed1"), "desired", "intent", "(known after apply)"},
		"intent, and not in the state":     {wants("/b/seed2"), made(""), made("seed1"), made("seed1"), "desired", "intent", "(known after apply)"},
		"intent, with a size of its own":   {sized, made("/a/seed1"), made("seed1"), made("seed1"), "desired", "intent", "5"},
		"drift":                            {wants("/b/seed1"), made("/a/seed1"), made("seed1"), made("seed9"), "desired", "drift", "(known after apply)"},
		"drift to something else":          {wants("/b/seed1"), made("/a/seed1"), made("seed1"), made(""), "desired", "drift", "(known after apply)"},
		"conflict":                         {wants("/b/seed2"), made("/a/seed1"), made("seed1"), made("seed9"), "desired", "conflict", "(known after apply)"},
		"unknown":                          {unknown, made("/a/seed1"), made("seed1"), made("seed1"), "desired", "unknown", "(known after apply)"},
		"unknown, of no seed":              {unknown, made("/a/image"), made(""), made(""), "prior", "", "5"},
		"of no seed: acts once":            {wants("/b/other"), made("/a/image"), made(""), made(""), "prior", "ignored", "5"},
		"an image for a seed: acts once":   {wants("/b/other"), made("/a/seed1"), made("seed1"), made("seed1"), "prior", "ignored", "5"},
		"a seed for an image: acts once":   {wants("/b/seed1"), made("/a/image"), made(""), made(""), "prior", "ignored", "5"},
		"named no more":                    {wants(""), made("/a/seed1"), made("seed1"), made("seed9"), "desired", "", "5"},
		"of no seed, and not in the state": {wants("/b/other"), made(""), made(""), made(""), "desired", "", "5"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, typ := renewalRules()
			p := r.Plan(Input{Type: typ, Config: c.desired, Prior: c.prior, Baseline: c.baseline, Actual: c.actual})
			want := map[string]tree.Value{"prior": c.prior, "desired": c.desired}[c.planned].Attr("create")
			if got := p.Planned.Attr("create"); !tree.Equal(got, want) {
				t.Errorf("planned %s, want %s as %s", got, want, c.planned)
			}
			kind := ""
			switch {
			case len(p.Changes) == 1 && p.Changes[0].Path.String() == "create.image":
				kind = p.Changes[0].Kind.String()
			case len(p.Unknown) == 1 && p.Unknown[0].String() == "create.image":
				kind = "unknown"
			case len(p.Ignored) == 1:
				kind = "ignored"
			case len(p.Changes)+len(p.Unknown)+len(p.Ignored) > 0:
				kind = "other"
			}
			if kind != c.kind {
				t.Errorf("it is %q: %+v", kind, p)
			}
			if got := p.Planned.Attr("size").String(); got != c.size {
				t.Errorf("size %s", got)
			}
			if bad := Expressible(typ, c.prior, c.desired, p.Planned); len(bad) > 0 {
				t.Errorf("no core accepts %s: %v", p.Planned, bad)
			}
		})
	}
}

// A plan that does not know the leaf promises all that is beside it, and the one
// that knows it keeps the promise, though the leaf turns out to be what it was.
func TestRenewalKeepsWhatThePlanPromised(t *testing.T) {
	r, typ := renewalRules()
	value := func(image tree.Value, note string) tree.Value {
		return tree.NullValue.With("name", tree.StringValue("x")).SetAt("create.image", image).SetAt("create.note", tree.StringValue(note))
	}
	prior := value(tree.StringValue("/a/seed1"), "old").With("size", tree.IntValue(5))
	actual := value(tree.StringValue("seed1"), "old").With("size", tree.IntValue(5))
	for _, image := range []string{"/a/seed1", "/b/seed1", "/b/seed2"} {
		for _, note := range []string{"old", "new"} {
			plan := func(leaf tree.Value) tree.Value {
				return r.Plan(Input{Type: typ, Config: value(leaf, note), Prior: prior, Baseline: actual, Actual: actual}).Planned
			}
			first, last := plan(tree.UnknownValue), plan(tree.StringValue(image))
			if promised, kept := first.At("create.note"), last.At("create.note"); !tree.Equal(promised, kept) {
				t.Errorf("%s, %s: the plan promised %s, and it is %s", image, note, promised, kept)
			}
		}
	}
}
