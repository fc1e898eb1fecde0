package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// content is what a volume is filled with, as a file on this machine: content
// from the network is fetched whole before a volume is made, so that a broken
// transfer leaves nothing behind.
type content struct {
	shown       string // where it comes from, fit for messages and logs
	file        *os.File
	size        uint64 // bytes of the file
	virtualSize uint64 // bytes of the disk that the guest sees
	format      string // qcow2 or raw
	packed      string // the program it is packed with, "" if it is not
	temporary   bool
	weakened    bool // it was asked for by https, and came by http
}

var checksumForm = regexp.MustCompile(`^sha256:[0-9a-fA-F]{64}$`)

func isChecksum(s string) bool { return checksumForm.MatchString(s) }

// checkURL says whether content can be read from there at all.
func checkURL(text string) error {
	if text == "" {
		return errors.New("the url is empty")
	}
	scheme, _, found := strings.Cut(text, "://")
	if !found || filepath.IsAbs(text) {
		return nil // a path
	}
	u, err := url.Parse(text)
	switch strings.ToLower(scheme) {
	case "http", "https":
		if err != nil || u.Host == "" {
			return fmt.Errorf("%s is not a URL", scheme+"://…")
		}
		return nil
	case "file":
		if err != nil || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
			return fmt.Errorf("%s has no absolute path: file:///directory/file; or just the path", shown(text))
		}
		return nil
	}
	return fmt.Errorf("the scheme %q is unknown; it takes http, https, file, or a path", scheme)
}

// open makes the content available, and checks it if there is a checksum. Content
// of more than limit bytes is refused, and not fetched; 0: any size will do.
func open(ctx context.Context, source, checksum string, limit uint64) (*content, error) {
	c := &content{shown: shown(source)}
	if err := checkURL(source); err != nil {
		return nil, err
	}
	u, parseErr := url.Parse(source)
	_, _, isURL := strings.Cut(source, "://")
	var err error
	switch {
	case !isURL || filepath.IsAbs(source) || parseErr != nil:
		c.file, err = os.Open(source)
	case u.Scheme == "file":
		c.file, err = os.Open(u.Path)
	default:
		c.temporary = true
		c.file, c.weakened, err = fetch(ctx, source, limit)
	}
	if err != nil {
		return nil, err
	}
	if err := c.inspect(ctx, checksum, limit); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// shown is a source without what may be secret in a URL: a user name, which may be
// a token, a password, and the query, which is where signatures are.
func shown(source string) string {
	if u, err := url.Parse(source); err == nil && u.Host != "" {
		source = u.String() // in which no blank ends the URL
	}
	return kind.HideCredentials(source)
}

// close ends the use of the content.
func (c *content) close() {
	_ = c.file.Close()
	if c.temporary {
		_ = os.Remove(c.file.Name())
	}
}

// tooLarge says that content has more bytes than what it is for.
func tooLarge(shown string, limit uint64) error {
	return fmt.Errorf("%s has more than the %d bytes that a seed may have", shown, limit)
}

// inspect finds out size and format, and compares the checksum.
func (c *content) inspect(ctx context.Context, checksum string, limit uint64) error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", c.shown)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", c.shown)
	case limit > 0 && uint64(info.Size()) > limit:
		return tooLarge(c.shown, limit)
	}
	c.size = uint64(info.Size())
	header := make([]byte, headerSize)
	n, err := io.ReadFull(c.file, header)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read %s: %w", c.shown, err)
	}
	if err := c.probe(header[:n]); err != nil {
		return err
	}
	if checksum != "" {
		if err := c.compare(ctx, checksum); err != nil {
			return err
		}
	}
	_, err = c.file.Seek(0, io.SeekStart)
	return err
}

