package protocol

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestLifeOfAnObject(t *testing.T) {
	m := newMachines()
	h := newHost(t, m)
	config := obj("name", "web", "memory", 512, "boot", obj(), "disks", list(obj("dev", "vda")))

	plan := h.plan(config, tree.NullValue, nil)
	wantClean(t, plan.Diagnostics)
	planned := h.value(plan.PlannedState)
	if want := config.With("uuid", tree.UnknownValue); !tree.Equal(planned, want) {
		t.Fatalf("planned %s", planned)
	}
	created := h.apply(config, tree.NullValue, planned, plan.PlannedPrivate)
	wantClean(t, created.Diagnostics)
	state := h.value(created.NewState)
	if want := config.With("uuid", val("uuid-of-web")); !tree.Equal(state, want) {
		t.Fatalf("created %s", state)
	}

	m.Store["web"] = m.Store["web"].With("memory", val(1024))
	read := h.read(state, created.Private)
	wantClean(t, read.Diagnostics)
	state = h.value(read.NewState)
	if !tree.Equal(state.Attr("memory"), val(1024)) || !bytes.Equal(read.Private, created.Private) {
		t.Fatalf("read %s with private %s, was %s", state, read.Private, created.Private)
	}

	config = config.With("memory", val(2048))
	plan = h.plan(config, state, read.Private)
	wantClean(t, plan.Diagnostics)
	updated := h.apply(config, state, h.value(plan.PlannedState), plan.PlannedPrivate)
	wantClean(t, updated.Diagnostics)
	var generation int
	if _, err := decodePrivate(updated.Private).Get("driftsafe.generation", &generation); err != nil || generation != 2 {
		t.Errorf("generation %d, %v, in %s", generation, err, updated.Private)
	}
	if got := m.Store["web"].Attr("memory"); !tree.Equal(got, val(2048)) {
		t.Errorf("the host has memory %s", got)
	}

	state = h.value(updated.NewState)
	plan = h.plan(tree.NullValue, state, updated.Private)
	wantClean(t, plan.Diagnostics)
	if !h.value(plan.PlannedState).IsNull() {
		t.Errorf("destroy is planned as %s", h.value(plan.PlannedState))
	}
	deleted := h.apply(tree.NullValue, state, tree.NullValue, plan.PlannedPrivate)
	wantClean(t, deleted.Diagnostics)
	if !h.value(deleted.NewState).IsNull() || deleted.Private != nil || len(m.Store) != 0 {
		t.Errorf("after delete: state %s, private %s, host %v", h.value(deleted.NewState), deleted.Private, m.Store)
	}
	gone := h.read(state, updated.Private)
	wantClean(t, gone.Diagnostics)
	if !h.value(gone.NewState).IsNull() {
		t.Errorf("an object that is gone is read as %s", h.value(gone.NewState))
	}
}

func TestReplace(t *testing.T) {
	h := newHost(t, newMachines())
	prior := obj("name", "web", "uuid", "u")
	plan := h.plan(obj("name", "db"), prior, nil)
	wantClean(t, plan.Diagnostics)
	if len(plan.RequiresReplace) != 1 || plan.RequiresReplace[0].String() != `AttributeName("name")` {
		t.Errorf("replacement because of %v", plan.RequiresReplace)
	}
}

func TestValidate(t *testing.T) {
	h := newHost(t, newMachines())
	validate := func(config tree.Value) []*tfprotov6.Diagnostic {
		resp, err := h.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: "test_machine", Config: h.wire(config)})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Diagnostics
	}
	wantClean(t, validate(obj("name", tree.UnknownValue, "boot", obj("order", tree.UnknownValue, "menu", obj()))))
	got := messages(validate(obj("name", "web", "boot", obj("order", 1, "menu", obj()))))
	want := `ERROR: AttributeName("boot").AttributeName("menu"): Order and menu exclude each other: Remove one of them.` + "\n"
	if got != want {
		t.Errorf("got %s", got)
	}
}

