package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
)

// What a core does that has the query command, in the words of the protocol: no
// core at hand has it.

type fields = map[string]any

// dynamic is a value on the wire.
type dynamic struct {
	Msgpack []byte `json:"msgpack,omitempty"`
}

// message is a diagnostic.
type message struct{ Severity, Summary, Detail string }

// answered is what any answer may have.
type answered struct {
	Diagnostics []message

	Config         dynamic
	NewState       dynamic `json:"new_state"`
	PlannedState   dynamic `json:"planned_state"`
	Private        []byte
	PlannedPrivate []byte `json:"planned_private"`
	Replace        []any  `json:"requires_replace"`
	Imported       []struct {
		State    dynamic
		Private  []byte
		Identity identityData
	} `json:"imported_resources"`
}

type identityData struct {
	Data dynamic `json:"identity_data"`
}

// found is an object of a list.
type found struct {
	Name       string        `json:"display_name"`
	Identity   *identityData `json:"identity"`
	Resource   *dynamic      `json:"resource_object"`
	Diagnostic []message
}

// querying is a core that asks the provider.
type querying struct {
	t       *testing.T
	process *lab.Process
	schema  *tfprotov6.GetProviderSchemaResponse
}

// newQuerying starts the provider and connects it to the host.
func newQuerying(t *testing.T) *querying {
	t.Helper()
	schema, err := provider.NewServer("test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	q := &querying{t, lab.StartProcess(t), schema}
	q.ask("ConfigureProvider", fields{"terraform_version": "1.14.0", "config": q.written(schema.Provider, map[string]string{"uri": lab.Host(t).URI()})})
	return q
}

// written is a configuration that sets a few texts.
func (q *querying) written(schema *tfprotov6.Schema, texts map[string]string) dynamic {
	q.t.Helper()
	typ := schema.ValueType()
	values := map[string]tftypes.Value{}
	for name, of := range typ.(tftypes.Object).AttributeTypes {
		values[name] = tftypes.NewValue(of, nil)
	}
	for name, text := range texts {
		values[name] = tftypes.NewValue(tftypes.String, text)
	}
	v, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		q.t.Fatal(err)
	}
	return dynamic{v.MsgPack}
}

// ask asks what must succeed without a word.
func (q *querying) ask(method string, request any) (a answered) {
	q.t.Helper()
	q.process.Ask(method, request, &a)
	q.silent(method, a.Diagnostics)
	return a
}

func (q *querying) silent(what string, all []message) {
	q.t.Helper()
	for _, d := range all {
		q.t.Errorf("%s says %s: %s: %s", what, d.Severity, d.Summary, d.Detail)
	}
}

// apart says where two values of a resource differ.
func (q *querying) apart(typ string, a, b dynamic) string {
	q.t.Helper()
	if bytes.Equal(a.Msgpack, b.Msgpack) {
		return ""
	}
	var values [2]tftypes.Value
	for i, d := range []dynamic{a, b} {
		v, err := tfprotov6.DynamicValue{MsgPack: d.Msgpack}.Unmarshal(q.schema.ResourceSchemas[typ].ValueType())
		if err != nil {
			q.t.Fatal(err)
		}
		values[i] = v
	}
	differences, err := values[0].Diff(values[1])
	if err != nil {
		q.t.Fatal(err)
	}
	text := ""
	for _, d := range differences {
		text += d.String() + "\n"
	}
	return text
}

// list lists the objects of a type as a core does: their identities, or whole.
func (q *querying) list(typ string, texts map[string]string, whole bool) (all []found) {
	q.t.Helper()
	config := q.written(q.schema.ListResourceSchemas[typ], texts)
	q.ask("ValidateListResourceConfig", fields{"type_name": typ, "config": config})
	q.process.Ask("ListResource", fields{"type_name": typ, "config": config, "include_resource_object": whole}, &all)
	for _, one := range all {
		q.silent("ListResource of "+typ+" "+one.Name, one.Diagnostic)
		if (one.Resource != nil) != whole || one.Identity == nil {
			q.t.Fatalf("%s %s, listed whole: %v, has %+v", typ, one.Name, whole, one)
		}
	}
	return all
}

// adopt has a configuration generated of an object, imports the object by its
// identity and plans: nothing may be to do.
func (q *querying) adopt(typ string, one found) {
	q.t.Helper()
	what := typ + " " + one.Name
	config := q.ask("GenerateResourceConfig", fields{"type_name": typ, "state": one.Resource}).Config
	q.ask("ValidateResourceConfig", fields{"type_name": typ, "config": config})
	imported := q.ask("ImportResourceState", fields{"type_name": typ, "identity": one.Identity}).Imported
	if len(imported) != 1 || !bytes.Equal(imported[0].Identity.Data.Msgpack, one.Identity.Data.Msgpack) {
		q.t.Fatalf("%s is imported as %+v", what, imported)
	}
	read := q.ask("ReadResource", fields{"type_name": typ, "current_state": imported[0].State, "private": imported[0].Private, "current_identity": imported[0].Identity})
	if d := q.apart(typ, *one.Resource, read.NewState); d != "" {
		q.t.Errorf("%s is listed otherwise than it is imported:\n%s", what, d)
	}
	// What a core proposes for a configuration that has all of the state.
	plan := q.ask("PlanResourceChange", fields{
		"type_name": typ, "prior_state": read.NewState, "proposed_new_state": read.NewState, "config": config, "prior_private": read.Private, "prior_identity": imported[0].Identity,
	})
	if d := q.apart(typ, read.NewState, plan.PlannedState); d != "" || len(plan.Replace) > 0 {
		q.t.Errorf("%s: what is generated plans a change:\n%s%v", what, d, plan.Replace)
	}
}

// playQuery lists all that the host has and adopts each object, as a core with the
// query command would.
func playQuery(t *testing.T, before picture) {
	q := newQuerying(t)
	lines := func(command string) []string {
		return strings.Split(strings.TrimSpace(lab.Virsh(t, command, "--all", "--name")), "\n")
	}
	var volumes []string
	for _, line := range strings.Split(lab.Virsh(t, "vol-list", "default"), "\n") {
		if name, path, is := strings.Cut(strings.TrimSpace(line), " "); is {
			if _, err := os.Stat(strings.TrimSpace(path)); err == nil { // else the pool has not seen yet that it is gone
				volumes = append(volumes, name)
			}
		}
	}
	for typ, want := range map[string][]string{
		"libvirt_domain": lines("list"), "libvirt_network": lines("net-list"), "libvirt_pool": lines("pool-list"), "libvirt_volume": volumes,
	} {
		var names []string
		for _, one := range q.list(typ, nil, true) {
			names = append(names, one.Name)
			if one.Name != "transient" { // to import it is to define it
				q.adopt(typ, one)
			}
		}
		for _, all := range [][]string{names, want} {
			for i := range all {
				all[i] = strings.TrimSpace(all[i])
			}
			slices.Sort(all)
		}
		if len(want) == 0 || !slices.Equal(names, want) {
			t.Errorf("%s: %q are listed, want %q", typ, names, want)
		}
	}
	if some := q.list("libvirt_domain", map[string]string{"name_regex": "^virt-manager-b"}, false); len(some) != 1 || some[0].Name != "virt-manager-bios" {
		t.Errorf("by a pattern, %+v are listed", some)
	}
	before.unchanged(t, "the lists")
}
