package protocol

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// identified are machines whose identity is their uuid.
type identified struct{ *machines }

func (m identified) Schema() Schema {
	s := m.machines.Schema()
	s.Identity, s.MovesFrom = "uuid", []string{"test_image"}
	return s
}

// newIdentified returns a host whose machines have an identity, and the machine
// web.
func newIdentified(t *testing.T) (host, *machines) {
	t.Helper()
	m := newMachines()
	m.Store["web"] = obj("name", "web", "uuid", "u-1")
	m.OnImport = func(req ImportRequest) (resp ImportResponse) {
		for _, v := range m.Store {
			if v.Attr("uuid").Str() == req.ID || v.Attr("name").Str() == req.ID {
				return ImportResponse{State: v}
			}
		}
		resp.Diagnostics.AddError(nil, "no machine "+req.ID, "Check the id.")
		return resp
	}
	return host{t, NewServer(newFallback(), []Resource{identified{m}}, nil)}, m
}

// uuidOf reads an identity; "" means that there is none.
func (h host) uuidOf(id *tfprotov6.ResourceIdentityData) string {
	h.t.Helper()
	if id == nil {
		return ""
	}
	v, err := identityCodec(identified{newMachines()}.Schema()).decode(id.IdentityData)
	if err != nil {
		h.t.Fatal(err)
	}
	return v.Attr("uuid").Str()
}

func (h host) identity(v tree.Value) *tfprotov6.ResourceIdentityData {
	h.t.Helper()
	w, err := identityCodec(identified{newMachines()}.Schema()).encode(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: w}
}

func TestIdentitySchema(t *testing.T) {
	h, _ := newIdentified(t)
	resp, err := h.server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, resp.Diagnostics)
	schema := resp.IdentitySchemas["test_machine"]
	if schema == nil || len(schema.IdentityAttributes) != 1 || schema.IdentityAttributes[0].Name != "uuid" || !schema.IdentityAttributes[0].RequiredForImport {
		t.Errorf("got %+v", schema)
	}
}

// TestIdentityStays: it is there after an import, a read and an apply, the same
// in a plan, and gone with the object.
func TestIdentityStays(t *testing.T) {
	h, m := newIdentified(t)
	web := m.Store["web"]
	want := func(what string, id *tfprotov6.ResourceIdentityData, uuid string) {
		t.Helper()
		if got := h.uuidOf(id); got != uuid {
			t.Errorf("%s: identity %q, want %q", what, got, uuid)
		}
	}
	read := h.read(web, nil)
	want("read", read.NewIdentity, "u-1")
	was := h.identity(obj("uuid", "u-1"))
	m.OnRead = func(ReadRequest) (resp ReadResponse) {
		resp.Diagnostics.AddError(nil, "no answer", "Try again.")
		return resp
	}
	failed := must[*tfprotov6.ReadResourceResponse](h)(h.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "test_machine", CurrentState: h.wire(web), CurrentIdentity: was}))
	want("a read that failed", failed.NewIdentity, "u-1")

	grown := web.With("memory", val(512))
	plan := must[*tfprotov6.PlanResourceChangeResponse](h)(h.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "test_machine", Config: h.wire(obj("name", "web", "memory", 512)), PriorState: h.wire(web), ProposedNewState: h.wire(grown), PriorIdentity: was,
	}))
	want("plan", plan.PlannedIdentity, "u-1")
	want("plan of a creation", h.plan(obj("name", "db"), tree.NullValue, nil).PlannedIdentity, "")
	created := h.apply(obj("name", "db"), tree.NullValue, obj("name", "db", "uuid", tree.UnknownValue), nil)
	want("creation", created.NewIdentity, "uuid-of-db")
	deleted := must[*tfprotov6.ApplyResourceChangeResponse](h)(h.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "test_machine", Config: h.wire(tree.NullValue), PriorState: h.wire(web), PlannedState: h.wire(tree.NullValue), PlannedIdentity: was,
	}))
	wantClean(t, deleted.Diagnostics)
	want("delete", deleted.NewIdentity, "")
}

