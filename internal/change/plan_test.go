package change

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// A small kind of object with one field of every sort.
var testType = tree.ObjectOf(
	&tree.Attribute{Name: "title", Type: tree.StringType}, &tree.Attribute{Name: "uuid", Type: tree.StringType},
	&tree.Attribute{Name: "active", Type: tree.BoolType}, &tree.Attribute{Name: "image", Type: tree.StringType},
	&tree.Attribute{Name: "memory", Type: tree.NumberType}, &tree.Attribute{Name: "memory_unit", Type: tree.StringType},
	&tree.Attribute{Name: "args", Type: tree.ListOf(tree.StringType)}, &tree.Attribute{Name: "protect", Type: tree.BoolType},
	&tree.Attribute{Name: "cpu", Type: tree.ObjectOf(&tree.Attribute{Name: "mode", Type: tree.StringType}, &tree.Attribute{Name: "check", Type: tree.StringType})},
	&tree.Attribute{Name: "disks", Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "dev", Type: tree.StringType}, &tree.Attribute{Name: "file", Type: tree.StringType}, &tree.Attribute{Name: "cache", Type: tree.StringType}))},
	&tree.Attribute{Name: "nics", Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "mac", Type: tree.StringType}, &tree.Attribute{Name: "net", Type: tree.StringType}, &tree.Attribute{Name: "link", Type: tree.StringType}))},
)

var testRules = &Rules{
	Equal: func(pattern string, a, b tree.Value) bool {
		switch pattern {
		case "nics[].mac":
			return strings.EqualFold(a.Str(), b.Str()) && a.IsKnown() && b.IsKnown()
		}
		return false
	},
	Keys: func(pattern string, e tree.Value) []string {
		switch pattern {
		case "disks[]":
			return []string{e.Attr("dev").Str()}
		case "nics[]":
			return []string{strings.ToLower(e.Attr("mac").Str())}
		}
		return nil
	},
	Kept: func(pattern string) bool { return pattern == "args" },
	Unit: func(pattern string) (string, string) {
		if pattern == "memory" {
			return "memory_unit", "KiB"
		}
		return "", ""
	},
	Tier: func(pattern string) Tier {
		switch {
		case pattern == "uuid":
			return TierLocked
		case pattern == "memory" || strings.HasPrefix(pattern, "disks"):
			return TierModification
		}
		return TierRoutine
	},
	Setting: func(pattern string) bool { return pattern == "protect" || pattern == "image" },
	Once:    func(pattern string) bool { return pattern == "image" },
	Chosen:  func(pattern string) bool { return pattern == "uuid" || pattern == "nics[].mac" },
	Sticky:  func(pattern string) bool { return pattern == "active" },
}

// obj reads JSON, as the shortest way to write a tree; "?" is unknown.
func obj(t testing.TB, text string) tree.Value {
	t.Helper()
	if text == "" {
		return tree.NullValue
	}
	var v tree.Value
	if err := v.UnmarshalJSON([]byte(strings.ReplaceAll(text, "'", `"`))); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return unknowns(v)
}

func unknowns(v tree.Value) tree.Value {
	out := v
	v.Walk(func(p tree.Path, n tree.Value) bool {
		if n.Str() == "?" {
			out = out.Set(p, tree.UnknownValue)
		}
		return true
	})
	return out
}

