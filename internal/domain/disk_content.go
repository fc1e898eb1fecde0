package domain

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A disk that is given another path is meant to be moved, with what is on it. If
// somebody forgot to, or the core made the new volume in the same apply, the guest
// finds an empty disk at its next start; some install themselves anew onto it. So
// an update that moves a disk looks at both volumes, by reading through libvirt as
// little as tells, and refuses if the old one holds data and the new one none.

// content is what is known of the content of a volume.
type content int

const (
	unclear content = iota
	empty
	data
)

// headSize is how much of a disk, as the guest sees it, is looked at. Partition
// tables, file systems, volume groups and encrypted disks all begin there.
const headSize = 1 << 20

// reading reads bytes of a volume, as they lie on the host: length of them, or
// less at the end.
type reading func(offset, length uint64) ([]byte, error)

// contentOf looks at a volume of a size and an allocation in bytes.
func contentOf(read reading, size, allocation uint64) content {
	if allocation == 0 {
		return empty // whatever it is, nothing was ever written
	}
	head, err := read(0, min(size, qcow2Header))
	if err != nil {
		return unclear
	}
	if bytes.HasPrefix(head, []byte(qcow2Magic)) {
		return contentOfQcow2(read, head)
	}
	if head, err = read(0, min(size, headSize)); err != nil {
		return unclear
	}
	return ofBytes(head)
}

func ofBytes(b []byte) content {
	switch {
	case len(b) == 0:
		return unclear
	case isZero(b):
		return empty
	}
	return data
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// https://www.qemu.org/docs/master/interop/qcow2.html
const (
	qcow2Magic  = "QFI\xfb"
	qcow2Header = 104
	qcow2Offset = 0x00fffffffffffe00 // where a table or a cluster is, in an entry
	qcow2Zero   = 1                  // an entry of a cluster that reads as zeros
	qcow2Packed = 1 << 62            // an entry of a cluster that is compressed
)

// contentOfQcow2 looks at an image. One over another shows what that holds, and
// is not empty.
func contentOfQcow2(read reading, head []byte) content {
	if len(head) < 72 {
		return unclear
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(head[i:]) }
	bits, l1Size, l1 := binary.BigEndian.Uint32(head[20:]), uint64(binary.BigEndian.Uint32(head[36:])), at(40)
	const dirtyOrCorrupt = 3 // of the features that a reader must know, those that change no table
	switch {
	case at(8) != 0:
		return data
	case binary.BigEndian.Uint32(head[32:]) != 0: // encrypted
		return unclear
	case binary.BigEndian.Uint32(head[4:]) >= 3 && (len(head) < qcow2Header || at(72)&^dirtyOrCorrupt != 0):
		return unclear
	case bits < 9 || bits > 21 || l1Size == 0:
		return unclear
	}
	// The beginning of a large table is enough to find data; to find none takes all
	// of it.
	table, err := read(l1, min(l1Size*8, headSize))
	switch {
	case err != nil || len(table) < 8:
		return unclear
	case isZero(table) && l1Size*8 <= headSize:
		return empty
	case isZero(table[:8]):
		return unclear // what is written lies far from the beginning
	}
	return firstOfQcow2(read, binary.BigEndian.Uint64(table), uint64(1)<<bits)
}

// firstOfQcow2 looks at the first clusters of an image, as the guest sees it. l1
// is the first entry of the table of tables, which is not empty.
func firstOfQcow2(read reading, l1, cluster uint64) content {
	n := min(max(1, headSize/cluster), cluster/8)
	table, err := read(l1&qcow2Offset, n*8)
	if err != nil || uint64(len(table)) < n*8 {
		return unclear
	}
	for i := range n {
		switch entry := binary.BigEndian.Uint64(table[i*8:]); {
		case entry&qcow2Packed != 0:
			return data
		case entry&qcow2Zero != 0, entry&qcow2Offset == 0:
		default:
			part, err := read(entry&qcow2Offset, min(cluster, headSize))
			if err != nil {
				return unclear
			}
			if !isZero(part) {
				return data
			}
		}
	}
	return empty
}

// holdsData looks at a volume. What storage does not answer in time is unclear.
func (k *Kind) holdsData(ctx context.Context, vol *virt.Volume) content {
	info, err := asked(ctx, k, func() (virt.VolumeInfo, error) { return vol.Info(ctx) })
	if err != nil {
		return unclear
	}
	read := func(offset, length uint64) ([]byte, error) {
		return asked(ctx, k, func() ([]byte, error) {
			var out bytes.Buffer
			err := vol.Download(ctx, &out, offset, length)
			return out.Bytes(), err
		})
	}
	return contentOf(read, max(info.Capacity, info.Allocation), info.Allocation)
}

// refuseEmptied finds the disks that an update leads from a volume with data to
// an empty one. A disk is the same disk of the guest by its target; media that are
// changed are meant to be others. Whatever libvirt cannot tell is no reason.
func (k *Kind) refuseEmptied(ctx context.Context, f flight, wanted tree.Value) []kind.Problem {
	var problems []kind.Problem
	for _, disk := range wanted.At("devices.disks").Elems() {
		was := diskLike(f.before, disk)
		if was.IsNull() || isOn(disk, "cdrom", "floppy") || isOn(was, "cdrom", "floppy") || tree.Equal(was.Attr("source"), disk.Attr("source")) {
			continue
		}
		from, err := k.volumeOf(ctx, was)
		if err != nil || from == nil {
			continue
		}
		to, err := k.volumeOf(ctx, disk)
		if err != nil || to == nil || to.Key() == from.Key() || k.stillNamed(ctx, wanted, from) {
			continue
		}
		if k.holdsData(ctx, to) != empty || k.holdsData(ctx, from) != data {
			continue
		}
		target, at := disk.At("target.dev").Str(), sourceRef(disk).path(f.inConfig)
		problems = append(problems, kind.Problem{
			Path:    at,
			Summary: fmt.Sprintf("Disk %s of domain %q would be empty", target, f.name),
			Detail: fmt.Sprintf("%s leads to %s, which holds data, and would lead to %s, which is empty: the guest would find nothing on it at its next start. Nothing was changed. "+
				"The way out: write the data to %s first (with create.content of its libvirt_volume, or with qemu-img convert while the guest is off). "+
				"If an empty disk is wanted, take disk %s out of the configuration in one apply, and add it with its new source in the next.", at, from.Path(), to.Path(), to.Path(), target),
		})
	}
	return problems
}

// sourceRef is the reference to what a disk reads.
func sourceRef(disk tree.Value) reference {
	ref := reference{list: "devices.disks", key: disk.At("target.dev").Str()}
	for _, leaf := range []string{"source.file.file", "source.block.dev", "source.volume.volume"} {
		if v := disk.At(leaf).Str(); v != "" {
			ref.leaf, ref.value = leaf, v
		}
	}
	return ref
}

// stillNamed says whether some disk of a definition leads to a volume, so that
// its data are only called otherwise.
func (k *Kind) stillNamed(ctx context.Context, definition tree.Value, vol *virt.Volume) bool {
	for _, disk := range definition.At("devices.disks").Elems() {
		for _, leaf := range []string{"source.file.file", "source.block.dev"} {
			if file := disk.At(leaf).Str(); file != "" && path.Clean(file) == vol.Path() {
				return true
			}
		}
		if disk.At("source.volume.pool").Str() == "" {
			continue
		}
		if other, err := k.volumeOf(ctx, disk); err == nil && other != nil && other.Key() == vol.Key() {
			return true
		}
	}
	return false
}
