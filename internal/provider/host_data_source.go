package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// hostDataSources are those that are about the host itself, and not about what
// somebody defined there.
func hostDataSources() []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &capabilitiesSource{} },
		func() datasource.DataSource { return &domainCapabilitiesSource{} },
		func() datasource.DataSource { return &interfaceAddressesSource{} },
		func() datasource.DataSource { return &nodeDeviceInfoSource{} },
		func() datasource.DataSource { return &nodeDevicesSource{} },
		func() datasource.DataSource { return &nodeInfoSource{} },
	}
}

// hostSource is what these have in common: the connection.
type hostSource struct{ data *Data }

// Configure takes the connection over; before that there is none to ask.
func (s *hostSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if data, is := req.ProviderData.(*Data); is {
		s.data = data
	}
}

// host is the daemon to ask; nil, with an error, if it is not known yet.
func (s *hostSource) host(d *diag.Diagnostics, what string) *virt.Host {
	if s.data != nil && s.data.Host() != nil {
		return s.data.Host()
	}
	d.AddError(fmt.Sprintf("Could not read %s: the host is not known yet", what),
		"The uri in the provider's configuration depends on a value that is known only after apply. Apply what it depends on first (-target), or write the URI literally.")
	return nil
}

// addHostError says what was tried, what libvirt said, and who was asked.
func addHostError(d *diag.Diagnostics, host *virt.Host, what string, err error) {
	d.AddError("Could not read "+what, sentence(err.Error())+"\n\nAsked: "+host.Display())
}

// computedText and computedNumber are attributes that are only told.
func computedText(text string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: text}
}

func computedNumber(text string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
}

func computedFlag(text string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: text}
}

func computedTexts(text string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: text}
}

// textOrNull is null for an empty text.
func textOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// some is a list that is empty, and not null, if there is nothing in it.
func some[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