func (r Result) text() string {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s %s; ", c.Kind, c.Path)
	}
	for _, h := range r.Held {
		fmt.Fprintf(&b, "held %s %s; ", h.Tier, h.Path)
	}
	for _, p := range r.Left {
		fmt.Fprintf(&b, "left %s; ", p)
	}
	for _, p := range r.Ignored {
		fmt.Fprintf(&b, "ignored %s; ", p)
	}
	for _, p := range r.Unknown {
		fmt.Fprintf(&b, "unknown %s; ", p)
	}
	for _, c := range r.Clashes {
		fmt.Fprintf(&b, "clash %s; ", c.List)
	}
	for _, p := range r.Postponed {
		fmt.Fprintf(&b, "postponed %s; ", p)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

type planCase struct {
	config, prior, baseline, actual, owned string
	planned                                string // "" means the prior state
	says                                   string
}

var planCases = map[string]planCase{
	"converged":                   {config: `{'title':'a'}`, prior: `{'title':'a'}`, actual: `{'title':'a','uuid':'u'}`},
	"omission changes nothing":    {config: `{}`, prior: `{'title':'a','cpu':{'mode':'x'}}`, actual: `{'title':'a','cpu':{'mode':'x'}}`},
	"withdrawn":                   {config: `{}`, prior: `{'title':'a'}`, actual: `{'title':'a'}`, owned: `{'title':'a'}`, planned: `{}`, says: "withdrawal title"},
	"withdrawn, but sticky":       {config: `{}`, prior: `{'uuid':'a'}`, actual: `{'uuid':'a'}`, owned: `{'uuid':'a'}`},
	"withdrawn and gone already":  {config: `{}`, prior: `{}`, actual: `{}`, owned: `{'title':'a'}`},
	"withdrawn from an object":    {config: `{'cpu':{'mode':'x'}}`, prior: `{'cpu':{'mode':'x','check':'c'}}`, actual: `{'cpu':{'mode':'x','check':'c'}}`, owned: `{'cpu':{'mode':'x','check':'c'}}`, planned: `{'cpu':{'mode':'x'}}`, says: "withdrawal cpu.check"},
	"object withdrawn, part kept": {config: `{}`, prior: `{'cpu':{'mode':'x','check':'c'}}`, actual: `{'cpu':{'mode':'x','check':'c'}}`, owned: `{'cpu':{'check':'c'}}`, planned: `{'cpu':{'mode':'?'}}`, says: "withdrawal cpu.check"},
	"intent":                      {config: `{'title':'b'}`, prior: `{'title':'a'}`, baseline: `{'title':'a'}`, actual: `{'title':'a'}`, planned: `{'title':'b'}`, says: "intent title"},
	"intent beside what is unset": {config: `{'title':'b'}`, prior: `{'title':'a','cpu':{'mode':'x'}}`, baseline: `{'title':'a'}`, actual: `{'title':'a','cpu':{'mode':'x'}}`, planned: `{'title':'b','cpu':{'mode':'x'}}`, says: "intent title"},
	"routine drift is put back":   {config: `{'title':'a'}`, prior: `{'title':'b'}`, baseline: `{'title':'a'}`, actual: `{'title':'b'}`, planned: `{'title':'a'}`, says: "drift title"},
	"conflict":                    {config: `{'title':'c'}`, prior: `{'title':'b'}`, baseline: `{'title':'a'}`, actual: `{'title':'b'}`, planned: `{'title':'c'}`, says: "conflict title"},
	"modification is held":        {config: `{'memory':1}`, prior: `{'memory':2}`, baseline: `{'memory':1}`, actual: `{'memory':2}`, says: "held modification memory"},
	"locked is held":              {config: `{'uuid':'a'}`, prior: `{'uuid':'b'}`, baseline: `{'uuid':'a'}`, actual: `{'uuid':'b'}`, says: "held locked uuid"},
	"no baseline is intent":       {config: `{'memory':1}`, prior: `{'memory':2}`, actual: `{'memory':2}`, planned: `{'memory':1}`, says: "intent memory"},
	"a setting is the user's":     {config: `{}`, prior: `{'protect':true}`, actual: `{}`, planned: `{}`},
	"unit: same amount":           {config: `{'memory':1,'memory_unit':'GiB'}`, prior: `{'memory':1048576,'memory_unit':'KiB'}`, actual: `{'memory':1048576,'memory_unit':'KiB'}`},
	"unit: standard":              {config: `{'memory':1048576}`, prior: `{'memory':1,'memory_unit':'GiB'}`, actual: `{'memory':1048576,'memory_unit':'KiB'}`},
	"unit: another amount":        {config: `{'memory':2,'memory_unit':'GiB'}`, prior: `{'memory':1048576,'memory_unit':'KiB'}`, baseline: `{'memory':1048576}`, actual: `{'memory':1048576,'memory_unit':'KiB'}`, planned: `{'memory':2,'memory_unit':'GiB'}`, says: "intent memory"},
	"unit: kept when standard":    {config: `{'memory':2048}`, prior: `{'memory':1024,'memory_unit':'KiB'}`, baseline: `{'memory':1024}`, actual: `{'memory':1024,'memory_unit':'KiB'}`, planned: `{'memory':2048,'memory_unit':'KiB'}`, says: "intent memory"},
	"unknown value":               {config: `{'title':'?'}`, prior: `{'title':'a'}`, actual: `{'title':'a'}`, planned: `{'title':'?'}`, says: "unknown title"},
	"new attribute, host agrees":  {config: `{'title':'a'}`, prior: `{}`, baseline: `{'title':'a'}`, actual: `{'title':'a'}`, planned: `{'title':'a'}`},

	"sticky: put back":       {config: `{}`, prior: `{'active':false}`, baseline: `{'active':true}`, actual: `{'active':false}`, planned: `{'active':true}`, says: "drift active"},
	"sticky: as imported":    {config: `{}`, prior: `{'active':false}`, baseline: `{'active':false}`, actual: `{'active':false}`},
	"sticky: said otherwise": {config: `{'active':false}`, prior: `{'active':true}`, baseline: `{'active':true}`, actual: `{'active':true}`, planned: `{'active':false}`, says: "intent active"},

	"once: another value":   {config: `{'image':'b'}`, prior: `{'image':'a'}`, actual: `{}`, says: "ignored image"},
	"once: after an import": {config: `{'image':'b'}`, prior: `{}`, actual: `{}`, planned: `{'image':'b'}`},
	"once: left out":        {config: `{}`, prior: `{'image':'a'}`, actual: `{}`, planned: `{}`},
	"once: not known yet":   {config: `{'image':'?'}`, prior: `{'image':'a'}`, actual: `{}`},

	"list: permuted, converged":      {config: `{'disks':[{'dev':'b'},{'dev':'a'}]}`, prior: `{'disks':[{'dev':'a','cache':'x'},{'dev':'b'}]}`, actual: `{'disks':[{'dev':'a','cache':'x'},{'dev':'b'}]}`},
	"list: import is complete":       {config: `{'disks':[{'dev':'b'}]}`, prior: `{'disks':[{'dev':'a'},{'dev':'b'}]}`, actual: `{'disks':[{'dev':'a'},{'dev':'b'}]}`},
	"list: import, then intent":      {config: `{'disks':[{'dev':'b','cache':'y'}]}`, prior: `{'disks':[{'dev':'a'},{'dev':'b'}]}`, baseline: `{'disks':[{'dev':'a'},{'dev':'b'}]}`, actual: `{'disks':[{'dev':'a'},{'dev':'b'}]}`, planned: `{'disks':[{'dev':'b','cache':'y'}]}`, says: "intent disks[b].cache; left disks[a]"},
	"list: first one removed":        {config: `{'nics':[{'net':'two'}]}`, prior: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'2'}]}`, actual: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'2'}]}`, owned: `{'nics':[{'net':'one'},{'net':'two'}]}`, planned: `{'nics':[{'net':'two','mac':'2'}]}`, says: "removal nics[1]"},
	"list: emptied":                  {config: `{'nics':[]}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, actual: `{'nics':[{'net':'one','mac':'1'}]}`, owned: `{'nics':[{'net':'one'}]}`, planned: `{'nics':[]}`, says: "removal nics[1]"},
	"list: withdrawn":                {config: `{}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, actual: `{'nics':[{'net':'one','mac':'1'}]}`, owned: `{'nics':[{'net':'one'}]}`, planned: `{}`, says: "removal nics[1]"},
	"list: withdrawn, never ours":    {config: `{}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, actual: `{'nics':[{'net':'one','mac':'1'}]}`},
	"list: one added":                {config: `{'nics':[{'net':'one'},{'net':'two'}]}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, baseline: `{'nics':[{'net':'one','mac':'1'}]}`, actual: `{'nics':[{'net':'one','mac':'1'}]}`, owned: `{'nics':[{'net':'one'}]}`, planned: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'?'}]}`, says: "addition nics[1]"},
	"list: one missing on the host":  {config: `{'nics':[{'net':'one'},{'net':'two'}]}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, baseline: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'2'}]}`, actual: `{'nics':[{'net':'one','mac':'1'}]}`, owned: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'2'}]}`, planned: `{'nics':[{'net':'one','mac':'1'},{'net':'two','mac':'2'}]}`, says: "drift nics[2]"},
	"list: foreign devices are none": {config: `{'nics':[{'net':'one'}]}`, prior: `{'nics':[{'net':'one','mac':'1'}]}`, baseline: `{'nics':[{'net':'one','mac':'1'}]}`, actual: `{'nics':[{'net':'x','mac':'9'},{'net':'one','mac':'1'}]}`, owned: `{'nics':[{'net':'one'}]}`},
	"list: MAC in capitals":          {config: `{'nics':[{'mac':'AB'}]}`, prior: `{'nics':[{'mac':'ab'}]}`, actual: `{'nics':[{'mac':'ab'}]}`},
	"list: held in place":            {config: `{'disks':[{'dev':'a','cache':'x'}],'title':'b'}`, prior: `{'disks':[{'dev':'a','cache':'y'}],'title':'a'}`, baseline: `{'disks':[{'dev':'a','cache':'x'}],'title':'a'}`, actual: `{'disks':[{'dev':'a','cache':'y'}],'title':'a'}`, planned: `{'disks':[{'dev':'a','cache':'y'}],'title':'b'}`, says: "intent title; held modification disks[a].cache"},
	"list: held and permuted":        {config: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, prior: `{'disks':[{'dev':'a','cache':'y'},{'dev':'b'}]}`, baseline: `{'disks':[{'dev':'a','cache':'x'},{'dev':'b'}]}`, actual: `{'disks':[{'dev':'a','cache':'y'},{'dev':'b'}]}`, says: "held modification disks[a].cache"},
	"list: held and lengthened":      {config: `{'disks':[{'dev':'c'},{'dev':'a','cache':'x'}]}`, prior: `{'disks':[{'dev':'a','cache':'y'}]}`, baseline: `{'disks':[{'dev':'a','cache':'x'}]}`, actual: `{'disks':[{'dev':'a','cache':'y'}]}`, planned: `{'disks':[{'dev':'c'},{'dev':'a','cache':'x'}]}`, says: "addition disks[c]; held modification disks[a].cache; clash disks[a].cache"},
	"list: held, one added behind":   {config: `{'disks':[{'dev':'a','cache':'x'},{'dev':'c'}]}`, prior: `{'disks':[{'dev':'a','cache':'y'}]}`, baseline: `{'disks':[{'dev':'a','cache':'x'}]}`, actual: `{'disks':[{'dev':'a','cache':'y'}]}`, owned: `{'disks':[{'dev':'a','cache':'x'}]}`, planned: `{'disks':[{'dev':'a','cache':'y'},{'dev':'c'}]}`, says: "addition disks[c]; held modification disks[a].cache"},
	"list: held, another one gone":   {config: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, prior: `{'disks':[{'dev':'a','cache':'y'}]}`, baseline: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, actual: `{'disks':[{'dev':'a','cache':'y'}]}`, owned: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, says: "held modification disks[a].cache; postponed disks[b]"},
	"list: held, gone, and intent":   {config: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x','file':'f'}]}`, prior: `{'disks':[{'dev':'a','cache':'y'}]}`, baseline: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, actual: `{'disks':[{'dev':'a','cache':'y'}]}`, owned: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, planned: `{'disks':[{'dev':'b'},{'dev':'a','cache':'x','file':'f'}]}`, says: "drift disks[b]; intent disks[a].file; held modification disks[a].cache; clash disks[a].cache"},
	"list of scalars":                {config: `{'args':['a','b']}`, prior: `{'args':['a']}`, baseline: `{'args':['a']}`, actual: `{'args':['a']}`, planned: `{'args':['a','b']}`, says: "intent args"},
}

