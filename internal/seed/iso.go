package seed

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The image is ISO 9660 (ECMA-119) with a root directory and folders in it, and
// carries each name three times, because no single place is read by every guest:
//
//   - Rock Ridge: Linux, always compiled into isofs; the BSDs,
//   - Joliet: Windows; Linux only if its kernel was built with it,
//   - the plain name, upper case without hyphens, as the standard demands.
//
// Layout, in sectors of 2,048 bytes: 16 of system area, primary descriptor,
// Joliet descriptor, terminator, four path tables (each in both byte orders),
// the primary directories, the Joliet directories, the files in the order of
// their names. Of directories, the root comes first.

const (
	sectorSize    = 2048
	systemSectors = 16

	sectorPrimary    = systemSectors
	sectorJoliet     = systemSectors + 1
	sectorTerminator = systemSectors + 2
	sectorPathTables = systemSectors + 3 // primary L, primary M, Joliet L, Joliet M
	sectorRoot       = systemSectors + 7

	descriptorPrimary       = 1
	descriptorSupplementary = 2
	descriptorTerminator    = 255

	// standardID is the identifier of every volume descriptor.
	standardID = "CD001"

	// maxLabel is Joliet's limit; the primary descriptor has room for 32.
	maxLabel = 16
	// maxName keeps a name with its Rock Ridge entries within one directory
	// record of 255 bytes, and within Joliet's 64 characters.
	maxName = 64
	// maxFolders keeps each path table within its sector.
	maxFolders = 8

	flagDirectory = 2
)

// The time that every date in the image shows: a fixed one, since the clock must
// not get into the bytes. 1 January 2000, midnight, UTC.
var (
	recordTime     = []byte{100, 1, 1, 0, 0, 0, 0}
	descriptorTime = append([]byte("2000010100000000"), 0)
	// noTime is how a descriptor says that a date is not specified.
	noTime = append([]byte("0000000000000000"), 0)
)

// node is one file with its place in the image.
type node struct {
	File
	folder string // "" in the root
	base   string // its name in there
	plain  string // identifier in the primary directory
	sector uint32
}

// folder is a directory with its places in the image. The root's name is empty.
type folder struct {
	name, plain     string
	primary, joliet extent
}

// ISO returns the image. It depends on nothing but the label and the files.
func (s Seed) ISO() ([]byte, error) {
	nodes, folders, err := s.nodes()
	if err != nil {
		return nil, err
	}
	// The sizes of directories do not depend on sector numbers: build them
	// once to measure, and again when the places are known.
	next := uint32(sectorRoot)
	place := func(b []byte) extent {
		at := extent{next, uint32(len(b))}
		next += sectors(len(b))
		return at
	}
	for i, f := range folders {
		folders[i].primary = place(primaryDirectory(f, folders, nodes))
	}
	for i, f := range folders {
		folders[i].joliet = place(jolietDirectory(f, folders, nodes))
	}
	for i, n := range nodes {
		nodes[i].sector = place(n.Data).sector
	}

	image := make([]byte, int(next)*sectorSize)
	put := func(sector uint32, b []byte) { copy(image[int(sector)*sectorSize:], b) }
	put(sectorPrimary, s.descriptor(false, folders, next))
	put(sectorJoliet, s.descriptor(true, folders, next))
	put(sectorTerminator, append([]byte{descriptorTerminator}, standardID+"\x01"...))
	for i, joliet := range []bool{false, true} {
		put(sectorPathTables+2*uint32(i), pathTable(binary.LittleEndian, joliet, folders))
		put(sectorPathTables+2*uint32(i)+1, pathTable(binary.BigEndian, joliet, folders))
	}
	for _, f := range folders {
		put(f.primary.sector, primaryDirectory(f, folders, nodes))
		put(f.joliet.sector, jolietDirectory(f, folders, nodes))
	}
	for _, n := range nodes {
		put(n.sector, n.Data)
	}
	return image, nil
}

