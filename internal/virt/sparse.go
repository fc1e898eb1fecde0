package virt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"

	"libvirt.org/go/libvirt"
)

// grain is the shortest run of zeros that becomes a hole.
const grain = 64 * 1024

var zeros [chunk]byte

// source yields content as holes, each followed by data.
type source struct {
	r      io.Reader
	file   *os.File // r, if it is a file whose file system tells its holes
	left   int64    // bytes wanted
	buffer []byte
}

// newSource reads length bytes, or all if length is 0.
func newSource(r io.Reader, length uint64) *source {
	s := &source{r: r, left: math.MaxInt64, buffer: make([]byte, chunk)}
	if length > 0 && length < math.MaxInt64 {
		s.left = int64(length)
	}
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			s.file = file
		}
	}
	return s
}

// next returns io.EOF, and nothing else, at the end.
func (s *source) next() (hole uint64, data []byte, err error) {
	n := min(s.skipHole(), s.left)
	s.left -= n
	size, err := io.ReadFull(s.r, s.buffer[:min(s.left, chunk)])
	s.left -= int64(size)
	switch {
	case size > 0 && errors.Is(err, io.ErrUnexpectedEOF), n > 0 && errors.Is(err, io.EOF):
		err = nil // the next time
	case s.left == 0 && size == 0 && n == 0:
		err = io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("read the content: %w", err)
	}
	return uint64(n), s.buffer[:size], err
}

// seekData is the whence with which Linux and others tell where a hole ends.
const seekData = 3

// skipHole moves a file to its next data and returns how far that was.
func (s *source) skipHole() int64 {
	if s.file == nil {
		return 0
	}
	at, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	to, err := s.file.Seek(at, seekData)
	if err != nil { // no data up to the end, or a file system that does not tell
		s.file = nil
		end, endErr := s.r.(io.Seeker).Seek(0, io.SeekEnd)
		if endErr == nil && errors.Is(err, syscall.ENXIO) && end > at {
			return end - at
		}
		_, _ = s.r.(io.Seeker).Seek(at, io.SeekStart)
		return 0
	}
	return to - at
}

// sender writes into a stream and turns zeros into holes where that is allowed.
//
// A hole that is sent does not punch one: the daemon skips the bytes, so that
// what was there stays, and makes the file end after them. So holes are sent
// only where the volume is known to read as zeros: everywhere if nothing of it
// is allocated, else behind its end. And a file that a hole made shorter gets
// its length back.
type sender struct {
	stream interface {
		Send([]byte) (int, error)
		SendHole(int64, uint32) error
	}
	position uint64 // in the volume
	holes    bool   // may be sent, from dense on
	dense    uint64
	length   uint64 // of the volume's file before
	pending  uint64 // zeros before position that are not sent yet
	sent     bool   // a hole was
}

// findHoles learns where holes may be sent.
func (t *sender) findHoles(vol *libvirt.StorageVol) error {
	used, err := vol.GetInfo()
	if err != nil {
		return err
	}
	file, err := vol.GetInfoFlags(libvirt.STORAGE_VOL_GET_PHYSICAL)
	if err != nil {
		return err
	}
	t.holes, t.length = true, file.Allocation
	if used.Allocation > 0 {
		t.dense = t.length
	}
	return nil
}

// zeros writes n zeros.
func (t *sender) zeros(n uint64) error {
	for n > 0 {
		if t.holes && t.position >= t.dense {
			t.pending += n
			t.position += n
			return nil
		}
		part := min(n, chunk)
		if t.holes {
			part = min(part, t.dense-t.position)
		}
		if err := t.send(zeros[:part]); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// data writes what may be zeros or not.
func (t *sender) data(b []byte) error {
	for len(b) > 0 {
		block := b
		if t.holes && len(b) > grain {
			block = b[:grain]
		}
		b = b[len(block):]
		var err error
		if t.holes && len(block) == grain && bytes.Equal(block, zeros[:grain]) {
			err = t.zeros(grain)
		} else {
			err = t.send(block)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *sender) send(b []byte) error {
	if err := t.flush(); err != nil {
		return err
	}
	t.position += uint64(len(b))
	for len(b) > 0 {
		n, err := t.stream.Send(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (t *sender) flush() error {
	n := t.pending
	if n == 0 {
		return nil
	}
	t.pending, t.sent = 0, true
	return t.stream.SendHole(int64(n), 0)
}

// finish sends what is pending, and lets the file be no shorter than before.
func (t *sender) finish() error {
	if (t.sent || t.pending > 0) && t.position < t.length {
		t.pending += t.length - t.position
		t.position = t.length
	}
	return t.flush()
}

// sink writes content with holes.
type sink struct {
	w    io.Writer
	file *os.File // w, if holes may stay holes
}

// hole writes n zeros, behind the end of a file as a hole.
func (s *sink) hole(n int64) error {
	if s.file != nil {
		at, err := s.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() <= at {
			if err := s.file.Truncate(at + n); err != nil {
				return err
			}
			_, err = s.file.Seek(n, io.SeekCurrent)
			return err
		}
	}
	for n > 0 {
		part := min(n, chunk)
		if _, err := s.w.Write(zeros[:part]); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
