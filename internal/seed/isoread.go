package seed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// Limits of what is read from an image. They bound memory and time whatever
// the bytes say; seeds are far below them.
const (
	maxReadContent    = 16 << 20 // sum of all file sizes
	maxReadFiles      = 1000
	maxReadDirs       = 100
	maxReadDirectory  = 256 << 10 // one directory's extent
	maxReadDepth      = 8
	maxDescriptors    = 64
	maxContinuation   = 8 // areas chained to one record
	recordHeader      = 33
	flagMultiExtent   = 0x80
	flagAssociated    = 4
	modeTypeMask      = 0o170000
	modeRegular       = 0o100000
	modeDirectory     = 0o040000
	continuationBytes = sectorSize
)

// ErrFormat is wrapped by every complaint about the bytes of an image, as
// opposed to a failure to read them.
var ErrFormat = errors.New("not an ISO 9660 image that can be compared")

func malformed(format string, args ...any) error {
	return fmt.Errorf("read ISO image: %s: %w", fmt.Sprintf(format, args...), ErrFormat)
}

// ReadISO reads the label and the files of an ISO 9660 image of the given size
// in bytes, by whatever program it was written: by their Rock Ridge names if it
// has them, else by the Joliet ones, else by the plain ones, which is how a
// guest would choose. Names of files in directories contain slashes. What a
// seed cannot be (links, devices, more than 16 MiB) is an error.
func ReadISO(r io.ReaderAt, size int64) (Seed, error) {
	im := &image{r: r, size: size, dirs: map[uint32]bool{}, names: map[string]bool{}}
	label, root, joliet, err := im.descriptors()
	if err != nil {
		return Seed{}, err
	}
	self, err := im.selfRecord(root)
	if err != nil {
		return Seed{}, err
	}
	im.scheme = plain
	if skip, ok := rockRidge(self.systemUse); ok {
		im.scheme, im.skip = rock, skip
	} else if joliet != nil {
		im.scheme, root = ucs, *joliet
	}
	if err := im.readDirectory("", root, 0); err != nil {
		return Seed{}, err
	}
	return Seed{Label: label, Files: im.files}, nil
}

// scheme says where the names are.
type scheme int

const (
	plain scheme = iota
	ucs
	rock
)

type image struct {
	r      io.ReaderAt
	size   int64
	scheme scheme
	skip   int // bytes before the entries in a system use area

	files   []File
	content int
	dirs    map[uint32]bool // begun: a directory that contains itself ends there
	names   map[string]bool
}

// read returns size bytes at a position that was checked to lie in the image.
func (im *image) read(at int64, size int) ([]byte, error) {
	if at < 0 || size < 0 || at > im.size-int64(size) {
		return nil, malformed("bytes %d to %d lie beyond its end", at, at+int64(size))
	}
	b := make([]byte, size)
	if n, err := im.r.ReadAt(b, at); n < size {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, malformed("it ends within bytes %d to %d", at, at+int64(size))
		}
		return nil, fmt.Errorf("read ISO image: %w", err)
	}
	return b, nil
}

func (im *image) extent(e extent) ([]byte, error) {
	return im.read(int64(e.sector)*sectorSize, int(e.size))
}

// descriptors reads the volume descriptors: the label and the root directory,
// and the Joliet root if there is one.
func (im *image) descriptors() (label string, root extent, joliet *extent, err error) {
	found := false
	for n := range maxDescriptors {
		d, err := im.read(int64(systemSectors+n)*sectorSize, sectorSize)
		if err != nil {
			return "", root, nil, err
		}
		if !bytes.Equal(d[1:6], []byte(standardID)) {
			return "", root, nil, malformed("sector %d is no volume descriptor", systemSectors+n)
		}
		if d[0] == descriptorTerminator {
			break
		}
		if d[0] != descriptorPrimary && d[0] != descriptorSupplementary {
			continue
		}
		if bs := binary.LittleEndian.Uint16(d[128:]); bs != sectorSize {
			return "", root, nil, malformed("blocks of %d bytes", bs)
		}
		at := extent{binary.LittleEndian.Uint32(d[158:]), binary.LittleEndian.Uint32(d[166:])}
		switch {
		case d[0] == descriptorPrimary && !found:
			label, root, found = strings.TrimRight(string(d[40:72]), " \x00"), at, true
		case d[0] == descriptorSupplementary && isJoliet(d[88:120]):
			joliet = &at
		}
	}
	if !found {
		return "", root, nil, malformed("no primary volume descriptor")
	}
	return label, root, joliet, nil
}

func isJoliet(escapes []byte) bool {
	for _, level := range []string{"%/@", "%/C", "%/E"} {
		if bytes.HasPrefix(escapes, []byte(level)) {
			return true
		}
	}
	return false
}