// nodes checks that the seed can be written, gives every file a plain identifier
// and collects the folders, the root first.
func (s Seed) nodes() ([]node, []folder, error) {
	if s.Label == "" || strings.TrimSpace(s.Label) != s.Label || len(s.Label) > maxLabel || !printableASCII(s.Label) {
		return nil, nil, fmt.Errorf("write seed: label %q: want 1 to %d printable ASCII characters without spaces around them", s.Label, maxLabel)
	}
	total := 0
	nodes, folders := make([]node, 0, len(s.Files)), []folder{{}}
	taken := map[string]map[string]bool{"": {}}
	for _, f := range s.sorted() {
		parts := strings.Split(f.Name, "/")
		if len(parts) > 2 || slices.ContainsFunc(parts, unwritable) {
			return nil, nil, fmt.Errorf("write seed: file name %q: want 1 to %d printable ASCII characters, none of \\ : ; * ?, in the root or in a folder of it", f.Name, maxName)
		}
		n := node{File: f, folder: parts[0], base: parts[len(parts)-1]}
		if len(parts) == 1 {
			n.folder = ""
		}
		if taken[n.folder] == nil {
			if taken[""]["="+n.folder] || len(folders) > maxFolders {
				return nil, nil, fmt.Errorf("write seed: folder %q: a file has that name, or there are more than %d folders", n.folder, maxFolders)
			}
			taken[n.folder] = map[string]bool{}
			d := folder{name: n.folder, plain: plainName(n.folder, taken[""])}
			taken[""]["="+d.name], taken[""][d.plain] = true, true
			d.plain = strings.TrimSuffix(d.plain, plainEnd)
			folders = append(folders, d)
		}
		here := taken[n.folder]
		if here["="+n.base] {
			return nil, nil, fmt.Errorf("write seed: two files are called %q", f.Name)
		}
		here["="+n.base] = true
		if total += len(f.Data); total > MaxContent {
			return nil, nil, fmt.Errorf("write seed: the files are larger than %d MiB together", MaxContent>>20)
		}
		n.plain = plainName(n.base, here)
		here[n.plain] = true
		nodes = append(nodes, n)
	}
	return nodes, folders, nil
}

// unwritable tells whether a file or a folder cannot have this name.
func unwritable(name string) bool {
	return name == "" || name == "." || name == ".." || len(name) > maxName || !printableASCII(name) || strings.ContainsAny(name, `\:;*?`)
}

// plainEnd is the empty extension and the version, which every file has.
const plainEnd = ".;1"

// plainName makes an identifier of the standard's interchange level 2 that is
// not taken yet: "USER_DATA.;1".
func plainName(name string, taken map[string]bool) string {
	base := []byte(strings.ToUpper(name))
	for i, c := range base {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			base[i] = '_'
		}
	}
	base = base[:min(len(base), 24)]
	id := string(base) + plainEnd
	for n := 1; taken[id]; n++ {
		id = fmt.Sprintf("%s_%d%s", base, n, plainEnd)
	}
	return id
}

func printableASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
}

// sectors returns how many sectors n bytes take.
func sectors(n int) uint32 { return uint32((n + sectorSize - 1) / sectorSize) }

// An extent is a run of bytes that begins with a sector.
type extent struct{ sector, size uint32 }

// both32 and both16 are the standard's numbers in both byte orders.
func both32(n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), n)
}

func both16(n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, n), n)
}

// ucs2 encodes ASCII for Joliet.
func ucs2(s string) []byte {
	var b []byte
	for _, c := range []byte(s) {
		b = append(b, 0, c)
	}
	return b
}

// descriptor builds the primary or the Joliet volume descriptor.
func (s Seed) descriptor(joliet bool, folders []folder, total uint32) []byte {
	d := make([]byte, sectorSize)
	root := folders[0].at(joliet)
	kind, tables, text, blank := byte(descriptorPrimary), uint32(sectorPathTables), func(s string) []byte { return []byte(s) }, []byte{' '}
	if joliet {
		kind, tables, text, blank = descriptorSupplementary, sectorPathTables+2, ucs2, []byte{0, ' '}
		copy(d[88:], "%/E") // UCS-2, level 3
	}
	field := func(from, to int, value string) {
		b := text(value)
		for len(b) < to-from {
			b = append(b, blank...)
		}
		copy(d[from:to], b)
	}
	d[0], d[6] = kind, 1
	copy(d[1:], standardID)
	field(8, 40, "LINUX")
	field(40, 72, s.Label)
	copy(d[80:], both32(total))
	copy(d[120:], both16(1)) // volumes in the set
	copy(d[124:], both16(1)) // number of this volume
	copy(d[128:], both16(sectorSize))
	copy(d[132:], both32(uint32(len(pathTable(binary.LittleEndian, joliet, folders)))))
	binary.LittleEndian.PutUint32(d[140:], tables)
	binary.BigEndian.PutUint32(d[148:], tables+1)
	copy(d[156:], record("\x00", root, flagDirectory, nil))
	field(190, 318, "")
	field(318, 446, "")
	field(446, 574, "")
	field(574, 702, "TERRAFORM-PROVIDER-LIBVIRT")
	field(702, 739, "")
	field(739, 776, "")
	field(776, 813, "")
	copy(d[813:], descriptorTime)
	copy(d[830:], descriptorTime)
	copy(d[847:], noTime) // expires
	copy(d[864:], descriptorTime)
	d[881] = 1 // version of the file structure
	return d
}

// at is where the directory lies.
func (f folder) at(joliet bool) extent {
	if joliet {
		return f.joliet
	}
	return f.primary
}

