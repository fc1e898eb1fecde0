package virt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"libvirt.org/go/libvirt"
)

// chunk is about what one message of a stream holds.
const chunk = 256 * 1024

// sparseSince is the first libvirt that sends holes as holes.
const sparseSince = Version(3004000)

// StreamOption is an option of Upload and Download.
type StreamOption func(*streamOptions)

type streamOptions struct {
	sparse   bool
	progress func(done uint64)
}

// Sparse transfers long runs of zeros as holes. The volume, or the file, reads
// the same as without; it takes less time and less space.
func Sparse(o *streamOptions) { o.sparse = true }

// Progress is called after every chunk with the bytes done so far, holes
// included.
func Progress(f func(done uint64)) StreamOption {
	return func(o *streamOptions) { o.progress = f }
}

func streamSettings(options []StreamOption) streamOptions {
	o := streamOptions{progress: func(uint64) {}}
	for _, option := range options {
		option(&o)
	}
	return o
}

// Upload writes what r holds into the volume from offset on: exactly length
// bytes, or all there is if length is 0. The rest of the volume stays as it is.
//
// An upload holds a connection, and other changes of the pool wait for it. The
// context is looked at between chunks. If it ends, or r or the host fails, what
// was written so far remains.
func (v *Volume) Upload(ctx context.Context, r io.Reader, offset, length uint64, options ...StreamOption) error {
	o := streamSettings(options)
	return v.host.exclusively(ctx, v.pool, func() error {
		return v.stream(ctx, Call{"upload to volume", v.name, true}, func(s *session, vol *libvirt.StorageVol, st *libvirt.Stream) error {
			out := &sender{stream: st, position: offset}
			var flags libvirt.StorageVolUploadFlags
			end := length
			if sparse, err := o.sparseWith(s); err != nil {
				return err
			} else if sparse {
				if err := out.findHoles(vol); err != nil {
					return err
				}
				// The daemon must not stop at length: finish may have to go further.
				flags, end = libvirt.STORAGE_VOL_UPLOAD_SPARSE_STREAM, 0
			}
			if err := vol.Upload(st, offset, end, flags); err != nil {
				return err
			}
			if err := copyTo(ctx, out, newSource(r, length), length, o); err != nil {
				return err
			}
			return out.finish()
		})
	})
}

func (o *streamOptions) sparseWith(s *session) (bool, error) {
	if !o.sparse {
		return false, nil
	}
	v, err := s.version()
	return v >= sparseSince, err
}

// copyTo copies until the source ends, and checks that it did not end early.
func copyTo(ctx context.Context, out *sender, from *source, length uint64, o streamOptions) error {
	var done uint64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		hole, data, err := from.next()
		if err == nil {
			err = out.zeros(hole)
		}
		if err == nil {
			err = out.data(data)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		done += hole + uint64(len(data))
		o.progress(done)
	}
	if done < length {
		return fmt.Errorf("the content ended after %d of %d bytes", done, length)
	}
	return nil
}

// Download reads the volume from offset on into w: length bytes, or up to the
// end if length is 0. A download holds a connection. The context is looked at
// between chunks.
func (v *Volume) Download(ctx context.Context, w io.Writer, offset, length uint64, options ...StreamOption) error {
	o := streamSettings(options)
	return v.stream(ctx, Call{"download volume", v.name, false}, func(s *session, vol *libvirt.StorageVol, st *libvirt.Stream) error {
		version, err := s.version()
		if err != nil {
			return err
		}
		// Holes need not travel, whatever w makes of them.
		var flags libvirt.StorageVolDownloadFlags
		if version >= sparseSince {
			flags = libvirt.STORAGE_VOL_DOWNLOAD_SPARSE_STREAM
		}
		if err := vol.Download(st, offset, length, flags); err != nil {
			return err
		}
		to := &sink{w: w}
		if file, ok := w.(*os.File); ok && o.sparse {
			to.file = file
		}
		return receive(ctx, st, to, o)
	})
}

// inHole is what the binding's RecvFlags returns as a number of bytes where a
// hole begins.
const inHole = -3

func receive(ctx context.Context, st *libvirt.Stream, to *sink, o streamOptions) error {
	buffer := make([]byte, chunk)
	var done uint64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := st.RecvFlags(buffer, libvirt.STREAM_RECV_STOP_AT_HOLE)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == inHole:
			hole, err := st.RecvHole(0)
			if err != nil {
				return err
			}
			if err := to.hole(hole); err != nil {
				return fmt.Errorf("write the content: %w", err)
			}
			done += uint64(hole)
		default:
			if _, err := to.w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("write the content: %w", err)
			}
			done += uint64(n)
		}
		o.progress(done)
	}
}

// stream runs f with an open stream, which it finishes or aborts.
func (v *Volume) stream(ctx context.Context, c Call, f func(*session, *libvirt.StorageVol, *libvirt.Stream) error) error {
	select {
	case v.host.streams <- struct{}{}:
		defer func() { <-v.host.streams }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", c, ctx.Err())
	}
	return v.host.do(ctx, c, false, func(s *session) error {
		st, err := s.conn.NewStream(0)
		if err != nil {
			return err
		}
		defer func() { _ = st.Free() }()
		return v.on(func(vol *libvirt.StorageVol) error {
			if err := f(s, vol, st); err != nil {
				_ = st.Abort()
				return err
			}
			return st.Finish()
		})(s)
	})
}
