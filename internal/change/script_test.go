package change

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

var update = flag.Bool("update", false, "rewrite the want sections of the scripts")

// The scripts in testdata hold the tables of the design, one file for each
// row or so. A file is a list of cases, each begun by a section "case NAME";
// what stands before the first case holds for all of them. The sections:
//
//	desired     the configuration
//	definition  what the host has
//	prior       the state; if absent, all of the definition
//	baseline    the definition as last agreed; if absent, the definition
//	owned       the configuration of the last apply; if absent, none
//	guest       what runs; if absent, nothing runs
//	lagging     paths in which the guest was late at the last apply
//	policy      revert = true, approve = ["digest"]
//	want        what the plan is, and what the host, the records and the next
//	            plan are after it was applied
//
// A section may say "none", and "as desired", "as definition" and so on.
type scriptCase struct {
	file, name string
	sections   map[string]string
}

var sectionNames = []string{"desired", "definition", "prior", "baseline", "owned", "guest", "lagging", "policy", "want"}

// loadScript reads the cases of a file.
func loadScript(file string) (*txtar.Archive, []scriptCase, error) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return nil, nil, err
	}
	shared, cases := map[string]string{}, []scriptCase{}
	for _, f := range archive.Files {
		into := shared
		if len(cases) > 0 {
			into = cases[len(cases)-1].sections
		}
		name, isCase := strings.CutPrefix(f.Name, "case ")
		_, twice := into[f.Name]
		switch {
		case isCase:
			c := scriptCase{filepath.Base(file), name, map[string]string{}}
			for section, text := range shared {
				c.sections[section] = text
			}
			cases = append(cases, c)
			continue
		case !slices.Contains(sectionNames, f.Name), twice && len(cases) == 0:
			return nil, nil, fmt.Errorf("%s: section %q is not known, or there twice", file, f.Name)
		}
		into[f.Name] = string(f.Data)
	}
	if len(cases) == 0 {
		return nil, nil, fmt.Errorf("%s: no case", file)
	}
	return archive, cases, nil
}

func scriptFiles(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return files
}

