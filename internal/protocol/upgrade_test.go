package protocol

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestLenientUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		json    string
		want    tree.Value
		warning string // what the warning names, "" for none
	}{
		"as it is": {`{"name":"web","memory":18446744073709551615,"on":false,"tags":["a"],"boot":{"order":1},"disks":[{"dev":"vda","parts":null}],"uuid":null}`,
			obj("name", "web", "memory", num("18446744073709551615"), "on", false, "tags", list("a"), "boot", obj("order", 1), "disks", list(obj("dev", "vda"))), ""},
		"unknown attributes": {`{"name":"web","cloudinit":"x","disks":[{"dev":"vda","wwn":{"a":[1]}}],"boot":{"firmware":1}}`,
			obj("name", "web", "disks", list(obj("dev", "vda")), "boot", obj()), ""},
		"numbers as text":  {`{"memory":"512","disks":[{"size":"0.1"}],"matrix":[["18446744073709551616"]]}`, obj("memory", 512, "disks", list(obj("size", num("0.1"))), "matrix", list(list(num("18446744073709551616")))), ""},
		"text as numbers":  {`{"name":12,"uuid":0.1,"tags":[true,1e3]}`, obj("name", "12", "uuid", "0.1", "tags", list("true", "1000")), ""},
		"booleans":         {`{"on":"yes","memory":true,"name":false}`, obj("on", true, "memory", 1, "name", "false"), ""},
		"boolean 0":        {`{"on":0}`, obj("on", false), ""},
		"boolean off":      {`{"on":"off"}`, obj("on", false), ""},
		"boolean text":     {`{"on":"true"}`, obj("on", true), ""},
		"not set as text":  {`{"on":"","memory":"","name":""}`, obj("name", ""), ""},
		"block to object":  {`{"boot":[{"order":2}],"disks":[{"dev":["vda"]}]}`, obj("boot", obj("order", 2), "disks", list(obj("dev", "vda"))), ""},
		"empty block":      {`{"boot":[],"name":[]}`, obj(), ""},
		"object to list":   {`{"disks":{"dev":"vda"},"tags":"a","matrix":7}`, obj("disks", list(obj("dev", "vda")), "tags", list("a"), "matrix", list(list(7))), ""},
		"several for one":  {`{"name":"web","boot":[{"order":1},{"order":2}]}`, obj("name", "web"), "test_machine web: parts of the stored state were not understood"},
		"wrong shapes":     {`{"name":{"a":1},"memory":"lots","on":"maybe","boot":"x","disks":[{"dev":"vda","size":{}}, 5],"tags":[{}]}`, obj("disks", list(obj("dev", "vda"), nil), "tags", list(nil)), "boot: a string instead of an object\n  - disks[0].size: an object instead of a number\n  - disks[1]: a number instead of an object\n  - memory: this string is no number\n  - name: an object instead of a string\n  - on: this string is no bool\n  - tags[0]: an object instead of a string"},
		"fraction as bool": {`{"on":1.5}`, obj(), "on: this number is no bool"},
		"huge number":      {`{"memory":1e999999,"name":1e999999,"disks":[{"size":"1e99999999"}]}`, obj("disks", list(obj())), "disks[0].size: this string is no number\n  - memory: this number is no number\n  - name: this number is no string"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, newMachines())
			resp := h.upgrade(0, c.json)
			got := messages(resp.Diagnostics)
			if strings.Contains(got, "ERROR") || !strings.Contains(got, c.warning) || (got == "") != (c.warning == "") || len(resp.Diagnostics) > 1 {
				t.Errorf("diagnostics %s, want %s", got, c.warning)
			}
			if v := h.value(resp.UpgradedState); !tree.Equal(v, c.want) {
				t.Errorf("got %s\nwant %s", v, c.want)
			}
		})
	}
}