// TestApplyInvariants breaks each rule that a resource must keep, and checks
// what is stored all the same.
func TestApplyInvariants(t *testing.T) {
	prior := obj("name", "web", "uuid", "u", "memory", 512)
	planned := prior.With("memory", val(1024))
	failure := Diagnostics{{Error, "cannot", "host is away", nil}}
	for name, c := range map[string]struct {
		prior, planned tree.Value
		resp           ApplyResponse
		want           tree.Value
		message        string // "" for none
	}{
		"update without a state": {prior, planned, ApplyResponse{}, prior, "no state for an object that is to exist"},
		"create without a state": {tree.NullValue, planned, ApplyResponse{}, tree.NullValue, "no state for an object that is to exist"},
		"update leaves unknown": {prior, planned, ApplyResponse{State: planned.With("uuid", tree.UnknownValue).With("tags", list("a", tree.UnknownValue))},
			obj("name", "web", "memory", 1024, "tags", list("a", nil)), `AttributeName("tags").ElementKeyInt(1): test_machine: internal error of the provider: ApplyResourceChange: the new state has values that are still unknown: tags[1], uuid`},
		"update is all unknown":        {prior, planned, ApplyResponse{State: tree.UnknownValue}, prior, "still unknown: the whole object"},
		"update fails half way":        {prior, planned, ApplyResponse{State: planned.With("uuid", tree.UnknownValue), Diagnostics: failure}, obj("name", "web", "memory", 1024), "cannot: host is away"},
		"update fails without a state": {prior, planned, ApplyResponse{Diagnostics: failure}, prior, "cannot: host is away"},
		"create fails without a state": {tree.NullValue, planned, ApplyResponse{Diagnostics: failure}, tree.NullValue, "cannot: host is away"},
		"create fails half way":        {tree.NullValue, planned, ApplyResponse{State: obj("name", "web"), Diagnostics: failure}, obj("name", "web"), "cannot: host is away"},
		"delete returns a state":       {prior, tree.NullValue, ApplyResponse{State: prior}, tree.NullValue, ""},
		"delete fails":                 {prior, tree.NullValue, ApplyResponse{Diagnostics: failure}, prior, "cannot: host is away"},
		"delete fails half way":        {prior, tree.NullValue, ApplyResponse{State: obj("name", "web"), Diagnostics: failure}, obj("name", "web"), "cannot: host is away"},
		"state does not fit": {prior, planned, ApplyResponse{State: obj("name", "web", "memory", list(1, 2), "boot", obj("extra", 1, "order", 2))},
			obj("name", "web", "boot", obj("order", 2)), `AttributeName("boot").AttributeName("extra"): test_machine: internal error`},
		"state is no object": {prior, planned, ApplyResponse{State: val("web")}, prior, "a string where the schema has an object"},
		"foreign private key": {prior, planned, ApplyResponse{State: planned, Private: Private{"guard": []byte("1")}}, planned,
			`store private record "guard": keys begin with driftsafe.`},
		"broken private record": {prior, planned, ApplyResponse{State: planned, Private: Private{"driftsafe.x": []byte("{")}}, planned, "store private records: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachines()
			m.OnApply = func(ApplyRequest) ApplyResponse { return c.resp }
			h := newHost(t, m)
			config := c.planned
			resp := h.apply(config, c.prior, c.planned, []byte(`{"driftsafe.form":1,"driftsafe.kept":true}`))
			if got := h.value(resp.NewState); !tree.Equal(got, c.want) {
				t.Errorf("stored %s, want %s", got, c.want)
			}
			got := messages(resp.Diagnostics)
			if !strings.Contains(got, c.message) || (c.message == "") != (got == "") || c.message != "" && !strings.HasPrefix(got, "ERROR") {
				t.Errorf("diagnostics %q, want %q", got, c.message)
			}
			if !c.want.IsNull() && !decodePrivate(resp.Private).has("driftsafe.kept") {
				t.Errorf("private records are lost: %s", resp.Private)
			}
		})
	}
}

func (p Private) has(key string) bool {
	var v any
	ok, err := p.Get(key, &v)
	return ok && err == nil
}

