package provider_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The world of the table of protection: objects of all types, three of each:
// guarded says protect = true, free says protect = false, silent says nothing.
// One plan about all of them is a cell of the table for each object.

// object is one of them. Its label is what it says, its name is unique.
type object struct{ typ, says, shape string }

var (
	gateTypes = []string{"domain", "network", "pool", "volume", "cloudinit_disk", "ignition", "combustion"}
	gateSays  = []string{"guarded", "free", "silent"}
)

// storedNouns are what the types are called that are files in the store.
var storedNouns = map[string]string{"cloudinit_disk": "seed", "ignition": "Ignition configuration", "combustion": "Combustion script"}

func (o object) noun() string {
	if seed, ok := storedNouns[o.typ]; ok {
		return seed
	}
	return o.typ
}

func (o object) name() string { return o.shape + "-" + o.says }

func (o object) address() string {
	address := "libvirt_" + o.typ + "." + o.says
	if o.shape == "module" {
		return "module.inner." + address
	}
	return address
}

// key finds the object in what the host has.
func (o object) key() string { return o.noun() + " " + o.name() }

// renewed is the object after a change of its name.
func (o object) renewed() object { return object{o.typ, o.says + "-new", o.shape} }

// setting is what protects objects from outside: the provider's configuration
// and the environment, "" if they say nothing.
type setting struct{ provider, env string }

// gateSettings are all of them.
func gateSettings() (all []setting) {
	for _, provider := range []string{"", "true", "false"} {
		for _, env := range []string{"", "true", "false"} {
			all = append(all, setting{provider, env})
		}
	}
	return all
}

// protects is what the documentation says: the object before the environment
// before the provider before the standard of the type.
func (s setting) protects(o object) bool {
	switch {
	case o.says != "silent":
		return o.says == "guarded"
	case s.env != "":
		return s.env == "true"
	case s.provider != "":
		return s.provider == "true"
	}
	return !isSeed(o)
}

func (s setting) String() string {
	said := func(what, value string) string {
		if value == "" {
			return what + " unset"
		}
		return what + " " + value
	}
	return said("provider", s.provider) + ", " + said("LIBVIRT_PROTECT", s.env)
}

// form is how the block of an object is written.
type form struct {
	head    string // count or for_each
	label   string // behind the label
	field   bool   // another value of what needs a replacement
	renamed bool   // under another name, so that both can be there at once
	first   bool   // create_before_destroy
	keep    bool   // lifecycle { destroy = false }
	disable bool   // lifecycle { enabled = false }
	waive   bool   // guarded objects say protect = false
	raise   bool   // free objects say protect = true
}

// gates is one project of the table.
type gates struct {
	t       *testing.T
	project *lab.Project
	dir     string // of pools and seeds
	objects []object
	initial map[string]string
	runs    bool       // the guarded domain is a guest that reports
	guest   *lab.Guest // that guest, as a witness
	cells   int
}

func newGates(t *testing.T, c core.Core, objects []object) *gates {
	t.Helper()
	w := &gates{t: t, project: lab.NewProject(t, c, t.TempDir()), dir: t.TempDir(), objects: objects}
	w.initial = w.seen()
	t.Cleanup(w.sweep)
	return w
}

// plain are objects of the shape plain that say these.
func plain(says ...string) (all []object) { return shaped("plain", says...) }

func shaped(shape string, says ...string) (all []object) {
	for _, typ := range gateTypes {
		for _, s := range says {
			all = append(all, object{typ, s, shape})
		}
	}
	return all
}

func without(all []object, drop func(object) bool) []object {
	return slices.DeleteFunc(slices.Clone(all), drop)
}

func isSeed(o object) bool { return storedNouns[o.typ] != "" }

// other is what every refused plan would make beside.
const other = `
resource "libvirt_volume" "other" {
  name     = "gates-other"
  pool     = "default"
  capacity = 4096
  protect  = false
}
resource "libvirt_network" "other" {
  name    = "gates-other"
  active  = false
  protect = false
}
`

// trigger is what replace_triggered_by names.
func trigger(value string) string {
	return fmt.Sprintf("resource \"terraform_data\" \"trigger\" {\n  input = %q\n}\n", value)
}

// blocks are those of all objects, and the trigger as it is.
func (w *gates) blocks(f form) string { return trigger("1") + w.only(w.objects, f) }

// only are the blocks of some objects.
func (w *gates) only(objects []object, f form) string {
	var b strings.Builder
	for _, o := range objects {
		b.WriteString(w.block(o, f))
	}
	return b.String()
}

