package seed

import "encoding/binary"

// rockRidge tells from the root's own record whether the system use areas hold
// entries of the System Use Sharing Protocol, and how many bytes to skip in the
// other records' areas.
func rockRidge(use []byte) (skip int, ok bool) {
	if len(use) >= 7 && use[0] == 'S' && use[1] == 'P' && use[2] == 7 && use[4] == 0xbe && use[5] == 0xef {
		return int(use[6]), true
	}
	return 0, false
}

// rockRidgeEntries collects the name and the mode of a record from its entries.
// An image that uses the protocol without giving names yields "".
func (im *image) rockRidgeEntries(e entry) (name string, mode uint32, err error) {
	use := e.systemUse[min(im.skip, len(e.systemUse)):]
	for range maxContinuation {
		var next *continuation
		// The area may end with a byte of padding; an entry has at least four.
		for len(use) >= 4 {
			length := int(use[2])
			if length < 4 || length > len(use) {
				return "", 0, malformed("a system use entry of %d bytes", length)
			}
			field := use[:length]
			use = use[length:]
			switch string(field[:2]) {
			case "NM":
				if length < 5 || field[4]&6 != 0 { // the names of . and ..
					return "", 0, malformed("a Rock Ridge name that is none")
				}
				name += string(field[5:])
			case "PX":
				if length < 12 {
					return "", 0, malformed("a Rock Ridge mode of %d bytes", length)
				}
				mode = binary.LittleEndian.Uint32(field[4:])
			case "SL", "CL", "PL", "RE", "SF", "ZF":
				return "", 0, malformed("a link, a relocated directory, or a sparse or compressed file")
			case "CE":
				if length < 28 {
					return "", 0, malformed("a continuation entry of %d bytes", length)
				}
				next = &continuation{
					sector: binary.LittleEndian.Uint32(field[4:]),
					offset: binary.LittleEndian.Uint32(field[12:]),
					size:   binary.LittleEndian.Uint32(field[20:]),
				}
			case "ST":
				use = nil
			}
		}
		if next == nil {
			return name, mode, nil
		}
		if next.size > continuationBytes || next.offset > sectorSize {
			return "", 0, malformed("a continuation area of %d bytes", next.size)
		}
		if use, err = im.read(int64(next.sector)*sectorSize+int64(next.offset), int(next.size)); err != nil {
			return "", 0, err
		}
	}
	return "", 0, malformed("more than %d continuation areas", maxContinuation)
}

// continuation says where the entries of a record go on.
type continuation struct{ sector, offset, size uint32 }
