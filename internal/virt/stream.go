package virt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"libvirt.org/go/libvirt"
)

// chunk is what one message of a stream holds at most, nearly.
const chunk = 256 * 1024

// StreamOption is an option of Upload and Download.
type StreamOption func(*streamOptions)

type streamOptions struct {
	sparse   bool
	progress func(done uint64)
}

// Sparse sends holes as holes. Upload finds them in a file by the file system,
// else by their zeros, and may only be told so for a volume that reads as zeros,
// as a new one does: a hole leaves what was there before. Download leaves holes
// in a writer that can seek.
func Sparse(o *streamOptions) { o.sparse = true }

// Progress is called after every chunk with the bytes done, holes included.
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
// bytes, or with length 0 all there is. The context is looked at between
// chunks; then, and when r or libvirt fails, what was written so far remains.
func (v *Volume) Upload(ctx context.Context, r io.Reader, offset, length uint64, options ...StreamOption) error {
	o := streamSettings(options)
	return v.host.exclusively(ctx, v.pool, func() error {
		return v.stream(ctx, Call{"upload to volume", v.name, true}, func(vol *libvirt.StorageVol, st *libvirt.Stream) error {
			var flags libvirt.StorageVolUploadFlags
			if o.sparse {
				flags = libvirt.STORAGE_VOL_UPLOAD_SPARSE_STREAM
			}
			if err := vol.Upload(st, offset, length, flags); err != nil {
				return err
			}
			return send(ctx, st, r, length, o)
		})
	})
}

// Download reads the volume from offset on into w: length bytes, or with length
// 0 up to the end.
func (v *Volume) Download(ctx context.Context, w io.Writer, offset, length uint64, options ...StreamOption) error {
	o := streamSettings(options)
	return v.stream(ctx, Call{"download volume", v.name, false}, func(vol *libvirt.StorageVol, st *libvirt.Stream) error {
		if err := vol.Download(st, offset, length, libvirt.STORAGE_VOL_DOWNLOAD_SPARSE_STREAM); err != nil {
			return err
		}
		return receive(ctx, st, w, o)
	})
}

// stream runs f with an open stream, which it finishes or aborts.
func (v *Volume) stream(ctx context.Context, c Call, f func(*libvirt.StorageVol, *libvirt.Stream) error) error {
	select {
	case v.host.streams <- struct{}{}:
		defer func() { <-v.host.streams }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", c, ctx.Err())
	}
	return v.host.call(ctx, c, func(s *session) error {
		st, err := s.conn.NewStream(0)
		if err != nil {
			return err
		}
		defer func() { _ = st.Free() }()
		return v.on(func(vol *libvirt.StorageVol) error {
			if err := f(vol, st); err != nil {
				_ = st.Abort()
				return err
			}
			return st.Finish()
		})(s)
	})
}

func send(ctx context.Context, st *libvirt.Stream, r io.Reader, length uint64, o streamOptions) error {
	source := r
	if length > 0 {
		source = io.LimitReader(r, int64(length))
	}
	buffer := make([]byte, chunk)
	var done uint64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(source, buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			sent, err := st.Send(rest)
			if err != nil {
				return err
			}
			rest = rest[sent:]
		}
		done += uint64(n)
		o.progress(done)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if done < length {
				return fmt.Errorf("the content ended after %d of %d bytes", done, length)
			}
			return nil
		default:
			return fmt.Errorf("read the content: %w", err)
		}
	}
}

func receive(ctx context.Context, st *libvirt.Stream, w io.Writer, o streamOptions) error {
	buffer := make([]byte, chunk)
	zeros := make([]byte, chunk)
	file, seeks := w.(*os.File)
	seeks = seeks && o.sparse
	var done uint64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := st.RecvFlags(buffer, libvirt.STREAM_RECV_STOP_AT_HOLE)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == -3 { // a hole
			hole, err := st.RecvHole(0)
			if err != nil {
				return err
			}
			if seeks {
				_, err = file.Seek(hole, io.SeekCurrent)
			}
			for left := hole; err == nil && !seeks && left > 0; {
				var m int
				m, err = w.Write(zeros[:min(left, chunk)])
				left -= int64(m)
			}
			if err != nil {
				return fmt.Errorf("write the content: %w", err)
			}
			done += uint64(hole)
		} else {
			if _, err := w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("write the content: %w", err)
			}
			done += uint64(n)
		}
		o.progress(done)
	}
}
