package adopt

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// networkRules are what libvirt adds to a <network>.
var networkRules = []rule{
	{"^uuid", always, "the import has it"},
	{"^active", always, "unset, it is kept as it is"},
	{"^autostart", isFalse, "the standard"},
	{"^mac", always, "libvirt gives one to the bridge"},
	{"^bridge.name", matches(`^virbr\d+$`), "libvirt takes the next one that is free"},
	{"^bridge.stp", is("on"), "measured: said though nobody did"},
	{"^bridge.delay", is("0"), "measured: said though nobody did"},
	{"^connections", always, "how many guests are attached"},
	{"^metadata", always, "of other tools, which go on to write it"},
	{"^forward.interfaces", func(p place) bool {
		dev := p.beside.Attr("dev")
		return p.value.Len() == 1 && !dev.IsNull() && only(p.value.Elems()[0], "dev") && tree.Equal(p.value.Elems()[0].Attr("dev"), dev)
	}, "measured: forward.dev, said twice"},
	{"^forward.nat.ports", func(p place) bool {
		return p.value.Len() == 1 && p.value.Elems()[0].Attr("start").String() == "1024" && p.value.Elems()[0].Attr("end").String() == "65535"
	}, "the standard"},
}

// poolRules are what libvirt adds to a <pool>.
var poolRules = []rule{
	{"^uuid", always, "the import has it"},
	{"^active", always, "unset, it is kept as it is"},
	{"^autostart", isFalse, "the standard"},
	{"^capacity", always, "measured"},
	{"^allocation", always, "measured"},
	{"^available", always, "measured"},
	{"^capacity_unit", always, "of what is measured"},
	{"^allocation_unit", always, "of what is measured"},
	{"^available_unit", always, "of what is measured"},
	{"^source", isEmpty, "measured: said though nobody did"},
	{"^source.format.type", is("auto", "unknown"), "the standard"},
	{"^target.permissions", always, "those of the directory, which is there"},
	{"^target.timestamps", always, "of the directory"},
	{"^target.path", func(p place) bool {
		source := p.root.At("source.name").Str()
		return p.root.Attr("type").Str() == "logical" && source != "" && p.value.Str() == "/dev/"+source
	}, "measured: follows from the volume group"},
}

// volumeRules are what libvirt adds to a <volume>.
var volumeRules = []rule{
	{"^id", always, "libvirt's key"},
	{"^create", always, "how it was made"},
	{"^type", always, "follows from the pool"},
	{"^capacity", isNumber(0), "of a directory that lies in the pool"},
	{"^capacity_unit", func(p place) bool { return tree.Equal(p.beside.Attr("capacity"), tree.IntValue(0)) }, "with capacity"},
	{"^allocation", always, "measured"},
	{"^allocation_unit", always, "of what is measured"},
	{"^physical_unit", always, "of what is measured"},
	{"^target.permissions", always, "those of the file; libvirt lends it to a running guest"},
	{"^target.timestamps", always, "of the file"},
	{"^target.compat", is("1.1"), "what QEMU makes today"},
	{"^target.cluster_size", isNumber(65536), "the standard"},
	{"^target.cluster_size_unit", func(p place) bool { n, _ := p.beside.Attr("cluster_size").Int(); return n == 65536 }, "the standard"},
	{"^backing_store.permissions", always, "those of the file"},
	{"^backing_store.timestamps", always, "of the file"},
	{"^target.features[]", isEmpty, "libvirt says that there are none"},
	{"^target.format.type", func(p place) bool { return strings.TrimSpace(p.value.Str()) == "unknown" }, "libvirt does not know it"},
}