func allCases(t testing.TB) (all []scriptCase) {
	for _, file := range scriptFiles(t) {
		_, cases, err := loadScript(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

// world sets the stage of a case.
func (c scriptCase) world(t testing.TB) *world {
	t.Helper()
	definition := c.tree(t, "definition", tree.NullValue)
	w := &world{
		config: c.tree(t, "desired", tree.NullValue), definition: definition, guest: c.tree(t, "guest", tree.NullValue),
		state: c.tree(t, "prior", definition), baseline: c.tree(t, "baseline", definition), owned: c.tree(t, "owned", tree.NullValue),
		lagging: map[string]bool{},
	}
	for _, path := range strings.Fields(c.sections["lagging"]) {
		w.lagging[path] = true
	}
	policy := c.tree(t, "policy", tree.NullValue)
	w.policy = Policy{Revert: policy.Attr("revert").Bool(), Approved: map[string]bool{}}
	for _, digest := range policy.Attr("approve").Elems() {
		w.policy.Approved[digest.Str()] = true
	}
	return w
}

func (c scriptCase) tree(t testing.TB, section string, absent tree.Value) tree.Value {
	t.Helper()
	text, there := c.sections[section]
	if !there {
		return absent
	}
	said := strings.TrimSpace(text)
	if said == "none" {
		return tree.NullValue
	}
	if other, refers := strings.CutPrefix(said, "as "); refers {
		return c.tree(t, other, tree.NullValue)
	}
	v, err := parseTree(text)
	if err != nil {
		t.Fatalf("%s: %s: %s: %v", c.file, c.name, section, err)
	}
	if v.IsNull() {
		return tree.ObjectValue(nil)
	}
	return v
}

func (c scriptCase) input(t testing.TB) Input {
	w := c.world(t)
	in := w.input()
	in.Guest = w.guest // as the case says, also if it is as its definition
	return in
}

func TestScripts(t *testing.T) {
	for _, file := range scriptFiles(t) {
		archive, cases, err := loadScript(file)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range cases {
			if _, twice := got[c.name]; twice {
				t.Errorf("%s: two cases are called %q", file, c.name)
			}
			got[c.name] = story(t, c)
			if want := c.sections["want"]; strings.TrimSpace(got[c.name]) != strings.TrimSpace(want) && !*update {
				t.Errorf("%s: %s\n%swant\n%s", c.file, c.name, indented(got[c.name]), indented(want))
			}
		}
		if *update {
			if err := os.WriteFile(file, rewritten(archive, got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rewritten is the script with other wants, each at the end of its case.
func rewritten(a *txtar.Archive, wants map[string]string) []byte {
	out := &txtar.Archive{Comment: a.Comment}
	current := ""
	finish := func() {
		if current != "" {
			out.Files = append(out.Files, txtar.File{Name: "want", Data: []byte(wants[current] + "\n")})
		}
	}
	for _, f := range a.Files {
		if name, isCase := strings.CutPrefix(f.Name, "case "); isCase {
			finish()
			current = name
		}
		if f.Name != "want" {
			out.Files = append(out.Files, f)
		}
	}
	finish()
	return txtar.Format(out)
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// story tells what a plan is and, unless it is refused, what comes of it.
func story(t testing.TB, c scriptCase) string {
	t.Helper()
	in := c.input(t)
	if in.Actual.IsNull() {
		p := testRules.Plan(in)
		return planText(in, p)
	}
	w := c.world(t)
	p := testRules.Plan(in)
	var b strings.Builder
	b.WriteString(planText(in, p))
	if refused(p) != "" || len(p.Unknown) > 0 || w.isNoOp(p) {
		return b.String()
	}
	before := *w
	w.apply(p)
	if unmet := testRules.Unmet(testType, before.state, p.Planned, w.definition); len(unmet) > 0 {
		fmt.Fprintf(&b, "unmet       %v\n", unmet)
	}
	tell := func(what string, was, is tree.Value, as string, like tree.Value) {
		switch {
		case tree.Equal(was, is):
		case tree.Equal(is, like):
			fmt.Fprintf(&b, "%-11s %s\n", what, as)
		default:
			fmt.Fprintf(&b, "%-11s %s\n", what, is)
		}
	}
	tell("definition", before.definition, w.definition, "as desired", before.config)
	tell("guest", before.guest, w.guest, "as definition", w.definition)
	tell("state", p.Planned, w.state, "as definition", w.definition)
	tell("baseline", before.baseline, w.baseline, "as definition", w.definition)
	if waiting := testRules.Waiting(testType, w.definition, w.running(), w.owned); len(waiting) > 0 {
		fmt.Fprintf(&b, "waiting     %s\n", strings.Join(pathTexts(waiting), ", "))
	}
	w.refresh()
	w.policy = Policy{}
	if again := w.plan(); !w.isNoOp(again) {
		fmt.Fprintf(&b, "again       %s\n", strings.ReplaceAll(strings.TrimSpace(planText(w.input(), again)), "\n", "\n            "))
	}
	return b.String()
}

// planText renders a plan: what is planned, and why.
func planText(in Input, p Result) string {
	var b strings.Builder
	if tree.Equal(p.Planned, in.Prior) {
		b.WriteString("planned     as prior\n")
	} else if tree.Equal(p.Planned, in.Config) {
		b.WriteString("planned     as desired\n")
	} else {
		fmt.Fprintf(&b, "planned     %s\n", p.Planned)
	}
	for _, c := range append(slices.Clone(p.Changes), p.Live...) {
		b.WriteString(changeText(c))
	}
	for _, h := range p.Held {
		live := ""
		if h.Live {
			live = " in the guest"
		}
		fmt.Fprintf(&b, "held        %s %s%s: %s, not %s %s(%s)\n", h.Tier, h.Path, live, h.Actual, h.Desired, spaced(h.Unit), h.Digest)
	}
	for _, d := range p.Approved {
		fmt.Fprintf(&b, "approved    %s\n", d)
	}
	for _, c := range p.Clashes {
		fmt.Fprintf(&b, "clash       %s\n", c.List)
	}
	for what, paths := range map[string][]tree.Path{"left": p.Left, "postponed": p.Postponed, "ignored": p.Ignored, "unknown": p.Unknown, "undecided": p.Undecided} {
		if len(paths) > 0 {
			fmt.Fprintf(&b, "%-11s %s\n", what, strings.Join(pathTexts(paths), ", "))
		}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		return slices.Index(lineOrder, firstWord(a)) - slices.Index(lineOrder, firstWord(b))
	})
	return strings.Join(lines, "\n") + "\n"
}

var lineOrder = []string{
	"planned", "intent", "drift", "conflict", "withdrawal", "addition", "removal", "live",
	"held", "approved", "clash", "postponed", "left", "ignored", "unknown", "undecided",
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func changeText(c Change) string {
	word, kind := c.Kind.String(), ""
	if c.Live {
		word, kind = "live", c.Kind.String()+" "
	}
	text := fmt.Sprintf("%-11s %s%s: %s to %s %s", word, kind, c.Path, c.Actual, c.Desired, spaced(c.Unit))
	if !c.Baseline.IsNull() && !tree.Equal(c.Baseline, c.Actual) && !tree.Equal(c.Baseline, c.Desired) {
		text += fmt.Sprintf("from %s ", c.Baseline)
	}
	if !c.Live && !c.Guest.IsNull() {
		text += fmt.Sprintf("guest %s ", c.Guest)
	}
	if c.Reached {
		text += "reached "
	}
	return strings.TrimSpace(text) + "\n"
}

func spaced(unit string) string {
	if unit == "" {
		return ""
	}
	return unit + " "
}