func (c planCase) input(t testing.TB) Input {
	return Input{Type: testType, Config: obj(t, c.config), Prior: obj(t, c.prior), Baseline: obj(t, c.baseline), Actual: obj(t, c.actual), Owned: obj(t, c.owned)}
}

func TestPlan(t *testing.T) {
	for name, c := range planCases {
		t.Run(name, func(t *testing.T) {
			in := c.input(t)
			got := testRules.Plan(in)
			want := in.Prior
			if c.planned != "" {
				want = obj(t, c.planned)
			}
			if !tree.Equal(got.Planned, want) {
				t.Errorf("planned %s\nwant    %s", got.Planned, want)
			}
			if got.text() != c.says {
				t.Errorf("says %q\nwant %q", got.text(), c.says)
			}
		})
	}
}

func TestPlanCreate(t *testing.T) {
	got := testRules.Plan(Input{Type: testType, Config: obj(t, `{'title':'a','nics':[{'net':'one'},{'net':'?','mac':'5'}]}`)})
	want := obj(t, `{'title':'a','uuid':'?','nics':[{'net':'one','mac':'?'},{'net':'?','mac':'5'}]}`)
	if !tree.Equal(got.Planned, want) {
		t.Errorf("planned %s\nwant    %s", got.Planned, want)
	}
	if len(got.Unknown) != 1 || got.Unknown[0].Pattern() != "nics[].net" {
		t.Errorf("unknown: %v", got.Unknown)
	}
}

