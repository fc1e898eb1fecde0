package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// file is one of a configuration.
type file struct {
	name string
	text []byte
}

// files writes the configuration down.
func (p *project) files() ([]file, error) {
	texts := []struct{ name, text string }{
		{"providers.tf", p.providers()},
		{"variables.tf", p.variableBlocks()},
		{"locals.tf", p.localBlock()},
	}
	for _, kind := range kindsInOrder {
		var blocks []string
		for _, o := range p.objects {
			if o.kind == kind {
				blocks = append(blocks, p.resource(o))
			}
		}
		texts = append(texts, struct{ name, text string }{kind + "s.tf", strings.Join(blocks, "\n")})
	}
	texts = append(texts, struct{ name, text string }{"imports.tf", p.imports()})
	var files []file
	for _, t := range texts {
		if t.text == "" {
			continue
		}
		formatted := hclwrite.Format([]byte(t.text))
		if _, diags := hclwrite.ParseConfig(formatted, t.name, hcl.InitialPos); diags.HasErrors() {
			return nil, fmt.Errorf("write %s: %w; this is a mistake in adopt", t.name, diags)
		}
		files = append(files, file{t.name, formatted})
	}
	return files, nil
}

func (p *project) providers() string {
	uri := quoted(p.uri)
	if p.hidden {
		uri = "var.uri"
	}
	return fmt.Sprintf(`terraform {
  required_providers {
    libvirt = { source = "driftsafe/libvirt" }
  }
}

provider "libvirt" {
  uri = %s
}
`, uri)
}

func (p *project) variableBlocks() string {
	var blocks []string
	if p.hidden {
		blocks = append(blocks, `# libvirt's connection URI. It holds credentials, and is not written here.
variable "uri" {
  type      = string
  sensitive = true
}
`)
	}
	for _, v := range p.variables {
		blocks = append(blocks, fmt.Sprintf(`# %s. It is secret, and is not written here.
# null leaves it as it is on the host; to manage it, set TF_VAR_%s.
variable %q {
  type      = string
  sensitive = true
  default   = null
}
`, v.about, v.name, v.name))
	}
	return strings.Join(blocks, "\n")
}

func (p *project) localBlock() string {
	if len(p.locals) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("locals {\n")
	for _, l := range p.locals {
		fmt.Fprintf(&b, "  %s = %s\n", l.name, scalar(l.value))
	}
	b.WriteString("}\n")
	return b.String()
}

func (p *project) imports() string {
	var blocks []string
	for _, o := range p.objects {
		blocks = append(blocks, fmt.Sprintf("import {\n  to = %s\n  id = %s\n}\n", o.address(), quoted(o.id)))
	}
	return "# These act once: after the apply, this file can go.\n\n" + strings.Join(blocks, "\n")
}

// resource writes one block.
func (p *project) resource(o *object) string {
	var b strings.Builder
	for _, comment := range remarks(o) {
		fmt.Fprintf(&b, "# %s\n", oneLine(comment))
	}
	fmt.Fprintf(&b, "resource %q %q {\n", o.resource(), o.label)
	r := renderer{links: p.links[o], order: order(o.kind)}
	tall := false // the attribute before has several lines
	for i, name := range r.sorted(nil, o.essence) {
		path := tree.Root.Attr(name)
		text := r.value(path, o.essence.Attr(name), "  ", len(name))
		if now := strings.Contains(text, "\n"); i > 0 && (now || tall) {
			b.WriteByte('\n')
		}
		tall = strings.Contains(text, "\n")
		fmt.Fprintf(&b, "  %s = %s\n", name, text)
	}
	b.WriteString("}\n")
	return b.String()
}

// remarks are what a reader of a block should know and the block does not say.
func remarks(o *object) (out []string) {
	if spaces := namespaces(o.whole.At("metadata.xml").Str()); len(spaces) > 0 {
		out = append(out, "What other tools keep in its metadata stays theirs: "+strings.Join(spaces, ", ")+".")
	}
	return out
}

// renderer writes values.
type renderer struct {
	links map[string]string // by path: what to write instead
	order func(pattern string) int
}

