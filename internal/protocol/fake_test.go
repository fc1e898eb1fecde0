package protocol

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	frameworkresource "github.com/hashicorp/terraform-plugin-framework/resource"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// machines is a resource whose host is a map: what a real one does, without a
// daemon. Fields that are set replace a method.
type machines struct {
	LenientUpgrade
	typ *tree.Type // nil: machineType

	mu    sync.Mutex
	Store map[string]tree.Value // by name

	OnValidate func(tree.Value) Diagnostics
	OnRead     func(ReadRequest) ReadResponse
	OnPlan     func(PlanRequest) PlanResponse
	OnApply    func(ApplyRequest) ApplyResponse
	OnImport   func(ImportRequest) ImportResponse
	OnUpgrade  func(UpgradeRequest) UpgradeResponse
}

func newMachines() *machines { return &machines{Store: map[string]tree.Value{}} }

func (m *machines) Schema() Schema {
	typ := m.typ
	if typ == nil {
		typ = machineType
	}
	return Schema{TypeName: "test_machine", Description: "A **machine**.", Type: typ}
}

func (m *machines) Validate(_ context.Context, config tree.Value) Diagnostics {
	var d Diagnostics
	if m.OnValidate != nil {
		return m.OnValidate(config)
	}
	if config.At("boot.order").Num() != nil && !config.At("boot.menu").IsNull() {
		d.AddError(tree.ParsePath("boot.menu"), "Order and menu exclude each other", "Remove one of them.")
	}
	return d
}