func TestHeldDriftIsReleased(t *testing.T) {
	c := planCases["modification is held"]
	in := c.input(t)
	digest := testRules.Plan(in).Held[0].Digest
	for name, policy := range map[string]Policy{"approved": {Approved: map[string]bool{digest: true}}, "revert": {Revert: true}} {
		in.Policy = policy
		if got := testRules.Plan(in); got.text() != "drift memory" || got.Planned.Attr("memory").String() != "1" {
			t.Errorf("%s: %s, planned %s", name, got.text(), got.Planned)
		}
	}
	in.Policy = Policy{Approved: map[string]bool{"0123456789ab": true}}
	if got := testRules.Plan(in); len(got.Held) != 1 {
		t.Errorf("an approval of another drift released it: %s", got.text())
	}
	in.Actual, in.Prior = obj(t, `{'memory':3}`), obj(t, `{'memory':3}`)
	in.Policy = Policy{Approved: map[string]bool{digest: true}}
	if got := testRules.Plan(in); len(got.Held) != 1 {
		t.Errorf("an approval of yesterday's drift released today's: %s", got.text())
	}
	locked := planCases["locked is held"].input(t)
	locked.Policy = Policy{Revert: true, Approved: map[string]bool{testRules.Plan(locked).Held[0].Digest: true}}
	if got := testRules.Plan(locked); len(got.Held) != 1 {
		t.Errorf("locked drift was released: %s", got.text())
	}
}