// sorted are the attributes of an object in the order of the document.
func (r *renderer) sorted(path tree.Path, v tree.Value) []string {
	names := v.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return r.order(path.Attr(a).Pattern()) - r.order(path.Attr(b).Pattern())
	})
	return names
}

// Limits of what stands on one line.
const (
	mostLeaves = 3
	lineWidth  = 76
)

// value writes one: on a line if it is small, else in lines of its own below the
// indent. used is how much of the line is taken.
func (r *renderer) value(path tree.Path, v tree.Value, indent string, used int) string {
	if link := r.links[path.String()]; link != "" {
		return link
	}
	switch {
	case v.Kind() == tree.List && v.Len() == 0:
		return "[]"
	case v.Kind() != tree.Object && v.Kind() != tree.List:
		return scalar(v)
	}
	if line, leaves := r.line(path, v); leaves <= mostLeaves && len(indent)+used+len(line) <= lineWidth {
		return line
	}
	var b strings.Builder
	deeper := indent + "  "
	if v.Kind() == tree.List {
		b.WriteString("[\n")
		for i, elem := range v.Elems() {
			fmt.Fprintf(&b, "%s%s,\n", deeper, r.value(path.Elem(i, ""), elem, deeper, 1))
		}
		b.WriteString(indent + "]")
		return b.String()
	}
	b.WriteString("{\n")
	for _, name := range r.sorted(path, v) {
		fmt.Fprintf(&b, "%s%s = %s\n", deeper, name, r.value(path.Attr(name), v.Attr(name), deeper, len(name)+3))
	}
	b.WriteString(indent + "}")
	return b.String()
}

// line writes a value on one line, and counts its leaves. Lists of objects are
// never put there: each element has a line.
func (r *renderer) line(path tree.Path, v tree.Value) (text string, leaves int) {
	if link := r.links[path.String()]; link != "" {
		return link, 1
	}
	switch v.Kind() {
	case tree.Object:
		if v.Len() == 0 {
			return "{}", 1
		}
		var parts []string
		for _, name := range r.sorted(path, v) {
			below, n := r.line(path.Attr(name), v.Attr(name))
			parts = append(parts, name+" = "+below)
			leaves += n
		}
		return "{ " + strings.Join(parts, ", ") + " }", leaves
	case tree.List:
		var parts []string
		for i, e := range v.Elems() {
			if e.Kind() == tree.Object {
				return "", mostLeaves + 1
			}
			below, _ := r.line(path.Elem(i, ""), e)
			parts = append(parts, below)
		}
		return "[" + strings.Join(parts, ", ") + "]", 1
	default:
		return scalar(v), 1
	}
}

// scalar writes a text, number or boolean.
func scalar(v tree.Value) string {
	if v.Kind() == tree.String {
		return quoted(v.Str())
	}
	return v.String()
}

// oneLine is a text that may come from the host as a comment has it: whatever would
// end the line, or hide what follows, is written as an escape.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

func quoted(text string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}

// first are the attributes that a person writes before all others beside them.
var first = []string{"name", "type", "pool", "title", "description", "autostart", "capacity", "memory", "current_memory", "vcpu", "vcpu_current", "os.type"}

// order says in which order attributes stand: that of libvirt's documents, after
// what people begin with; a unit follows its number.
func order(kind string) func(pattern string) int {
	root := roots[kind]()
	return func(pattern string) int {
		number, isUnit := strings.CutSuffix(pattern, "_unit")
		if _, known := root.Fields[number]; isUnit && known {
			pattern = number // the sort is stable, and the alphabet has the unit behind it
		}
		if i := slices.Index(first, pattern); i >= 0 {
			return i - len(first)
		}
		if f := root.Fields[pattern]; f != nil {
			return f.Order
		}
		return 0
	}
}

// writeNew writes files into a directory. If one of them is there already,
// nothing is written.
func writeNew(dir string, files []file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already, and nothing was written: choose another directory with -out, or move the file away", filepath.Join(dir, f.name))
		}
	}
	for _, f := range files {
		if err := create(filepath.Join(dir, f.name), f.text); err != nil {
			return err
		}
	}
	return nil
}

// create makes a file that must not be there yet, for this user alone: it may hold
// texts that are secret.
func create(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