func TestImportByIdentity(t *testing.T) {
	h, m := newIdentified(t)
	importing := func(req tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
		t.Helper()
		req.TypeName = "test_machine"
		return must[*tfprotov6.ImportResourceStateResponse](h)(h.server.ImportResourceState(t.Context(), &req))
	}
	for name, req := range map[string]tfprotov6.ImportResourceStateRequest{
		"identity": {Identity: h.identity(obj("uuid", "u-1"))}, "id": {ID: "web"},
	} {
		got := importing(req)
		wantClean(t, got.Diagnostics)
		if len(got.ImportedResources) != 1 || !tree.Equal(h.value(got.ImportedResources[0].State), m.Store["web"]) || h.uuidOf(got.ImportedResources[0].Identity) != "u-1" {
			t.Errorf("by %s: %+v", name, got.ImportedResources)
		}
	}
	for want, req := range map[string]tfprotov6.ImportResourceStateRequest{
		"no machine u-2":                {Identity: h.identity(obj("uuid", "u-2"))},
		`identity = { uuid = "…" }`:     {Identity: h.identity(obj())},
		"the identity cannot be read":   {Identity: &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: []byte{0xc1}}}},
		"The id of the import is empty": {},
		"no machine db: Check the id.":  {ID: "db"},
	} {
		if got := importing(req); !strings.Contains(messages(got.Diagnostics), want) || len(got.ImportedResources) > 0 {
			t.Errorf("want %q: %s", want, messages(got.Diagnostics))
		}
	}
}

func TestUpgradeIdentity(t *testing.T) {
	h, _ := newIdentified(t)
	upgrade := func(raw *tfprotov6.RawState) *tfprotov6.UpgradeResourceIdentityResponse {
		t.Helper()
		return must[*tfprotov6.UpgradeResourceIdentityResponse](h)(h.server.UpgradeResourceIdentity(t.Context(), &tfprotov6.UpgradeResourceIdentityRequest{TypeName: "test_machine", RawIdentity: raw}))
	}
	got := upgrade(&tfprotov6.RawState{JSON: []byte(`{"uuid":"u-1","host":"a"}`)})
	wantClean(t, got.Diagnostics)
	if id := h.uuidOf(got.UpgradedIdentity); id != "u-1" {
		t.Errorf("got %q", id)
	}
	for _, raw := range []*tfprotov6.RawState{nil, {}, {JSON: []byte(`{"serial":"7"}`)}, {JSON: []byte("[")}} {
		if got := upgrade(raw); !strings.Contains(messages(got.Diagnostics), "the stored identity cannot be read") || got.UpgradedIdentity != nil {
			t.Errorf("%v: %s", raw, messages(got.Diagnostics))
		}
	}
}

// TestMoveFromOtherTypes: those that the schema names come with their type, the
// others are refused with the list of them.
func TestMoveFromOtherTypes(t *testing.T) {
	h, m := newIdentified(t)
	var from string
	m.OnUpgrade = func(req UpgradeRequest) UpgradeResponse {
		from = req.From
		return UpgradeResponse{State: obj("uuid", "u-9")}
	}
	move := func(source string) *tfprotov6.MoveResourceStateResponse {
		return must[*tfprotov6.MoveResourceStateResponse](h)(h.server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
			TargetTypeName: "test_machine", SourceTypeName: source, SourceState: &tfprotov6.RawState{JSON: []byte("{}")},
		}))
	}
	for source, want := range map[string]string{"test_image": "test_image", "test_machine": ""} {
		got := move(source)
		wantClean(t, got.Diagnostics)
		if from != want || h.uuidOf(got.TargetIdentity) != "u-9" || !tree.Equal(h.value(got.TargetState), obj("uuid", "u-9")) {
			t.Errorf("%s: from %q, state %s", source, from, h.value(got.TargetState))
		}
	}
	if got := messages(move("other_vm").Diagnostics); !strings.Contains(got, "Only a test_machine, a test_image, of this or another provider") {
		t.Errorf("got %s", got)
	}
}