// After the definition is patched as planned and read back, the same
// configuration plans nothing: applying twice is a no-op.
func TestApplyTwiceIsANoOp(t *testing.T) {
	for name, c := range planCases {
		in := c.input(t)
		if in.Config.HasUnknown() {
			continue
		}
		checkConverges(t, name, in)
	}
}

func checkConverges(t *testing.T, name string, in Input) {
	t.Helper()
	first := testRules.Plan(in)
	if len(first.Clashes) > 0 {
		return
	}
	actual := testRules.Patch(in.Type, in.Prior, first.Planned, in.Actual, in.Owned)
	if in.Type == testType { // the host chooses addresses
		for i, n := range actual.Attr("nics").Elems() {
			if n.Attr("mac").IsNull() {
				actual = actual.Set(tree.Root.Attr("nics").Elem(i, "").Attr("mac"), tree.StringValue(fmt.Sprint("new", i)))
			}
		}
	}
	if unmet := testRules.Unmet(in.Type, in.Prior, first.Planned, actual); len(unmet) > 0 {
		t.Errorf("%s: planned, and not in the definition: %v", name, unmet)
	}
	state := testRules.Settle(in.Type, in.Prior, first.Planned, actual)
	if !refines(first.Planned, state) {
		t.Errorf("%s: planned %s\nbut after apply the state is %s\n(definition %s)", name, first.Planned, state, actual)
	}
	refreshed := testRules.Project(in.Type, state, actual)
	if !tree.Equal(refreshed, state) {
		t.Errorf("%s: a refresh after the apply changes the state\nfrom %s\nto   %s", name, state, refreshed)
	}
	owned := testRules.Identify(in.Type, in.Config, first.Planned, state)
	second := testRules.Plan(Input{Type: in.Type, Config: in.Config, Prior: state, Baseline: actual, Actual: actual, Owned: owned})
	if len(first.Held) == 0 && (len(second.Changes) > 0 || !tree.Equal(second.Planned, state)) {
		t.Errorf("%s: the second plan is not empty: %s\nstate   %s\nplanned %s", name, second.text(), state, second.Planned)
	}
}

