package protocol

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestSchemasAreJoined(t *testing.T) {
	h := newHost(t, newMachines())
	resp, err := h.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, resp.Diagnostics)
	if got := slices.Sorted(maps.Keys(resp.ResourceSchemas)); !slices.Equal(got, []string{"test_machine", "test_plain"}) {
		t.Errorf("resources %v", got)
	}
	if got := slices.Sorted(maps.Keys(resp.DataSourceSchemas)); !slices.Equal(got, []string{"test_machine"}) {
		t.Errorf("data sources %v", got)
	}
	if resp.Provider == nil || len(resp.Provider.Block.Attributes) != 1 {
		t.Error("the provider's own schema is lost")
	}
	again, err := h.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || again.ResourceSchemas["test_machine"] != resp.ResourceSchemas["test_machine"] {
		t.Error("the schema is built again for each call")
	}
	meta, err := h.server.GetMetadata(t.Context(), &tfprotov6.GetMetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, meta.Diagnostics)
	if !slices.Equal(meta.Resources, []tfprotov6.ResourceMetadata{{TypeName: "test_plain"}, {TypeName: "test_machine"}}) || !slices.Equal(meta.DataSources, []tfprotov6.DataSourceMetadata{{TypeName: "test_machine"}}) {
		t.Errorf("metadata %+v", meta)
	}
	for _, c := range []*tfprotov6.ServerCapabilities{resp.ServerCapabilities, meta.ServerCapabilities} {
		if !c.PlanDestroy || !c.MoveResourceState || !c.GetProviderSchemaOptional {
			t.Errorf("capabilities %+v", c)
		}
	}
	if c := capabilities(nil); !c.PlanDestroy || c.GetProviderSchemaOptional {
		t.Errorf("capabilities of a fallback without any: %+v", c)
	}
}

func TestNamesThatCollide(t *testing.T) {
	m, plain := newMachines(), renamed{newMachines(), "test_plain"}
	server := NewServer(newFallback(), []Resource{m, m, plain}, []DataSource{&machineData{of: m}, &machineData{of: m}})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := server.GetMetadata(t.Context(), &tfprotov6.GetMetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{messages(schemas.Diagnostics), messages(meta.Diagnostics)} {
		for _, want := range []string{"two resources called test_machine", "two resources called test_plain", "two data sources called test_machine"} {
			if !strings.Contains(got, "ERROR: The provider has "+want) {
				t.Errorf("no word of %s in %s", want, got)
			}
		}
	}
}

type renamed struct {
	*machines
	name string
}

func (r renamed) Schema() Schema {
	s := r.machines.Schema()
	s.TypeName = r.name
	return s
}

// recorder is a fallback that answers every call with nothing and notes it.
type recorder struct {
	tfprotov6.ProviderServer
	called string
}

func (r *recorder) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	r.called = "ValidateResourceConfig"
	return nil, nil
}

func (r *recorder) UpgradeResourceState(context.Context, *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	r.called = "UpgradeResourceState"
	return nil, nil
}

func (r *recorder) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	r.called = "ReadResource"
	return nil, nil
}

func (r *recorder) PlanResourceChange(context.Context, *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	r.called = "PlanResourceChange"
	return nil, nil
}

func (r *recorder) ApplyResourceChange(context.Context, *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	r.called = "ApplyResourceChange"
	return nil, nil
}

func (r *recorder) ImportResourceState(context.Context, *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	r.called = "ImportResourceState"
	return nil, nil
}

func (r *recorder) MoveResourceState(context.Context, *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	r.called = "MoveResourceState"
	return nil, nil
}

func (r *recorder) UpgradeResourceIdentity(context.Context, *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	r.called = "UpgradeResourceIdentity"
	return nil, nil
}

func (r *recorder) GenerateResourceConfig(context.Context, *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	r.called = "GenerateResourceConfig"
	return nil, nil
}