func (w *gates) block(o object, f form) string {
	was, generation := o, 0
	if f.field || f.renamed {
		generation = 1
	}
	if f.renamed && !isSeed(o) || f.field && o.typ == "volume" {
		o = o.renewed()
	}
	lines := []string{f.head, fmt.Sprintf("name = %q", o.name())}
	if o.typ == "domain" || o.typ == "network" || o.typ == "pool" {
		lines = append(lines, fmt.Sprintf(`uuid = "%08x-0000-4000-8000-%012x"`, generation, crc32.ChecksumIEEE([]byte(was.key()))))
	}
	switch {
	case was.says == "guarded" && !f.waive, was.says == "free" && f.raise:
		lines = append(lines, "protect = true")
	case was.says != "silent":
		lines = append(lines, "protect = false")
	}
	lines = append(lines, w.body(o))
	if cycle := f.lifecycle(o); cycle != "" {
		lines = append(lines, "lifecycle {\n"+cycle+"}")
	}
	return fmt.Sprintf("resource \"libvirt_%s\" %q {\n%s\n}\n", o.typ, was.says+f.label, strings.Join(lines, "\n"))
}

func (f form) lifecycle(o object) (lines string) {
	if f.first {
		lines += "create_before_destroy = true\n"
	}
	if f.keep {
		lines += "destroy = false\n"
	}
	if f.disable {
		lines += "enabled = false\n"
	}
	if o.shape == "plain" {
		lines += "replace_triggered_by = [terraform_data.trigger]\n"
	}
	return lines
}

// body is what a type needs beside the name.
func (w *gates) body(o object) string {
	switch o.typ {
	case "domain":
		if w.runs && o.says == "guarded" {
			h := lab.Host(w.t)
			return fmt.Sprintf(`type = "qemu"
memory = 131072
vcpu = 1
running = true
os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
devices = { serials = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }] }`,
				h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog(o.name()))
		}
		return `type = "qemu"
memory = 16384
vcpu = 1
os = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }`
	case "network":
		return "active = false"
	case "pool":
		return fmt.Sprintf("type = \"dir\"\ntarget = { path = %q }", w.dir+"/"+o.name())
	case "volume":
		return "pool = \"default\"\ncapacity = 65536"
	case "ignition":
		return fmt.Sprintf(`content = jsonencode({ ignition = { version = "3.4.0" }, name = %q })`, o.name())
	case "combustion":
		return fmt.Sprintf("content = \"#!/bin/sh\\n# %s\\n\"", o.name())
	}
	return fmt.Sprintf("user_data = \"#cloud-config\\n\"\nmeta_data = \"instance-id: %s\\n\"", o.name())
}

// seen is what the host has: the files in which libvirt keeps definitions, the
// volumes, and the seeds. A definition that is written again has another inode,
// also if it says the same.
func (w *gates) seen() map[string]string {
	w.t.Helper()
	h, out := lab.Host(w.t), map[string]string{}
	for _, place := range []struct{ noun, pattern, end string }{
		{"domain", h.Dir() + "/etc/qemu/*.xml", ".xml"},
		{"network", h.Dir() + "/etc/qemu/networks/*.xml", ".xml"},
		{"pool", h.Dir() + "/etc/storage/*.xml", ".xml"},
		{"volume", h.PoolDir() + "/*", ""},
		{storedNouns["cloudinit_disk"], w.dir + "/seeds/*.iso", "-sha256-"},
		{storedNouns["ignition"], w.dir + "/seeds/*.ign", "-sha256-"},
		{storedNouns["combustion"], w.dir + "/seeds/*.sh", "-sha256-"},
	} {
		files, err := filepath.Glob(place.pattern)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if i := strings.LastIndex(name, place.end); place.end != "" && i > 0 {
				name = name[:i]
			}
			out[place.noun+" "+name] = identity(w.t, file)
		}
	}
	return out
}

// identity is that of a file: which one it is, when it was written, its content.
func identity(t testing.TB, file string) string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, " ", info.ModTime().UnixNano())
	if info.Mode().IsRegular() {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf(" %x", sha256.Sum256(data))
	}
	return text
}

// same fails the test unless the host has what it had, but for some objects.
func (w *gates) same(when string, before, after map[string]string, but ...string) {
	w.t.Helper()
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, was := before[key]; !was {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if before[key] != after[key] && !slices.Contains(but, key) {
			w.t.Errorf("%s: %s was touched: %q became %q", when, key, before[key], after[key])
		}
	}
}

// sweep removes what a case leaves on the host, which others use too.
func (w *gates) sweep() {
	end := map[string][][]string{
		"domain": {{"destroy"}, {"undefine", "--nvram"}}, "network": {{"net-destroy"}, {"net-undefine"}},
		"pool": {{"pool-destroy"}, {"pool-undefine"}}, "volume": {{"vol-delete", "--pool", "default"}},
	}
	for key := range w.seen() {
		noun, name, _ := strings.Cut(key, " ")
		if _, was := w.initial[key]; was {
			continue
		}
		for _, command := range end[noun] {
			_, _ = lab.Host(w.t).Virsh(context.Background(), append(slices.Clip(command), name)...)
		}
	}
}