func (m *machines) Read(_ context.Context, req ReadRequest) ReadResponse {
	if m.OnRead != nil {
		return m.OnRead(req)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return ReadResponse{State: m.Store[req.State.Attr("name").Str()]}
}

// Plan holds a list of disks that the configuration shortens, if the tags ask
// for it.
func (m *machines) Plan(_ context.Context, req PlanRequest) PlanResponse {
	if m.OnPlan != nil {
		return m.OnPlan(req)
	}
	var resp PlanResponse
	if req.IsDestroy() {
		return resp
	}
	resp.Planned = req.Proposed
	if req.IsCreate() {
		resp.Planned = resp.Planned.With("uuid", tree.UnknownValue)
		return resp
	}
	if tree.Equal(req.Config.At("tags[0]"), val("hold")) && req.Config.Attr("disks").Len() < req.Prior.Attr("disks").Len() {
		resp.Planned = resp.Planned.With("disks", req.Prior.Attr("disks"))
	}
	if !tree.Equal(req.Config.Attr("name"), req.Prior.Attr("name")) {
		resp.Replace = []tree.Path{tree.Root.Attr("name")}
		resp.Planned = resp.Planned.With("uuid", tree.UnknownValue)
	}
	return resp
}

func (m *machines) Apply(_ context.Context, req ApplyRequest) ApplyResponse {
	if m.OnApply != nil {
		return m.OnApply(req)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var resp ApplyResponse
	if req.IsDelete() {
		delete(m.Store, req.Prior.Attr("name").Str())
		return resp
	}
	name := req.Planned.Attr("name").Str()
	resp.State = req.Planned
	if req.IsCreate() {
		if _, exists := m.Store[name]; exists {
			resp.State = tree.NullValue
			resp.Diagnostics.AddError(tree.Root.Attr("name"), "machine "+name+" exists", "Import it.")
			return resp
		}
		resp.State = resp.State.With("uuid", val("uuid-of-"+name))
	}
	resp.Private = req.Private.Clone()
	var generation int
	if _, err := resp.Private.Get("driftsafe.generation", &generation); err != nil {
		resp.Diagnostics.AddError(nil, "generation", err.Error())
	}
	if err := resp.Private.Set("driftsafe.generation", generation+1); err != nil {
		resp.Diagnostics.AddError(nil, "generation", err.Error())
	}
	m.Store[name] = resp.State
	return resp
}

func (m *machines) Import(_ context.Context, req ImportRequest) ImportResponse {
	if m.OnImport != nil {
		return m.OnImport(req)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var resp ImportResponse
	resp.State = m.Store[req.ID]
	if resp.State.IsNull() {
		resp.Diagnostics.AddError(nil, "no machine "+req.ID, "Check the id.")
	}
	return resp
}

func (m *machines) Upgrade(ctx context.Context, req UpgradeRequest) UpgradeResponse {
	if m.OnUpgrade != nil {
		return m.OnUpgrade(req)
	}
	return m.LenientUpgrade.Upgrade(ctx, req)
}

// machineData is the data source of the same map.
type machineData struct {
	of         *machines
	OnValidate func(tree.Value) Diagnostics
	OnRead     func(tree.Value) (tree.Value, Diagnostics)
}

func (d *machineData) Schema() Schema { return d.of.Schema() }

func (d *machineData) Validate(_ context.Context, config tree.Value) Diagnostics {
	if d.OnValidate != nil {
		return d.OnValidate(config)
	}
	return nil
}

func (d *machineData) Read(_ context.Context, config tree.Value) (tree.Value, Diagnostics) {
	if d.OnRead != nil {
		return d.OnRead(config)
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	var diags Diagnostics
	state := d.of.Store[config.Attr("name").Str()]
	if state.IsNull() {
		diags.AddError(tree.Root.Attr("name"), "no machine "+config.Attr("name").Str(), "Check the name.")
	}
	return state, diags
}

// plainProvider is a small framework provider: configuration, and one resource
// of its own.
type plainProvider struct{}

func (plainProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "test"
}

func (plainProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{"uri": schema.StringAttribute{Optional: true}}}
}

func (plainProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

func (plainProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (plainProvider) Resources(context.Context) []func() frameworkresource.Resource {
	return []func() frameworkresource.Resource{func() frameworkresource.Resource { return plainResource{} }}
}

type plainResource struct{}

type plainModel struct {
	Text types.String `tfsdk:"text"`
}

func (plainResource) Metadata(_ context.Context, _ frameworkresource.MetadataRequest, resp *frameworkresource.MetadataResponse) {
	resp.TypeName = "test_plain"
}

func (plainResource) Schema(_ context.Context, _ frameworkresource.SchemaRequest, resp *frameworkresource.SchemaResponse) {
	resp.Schema = rschema.Schema{Attributes: map[string]rschema.Attribute{"text": rschema.StringAttribute{Required: true}}}
}

func (plainResource) Create(ctx context.Context, req frameworkresource.CreateRequest, resp *frameworkresource.CreateResponse) {
	var m plainModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (plainResource) Read(context.Context, frameworkresource.ReadRequest, *frameworkresource.ReadResponse) {
}

func (plainResource) Update(ctx context.Context, req frameworkresource.UpdateRequest, resp *frameworkresource.UpdateResponse) {
	var m plainModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (plainResource) Delete(context.Context, frameworkresource.DeleteRequest, *frameworkresource.DeleteResponse) {
}

func newFallback() tfprotov6.ProviderServer { return providerserver.NewProtocol6(plainProvider{})() }

// host calls a server as a core would, and fails the test for errors of the
// calls themselves.
type host struct {
	t      *testing.T
	server tfprotov6.ProviderServer
}

func newHost(t *testing.T, m *machines) host {
	return host{t, NewMachineServer(m)}
}

func (h host) wire(v tree.Value) *tfprotov6.DynamicValue {
	h.t.Helper()
	d, err := machineCodec.encode(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

func (h host) value(d *tfprotov6.DynamicValue) tree.Value {
	h.t.Helper()
	if d == nil {
		h.t.Fatal("the response has no value, not even a null one")
	}
	v, err := machineCodec.decode(d)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func must[T any](h host) func(T, error) T {
	return func(resp T, err error) T {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
		return resp
	}
}

func (h host) plan(config, prior tree.Value, private []byte) *tfprotov6.PlanResourceChangeResponse {
	h.t.Helper()
	proposed := config
	if !config.IsNull() && config.Attr("uuid").IsNull() {
		proposed = config.With("uuid", prior.Attr("uuid"))
	}
	return must[*tfprotov6.PlanResourceChangeResponse](h)(h.server.PlanResourceChange(h.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "test_machine", Config: h.wire(config), PriorState: h.wire(prior), ProposedNewState: h.wire(proposed), PriorPrivate: private,
	}))
}

func (h host) apply(config, prior, planned tree.Value, private []byte) *tfprotov6.ApplyResourceChangeResponse {
	h.t.Helper()
	return must[*tfprotov6.ApplyResourceChangeResponse](h)(h.server.ApplyResourceChange(h.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "test_machine", Config: h.wire(config), PriorState: h.wire(prior), PlannedState: h.wire(planned), PlannedPrivate: private,
	}))
}

func (h host) read(state tree.Value, private []byte) *tfprotov6.ReadResourceResponse {
	h.t.Helper()
	return must[*tfprotov6.ReadResourceResponse](h)(h.server.ReadResource(h.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: "test_machine", CurrentState: h.wire(state), Private: private,
	}))
}

func (h host) upgrade(version int64, state string) *tfprotov6.UpgradeResourceStateResponse {
	h.t.Helper()
	return must[*tfprotov6.UpgradeResourceStateResponse](h)(h.server.UpgradeResourceState(h.t.Context(), &tfprotov6.UpgradeResourceStateRequest{
		TypeName: "test_machine", Version: version, RawState: &tfprotov6.RawState{JSON: []byte(state)},
	}))
}

// messages renders diagnostics, one a line.
func messages(diags []*tfprotov6.Diagnostic) string {
	var out string
	for _, d := range diags {
		at := ""
		if d.Attribute != nil {
			at = d.Attribute.String() + ": "
		}
		out += fmt.Sprintf("%s: %s%s: %s\n", d.Severity, at, d.Summary, d.Detail)
	}
	return out
}

func wantClean(t *testing.T, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	if len(diags) > 0 {
		t.Fatalf("unexpected diagnostics:\n%s", messages(diags))
	}
}
