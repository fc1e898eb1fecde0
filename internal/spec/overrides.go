package spec

import "strings"

// Flags are what the rules of reflection cannot know of an attribute.
type Flags uint8

const (
	// YesNo is a yes/no string in XML and a boolean to users.
	YesNo Flags = 1 << iota
	// Secret is never shown: it is sensitive in the schema, and outside of
	// state only its keyed digest exists.
	Secret
	// OnOff is an on/off string in XML and a boolean to users.
	OnOff
	// ReadOnly is set by libvirt or by the provider, never by users.
	ReadOnly
)

// Has says whether all the given flags are set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// override gives flags to every attribute whose pattern ends in suffix (whole
// names, from a dot on). The reason is part of the table on purpose.
type override struct {
	suffix string
	flags  Flags
	reason string
}

// overrides is the table of one root.
type overrides struct {
	rows    []override
	firstOf map[string]string // list pattern → the attribute that holds its first element
	skip    map[string]string // Go field (Type.Field) → why it has no attribute
	lost    []lost
	choices map[string][]string // object (pattern with its dot) → attributes of which XML takes one, where libvirtxml does not tell
	rename  map[string]string   // pattern by the rules → name that users know
}

// lost is an attribute that libvirtxml has and no document of its: it writes
// nothing for it, or does not read what it writes. Such a value is refused in a
// configuration; where the host has one, it stays as it is.
type lost struct {
	suffix string // of the attribute; what is below it is lost too
	reason string
}

// lostReason says why no document holds an attribute, "" if documents do.
func (t *overrides) lostReason(pattern string) string {
	for rest := pattern; rest != ""; rest = rest[:max(0, strings.LastIndexByte(rest, '.'))] {
		for _, row := range t.lost {
			if rest == row.suffix || strings.HasSuffix(rest, "."+row.suffix) {
				return row.reason
			}
		}
	}
	return ""
}

func (t *overrides) flags(pattern string) (flags Flags) {
	for _, row := range t.rows {
		if pattern == row.suffix || strings.HasSuffix(pattern, "."+row.suffix) {
			flags |= row.flags
		}
	}
	return flags
}

const known = "users of the incumbent provider write a boolean here"

// domainOverrides is the table for <domain>.
var domainOverrides = &overrides{
	rows: []override{
		{"managed", YesNo, known},
		{"auto_port", YesNo, known},
		{"cpu.migratable", OnOff, known},
		{"uuid", 0, "identity of the machine; only a replacement changes it"},
		{"graphics[].vnc.passwd", Secret, "the password of the console"},
		{"graphics[].spice.passwd", Secret, "the password of the console"},
		{"graphics[].rdp.passwd", Secret, "the password of the console"},
		{"cookies[].value", Secret, "an HTTP cookie is a credential"},
	},
	// libvirtxml turned the single <iommu> into a list when libvirt learnt to
	// have several; the name users know stays the first of them.
	firstOf: map[string]string{"devices.iommus": "iommu"},
	rename:  map[string]string{"vcpu_cpu_set": "vcpu_cpuset"},
	skip:    map[string]string{"DomainDeviceList.IOMMU": "libvirtxml's second view of the first element of IOMMUs"},
	lost:    domainLost(),
	choices: map[string][]string{"devices.smartcards[].": {"host", "host_certs", "passthrough"}}, // @mode says which
}

// domainLost is what no <domain> document of libvirtxml holds.
func domainLost() []lost {
	const (
		noType    = "libvirtxml has no type nvme for it"
		noAddress = "libvirtxml writes and reads nothing of it but the address of a PCI device"
		noSource  = "libvirtxml writes the kind of source only with its path or address"
	)
	rows := []lost{
		{"mirror.source.nvme", noType},
		{"backing_store.source.nvme", noType},
		{"interfaces[].source.hostdev.usb", noAddress},
		{"interfaces[].source.hostdev.pci.write_filtering", noAddress},
	}
	for _, chardev := range []string{"reservations.source", "source.vhost_user", "vhost_user.chardev", "external.source"} {
		for _, bare := range []string{"null", "vc", "std_io", "spice_vmc"} {
			rows = append(rows, lost{chardev + "." + bare, noSource})
		}
	}
	return rows
}

// networkOverrides is the table for <network>.
var networkOverrides = &overrides{rows: []override{
	{"forward.managed", YesNo, known},
}}

// poolOverrides is the table for <pool>.
var poolOverrides = &overrides{rows: []override{
	{"adapter.managed", YesNo, known},
}}

// volumeOverrides is the table for <volume>.
var volumeOverrides = &overrides{rows: []override{
	{"key", ReadOnly, "chosen by libvirt"},
	{"physical", ReadOnly, "measured by libvirt"},
	{"target.path", ReadOnly, "follows from pool and name"},
}}
