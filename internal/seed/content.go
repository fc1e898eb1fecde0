package seed

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"
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

// Digest returns the SHA-256 of the text without white space at its end, which
// means nothing in JSON and in scripts: a volume that is longer than its text is
// filled with it.
func (p Plain) Digest() Digest { return PlainDigest([]byte(p.text)) }

// PlainDigest is the digest of a Plain with this text.
func PlainDigest(text []byte) Digest { return sha256.Sum256(bytes.TrimRight(text, " \t\r\n")) }

// Bytes returns the text.
func (p Plain) Bytes() ([]byte, error) {
	if len(p.text) > MaxContent {
		return nil, fmt.Errorf("write %s file: it is larger than %d MiB", p.ext, MaxContent>>20)
	}
	return []byte(p.text), nil
}

func (p Plain) extension() string { return p.ext }

// IsPlainPath tells whether a path or URL ends in the FileName of a Plain.
func IsPlainPath(path string) bool {
	_, _, ok := ParsePath(path)
	return ok && (strings.HasSuffix(path, extIgnition) || strings.HasSuffix(path, extCombustion))
}

// BeginsPlain tells whether a file of unknown origin that begins so may be a
// Plain. A disk that begins with a boot sector or a file system is none.
func BeginsPlain(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("#!"))
}

// ReadPlain returns the text of a file or device, without the zeros that fill a
// device, or a volume that is larger than its content. ok is false if that is no
// text: no Plain has NUL bytes, or is empty.
func ReadPlain(b []byte) (text []byte, ok bool) {
	text = bytes.TrimRight(b, "\x00")
	return text, len(text) > 0 && len(text) <= MaxContent && bytes.IndexByte(text, 0) < 0 && utf8.Valid(text)
}

// Labels and files by which Ignition (as openSUSE builds it) and Combustion find
// what they want on a drive. Combustion looks at a drive of Ignition's label, too.
const (
	LabelIgnition   = "ignition"
	FileIgnition    = "ignition/config.ign"
	LabelCombustion = "combustion"
	FileCombustion  = "combustion/script"
)

// IgnitionDrive returns the configuration as a drive.
func IgnitionDrive(text string) Seed {
	return Seed{Label: LabelIgnition, Files: []File{{Name: FileIgnition, Data: []byte(text)}}}
}

// CombustionDrive returns the script as a drive.
func CombustionDrive(text string) Seed {
	return Seed{Label: LabelCombustion, Files: []File{{Name: FileCombustion, Data: []byte(text)}}}
}

// How a configuration or script is given to a guest.
const (
	FormatRaw = "raw" // as it is
	FormatISO = "iso" // on a drive
)

// CheckFormat checks the name of one.
func CheckFormat(format string) []Finding {
	if format == FormatRaw || format == FormatISO {
		return nil
	}
	return finding(fmt.Sprintf("it is neither %q nor %q", FormatRaw, FormatISO), "Leave it out for the file as it is, for fw_cfg; or write \"iso\" for an image that goes into a drive")
}