func TestPlanInvariants(t *testing.T) {
	prior := obj("name", "web", "memory", 512)
	for name, c := range map[string]struct {
		resp    PlanResponse
		config  tree.Value
		message string
	}{
		"nothing planned": {PlanResponse{}, prior, "planned nothing for an object that is to exist"},
		"does not fit":    {PlanResponse{Planned: obj("name", true)}, prior, `AttributeName("name"): test_machine: internal error of the provider: PlanResourceChange: write the planned state: name: a bool where`},
		"refused":         {PlanResponse{Diagnostics: Diagnostics{{Error, "protected", "protect = false", nil}}}, prior, "protected: protect = false"},
		"destroy refused": {PlanResponse{Diagnostics: Diagnostics{{Error, "protected", "protect = false", nil}}}, tree.NullValue, "protected: protect = false"},
		"destroy, planned something": {PlanResponse{Planned: prior, Diagnostics: Diagnostics{{Warning, "note", "", nil}}},
			tree.NullValue, "WARNING: note"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachines()
			m.OnPlan = func(PlanRequest) PlanResponse { return c.resp }
			h := newHost(t, m)
			resp := h.plan(c.config, prior, nil)
			if got := messages(resp.Diagnostics); !strings.Contains(got, c.message) {
				t.Errorf("diagnostics %q, want %q", got, c.message)
			}
			want := prior
			if c.config.IsNull() {
				want = tree.NullValue
			}
			if got := h.value(resp.PlannedState); !tree.Equal(got, want) {
				t.Errorf("planned %s, want %s", got, want)
			}
		})
	}
}

// TestPlanRequest checks what kind of change a resource is told.
func TestPlanRequest(t *testing.T) {
	m := newMachines()
	var kind, applied string
	m.OnPlan = func(r PlanRequest) PlanResponse {
		kind = fmt.Sprint(r.IsCreate(), r.IsUpdate(), r.IsDestroy())
		return PlanResponse{Planned: r.Proposed}
	}
	m.OnApply = func(r ApplyRequest) ApplyResponse {
		applied = fmt.Sprint(r.IsCreate(), r.IsUpdate(), r.IsDelete())
		return ApplyResponse{State: r.Planned}
	}
	h := newHost(t, m)
	web, none := obj("name", "web"), tree.NullValue
	for want, c := range map[string][2]tree.Value{"true false false": {web, none}, "false true false": {web, web}, "false false true": {none, web}} {
		wantClean(t, h.plan(c[0], c[1], nil).Diagnostics)
		wantClean(t, h.apply(c[0], c[1], c[0], nil).Diagnostics)
		if kind != want || applied != want {
			t.Errorf("plan %s, apply %s, want %s", kind, applied, want)
		}
	}
}

func TestReadKeepsTheStateOnErrors(t *testing.T) {
	state := obj("name", "web", "memory", 512)
	for name, c := range map[string]struct {
		resp    ReadResponse
		message string
	}{
		"error":        {ReadResponse{Diagnostics: Diagnostics{{Error, "host is away", "", nil}}}, "host is away"},
		"error, state": {ReadResponse{State: obj("name", "x"), Private: Private{}, Diagnostics: Diagnostics{{Error, "host is away", "", nil}}}, "host is away"},
		"unknown":      {ReadResponse{State: tree.UnknownValue}, "still unknown"},
	} {
		m := newMachines()
		m.OnRead = func(ReadRequest) ReadResponse { return c.resp }
		h := newHost(t, m)
		resp := h.read(state, []byte(`{"driftsafe.form":1,"driftsafe.kept":true}`))
		if got := messages(resp.Diagnostics); !strings.Contains(got, c.message) {
			t.Errorf("%s: diagnostics %q, want %q", name, got, c.message)
		}
		if got := h.value(resp.NewState); !tree.Equal(got, state) || !decodePrivate(resp.Private).has("driftsafe.kept") {
			t.Errorf("%s: state %s, private %s", name, got, resp.Private)
		}
	}
}

