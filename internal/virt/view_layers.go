package virt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// layer is an image that another one lies over.
type layer struct {
	file   string // "" if there is none, or it is no file
	format string // "" if the one above does not say
}

// MissingBelow follows the backing files of an image and returns the first that
// is gone, "" if none is known to be.
func (v *View) MissingBelow(ctx context.Context, name, format string) string {
	seen := map[string]bool{}
	for at := (layer{path.Clean(name), format}); at.file != "" && at.format != "raw" && !seen[at.file]; {
		seen[at.file] = true
		at = v.under(ctx, at.file).layer
		if at.file != "" && v.File(ctx, at.file) == Gone {
			return at.file
		}
	}
	return ""
}

// Below lists the backing files of an image, from the one right below it down.
// unread is the image at which the list ends though it may go on, as nobody
// could say what that one lies over; "" if the list is complete. An image that is
// gone lies over nothing.
func (v *View) Below(ctx context.Context, name, format string) (files []string, unread string) {
	at := layer{path.Clean(name), format}
	for seen := []string{}; at.format != "raw" && !slices.Contains(seen, at.file); {
		seen = append(seen, at.file)
		found := v.under(ctx, at.file)
		if found.unread {
			return seen[1:], at.file
		}
		if at = found.layer; at.file == "" {
			return seen[1:], ""
		}
		files = append(slices.Clone(seen[1:]), at.file)
	}
	return files, ""
}

// reading is what is known of what an image lies over.
type reading struct {
	layer
	unread bool // it may lie over another one, and nobody could say over which
}

// under reads which image another one lies over: in its header, if this process
// can, else as libvirt tells it of a pool's volume. That is what was there at the
// pool's last refresh: after a commit or a rebase it may be over, and the file
// rightly gone. So before libvirt's word makes an alarm the header is fetched.
func (v *View) under(ctx context.Context, name string) reading {
	r, err := v.below.get(name, v.writes.Load(), func() (reading, error) {
		whole, broken := false, false // what the header that was read is: of no overlay, or of one that cannot be
		if v.local(ctx) {
			head, err := patiently(ctx, v, func() []byte { return headOf(name) })
			if l, ok := overlay(head, name); ok {
				return reading{layer: l}, nil
			}
			if err != nil {
				return reading{unread: true}, err
			}
			whole, broken = head != nil && !mayLieOver(head), bytes.HasPrefix(head, []byte(qcow))
		}
		f := v.file(ctx, name, false)
		if f.volume == nil {
			var err error
			f, err = patiently(ctx, v, func() file {
				if _, volume := v.inPool(ctx, name); volume != nil {
					return v.look(ctx, volume)
				}
				return file{}
			})
			if err != nil {
				return reading{unread: !whole}, err
			}
		}
		if f.presence == Unknown { // no pool lists it, or its volume cannot be read
			return reading{unread: !whole && v.File(ctx, name) != Gone}, nil
		}
		if f.below.file == "" || v.File(ctx, f.below.file) != Gone {
			return reading{f.below, broken && f.below.file == ""}, nil
		}
		head, err := patiently(ctx, v, func() []byte {
			var head bytes.Buffer
			if err := f.volume.Download(ctx, &head, 0, headLength); err != nil {
				return nil
			}
			return head.Bytes()
		})
		l, ok := overlay(head, name)
		return reading{l, !ok && (head == nil || mayLieOver(head))}, err
	})
	if err != nil {
		r.unread = true
	}
	return r
}

// headLength is what is read of an image: QEMU writes the name of the backing
// file right after the header and its extensions.
const headLength = 64 << 10

// headOf reads the head of a file, nil if it cannot.
func headOf(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, headLength)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil
	}
	return head[:n]
}

const qcow = "QFI\xfb" // how an image in the format qcow or qcow2 begins

// mayLieOver says whether a head is that of a format that has backing files: qcow
// and qcow2, QED, VMDK. An image without a head has none.
func mayLieOver(head []byte) bool {
	for _, magic := range []string{qcow, "QED\x00", "KDMV", "COWD", "# Disk DescriptorFile"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// overlay finds the backing file in the head of an image. ok is false if the head
// does not say, as that of a format that is not known here.
// https://www.qemu.org/docs/master/interop/qcow2.html
func overlay(head []byte, name string) (below layer, ok bool) {
	const short, long = 72, 104 // headers of version 2 and 3
	if len(head) < short || !bytes.HasPrefix(head, []byte(qcow)) {
		return layer{}, false
	}
	offset, size := binary.BigEndian.Uint64(head[8:]), uint64(binary.BigEndian.Uint32(head[16:]))
	if offset == 0 || size == 0 {
		return layer{}, true
	}
	if offset > uint64(len(head)) || size > uint64(len(head))-offset {
		return layer{}, false
	}
	below.file = strings.TrimPrefix(string(head[offset:offset+size]), "file:")
	if description, isJSON := strings.CutPrefix(below.file, "json:"); isJSON {
		if below.file = fileIn(description); below.file == "" {
			return layer{}, true
		}
	}
	if before, _, isURL := strings.Cut(below.file, ":"); isURL && !strings.Contains(before, "/") {
		return layer{}, true // nbd://…: no file by its name
	}
	if !path.IsAbs(below.file) {
		below.file = path.Join(path.Dir(name), below.file)
	}
	below.file = path.Clean(below.file)

	extensions := uint64(short)
	if binary.BigEndian.Uint32(head[4:]) >= 3 && len(head) >= long {
		extensions = uint64(binary.BigEndian.Uint32(head[100:]))
	}
	below.format = formatIn(head, extensions)
	return below, true
}

// fileIn finds the file in QEMU's description of an image in JSON: nested, or with
// dots in the keys.
func fileIn(description string) string {
	var image map[string]any
	if json.Unmarshal([]byte(description), &image) != nil {
		return ""
	}
	for at := image; at != nil; at, _ = at["file"].(map[string]any) {
		for _, key := range []string{"filename", "file.filename", "file.file.filename"} {
			if name, _ := at[key].(string); path.IsAbs(name) {
				return name
			}
		}
	}
	return ""
}

// formatIn finds the format of the backing file in the extensions of a header.
func formatIn(head []byte, at uint64) string {
	const backingFormat = 0xe2792aca
	for at+8 <= uint64(len(head)) {
		kind, size := binary.BigEndian.Uint32(head[at:]), uint64(binary.BigEndian.Uint32(head[at+4:]))
		at += 8
		if kind == 0 || size > uint64(len(head))-at {
			break
		}
		if kind == backingFormat {
			return string(head[at : at+size])
		}
		at += (size + 7) &^ 7
	}
	return ""
}
