package domain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The table of leaves: attributes of libvirt_domain that QEMU accepts, each with
// a value that is nobody's standard. Machines carry many of them at once; those
// that exclude each other are on different machines. All machines of a case are
// one configuration, that goes the same way: made without the leaves, given the
// leaves, started, stopped, and rid of the leaves again. After each apply a plan
// is empty, and the definition, read without the provider, has what it should.

// leaf is one attribute.
type leaf struct {
	attr  string // where it is in the configuration, below its group
	value string // an expression of HCL
	at    string // where libvirt's XML has it, below its group
	want  string // what the XML says there; "" if that is the value itself
	only  string // why no machine of this host can be started with it
	kept  bool   // it stays when it is withdrawn: without it the machine would be another one
}

// group of leaves that lie below one place.
type leafGroup struct {
	attr, at string
	leaves   []leaf
}

// setting is a part of a configuration.
type setting struct{ attr, value string }

// leafMachine is a machine that carries leaves. An element of a list is named by
// a word of its own: devices.disks[a].serial. Elements stand in the order in
// which they are first named.
type leafMachine struct {
	name   string
	base   []setting // beside what all have; a value of "" takes an attribute away
	groups []leafGroup
}

// below are leaves that have a place in common.
func below(attr, at string, leaves ...leaf) leafGroup { return leafGroup{attr, at, leaves} }

// all are the leaves of a machine with their whole places.
func (m leafMachine) all() (out []leaf) {
	for _, g := range m.groups {
		for _, l := range g.leaves {
			l.attr, l.at = joined(g.attr, l.attr, "."), joined(g.at, l.at, "/")
			if l.want == "" {
				l.want = literal(l.value)
			}
			out = append(out, l)
		}
	}
	return out
}

func joined(a, b, by string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + by + b
}

// literal is what a constant expression means.
func literal(expression string) string {
	if text, err := strconv.Unquote(expression); err == nil {
		return text
	}
	return expression
}

// nested is a configuration as it is built from settings.
type nested struct {
	value string
	names []string // in order
	under map[string]*nested
	list  bool
}

// put sets the value at a place.
func (n *nested) put(attr, value string) {
	part, rest, deeper := strings.Cut(attr, ".")
	name, key, listed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
	at := n.child(name)
	if listed {
		at.list = true
		at = at.child(key)
	}
	if deeper {
		at.put(rest, value)
	} else {
		at.value = value
	}
}

func (n *nested) child(name string) *nested {
	if n.under == nil {
		n.under = map[string]*nested{}
	}
	if n.under[name] == nil {
		n.under[name] = &nested{}
		n.names = append(n.names, name)
	}
	return n.under[name]
}

