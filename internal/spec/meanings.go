package spec

// meanings are the descriptions of fields, by pattern; a pattern "*.name"
// serves every attribute of that name which has none of its own.
var meanings = map[string]string{
	"memory":             "Memory of the guest, in `memory_unit`.",
	"memory_unit":        "Unit of `memory`: `KiB` unless set, as libvirt's.",
	"current_memory":     "Memory that the guest may use now (balloon), in `current_memory_unit`; not above `memory`.",
	"vcpu":               "Greatest number of virtual CPUs.",
	"vcpu_current":       "Number of virtual CPUs that are plugged in at start; `vcpu` unless set.",
	"title":              "Short title, one line.",
	"description":        "Description for people.",
	"uuid":               "Identity of the object, chosen by libvirt unless set. It never changes.",
	"devices.disks":      "Disks. Their identity is `target.dev`: the order in the list does not matter.",
	"devices.interfaces": "Network interfaces. Their identity is the MAC address.",
	"*.alias":            "Name of the device for libvirt's interfaces; `ua-…` for names chosen by users.",
	"*.acpi":             "ACPI settings of the device.",
	"*.address":          "Address of the device on its bus, chosen by libvirt unless set.",
	"*.boot":             "Place in the boot order.",
	"metadata":           "Elements of other namespaces, kept by libvirt as they are.",
	"metadata.xml":       "The elements, as XML, each in a namespace of its own.",
	"os.type_machine":    "Machine type. An alias (`q35`) is recorded as the version it stands for at definition.",
}