func TestUpgradeErrors(t *testing.T) {
	h := newHost(t, newMachines())
	for state, want := range map[string]string{
		"{":        "Read the state of schema version 4: unexpected end",
		"[]":       "it is a list, not an object",
		"null":     "it is a null, not an object",
		`{"a":1}1`: "invalid character",
	} {
		resp := h.upgrade(4, state)
		if got := messages(resp.Diagnostics); !strings.HasPrefix(got, "ERROR") || !strings.Contains(got, want) || resp.UpgradedState != nil {
			t.Errorf("%s: %s", state, got)
		}
	}
	for _, raw := range []*tfprotov6.RawState{nil, {}, {Flatmap: map[string]string{"name": "web"}}} {
		resp := must[*tfprotov6.UpgradeResourceStateResponse](h)(h.server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{TypeName: "test_machine", RawState: raw}))
		if got := messages(resp.Diagnostics); !strings.Contains(got, "since 0.12") {
			t.Errorf("%v: %s", raw, got)
		}
	}
	m := newMachines()
	m.OnUpgrade = func(UpgradeRequest) UpgradeResponse { return UpgradeResponse{} }
	if got := messages(newHost(t, m).upgrade(0, "{}").Diagnostics); !strings.Contains(got, "made nothing of the stored state") {
		t.Errorf("got %s", got)
	}
}

func TestMove(t *testing.T) {
	h := newHost(t, newMachines())
	move := func(from string) *tfprotov6.MoveResourceStateResponse {
		return must[*tfprotov6.MoveResourceStateResponse](h)(h.server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
			TargetTypeName: "test_machine", SourceTypeName: from, SourceProviderAddress: "registry.example.org/other/test",
			SourceState: &tfprotov6.RawState{JSON: []byte(`{"name":"web","boot":[{"order":"1"}]}`)},
		}))
	}
	got := move("test_machine")
	wantClean(t, got.Diagnostics)
	if v := h.value(got.TargetState); !tree.Equal(v, obj("name", "web", "boot", obj("order", 1))) {
		t.Errorf("moved as %s", v)
	}
	if got := move("other_vm"); !strings.Contains(messages(got.Diagnostics), "A other_vm cannot become a test_machine") || got.TargetState != nil {
		t.Errorf("got %s", messages(got.Diagnostics))
	}
}

func TestIdentityAndGeneratedConfiguration(t *testing.T) {
	h := newHost(t, newMachines())
	id, err := h.server.UpgradeResourceIdentity(t.Context(), &tfprotov6.UpgradeResourceIdentityRequest{TypeName: "test_machine"})
	if err != nil || !strings.Contains(messages(id.Diagnostics), "the stored identity cannot be read") {
		t.Errorf("%v, %s", err, messages(id.Diagnostics))
	}
	state := obj("name", "web", "uuid", "u", "disks", list(obj("dev", "vda", "alias", "a"), nil), "boot", obj("order", 1))
	config, err := h.server.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{TypeName: "test_machine", State: h.wire(state)})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, config.Diagnostics)
	if v := h.value(config.Config); !tree.Equal(v, obj("name", "web", "disks", list(obj("dev", "vda"), nil), "boot", obj("order", 1))) {
		t.Errorf("generated %s", v)
	}
}

func FuzzLenientUpgrade(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"web","disks":[{"dev":"vda","parts":[{}]}]}`, `{"memory":"1e9","on":[true],"matrix":[[[1]]]}`, `{"boot":[{"menu":[{"timeout":""}]}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		resp := LenientUpgrade{}.Upgrade(t.Context(), UpgradeRequest{Schema: Schema{TypeName: "test_machine", Type: machineType}, JSON: []byte(s)})
		if resp.Diagnostics.HasErrors() {
			return
		}
		d, err := machineCodec.encode(resp.State)
		if err != nil {
			t.Fatalf("%s was upgraded to what does not fit: %v", s, err)
		}
		if v, err := machineCodec.decode(d); err != nil || !tree.Equal(v, resp.State) {
			t.Fatalf("wrote %s, read %s, %v", resp.State, v, err)
		}
	})
}