// outcome is what a run of the core said.
type outcome struct {
	code                    int
	errors                  map[string]string // summary: detail
	added, changed, removed int
	text                    string
}

// write writes the configuration.
func (w *gates) write(s setting, body string) {
	w.t.Helper()
	protect := ""
	if s.provider != "" {
		protect = "protect = " + s.provider
	}
	config := lab.Config(w.t, body, protect, fmt.Sprintf("seed_store = %q", w.dir+"/seeds"))
	w.rewrite(strings.Replace(config, lab.Source(), "driftsafe/libvirt", 1))
}

func (w *gates) file() string { return filepath.Join(w.project.Dir(), "main.tf") }

// rewrite writes a whole configuration, and written reads it.
func (w *gates) rewrite(config string) {
	w.t.Helper()
	if err := os.WriteFile(w.file(), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *gates) written() string {
	w.t.Helper()
	config, err := os.ReadFile(w.file())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(config)
}

// under is the project with a setting of the environment.
func (w *gates) under(s setting) *lab.Project {
	if s.env == "" {
		return w.project
	}
	return w.project.With("LIBVIRT_PROTECT=" + s.env)
}

// run writes a configuration and runs the core with it.
func (w *gates) run(s setting, body string, args ...string) outcome {
	w.t.Helper()
	w.write(s, body)
	text, code := w.under(s).Run(append([]string{args[0], "-json"}, args[1:]...)...)
	o := outcome{code: code, errors: map[string]string{}, text: text}
	for _, line := range strings.Split(text, "\n") {
		var event struct {
			Type       string
			Diagnostic struct{ Severity, Summary, Detail string }
			Changes    struct{ Add, Change, Remove int }
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		switch {
		case event.Type == "change_summary":
			o.added, o.changed, o.removed = event.Changes.Add, event.Changes.Change, event.Changes.Remove
		case event.Type == "diagnostic" && event.Diagnostic.Severity == "error":
			o.errors[event.Diagnostic.Summary] = event.Diagnostic.Detail
		}
	}
	return o
}

// apply applies a configuration, which must work.
func (w *gates) apply(s setting, body string, args ...string) outcome {
	w.t.Helper()
	o := w.run(s, body, append([]string{"apply", "-auto-approve"}, args...)...)
	if o.code != 0 {
		w.t.Fatalf("apply %s under %s: exit code %d\n%s", strings.Join(args, " "), s, o.code, o.text)
	}
	return o
}

// refusals are the errors that a plan about all objects must have.
func (w *gates) refusals(s setting, verb string, objects []object) map[string]object {
	out := map[string]object{}
	for _, o := range objects {
		if s.protects(o) {
			out[fmt.Sprintf("Refusing to %s protected %s %q", verb, o.noun(), o.name())] = o
		}
	}
	return out
}

// judge holds the errors of a run against the refusals that it must have. Each
// must name both ways out: how the object is kept, and how it is given up.
func (w *gates) judge(when string, s setting, got outcome, want map[string]object, says ...string) {
	w.t.Helper()
	for summary := range got.errors {
		if _, expected := want[summary]; !expected {
			w.t.Errorf("%s, %s: unexpected error %q: %s", when, s, summary, got.errors[summary])
		}
	}
	for summary, o := range want {
		detail, refused := got.errors[summary]
		if !refused {
			w.t.Errorf("%s, %s: no error %q", when, s, summary)
			continue
		}
		parts := append([]string{"To keep it: ", "To forget it without touching it", "state rm ADDRESS", "`protect = false`"}, says...)
		if o.says == "silent" {
			parts = append(parts, "LIBVIRT_PROTECT=false")
		} else if strings.Contains(detail, "LIBVIRT_PROTECT=false") {
			w.t.Errorf("%s, %s: %q offers the environment, which does not help here: %s", when, s, summary, detail)
		}
		for _, part := range parts {
			if !strings.Contains(detail, part) {
				w.t.Errorf("%s, %s: %q does not say %q: %s", when, s, summary, part, detail)
			}
		}
	}
	if want := min(len(want), 1); got.code != want {
		w.t.Errorf("%s, %s: exit code %d, want %d\n%s", when, s, got.code, want, got.text)
	}
}

// addresses puts a flag before the address of every object.
func addresses(flag string, objects []object) (args []string) {
	for _, o := range objects {
		args = append(args, flag+o.address())
	}
	return args
}
