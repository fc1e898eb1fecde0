package spec

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// sameness is one way in which two spellings mean the same thing.
type sameness struct {
	suffix string // of the pattern, whole names from a dot on
	equal  func(a, b string) bool
	reason string
}

// samenesses is the table of semantic equality of strings. What holds for
// every field of a kind (absent and false, absent and zero) is in Equal.
var samenesses = []sameness{
	{"mac.address", strings.EqualFold, "libvirt writes MAC addresses in lower case"},
	{"uuid", equalUUID, "libvirt writes UUIDs in lower case, with hyphens"},
	{"permissions.mode", equalOctal, "0770, 770 and 00770 are one mode"},
	{"target.path", equalPath, "a directory with and without its trailing slash"},
	{"backing_store.path", equalPath, "one file, spelt twice"},
	{"source.dir.path", equalPath, "a directory with and without its trailing slash"},
	{"source.file.file", equalPath, "one file, spelt twice"},
	{"os.type_machine", equalMachine, "an alias stands for the version it was defined with"},
	{"metadata.xml", equalFragments, "white space between elements means nothing"},
	{"address.pci.multi_function", strings.EqualFold, "on and off"},
	{"interfaces[].link.state", equalDefault("up"), "a link is up unless it is said to be down"},
	{"ips[].family", equalDefault("ipv4"), "ipv4 is what libvirt assumes, and leaves out"},
	{"routes[].family", equalDefault("ipv4"), "ipv4 is what libvirt assumes, and leaves out"},
}

// Equal says whether two values of a field mean the same though they differ to
// the letter.
func (r *Root) Equal(pattern string, a, b tree.Value) bool {
	if a.IsUnknown() || b.IsUnknown() {
		return false
	}
	if a.IsNull() || b.IsNull() {
		return r.meansAbsent(pattern, a) && r.meansAbsent(pattern, b) || equalStrings(pattern, a, b)
	}
	return equalStrings(pattern, a, b)
}

func equalStrings(pattern string, a, b tree.Value) bool {
	if a.IsKnown() && a.Kind() != tree.String || b.IsKnown() && b.Kind() != tree.String {
		return false
	}
	for _, s := range samenesses {
		if (pattern == s.suffix || strings.HasSuffix(pattern, "."+s.suffix)) && s.equal(a.Str(), b.Str()) {
			return true
		}
	}
	return false
}

// meansAbsent says whether the XML would be the same without the value: an
// element that is only there or not, a number or text that libvirtxml leaves
// out when it is zero, an object or list with nothing in it.
func (r *Root) meansAbsent(pattern string, v tree.Value) bool {
	switch v.Kind() {
	case tree.Null:
		return true
	case tree.Bool:
		f := r.Fields[pattern]
		return !v.Bool() && f != nil && f.absentWhenZero
	case tree.Number:
		f := r.Fields[pattern]
		return v.Num().Sign() == 0 && f != nil && f.absentWhenZero
	case tree.String:
		return v.Str() == ""
	case tree.List, tree.Object:
		return v.Len() == 0
	}
	return false
}

func equalUUID(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	return plain(a) == plain(b)
}

func equalOctal(a, b string) bool {
	x, errX := strconv.ParseUint(a, 8, 32)
	y, errY := strconv.ParseUint(b, 8, 32)
	return errX == nil && errY == nil && x == y
}

func equalPath(a, b string) bool { return a != "" && b != "" && path.Clean(a) == path.Clean(b) }

func equalDefault(standard string) func(a, b string) bool {
	return func(a, b string) bool {
		return (a == "" || a == standard) && (b == "" || b == standard)
	}
}

// machineAliases are QEMU's names for "the newest version of a machine type".
// q35 and pc are different machines and never equal.
var machineAliases = map[string]*regexp.Regexp{
	"q35":             regexp.MustCompile(`^pc-q35-`),
	"pc":              regexp.MustCompile(`^pc-i440fx-`),
	"virt":            regexp.MustCompile(`^virt-`),
	"pseries":         regexp.MustCompile(`^pseries-`),
	"s390-ccw-virtio": regexp.MustCompile(`^s390-ccw-virtio-`),
	"s390-ccw":        regexp.MustCompile(`^s390-ccw-virtio-`),
}

func equalMachine(a, b string) bool {
	return machineAliases[a] != nil && machineAliases[a].MatchString(b) ||
		machineAliases[b] != nil && machineAliases[b].MatchString(a)
}

// equalFragments compares lists of XML elements without a root.
func equalFragments(a, b string) bool {
	x, errX := parse("<metadata>" + a + "</metadata>")
	y, errY := parse("<metadata>" + b + "</metadata>")
	return errX == nil && errY == nil && same(x.Root(), y.Root())
}

// SameXML says whether two elements have the same content: attributes in any
// order, text without the space around it. What cannot be parsed is equal to
// nothing.
func SameXML(a, b string) bool {
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && same(x.Root(), y.Root())
}