// refines is the core's rule: a new state is the planned one, with values in
// the place of what was unknown.
func refines(planned, state tree.Value) bool {
	switch {
	case planned.IsUnknown():
		return true
	case planned.Kind() != state.Kind() || planned.Kind() == tree.List && planned.Len() != state.Len():
		return false
	case planned.Kind() == tree.List:
		for i, e := range planned.Elems() {
			if !refines(e, state.Elems()[i]) {
				return false
			}
		}
		return true
	case planned.Kind() == tree.Object:
		for _, name := range append(planned.Names(), state.Names()...) {
			if !refines(planned.Attr(name), state.Attr(name)) {
				return false
			}
		}
		return true
	}
	return tree.Equal(planned, state)
}

func TestApplyTwiceIsANoOpForRandomTrees(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for i := range 5000 {
		actual := randomTree(rng, true)
		config, owned, baseline := randomTree(rng, false), randomTree(rng, false), randomTree(rng, true)
		prior := testRules.Project(testType, randomShape(rng, actual, owned), actual)
		checkConverges(t, fmt.Sprintf("case %d\nconfig   %s\nprior    %s\nbaseline %s\nactual   %s\nowned    %s", i, config, prior, baseline, actual, owned),
			Input{Type: testType, Config: config, Prior: prior, Baseline: baseline, Actual: actual, Owned: owned})
		if t.Failed() {
			return
		}
	}
}

// randomShape is what state may hold: everything, or what was owned and the
// identities that libvirt chose.
func randomShape(rng *rand.Rand, actual, owned tree.Value) tree.Value {
	if rng.Intn(2) == 0 {
		return actual
	}
	for i, n := range owned.Attr("nics").Elems() {
		if n.Attr("mac").IsNull() {
			owned = owned.Set(tree.Root.Attr("nics").Elem(i, "").Attr("mac"), tree.UnknownValue)
		}
	}
	return owned
}

