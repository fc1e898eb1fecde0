package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A domain whose name looks like a UUID is found by that name, as all else finds it.
func TestInterfaceAddressesOfANameLikeAUUID(t *testing.T) {
	ctx := context.Background()
	simulated(t, aUUID, "plain")
	server, _ := serving(t)
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const name = "libvirt_domain_interface_addresses"
	typ := schemas.DataSourceSchemas[name].ValueType()
	for id, there := range map[string]bool{aUUID: true, "plain": true, theMachine: true, "nobody": false, "8d2a1c6e-58f1-4b0a-9a55-000000000000": false} {
		resp, err := server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: withNulls(t, typ, inputs{"domain": id, "source": "arp"})})
		if err != nil {
			t.Fatal(err)
		}
		missing := len(resp.Diagnostics) == 1 && resp.Diagnostics[0].Summary == `There is no domain "`+id+`"`
		if missing == there {
			t.Errorf("%s: %+v", id, resp.Diagnostics)
		}
		if !there {
			continue
		}
		state, err := resp.State.Unmarshal(typ)
		var attrs map[string]tftypes.Value
		if err == nil {
			err = state.As(&attrs)
		}
		var uuid string
		if err == nil {
			err = attrs["id"].As(&uuid)
		}
		if err != nil || len(uuid) != len(aUUID) || uuid == aUUID {
			t.Errorf("%s: the UUID is %q, %v; %+v", id, uuid, err, resp.Diagnostics)
		}
	}
}
