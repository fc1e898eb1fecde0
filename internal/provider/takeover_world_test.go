package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The world of the cases about taking over: machines that run, made by hand as
// the incumbent provider makes them, a configuration for them, and a state file
// in the incumbent's shape, written from its schema. Nothing of it was ever seen
// by this provider.

// attrs are the attributes of an object, as JSON has them.
type attrs = map[string]any

// heir is one object in configuration and state.
type heir struct {
	typ, label string
	config     attrs // as the configuration has it, with its expressions
	state      attrs // what the state has otherwise, or beside it
}

func (h heir) address() string { return h.typ + "." + h.label }

// incumbent is the shape of the incumbent's states: what attributes an object
// has at each place, as "libvirt_domain", "libvirt_domain devices.disks[]".
type incumbent map[string][]string

// readIncumbent reads the shape from the list of the incumbent's attributes.
func readIncumbent(t testing.TB) incumbent {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "incumbent-schema.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	shape := incumbent{}
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		cells := strings.Split(lines.Text(), "\t")
		typ, isResource := strings.CutPrefix(cells[0], "resource ")
		if !isResource {
			continue
		}
		parent, name := typ, cells[1]
		if dot := strings.LastIndexByte(name, '.'); dot > 0 {
			parent, name = typ+" "+name[:dot], name[dot+1:]
		}
		shape[parent] = append(shape[parent], name)
	}
	return shape
}

// whole is an object as the incumbent stores it: with a null for every attribute
// that is not set. An attribute that the incumbent does not have fails the test.
func (s incumbent) whole(t testing.TB, place string, object attrs) attrs {
	t.Helper()
	out := attrs{}
	for _, name := range s[place] {
		out[name] = nil
	}
	for name, v := range object {
		if !slices.Contains(s[place], name) {
			t.Fatalf("the incumbent has no %s.%s", place, name)
		}
		below := place + " " + name
		if strings.Contains(place, " ") {
			below = place + "." + name
		}
		switch v := v.(type) {
		case attrs:
			out[name] = s.whole(t, below, v)
		case []attrs:
			elems := make([]any, len(v))
			for i, e := range v {
				elems[i] = s.whole(t, below+"[]", e)
			}
			out[name] = elems
		default:
			out[name] = v
		}
	}
	return out
}

// takeover is a project whose state another provider wrote.
type takeover struct {
	t       *testing.T
	core    core.Core
	project *lab.Project
	heirs   []heir
	guests  map[string]*lab.Guest
	before  map[string]string // the definitions, byte for byte
}

// theirs is the address of the incumbent, as a state of that core has it.
func (w *takeover) theirs() string {
	if w.core.Name == core.Terraform {
		return "registry.terraform.io/dmacvicar/libvirt"
	}
	return "registry.opentofu.org/dmacvicar/libvirt"
}

// newTakeover writes the configuration. Seeds and what else lives in a home go
// to directories of the case.
func newTakeover(t *testing.T, c core.Core, heirs []heir) *takeover {
	t.Helper()
	home := t.TempDir()
	w := &takeover{t: t, core: c, heirs: heirs, guests: map[string]*lab.Guest{}, before: map[string]string{}}
	w.project = lab.StartProject(t, c, lab.Config(t, ""), "HOME="+home, "XDG_STATE_HOME="+home, "TMPDIR="+t.TempDir())
	w.writeConfig()
	return w
}

func (w *takeover) writeConfig() {
	w.t.Helper()
	resources := map[string]attrs{}
	for _, h := range w.heirs {
		if resources[h.typ] == nil {
			resources[h.typ] = attrs{}
		}
		resources[h.typ][h.label] = h.config
	}
	w.write("machines.tf.json", attrs{"resource": resources})
}