func randomTree(rng *rand.Rand, host bool) tree.Value {
	v := tree.ObjectValue(nil)
	pick := func(path string, values ...string) {
		if rng.Intn(2) == 0 {
			v = v.SetAt(path, tree.StringValue(values[rng.Intn(len(values))]))
		}
	}
	pick("title", "a", "b")
	pick("cpu.mode", "x", "y")
	pick("cpu.check", "c", "d")
	if rng.Intn(2) == 0 {
		v = v.With("memory", tree.IntValue(int64(1+rng.Intn(2))*1024))
		if rng.Intn(2) == 0 {
			v = v.With("memory", tree.IntValue(int64(1+rng.Intn(2)))).With("memory_unit", tree.StringValue("MiB"))
		}
	}
	if host {
		v = v.With("uuid", tree.StringValue("u"))
	}
	var disks, nics []tree.Value
	for _, dev := range rng.Perm(3)[:rng.Intn(4)] {
		d := tree.NullValue.With("dev", tree.StringValue(fmt.Sprint("vd", dev)))
		if rng.Intn(2) == 0 {
			d = d.With("cache", tree.StringValue([]string{"none", "off"}[rng.Intn(2)]))
		}
		disks = append(disks, d)
	}
	for _, mac := range rng.Perm(3)[:rng.Intn(4)] {
		n := tree.NullValue.With("net", tree.StringValue([]string{"one", "two"}[rng.Intn(2)]))
		if host || rng.Intn(3) == 0 {
			n = n.With("mac", tree.StringValue(fmt.Sprint(mac)))
		}
		nics = append(nics, n)
	}
	if len(disks) > 0 {
		v = v.With("disks", tree.ListValue(disks))
	}
	if len(nics) > 0 {
		v = v.With("nics", tree.ListValue(nics))
	}
	return v
}

// Cores plan twice when a value is known only at apply: the second plan may
// fill in what the first left unknown, and change nothing else.
func TestPlanWithUnknownsIsRefinedByThePlanWithValues(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	decided := 0
	defer func() {
		if decided < 2500 {
			t.Errorf("only %d cases were decided", decided)
		}
	}()
	for i := range 5000 {
		actual, config := randomTree(rng, true), randomTree(rng, false)
		owned := testRules.Identify(testType, randomTree(rng, false), tree.NullValue, actual)
		in := Input{Type: testType, Config: config, Prior: testRules.Project(testType, randomShape(rng, actual, owned), actual), Baseline: randomTree(rng, true), Actual: actual, Owned: owned}
		later := in
		in.Config = withUnknown(rng, config)
		first, second := testRules.Plan(in), testRules.Plan(later)
		if len(first.Undecided) > 0 {
			continue
		}
		decided++
		if !refines(first.Planned, second.Planned) {
			t.Fatalf("case %d\nconfig   %s\nthen     %s\nprior    %s\nbaseline %s\nactual   %s\nowned    %s\nplanned  %s\nthen     %s", i, in.Config, config, in.Prior, in.Baseline, actual, owned, first.Planned, second.Planned)
		}
	}
}

// withUnknown makes one scalar unknown. Not the memory: where its drift is held
// and state spells the unit otherwise, the second plan cannot keep both the
// first plan's unit and the prior amount, and the core says so. Nor the target
// of a disk, which is its identity: until it is known, nobody can say which
// disk is meant.
func withUnknown(rng *rand.Rand, v tree.Value) tree.Value {
	var leaves []tree.Path
	v.Walk(func(p tree.Path, n tree.Value) bool {
		if n.Kind() != tree.Object && n.Kind() != tree.List && !strings.HasPrefix(p.String(), "memory") && p.Pattern() != "disks[].dev" {
			leaves = append(leaves, p)
		}
		return true
	})
	if len(leaves) == 0 {
		return v
	}
	return v.Set(leaves[rng.Intn(len(leaves))], tree.UnknownValue)
}