// TestPanics makes every method panic.
func TestPanics(t *testing.T) {
	m := newMachines()
	m.OnValidate = func(tree.Value) Diagnostics { panic("validate") }
	m.OnRead = func(ReadRequest) ReadResponse { panic("read") }
	m.OnPlan = func(PlanRequest) PlanResponse { panic("plan") }
	m.OnApply = func(ApplyRequest) ApplyResponse { panic("apply") }
	m.OnImport = func(ImportRequest) ImportResponse { panic("import") }
	m.OnUpgrade = func(UpgradeRequest) UpgradeResponse { panic("upgrade") }
	data := &machineData{m, m.OnValidate, func(tree.Value) (tree.Value, Diagnostics) { panic("data") }}
	h := newHost(t, m)
	h.server = NewServer(newFallback(), []Resource{m}, []DataSource{data})
	var log bytes.Buffer
	ctx := tflogtest.RootLogger(context.Background(), &log)
	web := h.wire(obj("name", "web"))

	check := func(what string, diags []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if got := messages(diags); err != nil || !strings.Contains(got, "test_machine: the provider failed unexpectedly") || !strings.Contains(got, ": "+what+". ") {
			t.Errorf("%s: %v, %s", what, err, got)
		}
		if entry := log.String(); !strings.Contains(entry, "fake_test.go") || !strings.Contains(entry, `"rpc":`) || !strings.Contains(entry, `"ms":`) {
			t.Errorf("%s: the log has no stack: %s", what, entry)
		}
		log.Reset()
	}
	v, err := h.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "test_machine", Config: web})
	check("validate", v.Diagnostics, err)
	r, err := h.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: "test_machine", CurrentState: web})
	check("read", r.Diagnostics, err)
	if !tree.Equal(h.value(r.NewState), obj("name", "web")) {
		t.Error("a panic in Read loses the state")
	}
	p, err := h.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "test_machine", Config: web, PriorState: web, ProposedNewState: web})
	check("plan", p.Diagnostics, err)
	a, err := h.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{TypeName: "test_machine", Config: web, PriorState: web, PlannedState: web, PlannedPrivate: []byte("kept")})
	check("apply", a.Diagnostics, err)
	if !tree.Equal(h.value(a.NewState), obj("name", "web")) || string(a.Private) != "kept" {
		t.Error("a panic in Apply loses the state")
	}
	i, err := h.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "test_machine", ID: "web"})
	check("import", i.Diagnostics, err)
	u, err := h.server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: "test_machine", RawState: &tfprotov6.RawState{JSON: []byte("{}")}})
	check("upgrade", u.Diagnostics, err)
	dv, err := h.server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "test_machine", Config: web})
	check("validate", dv.Diagnostics, err)
	dr, err := h.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: "test_machine", Config: web})
	check("data", dr.Diagnostics, err)
}

// TestUnreadableRequests gives every call a value that is none.
func TestUnreadableRequests(t *testing.T) {
	h := newHost(t, newMachines())
	ctx, bad, web := t.Context(), &tfprotov6.DynamicValue{MsgPack: []byte("\x81")}, h.wire(obj("name", "web"))
	check := func(diags []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if got := messages(diags); err != nil || !strings.Contains(got, " cannot be read: ") {
			t.Errorf("%v, %s", err, got)
		}
	}
	v, err := h.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "test_machine", Config: bad})
	check(v.Diagnostics, err)
	r, err := h.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: "test_machine", CurrentState: bad})
	check(r.Diagnostics, err)
	p, err := h.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "test_machine", Config: web, PriorState: web, ProposedNewState: bad})
	check(p.Diagnostics, err)
	a, err := h.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{TypeName: "test_machine", Config: web, PriorState: web})
	check(a.Diagnostics, err)
	if !tree.Equal(h.value(a.NewState), obj("name", "web")) {
		t.Error("an apply that cannot be read loses the state")
	}
	g, err := h.server.GenerateResourceConfig(ctx, &tfprotov6.GenerateResourceConfigRequest{TypeName: "test_machine", State: bad})
	check(g.Diagnostics, err)
	dv, err := h.server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "test_machine", Config: bad})
	check(dv.Diagnostics, err)
	dr, err := h.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: "test_machine", Config: bad})
	check(dr.Diagnostics, err)
}

