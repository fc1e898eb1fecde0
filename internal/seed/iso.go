package seed

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The image is ISO 9660 (ECMA-119) with one directory, and carries each name
// three times, because no single place is read by every guest:
//
//   - Rock Ridge: Linux, always compiled into isofs; the BSDs,
//   - Joliet: Windows; Linux only if its kernel was built with it,
//   - the plain name, upper case without hyphens, as the standard demands.
//
// Layout, in sectors of 2,048 bytes: 16 of system area, primary descriptor,
// Joliet descriptor, terminator, four path tables (each in both byte orders),
// the primary directory, the Joliet directory, the files in the order of their
// names.

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
	plain  string // identifier in the primary directory
	sector uint32
}

// ISO returns the image. It depends on nothing but the label and the files.
func (s Seed) ISO() ([]byte, error) {
	nodes, err := s.nodes()
	if err != nil {
		return nil, err
	}
	// The sizes of directories do not depend on sector numbers: build them
	// once to measure, and again when the places are known.
	primary, joliet := primaryDirectory(nodes, extent{}), jolietDirectory(nodes, extent{})
	root := extent{sectorRoot, uint32(len(primary))}
	jolietRoot := extent{root.sector + sectors(len(primary)), uint32(len(joliet))}
	next := jolietRoot.sector + sectors(len(joliet))
	for i := range nodes {
		nodes[i].sector = next
		next += sectors(len(nodes[i].Data))
	}

	image := make([]byte, int(next)*sectorSize)
	put := func(sector uint32, b []byte) { copy(image[int(sector)*sectorSize:], b) }
	put(sectorPrimary, s.descriptor(false, root, next))
	put(sectorJoliet, s.descriptor(true, jolietRoot, next))
	put(sectorTerminator, append([]byte{descriptorTerminator}, standardID+"\x01"...))
	for i, at := range []extent{root, jolietRoot} {
		put(sectorPathTables+2*uint32(i), pathTable(binary.LittleEndian, at))
		put(sectorPathTables+2*uint32(i)+1, pathTable(binary.BigEndian, at))
	}
	put(root.sector, primaryDirectory(nodes, root))
	put(jolietRoot.sector, jolietDirectory(nodes, jolietRoot))
	for _, n := range nodes {
		put(n.sector, n.Data)
	}
	return image, nil
}

// nodes checks that the seed can be written and gives every file a plain
// identifier.
func (s Seed) nodes() ([]node, error) {
	if s.Label == "" || strings.TrimSpace(s.Label) != s.Label || len(s.Label) > maxLabel || !printableASCII(s.Label) {
		return nil, fmt.Errorf("write seed: label %q: want 1 to %d printable ASCII characters without spaces around them", s.Label, maxLabel)
	}
	total := 0
	nodes := make([]node, 0, len(s.Files))
	taken := map[string]bool{}
	for _, f := range s.sorted() {
		switch {
		case f.Name == "" || f.Name == "." || f.Name == ".." || len(f.Name) > maxName || !printableASCII(f.Name) || strings.ContainsAny(f.Name, `/\:;*?`):
			return nil, fmt.Errorf("write seed: file name %q: want 1 to %d printable ASCII characters, none of / \\ : ; * ?", f.Name, maxName)
		case taken["="+f.Name]:
			return nil, fmt.Errorf("write seed: two files are called %q", f.Name)
		}
		taken["="+f.Name] = true
		if total += len(f.Data); total > MaxContent {
			return nil, fmt.Errorf("write seed: the files are larger than %d MiB together", MaxContent>>20)
		}
		n := node{File: f, plain: plainName(f.Name, taken)}
		taken[n.plain] = true
		nodes = append(nodes, n)
	}
	return nodes, nil
}

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
	id := string(base) + ".;1"
	for n := 1; taken[id]; n++ {
		id = fmt.Sprintf("%s_%d.;1", base, n)
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
func (s Seed) descriptor(joliet bool, root extent, total uint32) []byte {
	d := make([]byte, sectorSize)
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
	copy(d[132:], both32(uint32(len(pathTable(binary.LittleEndian, root)))))
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

// pathTable lists the directories, which is the root alone.
func pathTable(order binary.AppendByteOrder, root extent) []byte {
	t := order.AppendUint32([]byte{1, 0}, root.sector)
	return append(order.AppendUint16(t, 1), 0, 0)
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

// primaryDirectory is the root as Rock Ridge and plain readers see it.
func primaryDirectory(nodes []node, self extent) []byte {
	directory := append(rockRidgeBegin(), rockRidgeMode(0o040555, 2)...)
	records := [][]byte{
		record("\x00", self, flagDirectory, append(directory, rockRidgeExtension()...)),
		record("\x01", self, flagDirectory, rockRidgeMode(0o040555, 2)),
	}
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(a, b node) int { return strings.Compare(a.plain, b.plain) }) {
		use := append(rockRidgeName(n.Name), rockRidgeMode(0o100444, 1)...)
		records = append(records, record(n.plain, n.extent(), 0, use))
	}
	return directoryExtent(records)
}

// jolietDirectory is the root as Joliet's readers see it.
func jolietDirectory(nodes []node, self extent) []byte {
	records := [][]byte{record("\x00", self, flagDirectory, nil), record("\x01", self, flagDirectory, nil)}
	for _, n := range nodes {
		records = append(records, record(string(ucs2(n.Name)), n.extent(), 0, nil))
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