func (c *content) compare(ctx context.Context, checksum string) error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	read := &interruptible{ctx: ctx, from: c.file}
	stop := telling(ctx, "computing the checksum", func() map[string]any {
		return map[string]any{"content": c.shown, "done": mebibytes(read.done.Load()), "of": mebibytes(c.size)}
	})
	_, err := io.Copy(h, read)
	stop()
	if err != nil {
		return fmt.Errorf("read %s: %w", c.shown, err)
	}
	if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, checksum) {
		return fmt.Errorf("%s has the checksum %s, not %s as create.content.checksum says", c.shown, got, checksum)
	}
	return nil
}

// interruptible reads until its context ends, and counts.
type interruptible struct {
	ctx  context.Context
	from io.Reader
	done atomic.Uint64
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	r.done.Add(uint64(n))
	return n, err
}

// headerSize is that of a qcow2 header of version 3.
const headerSize = 104

// packers are the first bytes of packed files.
var packers = map[string]string{"\x1f\x8b": "gzip", "\xfd7zXZ\x00": "xz", "\x28\xb5\x2f\xfd": "zstd", "BZh": "bzip2", "PK\x03\x04": "zip"}

// probe learns from the first bytes what the content is.
// https://www.qemu.org/docs/master/interop/qcow2.html
func (c *content) probe(header []byte) error {
	c.virtualSize, c.format = c.size, "raw"
	for magic, packer := range packers {
		if bytes.HasPrefix(header, []byte(magic)) {
			c.packed = packer
		}
	}
	if !bytes.HasPrefix(header, []byte("QFI\xfb")) {
		return nil
	}
	const short = 72 // a header of version 2
	if len(header) < short {
		return fmt.Errorf("%s begins like a qcow2 image, and ends after %d bytes", c.shown, c.size)
	}
	version := binary.BigEndian.Uint32(header[4:])
	backing := binary.BigEndian.Uint64(header[8:])
	clusterBits := binary.BigEndian.Uint32(header[20:])
	virtual := binary.BigEndian.Uint64(header[24:])
	firstTable := binary.BigEndian.Uint64(header[40:])
	firstTableSize := uint64(binary.BigEndian.Uint32(header[36:])) * 8
	refcounts := binary.BigEndian.Uint64(header[48:])
	var features uint64
	if version >= 3 && len(header) >= headerSize {
		features = binary.BigEndian.Uint64(header[72:])
	}
	const externalData = 1 << 2
	switch {
	case version != 2 && version != 3, clusterBits < 9, clusterBits > 21, virtual == 0, virtual > 1<<62:
		return fmt.Errorf("%s begins like a qcow2 image, but its header makes no sense (version %d, clusters of 2^%d bytes, %d bytes in all)", c.shown, version, clusterBits, virtual)
	case firstTable > c.size, firstTableSize > c.size-firstTable, refcounts > c.size:
		return fmt.Errorf("%s begins like a qcow2 image, but ends after %d bytes, before the tables that its header names: it is cut off, or was never complete", c.shown, c.size)
	case backing != 0:
		// Such a file reads whatever file of the host it names.
		return fmt.Errorf("%s is an overlay over another file, which is named in it and does not come along; make it whole (qemu-img convert), or use backing_store", c.shown)
	case features&externalData != 0:
		return fmt.Errorf("%s keeps its data in another file, which is named in it and does not come along; make it whole (qemu-img convert)", c.shown)
	}
	c.format, c.virtualSize = "qcow2", virtual
	return nil
}

// mebibytes renders a size for the log, which writes large numbers as powers.
func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", n>>20) }

// upload writes the content into the new volume, holes as holes.
func (c *content) upload(ctx context.Context, vol *virt.Volume) error {
	var written atomic.Uint64
	defer telling(ctx, "uploading", func() map[string]any {
		return map[string]any{"volume": vol.Name(), "done": mebibytes(written.Load()), "of": mebibytes(c.size)}
	})()
	return vol.Upload(ctx, c.file, 0, c.size, virt.Sparse, virt.Progress(written.Store))
}
