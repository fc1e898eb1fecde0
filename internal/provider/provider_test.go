package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// configured returns what resources get to know of a provider block in which
// these attributes are set.
func configured(t *testing.T, set map[string]any) (*Data, provider.ConfigureResponse) {
	t.Helper()
	p := &frameworkProvider{data: &Data{}}
	var schema provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &schema)
	object := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, set[name])
		delete(set, name)
	}
	if len(set) > 0 {
		t.Fatalf("the provider has no %v", set)
	}
	var resp provider.ConfigureResponse
	p.Configure(t.Context(), provider.ConfigureRequest{Config: tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(object, values)}}, &resp)
	return p.data, resp
}

// An object that says nothing itself is protected by the environment, else by
// the provider's configuration, else by the standard of its type.
func TestProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		environment    string
		protect        any
		domains, seeds bool
	}{
		"nothing said":            {"", nil, true, false},
		"on":                      {"", true, true, true},
		"off":                     {"", false, false, false},
		"not known yet":           {"", tftypes.UnknownValue, true, true},
		"environment before on":   {"false", true, false, false},
		"environment before off":  {"true", false, true, true},
		"environment alone":       {"true", nil, true, true},
		"environment, off, alone": {"false", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LIBVIRT_PROTECT", tc.environment)
			data, resp := configured(t, map[string]any{"protect": tc.protect})
			if resp.Diagnostics.HasError() {
				t.Fatal(resp.Diagnostics)
			}
			domains, _ := data.Protect(true)
			seeds, origin := data.ProtectSeeds()
			if domains != tc.domains || seeds != tc.seeds || origin == "" {
				t.Errorf("domains %v, seeds %v by %q, want %v and %v", domains, seeds, origin, tc.domains, tc.seeds)
			}
		})
	}
	t.Setenv("LIBVIRT_PROTECT", "maybe")
	if _, resp := configured(t, nil); !resp.Diagnostics.HasError() {
		t.Error("LIBVIRT_PROTECT=maybe was accepted")
	}
}

func TestSeedStoreMustBeKnown(t *testing.T) {
	if _, resp := configured(t, map[string]any{"seed_store": tftypes.UnknownValue}); !resp.Diagnostics.HasError() {
		t.Error("an unknown seed_store was accepted: paths in the plan would change in the apply")
	}
	data, resp := configured(t, map[string]any{"seed_store": "/srv/seeds"})
	if resp.Diagnostics.HasError() || data.SeedStore() != "/srv/seeds" {
		t.Errorf("%q, %v", data.SeedStore(), resp.Diagnostics)
	}
}