func TestImport(t *testing.T) {
	m := newMachines()
	m.Store["web"] = obj("name", "web", "uuid", "u")
	h := newHost(t, m)
	importing := func(req *tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
		t.Helper()
		req.TypeName = "test_machine"
		return must[*tfprotov6.ImportResourceStateResponse](h)(h.server.ImportResourceState(t.Context(), req))
	}
	got := importing(&tfprotov6.ImportResourceStateRequest{ID: "web"})
	wantClean(t, got.Diagnostics)
	if len(got.ImportedResources) != 1 || got.ImportedResources[0].TypeName != "test_machine" || !tree.Equal(h.value(got.ImportedResources[0].State), m.Store["web"]) {
		t.Errorf("imported %+v", got.ImportedResources)
	}
	refused := func(req *tfprotov6.ImportResourceStateRequest, want string) {
		t.Helper()
		got := importing(req)
		if text := messages(got.Diagnostics); !strings.Contains(text, want) || len(got.ImportedResources) > 0 {
			t.Errorf("%+v: %s", got.ImportedResources, text)
		}
	}
	refused(&tfprotov6.ImportResourceStateRequest{}, "The id of the import is empty")
	refused(&tfprotov6.ImportResourceStateRequest{Identity: &tfprotov6.ResourceIdentityData{}}, "has no resource identity")
	refused(&tfprotov6.ImportResourceStateRequest{ID: "db"}, "no machine db")
	m.OnImport = func(ImportRequest) ImportResponse { return ImportResponse{} }
	refused(&tfprotov6.ImportResourceStateRequest{ID: "web"}, "no state for web")
	m.OnImport = func(ImportRequest) ImportResponse { return ImportResponse{State: obj("extra", 1)} }
	refused(&tfprotov6.ImportResourceStateRequest{ID: "web"}, "the schema has no such attribute")
}

func TestDataSource(t *testing.T) {
	m := newMachines()
	m.Store["web"] = obj("name", "web", "uuid", "u")
	h := newHost(t, m)
	read := func(config tree.Value) *tfprotov6.ReadDataSourceResponse {
		return must[*tfprotov6.ReadDataSourceResponse](h)(h.server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "test_machine", Config: h.wire(config)}))
	}
	got := read(obj("name", "web"))
	wantClean(t, got.Diagnostics)
	if !tree.Equal(h.value(got.State), m.Store["web"]) {
		t.Errorf("read %s", h.value(got.State))
	}
	if got := read(obj("name", "db")); !strings.Contains(messages(got.Diagnostics), `AttributeName("name"): no machine db`) {
		t.Errorf("got %s", messages(got.Diagnostics))
	}
	for want, returned := range map[string]tree.Value{"returned nothing": tree.NullValue, "still unknown: uuid": obj("name", "web", "uuid", tree.UnknownValue)} {
		data := &machineData{of: m, OnRead: func(tree.Value) (tree.Value, Diagnostics) { return returned, nil }}
		h.server = NewServer(newFallback(), nil, []DataSource{data})
		if got := read(obj("name", "web")); !strings.Contains(messages(got.Diagnostics), want) {
			t.Errorf("got %s, want %s", messages(got.Diagnostics), want)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	h := newHost(t, newMachines())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			config := obj("name", fmt.Sprintf("m%d", i), "disks", list(obj("dev", "vda")))
			if i%4 == 0 {
				if _, err := h.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
					t.Error(err)
				}
			}
			plan := h.plan(config, tree.NullValue, nil)
			created := h.apply(config, tree.NullValue, h.value(plan.PlannedState), plan.PlannedPrivate)
			state := h.value(created.NewState)
			if read := h.read(state, created.Private); !tree.Equal(h.value(read.NewState), state) || len(read.Diagnostics) > 0 {
				t.Errorf("m%d: read %s %s", i, h.value(read.NewState), messages(read.Diagnostics))
			}
			deleted := h.apply(tree.NullValue, state, tree.NullValue, created.Private)
			if !h.value(deleted.NewState).IsNull() {
				t.Errorf("m%d is not gone", i)
			}
		})
	}
	wg.Wait()
}
