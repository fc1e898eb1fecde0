package protocol

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// ValidateDataResourceConfig checks the configuration of a data source.
func (s *server) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (resp *tfprotov6.ValidateDataResourceConfigResponse, _ error) {
	d := s.dataSources[req.TypeName]
	if d == nil {
		return s.ProviderServer.ValidateDataResourceConfig(ctx, req)
	}
	resp = &tfprotov6.ValidateDataResourceConfigResponse{}
	var diags Diagnostics
	c := begin(ctx, "ValidateDataResourceConfig", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	config := c.decode(d.codec(), req.Config, "configuration", &diags)
	if !diags.HasErrors() {
		diags.Append(d.Validate(ctx, config)...)
	}
	return resp, nil
}

// ReadDataSource reads a data source.
func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (resp *tfprotov6.ReadDataSourceResponse, _ error) {
	d := s.dataSources[req.TypeName]
	if d == nil {
		return s.ProviderServer.ReadDataSource(ctx, req)
	}
	resp = &tfprotov6.ReadDataSourceResponse{}
	var diags Diagnostics
	c := begin(ctx, "ReadDataSource", req.TypeName)
	defer c.end(&resp.Diagnostics, &diags)

	config := c.decode(d.codec(), req.Config, "configuration", &diags)
	if diags.HasErrors() {
		return resp, nil
	}
	state, found := d.Read(ctx, config)
	diags.Append(found...)
	if diags.HasErrors() {
		return resp, nil
	}
	if state.IsNull() {
		c.internalError(&diags, nil, "the data source returned nothing")
		return resp, nil
	}
	resp.State = c.encodeState(d.codec(), state, false, &diags)
	return resp, nil
}
