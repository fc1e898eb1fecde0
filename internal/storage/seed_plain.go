package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// A seed may be a plain text: an Ignition configuration, a script for
// Combustion. It has no label, so a volume counts as one that holds a text if it
// is small, begins like one, and is text to its end, but for zeros that fill it.
// QEMU gives such a file to its guest by fw_cfg, with every byte that it has, and
// Ignition does not read JSON with zeros behind it. A file that is longer than its
// text cannot be cut off (libvirt shrinks nothing below its allocation [M]), so it
// is filled with line ends, which mean nothing.

// readPlain looks for a text in a volume that begins with head.
func (s *volumeSight) readPlain(ctx context.Context, head []byte, capacity uint64, expected bool) error {
	if !expected && !seed.BeginsPlain(head) {
		return nil
	}
	all := head
	if capacity > uint64(len(head)) {
		var err error
		if all, err = s.download(ctx, 0, capacity); err != nil {
			return err
		}
	}
	if text, ok := seed.ReadPlain(all); ok {
		s.seed = seedSight{found: true, plain: true, digest: seed.PlainDigest(text), size: uint64(len(text))}
	}
	return nil
}

// plain returns the digest of the content as a text; ok is false if it is none.
func (c *content) plain() (digest seed.Digest, ok bool, err error) {
	if c.size > seed.MaxContent {
		return digest, false, nil
	}
	all, err := io.ReadAll(io.NewSectionReader(c.file, 0, int64(c.size)))
	if err != nil {
		return digest, false, fmt.Errorf("read %s: %w", c.shown, err)
	}
	text, ok := seed.ReadPlain(all)
	return seed.PlainDigest(text), ok && len(text) == len(all), nil
}

// filler is what comes behind a seed in a volume that is longer.
func filler(plain bool, length uint64) io.Reader {
	fill := make([]byte, length)
	if plain {
		for i := range fill {
			fill[i] = '\n'
		}
	}
	return bytes.NewReader(fill)
}