// identifier is how the directory is called in its parent.
func (f folder) identifier(joliet bool) string {
	switch {
	case f.name == "":
		return "\x00"
	case joliet:
		return string(ucs2(f.name))
	}
	return f.plain
}

// pathTable lists the directories in the order of their identifiers.
func pathTable(order binary.AppendByteOrder, joliet bool, folders []folder) []byte {
	var t []byte
	sorted := slices.SortedFunc(slices.Values(folders), func(a, b folder) int {
		return strings.Compare(a.identifier(joliet), b.identifier(joliet))
	})
	for _, f := range sorted {
		id := f.identifier(joliet)
		t = order.AppendUint32(append(t, byte(len(id)), 0), f.at(joliet).sector)
		t = even(append(order.AppendUint16(t, 1), id...)) // the parent is the first, the root
	}
	return t
}

// record builds one directory record with its system use area.
func record(id string, at extent, flags byte, systemUse []byte) []byte {
	r := append(make([]byte, 2), both32(at.sector)...)
	r = append(r, both32(at.size)...)
	r = append(r, recordTime...)
	r = append(r, flags, 0, 0)
	r = append(r, both16(1)...)
	r = append(append(r, byte(len(id))), id...)
	r = append(even(r), systemUse...)
	r = even(r)
	r[0] = byte(len(r))
	return r
}

// even pads to an even number of bytes, as every part of a record must be.
func even(b []byte) []byte {
	if len(b)%2 != 0 {
		b = append(b, 0)
	}
	return b
}

// primaryDirectory is a directory as Rock Ridge and plain readers see it.
func primaryDirectory(f folder, folders []folder, nodes []node) []byte {
	root, links := folders[0].primary, uint32(2)
	inside := map[string][]byte{}
	if f.name == "" {
		for _, d := range folders[1:] {
			links++ // its ..
			use := append(rockRidgeName(d.name), rockRidgeMode(0o040555, 2)...)
			inside[d.plain] = record(d.plain, d.primary, flagDirectory, use)
		}
	}
	for _, n := range nodes {
		if n.folder == f.name {
			use := append(rockRidgeName(n.base), rockRidgeMode(0o100444, 1)...)
			inside[n.plain] = record(n.plain, n.extent(), 0, use)
		}
	}
	self := rockRidgeMode(0o040555, links)
	if f.name == "" {
		self = slices.Concat(rockRidgeBegin(), self, rockRidgeExtension())
	}
	parent := uint32(len(folders)) + 1
	records := [][]byte{record("\x00", f.primary, flagDirectory, self), record("\x01", root, flagDirectory, rockRidgeMode(0o040555, parent))}
	for _, plain := range slices.Sorted(maps.Keys(inside)) {
		records = append(records, inside[plain])
	}
	return directoryExtent(records)
}

// jolietDirectory is a directory as Joliet's readers see it.
func jolietDirectory(f folder, folders []folder, nodes []node) []byte {
	records := [][]byte{record("\x00", f.joliet, flagDirectory, nil), record("\x01", folders[0].joliet, flagDirectory, nil)}
	inside := map[string][]byte{}
	if f.name == "" {
		for _, d := range folders[1:] {
			inside[d.name] = record(d.identifier(true), d.joliet, flagDirectory, nil)
		}
	}
	for _, n := range nodes {
		if n.folder == f.name {
			inside[n.base] = record(string(ucs2(n.base)), n.extent(), 0, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		records = append(records, inside[name])
	}
	return directoryExtent(records)
}

func (n node) extent() extent { return extent{n.sector, uint32(len(n.Data))} }

// directoryExtent joins records; none may cross a sector's end.
func directoryExtent(records [][]byte) []byte {
	var b []byte
	for _, r := range records {
		if room := sectorSize - len(b)%sectorSize; len(r) > room {
			b = append(b, make([]byte, room)...)
		}
		b = append(b, r...)
	}
	return append(b, make([]byte, int(sectors(len(b)))*sectorSize-len(b))...)
}

// Entries of the System Use Sharing Protocol and of Rock Ridge.

// rockRidgeBegin marks the root's first record: these areas are in use.
func rockRidgeBegin() []byte { return []byte{'S', 'P', 7, 1, 0xbe, 0xef, 0} }

// rockRidgeExtension names Rock Ridge, with the optional texts left empty.
func rockRidgeExtension() []byte {
	const id = "RRIP_1991A"
	return append([]byte{'E', 'R', 8 + byte(len(id)), 1, byte(len(id)), 0, 0, 1}, id...)
}

// rockRidgeMode gives owner root, and the mode and link count.
func rockRidgeMode(mode, links uint32) []byte {
	return slices.Concat([]byte{'P', 'X', 36, 1}, both32(mode), both32(links), both32(0), both32(0))
}

func rockRidgeName(name string) []byte {
	return append([]byte{'N', 'M', 5 + byte(len(name)), 1, 0}, name...)
}