func (w *takeover) write(name string, content any) {
	w.t.Helper()
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.project.Dir(), name), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// writeState writes the state that the incumbent would have left. whole makes of
// what an object says what is stored.
func (w *takeover) writeState(whole func(h heir) attrs) {
	w.t.Helper()
	resources := make([]attrs, len(w.heirs))
	for i, h := range w.heirs {
		resources[i] = attrs{
			"mode": "managed", "type": h.typ, "name": h.label, "provider": fmt.Sprintf("provider[%q]", w.theirs()),
			"instances": []attrs{{"schema_version": 0, "attributes": whole(h), "sensitive_attributes": []any{}}},
		}
	}
	w.write("terraform.tfstate", attrs{
		"version": 4, "terraform_version": "1.11.4", "serial": 7, "lineage": "5ab4d4a2-6e8f-4a0f-8f5b-0d7f0e6f6a31", "outputs": attrs{}, "resources": resources,
	})
}

// asIncumbent is writeState for version 0.9: the configuration's values and what
// the provider computes.
func (w *takeover) asIncumbent() {
	shape := readIncumbent(w.t)
	w.writeState(func(h heir) attrs {
		object := maps.Clone(h.config)
		maps.Copy(object, h.state)
		for name, v := range object {
			if v == nil {
				delete(object, name)
			}
		}
		return shape.whole(w.t, h.typ, object)
	})
}

// observe remembers the guests and all definitions.
func (w *takeover) observe(guests ...string) {
	w.t.Helper()
	for _, name := range guests {
		w.guests[name] = lab.Observe(w.t, name)
	}
	w.before = w.definitions()
}

// definitions are the definitions of all machines, networks and pools, and
// whether the host starts them.
func (w *takeover) definitions() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, sort := range []struct{ list, dump, info string }{{"list", "dumpxml --security-info", "dominfo"}, {"net-list", "net-dumpxml", "net-info"}, {"pool-list", "pool-dumpxml", ""}} {
		for _, name := range strings.Fields(lab.Virsh(w.t, sort.list, "--all", "--name")) {
			text := lab.Virsh(w.t, append(strings.Fields(sort.dump), "--inactive", name)...)
			if sort.info != "" {
				for _, line := range strings.Split(lab.Virsh(w.t, sort.info, name), "\n") {
					if strings.HasPrefix(line, "Autostart:") {
						text += line
					}
				}
			}
			out[sort.list+" "+name] = text
		}
	}
	return out
}

// untouched fails the test unless the guests run as they did, and every
// definition is what it was, byte for byte.
func (w *takeover) untouched(when string) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w.guests)) {
		w.guests[name].Untouched(w.t, name)
	}
	now := w.definitions()
	for _, name := range slices.Sorted(maps.Keys(w.before)) {
		if now[name] != w.before[name] {
			w.t.Errorf("%s: %s was changed from\n%s\nto\n%s", when, name, w.before[name], now[name])
		}
	}
	if len(now) != len(w.before) {
		w.t.Errorf("%s: the host has %d objects, and had %d", when, len(now), len(w.before))
	}
}

// replaceProvider is the one command of a person who changes over.
func (w *takeover) replaceProvider(from, to string) {
	w.t.Helper()
	w.project.Must(0, "state", "replace-provider", "-auto-approve", from, to)
}

// empty fails the test unless the plan is empty and says nothing else.
func (w *takeover) empty(when string, args ...string) {
	w.t.Helper()
	out := w.project.Must(0, append([]string{"plan", "-detailed-exitcode"}, args...)...)
	// One warning is that of the core about the build that is tested.
	if !strings.Contains(out, "No changes.") || strings.Count(out, "Warning: ") > 1 {
		w.t.Errorf("%s:\n%s", when, out)
	}
	w.untouched(when)
}

// sweep removes what the case made, whatever became of it.
func (w *takeover) sweep() {
	for _, h := range w.heirs {
		name, _ := h.config["name"].(string)
		for _, command := range map[string][][]string{
			"libvirt_domain": {{"destroy"}, {"undefine", "--nvram"}}, "libvirt_network": {{"net-destroy"}, {"net-undefine"}},
			"libvirt_pool": {{"pool-destroy"}, {"pool-undefine"}}, "libvirt_volume": {{"vol-delete", "--pool", fmt.Sprint(h.config["pool"])}},
		}[h.typ] {
			_, _ = lab.Host(w.t).Virsh(context.Background(), append(slices.Clip(command), name)...)
		}
	}
}
