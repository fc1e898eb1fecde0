package seed

import (
	"crypto/sha256"
	"fmt"
)

// Content is what one file of a Store is made of: a Seed, which becomes an ISO
// image, or a Plain text, which is the file itself.
type Content interface {
	// Digest is the identity of the content.
	Digest() Digest
	// Bytes returns the file, or why it cannot be written. They depend on the
	// content alone.
	Bytes() ([]byte, error)
	// extension is the end of the file's name, with its dot.
	extension() string
}

// Bytes returns the ISO image.
func (s Seed) Bytes() ([]byte, error) { return s.ISO() }

func (s Seed) extension() string { return ".iso" }

// Plain is a text that a guest reads as it is: an Ignition configuration or a
// Combustion script.
type Plain struct {
	text string
	ext  string
}

// Ends of the names of plain files.
const (
	extIgnition   = ".ign"
	extCombustion = ".sh"
)

// Ignition returns an Ignition configuration, which is JSON.
func Ignition(text string) Plain { return Plain{text: text, ext: extIgnition} }

// Combustion returns a script for Combustion.
func Combustion(text string) Plain { return Plain{text: text, ext: extCombustion} }

// Digest returns the SHA-256 of the text, which sha256sum prints, too.
func (p Plain) Digest() Digest { return sha256.Sum256([]byte(p.text)) }

// Bytes returns the text.
func (p Plain) Bytes() ([]byte, error) {
	if len(p.text) > MaxContent {
		return nil, fmt.Errorf("write %s file: it is larger than %d MiB", p.ext, MaxContent>>20)
	}
	return []byte(p.text), nil
}

func (p Plain) extension() string { return p.ext }
