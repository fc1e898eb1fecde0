package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// nodeInfoSource is the hardware of the host in a few numbers.
type nodeInfoSource struct{ hostSource }

type nodeInfo struct {
	ID        string `tfsdk:"id"`
	CPUModel  string `tfsdk:"cpu_model"`
	Memory    int64  `tfsdk:"memory_total_kb"`
	Total     int64  `tfsdk:"cpu_cores_total"`
	NUMANodes int64  `tfsdk:"numa_nodes"`
	Sockets   int64  `tfsdk:"cpu_sockets"`
	Cores     int64  `tfsdk:"cpu_cores_per_socket"`
	Threads   int64  `tfsdk:"cpu_threads_per_core"`
}

func (s *nodeInfoSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "libvirt_node_info"
}

func (s *nodeInfoSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The processors and the memory of the host. `libvirt_capabilities` tells more.",
		Attributes: map[string]schema.Attribute{
			"id":                   computedText("Which libvirt was asked: its driver and the UUID of the host."),
			"cpu_model":            computedText("Architecture of the processors, as `x86_64`."),
			"memory_total_kb":      computedNumber("Memory in KiB."),
			"cpu_cores_total":      computedNumber("Processors that are on line: threads, not cores, where there are several to a core."),
			"numa_nodes":           computedNumber("NUMA nodes."),
			"cpu_sockets":          computedNumber("Sockets in each NUMA node."),
			"cpu_cores_per_socket": computedNumber("Cores in each socket."),
			"cpu_threads_per_core": computedNumber("Threads in each core."),
		},
	}
}

func (s *nodeInfoSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	const what = "the hardware of the host"
	host := s.host(&resp.Diagnostics, what)
	if host == nil {
		return
	}
	i, err := host.NodeInfo(ctx)
	if err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	id, err := host.Identity(ctx)
	if err != nil {
		addHostError(&resp.Diagnostics, host, what, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, nodeInfo{
		ID: id, CPUModel: i.CPUModel, Memory: int64(i.Memory), Total: int64(i.CPUs), NUMANodes: int64(i.NUMANodes),
		Sockets: int64(i.Sockets), Cores: int64(i.CoresPer), Threads: int64(i.ThreadsPer),
	})...)
}