func (r *recorder) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	r.called = "ValidateDataResourceConfig"
	return nil, nil
}

func (r *recorder) ReadDataSource(context.Context, *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	r.called = "ReadDataSource"
	return nil, nil
}

// TestOtherTypesAreDelegated calls every method of the protocol that names a
// type, by reflection so that a new one in plugin-go is not forgotten: for a
// type that is not ours the fallback must be asked, for ours it must not.
func TestOtherTypesAreDelegated(t *testing.T) {
	fallback := &recorder{}
	m := newMachines()
	server := reflect.ValueOf(NewServer(fallback, []Resource{m}, []DataSource{&machineData{of: m}}))
	mapped := []reflect.Type{reflect.TypeFor[tfprotov6.ResourceServer](), reflect.TypeFor[tfprotov6.DataSourceServer]()}
	for _, methods := range mapped {
		for i := range methods.NumMethod() {
			method := methods.Method(i)
			for typeName, want := range map[string]string{"test_plain": method.Name, "test_machine": ""} {
				fallback.called = ""
				req := reflect.New(method.Type.In(1).Elem())
				field := req.Elem().FieldByName("TypeName")
				if !field.IsValid() {
					field = req.Elem().FieldByName("TargetTypeName")
				}
				field.SetString(typeName)
				server.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), req})
				if fallback.called != want {
					t.Errorf("%s for %s called %q of the fallback", method.Name, typeName, fallback.called)
				}
			}
		}
	}
}

func TestIdentitySchemasAreTheFallbacks(t *testing.T) {
	resp, err := newHost(t, newMachines()).server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, resp.Diagnostics)
	if _, ours := resp.IdentitySchemas["test_machine"]; ours {
		t.Error("a type without identity has an identity schema")
	}
}

// TestOptionalServers: lists, actions and state stores of the fallback stay
// reachable, and are not claimed where it has none.
func TestOptionalServers(t *testing.T) {
	full := NewServer(newFallback(), nil, nil)
	if _, ok := full.(tfprotov6.ListResourceServer); !ok {
		t.Error("list resources of the framework are lost")
	}
	if _, ok := full.(tfprotov6.ActionServer); !ok {
		t.Error("actions of the framework are lost")
	}
	if _, ok := full.(tfprotov6.StateStoreServer); !ok {
		t.Error("state stores of the framework are lost")
	}
	if _, ok := NewServer(&recorder{}, nil, nil).(tfprotov6.ActionServer); ok {
		t.Error("actions are claimed that nobody serves")
	}
}

// broken is a fallback that cannot even list its types.
type broken struct{ tfprotov6.ProviderServer }

var errBroken = errors.New("broken")

func (broken) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return nil, errBroken
}

func (broken) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return nil, errBroken
}

func TestErrorsOfTheFallbackAreHandedOn(t *testing.T) {
	server := NewServer(broken{}, []Resource{newMachines()}, nil)
	if _, err := server.GetMetadata(t.Context(), nil); !errors.Is(err, errBroken) {
		t.Errorf("metadata: %v", err)
	}
	if _, err := server.GetProviderSchema(t.Context(), nil); !errors.Is(err, errBroken) {
		t.Errorf("schema: %v", err)
	}
}

// TestPlainResourceThroughTheServer runs a framework resource behind ours.
func TestPlainResourceThroughTheServer(t *testing.T) {
	h := newHost(t, newMachines())
	typ := tree.ObjectOf(&tree.Attribute{Name: "text", Type: tree.StringType, Required: true})
	d, err := newCodec(typ).encode(obj("text", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	null := &tfprotov6.DynamicValue{MsgPack: []byte{0xc0}}
	resp, err := h.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{TypeName: "test_plain", Config: d, PlannedState: d, PriorState: null})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, resp.Diagnostics)
	if v, err := newCodec(typ).decode(resp.NewState); err != nil || !tree.Equal(v, obj("text", "hello")) {
		t.Errorf("%s, %v", v, err)
	}
}