// String is the expression.
func (n *nested) String() string {
	if n.names == nil {
		return n.value
	}
	var parts []string
	for _, name := range n.names {
		text := n.under[name].String()
		if !n.list {
			text = name + " = " + text
		}
		parts = append(parts, text)
	}
	if n.list {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// index is a place with the numbers of its elements: devices.disks.0.serial.
func (n *nested) index(attr string) string {
	var out []string
	for _, part := range strings.Split(attr, ".") {
		name, key, listed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		n = n.child(name)
		out = append(out, name)
		if listed {
			out = append(out, strconv.Itoa(slices.Index(n.names, key)))
			n = n.child(key)
		}
	}
	return strings.Join(out, ".")
}

// config is the machine with its leaves or without.
func (m leafMachine) config(with bool) *nested {
	root := &nested{}
	settings := append([]setting{
		{"name", strconv.Quote("leaves-" + m.name)}, {"type", `"qemu"`},
		{"memory", "64"}, {"memory_unit", `"MiB"`}, {"vcpu", "1"},
		{"os.type", `"hvm"`}, {"os.type_arch", `"x86_64"`}, {"os.type_machine", `"q35"`},
	}, m.base...)
	if with {
		for _, l := range m.all() {
			settings = append(settings, setting{l.attr, l.value})
		}
	}
	for _, s := range settings {
		root.put(s.attr, s.value)
	}
	return root
}

func (m leafMachine) block(with bool) string {
	var b strings.Builder
	root := m.config(with)
	fmt.Fprintf(&b, "resource \"libvirt_domain\" %q {\n", m.name)
	for _, name := range root.names {
		if text := root.under[name].String(); text != "" {
			fmt.Fprintf(&b, "  %s = %s\n", name, text)
		}
	}
	return b.String() + "}\n"
}

// valuesAt reads a place in XML: devices/disk{target/@dev=vda}/driver/@cache is
// that of the disks whose target is vda.
func valuesAt(e *etree.Element, place string) (out []string) {
	if attr, ok := strings.CutPrefix(place, "@"); ok {
		if a := e.SelectAttr(attr); a != nil {
			return []string{a.Value}
		}
		return nil
	}
	if place == "" {
		return []string{strings.TrimSpace(e.Text())}
	}
	end := strings.IndexAny(place, "/{")
	tag, rest := place, ""
	if end >= 0 {
		tag, rest = place[:end], place[end:]
	}
	var condition, wanted string
	if strings.HasPrefix(rest, "{") {
		condition, rest, _ = strings.Cut(rest[1:], "}")
		condition, wanted, _ = strings.Cut(condition, "=")
	}
	rest = strings.TrimPrefix(rest, "/")
	for _, child := range e.ChildElements() {
		if child.FullTag() == tag && (condition == "" || slices.Contains(valuesAt(child, condition), wanted)) {
			out = append(out, valuesAt(child, rest)...)
		}
	}
	return out
}

// has says whether the XML of a domain has the leaf.
func (l leaf) has(xml *etree.Element) bool {
	got := valuesAt(xml, l.at)
	return slices.Contains(got, l.want) || l.want == "true" && slices.Contains(got, "")
}

// leavesWanted is the environment variable that chooses machines by a regular
// expression, for whoever works on some of them. Unset: all.
const leavesWanted = "LEAVES"

// leafCase is a case under way.
type leafCase struct {
	t        *testing.T
	project  *lab.Project
	machines []leafMachine
	began    time.Time
}

func (c *leafCase) configure(with bool) {
	c.t.Helper()
	body := ""
	for _, m := range c.machines {
		body += m.block(with)
	}
	configure(c.t, c.project, body)
}

// bring applies the configuration, and wants two empty plans.
func (c *leafCase) bring(with bool) {
	c.t.Helper()
	c.configure(with)
	if out, code := c.project.Run("apply", "-auto-approve"); code != 0 {
		c.t.Fatalf("apply, leaves %v:\n%s", with, out[max(0, strings.Index(out, "\nError: ")):])
	}
	c.mark(fmt.Sprintf("applied, leaves %v", with))
	c.settled()
}

// settled wants two empty plans: one that would change something, and one that
// would only take over what the host says.
func (c *leafCase) settled() {
	c.t.Helper()
	if out, code := c.project.Run("plan", "-detailed-exitcode"); code != 0 {
		c.t.Errorf("a second plan ends with %d:\n%s", code, out[max(0, strings.Index(out, "\n\n")):])
	}
	// The exit code of this one is no answer: Terraform's is 2 beside the words
	// "No changes". What a refresh found is in the plan.
	out, code := c.project.Run("plan", "-refresh-only", "-out=refresh")
	if code != 0 {
		c.t.Errorf("a plan that only refreshes ends with %d:\n%s", code, out)
	}
	var seen struct {
		Drift []struct {
			Address string `json:"address"`
			Change  any    `json:"change"`
		} `json:"resource_drift"`
	}
	if err := json.Unmarshal([]byte(c.project.Must(0, "show", "-json", "refresh")), &seen); err != nil {
		c.t.Fatal(err)
	}
	for _, d := range seen.Drift {
		c.t.Errorf("a refresh after the apply finds %s changed: %v", d.Address, d.Change)
	}
	c.mark("planned")
}

func (c *leafCase) mark(what string) {
	c.t.Logf("%6.1f s  %s", time.Since(c.began).Seconds(), what)
}

// definitions are those of all machines.
func (c *leafCase) definitions() map[string]*etree.Element {
	c.t.Helper()
	out := map[string]*etree.Element{}
	for _, m := range c.machines {
		doc := etree.NewDocument()
		if err := doc.ReadFromString(lab.Virsh(c.t, "dumpxml", "--inactive", "--security-info", "leaves-"+m.name)); err != nil {
			c.t.Fatal(err)
		}
		out[m.name] = doc.Root()
	}
	return out
}

// check holds the definitions against the leaves: all of them are there, or
// none is, but those that are kept after they were there. It returns the leaves
// that are otherwise.
func (c *leafCase) check(when string, there, after bool) (wrong []string) {
	c.t.Helper()
	definitions := c.definitions()
	for _, m := range c.machines {
		for _, l := range m.all() {
			if xml := definitions[m.name]; l.has(xml) != (there || l.kept && after) {
				c.t.Errorf("%s: %s of %s: %s is %q, and the leaf is %s", when, l.attr, m.name, l.at, valuesAt(xml, l.at), l.want)
				wrong = append(wrong, m.name+" "+l.attr)
			}
		}
	}
	return wrong
}

// checkState holds the state after a refresh against the leaves. No guest is
// otherwise than its definition.
func (c *leafCase) checkState() (wrong []string) {
	c.t.Helper()
	c.project.Must(0, "apply", "-refresh-only", "-auto-approve")
	var s struct {
		Values struct {
			Root struct {
				Resources []resourceState `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(c.project.Must(0, "show", "-json")), &s); err != nil {
		c.t.Fatal(err)
	}
	for _, r := range s.Values.Root.Resources {
		i := slices.IndexFunc(c.machines, func(m leafMachine) bool { return "libvirt_domain."+m.name == r.Address })
		if state := at(r.Values, "status.state"); state != "settled" {
			c.t.Errorf("%s is %v: %q", c.machines[i].name, state, words(r.Values, "status.pending"))
			wrong = append(wrong, c.machines[i].name)
		}
		root := c.machines[i].config(true)
		for _, l := range c.machines[i].all() {
			got := at(r.Values, root.index(l.attr))
			if n, ok := got.(float64); ok {
				got = strconv.FormatFloat(n, 'f', -1, 64)
			}
			if _, object := got.(map[string]any); object {
				got = "{}"
			}
			if fmt.Sprint(got) != literal(l.value) {
				c.t.Errorf("the state of %s has %v as %s, not %s", c.machines[i].name, got, l.attr, l.value)
				wrong = append(wrong, c.machines[i].name+" "+l.attr)
			}
		}
	}
	return wrong
}

// start starts the machines that this host can run, and says which QEMU did not
// take.
func (c *leafCase) start() (refused []string) {
	c.t.Helper()
	h := lab.Host(c.t)
	for _, m := range c.machines {
		if m.absent() != "" {
			continue
		}
		// So many that run at once keep the host from everything else.
		for _, command := range []string{"start", "suspend"} {
			if _, err := h.Virsh(context.Background(), command, "leaves-"+m.name); err != nil {
				c.t.Errorf("%s %s with its leaves: %v", command, m.name, err)
				refused = append(refused, m.name)
				break
			}
		}
	}
	c.mark("started")
	return refused
}

// absent says why the machine cannot be started here, "" if it can.
func (m leafMachine) absent() string {
	for _, l := range m.all() {
		if l.only != "" {
			return l.only
		}
	}
	return ""
}

// stop stops all machines hard.
func (c *leafCase) stop() {
	for _, m := range c.machines {
		if strings.TrimSpace(lab.Virsh(c.t, "domstate", "leaves-"+m.name)) != "shut off" {
			lab.Virsh(c.t, "destroy", "leaves-"+m.name)
		}
	}
	c.mark("stopped")
}

// remove takes the machines off the host.
func (c *leafCase) remove() {
	there := strings.Fields(lab.Virsh(c.t, "list", "--all", "--name"))
	c.machines = slices.DeleteFunc(c.machines, func(m leafMachine) bool { return !slices.Contains(there, "leaves-"+m.name) })
	c.stop()
	for _, m := range c.machines {
		lab.Virsh(c.t, "undefine", "leaves-"+m.name, "--managed-save", "--nvram", "--tpm")
	}
}

func runLeaves(t *testing.T, on core.Core, machines []leafMachine) {
	t.Helper()
	wanted := regexp.MustCompile(os.Getenv(leavesWanted))
	c := &leafCase{t: t, began: time.Now()}
	for _, m := range machines {
		if wanted.MatchString(m.name) {
			c.machines = append(c.machines, m)
		}
	}
	c.project = project(t, on, "")
	defer c.remove()
	c.bring(false)
	c.check("before", false, false)
	c.bring(true)
	wrong := c.check("with the leaves", true, false)
	refused := c.start()
	wrong = append(wrong, c.checkState()...)
	wrong = append(wrong, c.check("while the machine runs", true, false)...)
	c.settled()
	c.stop()
	c.bring(false)
	wrong = append(wrong, c.check("withdrawn", false, true)...)
	done, kept := 0, 0
	for _, m := range c.machines {
		for _, l := range m.all() {
			switch {
			case m.absent() != "":
				t.Logf("only defined: %s = %s (%s)", l.attr, l.value, m.absent())
			case !slices.Contains(wrong, m.name+" "+l.attr) && !slices.Contains(append(refused, wrong...), m.name):
				t.Logf("%-70s %s", l.attr+" = "+l.value, l.at)
				if l.kept {
					kept++
				} else {
					done++
				}
			}
		}
	}
	t.Logf("leaves: %d applied, read back, accepted by QEMU, withdrawn, and %d more that are kept, on %d machines", done, kept, len(c.machines))
}

// leafCases are the tables, by meaning.
var leafCases = []struct {
	name     string
	machines func(files leafFiles) []leafMachine
}{
	{"machine", machineLeaves},
	{"storage", storageLeaves},
	{"devices", deviceLeaves},
}

// leafFiles makes files that machines need.
type leafFiles interface {
	// image is a new disk image of a MiB, of a format of qemu-img.
	image(name, format string) string
	// volume is a new volume of a MiB in the pool "default".
	volume(name string) string
	// file is a new file with a content.
	file(name, content string) string
	// dir is a new directory.
	dir(name string) string
	// guest are kernel and initrd of the tiny guest.
	guest() (kernel, initrd string)
}

func TestAccLeaves(t *testing.T) {
	for _, table := range leafCases {
		t.Run(table.name, func(t *testing.T) {
			on := acctest.Case(t, fmt.Sprintf("attributes of domains, %s: each is applied, read back, accepted by QEMU and withdrawn again, and every second plan is empty", table.name))
			runLeaves(t, on, table.machines(hostFiles{t, t.TempDir()}))
		})
	}
}

// hostFiles makes files on the host.
type hostFiles struct {
	t  *testing.T
	in string
}

func (f hostFiles) image(name, format string) string {
	path := f.in + "/" + name
	if out, err := lab.Host(f.t).Exec(context.Background(), "qemu-img", "create", "-q", "-f", format, path, "1M"); err != nil {
		f.t.Fatalf("make the image %s: %v\n%s", name, err, out)
	}
	return path
}

func (f hostFiles) volume(name string) string {
	lab.Virsh(f.t, "vol-create-as", "default", name, "1M", "--format", "raw")
	f.t.Cleanup(func() { lab.Virsh(f.t, "vol-delete", "--pool", "default", name) })
	return name
}

func (f hostFiles) file(name, content string) string {
	path := f.in + "/" + name
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f hostFiles) dir(name string) string {
	path := f.in + "/" + name
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		f.t.Fatal(err)
	}
	return path
}

func (f hostFiles) guest() (kernel, initrd string) {
	image := lab.Host(f.t).Guest()
	return image.Kernel, image.Initrd
}

// namedFiles only names files.
type namedFiles struct{}

func (namedFiles) image(name, _ string) string    { return "/files/" + name }
func (namedFiles) volume(name string) string      { return name }
func (namedFiles) file(name, _ string) string     { return "/files/" + name }
func (namedFiles) dir(name string) string         { return "/files/" + name }
func (namedFiles) guest() (kernel, initrd string) { return "/files/kernel", "/files/initrd" }

// leastLeaves is how many attributes the tables hold at least that QEMU is
// started with.
const leastLeaves = 150

// TestLeaves_table: each row is an attribute of the schema, no attribute of a
// machine has two rows, and there are enough different ones.
func TestLeaves_table(t *testing.T) {
	typ := domain.New(nil).Type()
	patterns, names := map[string]bool{}, map[string]bool{}
	element := regexp.MustCompile(`\[[^]]*\]`)
	for _, table := range leafCases {
		for _, m := range table.machines(namedFiles{}) {
			if names[m.name] {
				t.Errorf("there are two machines %s", m.name)
			}
			names[m.name] = true
			seen := map[string]bool{}
			for _, s := range m.base {
				seen[s.attr] = true
			}
			for _, l := range m.all() {
				pattern := element.ReplaceAllString(l.attr, "[]")
				if seen[l.attr] {
					t.Errorf("%s has %s twice", m.name, l.attr)
				}
				seen[l.attr] = true
				if typeAt(typ, pattern) == nil {
					t.Errorf("%s: there is no attribute %s", m.name, pattern)
				}
				if m.absent() == "" && !l.kept {
					patterns[pattern] = true
				}
			}
		}
	}
	t.Logf("%d attributes", len(patterns))
	if len(patterns) < leastLeaves {
		t.Errorf("the tables hold %d attributes that QEMU is started with, and are to hold %d", len(patterns), leastLeaves)
	}
}

// typeAt is the type of the attribute with a pattern, nil if there is none.
func typeAt(typ *tree.Type, pattern string) *tree.Type {
	for _, name := range strings.Split(pattern, ".") {
		name, listed := strings.CutSuffix(name, "[]")
		attr := typ.Attrs[name]
		if attr == nil {
			return nil
		}
		typ = attr.Type
		if listed {
			typ = typ.Elem
		}
	}
	return typ
}
