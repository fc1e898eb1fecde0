package spec

import (
	"strings"
	"unicode"
)

// words are the names inside libvirtxml's Go identifiers that the plain rule
// (a new word at each change from lower to upper case) would cut in the wrong
// place. The right column is the spelling that the plain rule cuts well.
// Names are those of the incumbent provider, so that its configurations and
// state stay valid.
var words = strings.NewReplacer(
	"QEMUVDAgent", "QemuVdAgent",
	"RErrorPolicy", "RerrorPolicy",
	"BHyve", "Bhyve",
	"VMWare", "Vmware",
	"CBitPos", "CbitPos",
	"STimer", "Stimer",
	"FOwner", "Fowner",
	"FSetID", "FsetID",
	"TSeg", "Tseg",
	"VRam64", "Vram64",
	"VRam", "Vram",
	"NVRam", "NvRam",
	"PMem", "Pmem",
	"DBus", "Dbus",
	"VHost", "Vhost",
	"VSock", "Vsock",
	"VLan", "Vlan",
	"VCPUs", "Vcpus",
	"CPUs", "Cpus",
	"IPs", "Ips",
	"IPv6", "Ipv6",
	"PFs", "Pfs",
	"XAttr", "Xattr",
	"DMode", "Dmode",
	"FMode", "Fmode",
	"ZLib", "Zlib",
	"XAuth", "Xauth",
	"CSum", "Csum",
	"MCast", "Mcast",
	"PStore", "Pstore",
	"RNGs", "Rngs",
	"TPMs", "Tpms",
	"IOMMUs", "Iommus",
	"IOMMU", "Iommu",
)

// attributeName turns a Go field name into an attribute name: MaximumMemory
// into maximum_memory, IOThreadIDs into io_thread_i_ds.
func attributeName(field string) string {
	runes := []rune(words.Replace(field))
	var b strings.Builder
	for i, c := range runes {
		if !unicode.IsUpper(c) {
			b.WriteRune(c)
			continue
		}
		if i > 0 && startsWord(runes, i) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// startsWord says whether the upper case rune at i begins a new word: after a
// lower case letter, or as the last capital of a run before a lower case one.
// A digit continues the word it stands in.
func startsWord(runes []rune, i int) bool {
	prev := runes[i-1]
	if unicode.IsDigit(prev) {
		return false
	}
	if !unicode.IsUpper(prev) {
		return true
	}
	return i+1 < len(runes) && unicode.IsLower(runes[i+1])
}
