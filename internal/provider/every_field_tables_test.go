package provider

import "github.com/driftsafe/terraform-provider-libvirt/internal/tree"

// spellings are the fields whose values cannot be any text.
var spellings = []struct {
	suffix string
	values []string
	reason string
}{
	{"metadata.xml", []string{`<x:a xmlns:x="u" v="1"/>`, `<x:a xmlns:x="u" v="2"/>`, `<x:a xmlns:x="u" v="3"/>`}, "a list of elements"},
}

// companion is a value without which no document holds a field: what the XML
// is a choice of, or an element that libvirtxml leaves out without it.
type companion struct {
	under  string     // the end of the pattern of an object
	fields []string   // those below it that are concerned; nil: all
	unless []string   // and of these not
	at     string     // the path of the value, from the object on
	value  tree.Value // null: any
	reason string
}

var (
	number = tree.IntValue(1024)
	there  = tree.ObjectValue(nil)
	choice = []string{"file", "block", "dir", "network", "volume", "nvme", "vhost_user", "vhost_vdpa", "ctl"}
)

// diskSources are the places where libvirtxml has the source of a disk.
var diskSources = []string{"disks[].source", "mirror.source", "backing_store.source", "nv_ram.source"}

// companions of domains; the other roots need none.
var companions = func() []companion {
	all := []companion{
		{"", []string{"memory_dump_core"}, nil, "memory", number, "it stands on the element of the number"},
		{"", []string{"maximum_memory_slots"}, nil, "maximum_memory", number, "it stands on the element of the number"},
		{"", []string{"vcpu_placement", "vcpu_cpuset", "vcpu_current"}, nil, "vcpu", number, "it stands on the element of the number"},
		{"devices.interfaces[]", nil, []string{"source"}, "source.user", there, "the type of an interface is that of its source"},
		{"devices.hostdevs[]", nil, []string{"subsys_usb", "subsys_pci", "subsys_scsi", "subsys_scsi_host", "subsys_m_dev", "caps_storage", "caps_misc", "caps_net"}, "subsys_usb", there, "mode and type are those of the source"},
		{"devices.smartcards[]", nil, []string{"host", "host_certs", "passthrough"}, "host", tree.BoolValue(true), "the mode is that of the source"},
		{"devices.audios[]", []string{"id", "timer_period"}, nil, "none", there, "the type is that of the backend"},
		{"devices.graphics[]", []string{"audio"}, nil, "vnc", there, "the type is that of the server"},
		{"devices.crypto[].backend", []string{"queues"}, nil, "built_in", tree.BoolValue(true), "the model is that of the backend"},
		{"devices.inputs[]", []string{"source.ev_dev"}, nil, "type", tree.StringValue("evdev"), "what a source is depends on the type"},
		{"devices.inputs[]", []string{"source.passthrough"}, nil, "type", tree.StringValue("passthrough"), "what a source is depends on the type"},
		{"devices.controllers[]", []string{"pci"}, nil, "type", tree.StringValue("pci"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"usb"}, nil, "type", tree.StringValue("usb"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"virt_io_serial"}, nil, "type", tree.StringValue("virtio-serial"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"xen_bus"}, nil, "type", tree.StringValue("xenbus"), "what a controller has depends on the type"},
		{"devices.controllers[]", []string{"nvme"}, nil, "type", tree.StringValue("nvme"), "what a controller has depends on the type"},
		{"devices", []string{"iommus"}, nil, "iommu", there, "the list holds those after the first"},
		{"pty", []string{"sec_label"}, nil, "path", tree.NullValue, "left out without it"},
		{"ethernet", []string{"ip"}, nil, "route[].gateway", tree.NullValue, "libvirtxml writes the two together only"},
		{"ethernet", []string{"route"}, nil, "ip[].address", tree.NullValue, "libvirtxml writes the two together only"},
		{"nmdm", nil, nil, "master", tree.NullValue, "both ends, or none"},
		{"nmdm", nil, nil, "slave", tree.NullValue, "both ends, or none"},
		{"unix", []string{"reconnect", "sec_label"}, nil, "path", tree.NullValue, "left out without it"},
	}
	for _, source := range diskSources {
		all = append(all,
			companion{source, nil, choice, "file.file", tree.NullValue, "the type is that of the source"},
			companion{source + ".file", nil, nil, "file", tree.NullValue, "left out without it"},
			companion{source + ".block", nil, nil, "dev", tree.NullValue, "left out without it"},
			companion{source + ".volume", nil, nil, "pool", tree.NullValue, "left out without it"},
		)
	}
	return all
}()

// standIns are kinds of a device that are not alternatives to libvirtxml.
var standIns = map[string]string{
	"devices.smartcards[].host": "passthrough.spice_vmc",
}
