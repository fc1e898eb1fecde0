package provider

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// serving is a provider that is connected to libvirt's simulated host and has
// its store in another directory, with the types of its resources.
func serving(t *testing.T) (tfprotov6.ProviderServer, map[string]tftypes.Type) {
	t.Helper()
	ctx := context.Background()
	server := NewServer("test")
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	config := withNulls(t, schemas.Provider.ValueType(), inputs{"uri": "test:///default", "seed_store": filepath.Join(t.TempDir(), "seeds")})
	resp, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
	types := map[string]tftypes.Type{}
	for name, schema := range schemas.ResourceSchemas {
		types[name] = schema.ValueType()
	}
	return server, types
}

// withNulls is an object with these attributes, and null for all others.
func withNulls(t *testing.T, typ tftypes.Type, in inputs) *tfprotov6.DynamicValue {
	t.Helper()
	values := map[string]tftypes.Value{}
	for name, attr := range typ.(tftypes.Object).AttributeTypes {
		values[name] = tftypes.NewValue(attr, nil)
		if text, ok := in[name]; ok {
			values[name] = tftypes.NewValue(attr, text)
		}
	}
	out, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// Versions 0.6 to 0.8 of the incumbent took the name of a file for the content, and
// left the name in the state. What is in a state is not refused, but that is told.
func TestContentThatNamesAFile(t *testing.T) {
	ctx := context.Background()
	server, types := serving(t)
	for _, k := range []storedKind{ignitionKind, combustionKind} {
		for content, doubtful := range map[string]bool{
			"/srv/configs/web.ign": true, "web.sh": true, "../configs/web": true,
			good[k.typeName]["content"]: false, "variant: fcos\nversion: 1.5.0\n": false, "echo hello\n": false, "": false,
		} {
			name := "libvirt_" + k.typeName
			stored, err := json.Marshal(map[string]string{"id": "/pool/web;" + aUUID, "name": "web", "pool": "default", "content": content})
			if err != nil {
				t.Fatal(err)
			}
			up, err := server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: name, RawState: &tfprotov6.RawState{JSON: stored}})
			if err != nil || len(up.Diagnostics) > 0 {
				t.Fatalf("%v, %+v", err, up)
			}
			read, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: up.UpgradedState})
			if err != nil || len(read.Diagnostics) > 0 {
				t.Fatalf("%v, %+v", err, read)
			}
			plan, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: name, PriorState: read.NewState, ProposedNewState: read.NewState,
				Config: withNulls(t, types[name], inputs{"name": "web", "content": content})})
			if err != nil {
				t.Fatal(err)
			}
			switch d := plan.Diagnostics; {
			case !doubtful && len(d) > 0:
				t.Errorf("%s %q: %+v", name, content, d[0])
			case doubtful && (len(d) != 1 || d[0].Severity != tfprotov6.DiagnosticSeverityWarning || !strings.Contains(d[0].Detail, `content = file("…")`)):
				t.Errorf("%s %q: %+v", name, content, d)
			}
		}
	}
}