// entry is one decoded directory record.
type entry struct {
	id        []byte
	at        extent
	flags     byte
	systemUse []byte
}

// decodeRecord reads the record at the beginning of b.
func decodeRecord(b []byte) (entry, error) {
	length := int(b[0])
	if length < recordHeader+1 || length > len(b) {
		return entry{}, malformed("a directory record of %d bytes", length)
	}
	b = b[:length]
	name := int(b[32])
	if name == 0 || recordHeader+name > length {
		return entry{}, malformed("a name of %d bytes in a directory record of %d", name, length)
	}
	if b[26] != 0 || b[27] != 0 {
		return entry{}, malformed("an interleaved file")
	}
	e := entry{
		id:    b[recordHeader : recordHeader+name],
		at:    extent{binary.LittleEndian.Uint32(b[2:]) + uint32(b[1]), binary.LittleEndian.Uint32(b[10:])},
		flags: b[25],
	}
	if rest := b[recordHeader+name:]; name%2 == 0 && len(rest) > 0 {
		e.systemUse = rest[1:]
	} else {
		e.systemUse = rest
	}
	return e, nil
}

// selfRecord returns the first record of the root: it tells whether the image
// has Rock Ridge.
func (im *image) selfRecord(root extent) (entry, error) {
	if root.size < recordHeader+1 {
		return entry{}, malformed("a root directory of %d bytes", root.size)
	}
	b, err := im.extent(extent{root.sector, min(root.size, sectorSize)})
	if err != nil {
		return entry{}, err
	}
	return decodeRecord(b)
}

// readDirectory adds what the directory holds. prefix ends with a slash, or is
// empty.
func (im *image) readDirectory(prefix string, at extent, depth int) error {
	if at.size > maxReadDirectory || depth > maxReadDepth || len(im.dirs) >= maxReadDirs {
		return malformed("more or larger directories than a seed has")
	}
	if im.dirs[at.sector] {
		return malformed("directory %q contains itself", prefix)
	}
	im.dirs[at.sector] = true
	b, err := im.extent(at)
	if err != nil {
		return err
	}
	for pos := 0; pos < len(b); {
		if b[pos] == 0 { // the rest of this sector is unused
			pos = (pos/sectorSize + 1) * sectorSize
			continue
		}
		e, err := decodeRecord(b[pos:])
		if err != nil {
			return err
		}
		pos += int(b[pos])
		if len(e.id) == 1 && e.id[0] <= 1 { // itself and its parent
			continue
		}
		if err := im.add(prefix, e, depth); err != nil {
			return err
		}
	}
	return nil
}

// add reads one entry of a directory.
func (im *image) add(prefix string, e entry, depth int) error {
	if e.flags&flagAssociated != 0 {
		return nil // a fork of another entry; no guest shows it
	}
	name, mode, err := im.describe(e)
	if err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return malformed("an entry called %q", name)
	}
	name = prefix + name
	if im.names[name] {
		return malformed("two entries called %q", name)
	}
	im.names[name] = true
	directory := e.flags&flagDirectory != 0
	if kind := mode & modeTypeMask; kind != 0 && (kind != modeRegular && !directory || kind != modeDirectory && directory) {
		return malformed("%q is neither a file nor a directory", name)
	}
	if directory {
		return im.readDirectory(name+"/", e.at, depth+1)
	}
	if e.flags&flagMultiExtent != 0 || int64(e.at.size) > maxReadContent || len(im.files) >= maxReadFiles {
		return malformed("more or larger files than a seed has")
	}
	if im.content += int(e.at.size); im.content > maxReadContent {
		return malformed("more than %d MiB of files", maxReadContent>>20)
	}
	var data []byte
	if e.at.size > 0 { // an empty file may claim any sector
		if data, err = im.extent(e.at); err != nil {
			return err
		}
	}
	im.files = append(im.files, File{Name: name, Data: data})
	return nil
}

// describe returns the name of an entry by the image's scheme, and its mode, 0
// if the image does not say.
func (im *image) describe(e entry) (name string, mode uint32, err error) {
	switch im.scheme {
	case rock:
		name, mode, err = im.rockRidgeEntries(e)
		if name == "" {
			name = plainToLower(string(e.id))
		}
		return name, mode, err
	case ucs:
		units := make([]uint16, len(e.id)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(e.id[2*i:])
		}
		return withoutVersion(string(utf16.Decode(units))), 0, nil
	case plain:
	}
	return plainToLower(string(e.id)), 0, nil
}

// withoutVersion drops what follows the semicolon: "user-data;1".
func withoutVersion(id string) string {
	name, _, _ := strings.Cut(id, ";")
	return name
}

// plainToLower shows a plain identifier as Linux does: "USER_DAT.;1" is user_dat.
func plainToLower(id string) string {
	return strings.TrimSuffix(strings.ToLower(withoutVersion(id)), ".")
}
