package provider

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// interfaceAddressesSource tells the addresses of a running guest.
type interfaceAddressesSource struct{ hostSource }

type interfaceAddresses struct {
	ID         types.String   `tfsdk:"id"`
	Domain     types.String   `tfsdk:"domain"`
	Source     types.String   `tfsdk:"source"`
	Interfaces []oneInterface `tfsdk:"interfaces"`
}

type oneInterface struct {
	Name   types.String `tfsdk:"name"`
	HWAddr types.String `tfsdk:"hwaddr"`
	Addrs  []oneAddress `tfsdk:"addrs"`
}

type oneAddress struct {
	Addr   types.String `tfsdk:"addr"`
	Prefix types.Int64  `tfsdk:"prefix"`
	Type   types.String `tfsdk:"type"`
}

var _ datasource.DataSourceWithValidateConfig = (*interfaceAddressesSource)(nil)

// anySource asks one source after the other.
const anySource = "any"

// addressSources are the values of source, and whom each asks, in this order.
var addressSources = map[string][]virt.AddressSource{
	anySource: {virt.AddressLease, virt.AddressAgent, virt.AddressARP},
	"lease":   {virt.AddressLease},
	"agent":   {virt.AddressAgent},
	"arp":     {virt.AddressARP},
}

// agentPatience is how long an agent is waited for. libvirt itself waits for
// ever; to limit that there would be a write, and a data source makes none.
const agentPatience = 10 * time.Second

func (s *interfaceAddressesSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_domain_interface_addresses"
}

func (s *interfaceAddressesSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The addresses of a running guest, as `virsh domifaddr` tells them. Of a domain that is off there are none, with a warning. To wait for an address use `wait_for_ip` of the `libvirt_domain`.",
		Attributes: map[string]schema.Attribute{
			"id":     computedText("The UUID of the domain."),
			"domain": schema.StringAttribute{Required: true, MarkdownDescription: "Name or UUID of the domain."},
			"source": schema.StringAttribute{Optional: true, MarkdownDescription: "Who is asked: `lease`, the DHCP servers of libvirt's networks; `agent`, the guest's agent, for at most 10 seconds; `arp`, the host's table of neighbours; or `any` (standard), these in turn until one knows an address."},
			"interfaces": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The interfaces that have an address.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":   computedText("Name on the host; from the agent the guest's own."),
					"hwaddr": computedText("MAC address."),
					"addrs": schema.ListNestedAttribute{
						Computed: true, MarkdownDescription: "The addresses.",
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"addr":   computedText("The address."),
							"prefix": computedNumber("Length of the network's prefix."),
							"type":   computedText("`ipv4` or `ipv6`."),
						}},
					},
				}},
			},
		},
	}
}

func (s *interfaceAddressesSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var source types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("source"), &source)...)
	if !source.IsNull() && !source.IsUnknown() && addressSources[source.ValueString()] == nil {
		resp.Diagnostics.AddAttributeError(path.Root("source"), "Unknown source of addresses",
			fmt.Sprintf("source is %q; it can be any, which is the standard, lease, agent or arp.", source.ValueString()))
	}
}

func (s *interfaceAddressesSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var out interfaceAddresses
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("domain"), &out.Domain)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("source"), &out.Source)...)
	name := out.Domain.ValueString()
	what := fmt.Sprintf("the addresses of domain %q", name)
	host := s.host(&resp.Diagnostics, what)
	if host == nil || resp.Diagnostics.HasError() {
		return
	}
	dom, err := domainOf(ctx, host, name)
	if virt.IsNotFound(err) {
		addNoDomain(ctx, &resp.Diagnostics, host, name)
		return
	}
	var power virt.State
	if err == nil {
		power, _, err = dom.State(ctx)
	}
	if err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	out.ID, out.Interfaces = types.StringValue(dom.UUID()), []oneInterface{}
	if power.Active() {
		nics, err := addressesOf(ctx, dom, out.Source.ValueString())
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("source"), "Could not read "+what, sentence(err.Error())+" "+wayToAddresses(err)+"\n\nAsked: "+host.Display())
			return
		}
		out.Interfaces = nics
	} else {
		resp.Diagnostics.AddAttributeWarning(path.Root("domain"), fmt.Sprintf("Domain %q is off", name),
			"So it has no addresses, and interfaces is empty. Start it (running = true in its resource), or ask only if data.libvirt_domain says that it is running.")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, out)...)
}

// domainOf finds a domain by its UUID or its name, which can look like a UUID.
func domainOf(ctx context.Context, host *virt.Host, id string) (*virt.Domain, error) {
	if kind.IsUUID(id) {
		if dom, err := host.LookupDomain(ctx, id); !virt.IsNotFound(err) {
			return dom, err
		}
	}
	return host.LookupDomainByName(ctx, id)
}

// wayToAddresses is what to do about a source that could not be asked.
func wayToAddresses(err error) string {
	if virt.HasCode(err, virt.ErrAgentUnresponsive) || virt.HasCode(err, virt.ErrArgumentUnsupported) || strings.Contains(err.Error(), "deadline") {
		return `The way out: give the domain a channel org.qemu.guest_agent.0 and run the agent in the guest; or set source = "lease", which asks the DHCP server, or "arp".`
	}
	return "The way out: try another source."
}

// addNoDomain says which domains there are.
func addNoDomain(ctx context.Context, d *diag.Diagnostics, host *virt.Host, name string) {
	all, err := host.Domains(ctx)
	if err != nil {
		addHostError(d, host, "the domains of the host", err)
		return
	}
	there := make([]string, len(all))
	for i, one := range all {
		there[i] = one.Name()
	}
	d.AddAttributeError(path.Root("domain"), fmt.Sprintf("There is no domain %q", name),
		fmt.Sprintf("The host %s has no domain of that name or UUID. %sThe way out: write one that is there into domain.", host.Display(), kind.Choices("There are", there, name)))
}

// addressesOf asks the sources. Where any will do, one that cannot be asked has
// nothing to say.
func addressesOf(ctx context.Context, dom *virt.Domain, source string) ([]oneInterface, error) {
	if source == "" {
		source = anySource
	}
	out := []oneInterface{}
	for _, asked := range addressSources[source] {
		within, cancel := context.WithTimeout(ctx, agentPatience)
		nics, err := dom.InterfaceAddresses(within, asked)
		cancel()
		switch {
		case err != nil && (source != anySource || virt.IsUnreachable(err) || ctx.Err() != nil):
			return nil, err
		case err != nil:
			continue
		}
		for _, nic := range nics {
			out = append(out, interfaceOf(nic))
		}
		if len(out) > 0 {
			break
		}
	}
	return out, nil
}

func interfaceOf(nic virt.InterfaceAddresses) oneInterface {
	one := oneInterface{Name: textOrNull(nic.Name), HWAddr: textOrNull(nic.MAC), Addrs: []oneAddress{}}
	for _, a := range nic.Addresses {
		family := "ipv4"
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Is6() {
			family = "ipv6"
		}
		one.Addrs = append(one.Addrs, oneAddress{types.StringValue(a.Address), types.Int64Value(int64(a.Prefix)), types.StringValue(family)})
	}
	return one
}
