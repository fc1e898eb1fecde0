package storage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// content is what a volume is filled with, as a file on this machine: content
// from the network is fetched whole before a volume is made, so that a broken
// transfer leaves nothing behind.
type content struct {
	source      string
	file        *os.File
	size        uint64 // bytes of the file
	virtualSize uint64 // bytes of the disk that the guest sees
	format      string // qcow2 or raw
	temporary   bool
}

// attempts is how often a transfer is tried, and pause how long after a failure.
const attempts = 4

var pause = time.Second

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
	switch scheme {
	case "http", "https", "file":
		_, err := url.Parse(text)
		return err
	}
	return fmt.Errorf("%s: the scheme %q is unknown; it takes http, https, file, or a path", text, scheme)
}

// open makes the content available, and checks it if there is a checksum.
func open(ctx context.Context, source, checksum string) (*content, error) {
	c := &content{source: source}
	var err error
	switch u, parseErr := url.Parse(source); {
	case parseErr == nil && (u.Scheme == "http" || u.Scheme == "https"):
		c.temporary = true
		c.file, err = fetch(ctx, source)
	case parseErr == nil && u.Scheme == "file":
		c.file, err = os.Open(u.Path)
	default:
		c.file, err = os.Open(source)
	}
	if err != nil {
		return nil, err
	}
	if err := c.inspect(checksum); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// close ends the use of the content.
func (c *content) close() {
	_ = c.file.Close()
	if c.temporary {
		_ = os.Remove(c.file.Name())
	}
}

// inspect finds out size and format, and compares the checksum.
func (c *content) inspect(checksum string) error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory", c.source)
	}
	c.size = uint64(info.Size())
	c.virtualSize, c.format = c.size, "raw"
	// https://www.qemu.org/docs/master/interop/qcow2.html: magic, version,
	// backing file (16 bytes), cluster bits, then the virtual size.
	var header [32]byte
	if _, err := io.ReadFull(c.file, header[:]); err == nil && string(header[:4]) == "QFI\xfb" {
		c.format, c.virtualSize = "qcow2", binary.BigEndian.Uint64(header[24:])
	}
	if checksum != "" {
		if _, err := c.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		h := sha256.New()
		if _, err := io.Copy(h, c.file); err != nil {
			return err
		}
		if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, checksum) {
			return fmt.Errorf("%s has the checksum %s, not %s as create.content.checksum says", c.source, got, checksum)
		}
	}
	_, err = c.file.Seek(0, io.SeekStart)
	return err
}

// upload writes the content into the new volume, holes as holes.
func (c *content) upload(ctx context.Context, vol *virt.Volume) error {
	said := time.Now()
	progress := virt.Progress(func(done uint64) {
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			tflog.Info(ctx, "uploading", map[string]any{"volume": vol.Name(), "bytes": done, "of": c.size})
		}
	})
	return vol.Upload(ctx, c.file, 0, c.size, virt.Sparse, progress)
}

// fetch downloads into a temporary file. A transfer that breaks off, or a
// server that has a bad moment, is tried again; a clear no is final.
func fetch(ctx context.Context, source string) (*os.File, error) {
	var err error
	for i := range attempts {
		if i > 0 {
			tflog.Warn(ctx, "fetching again", map[string]any{"url": source, "after": err.Error()})
			select {
			case <-ctx.Done():
				return nil, errors.Join(err, ctx.Err())
			case <-time.After(pause << (i - 1)):
			}
		}
		var file *os.File
		var final bool
		if file, final, err = fetchOnce(ctx, source); err == nil {
			return file, nil
		}
		if final {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w (tried %d times)", err, attempts)
}

func fetchOnce(ctx context.Context, source string) (file *os.File, final bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, true, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, ctx.Err() != nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests, fmt.Errorf("%s answers %s", source, resp.Status)
	}
	if file, err = os.CreateTemp("", "libvirt-content-"); err != nil {
		return nil, true, err
	}
	n, err := io.Copy(file, &reporter{ctx: ctx, from: resp.Body, source: source, said: time.Now()})
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = fmt.Errorf("%s: %d bytes came, %d were announced", source, n, resp.ContentLength)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return nil, ctx.Err() != nil, err
	}
	return file, false, nil
}

// reporter tells the log, every now and then, how far a download is.
type reporter struct {
	ctx    context.Context
	from   io.Reader
	source string
	done   int64
	said   time.Time
}

func (r *reporter) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.done += int64(n)
	if time.Since(r.said) > 5*time.Second {
		r.said = time.Now()
		tflog.Info(r.ctx, "downloading", map[string]any{"url": r.source, "bytes": r.done})
	}
	return n, err
}

// refuseFormat refuses a format that is not the content's: a guest would see
// the container, not the disk in it.
func refuseFormat(planned tree.Value, c *content) error {
	want := planned.At("target.format.type")
	if want.IsNull() || want.IsUnknown() || equalVolume("target.format.type", want, tree.StringValue(c.format)) || want.Str() == c.format {
		return nil
	}
	if want.Str() != "raw" && want.Str() != "qcow2" && c.format == "raw" {
		return nil // a format that is not looked for: vmdk, vdi, …
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath("target.format.type"), Summary: fmt.Sprintf("The content of volume %q is not %s", planned.Attr("name").Str(), want.Str()),
		Detail: fmt.Sprintf("%s is %s. No volume was made. Set target.format.type to %q, or leave it out.", c.source, c.format, c.format),
	})
}
