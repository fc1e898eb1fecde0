// Package seed makes the small ISO 9660 images that give a guest its first
// configuration (cloud-init's NoCloud and what reads the same volume), reads
// such images back, whoever made them, and keeps them in a store on this
// machine.
//
// The idea: a seed is a value. It is a volume label and a few named files,
// nothing else, and its identity is the logical digest of exactly that: two
// images that a guest cannot tell apart have the same digest, even if different
// programs wrote them, and a seed has the same digest and the same bytes on any
// day and on any machine. So a file in the store is only a cache: it can be
// checked, and made again from the inputs, at any time.
//
// What a guest would silently ignore (a header that cloud-init does not know,
// YAML that does not parse) is found here, before a machine boots without its
// configuration: see CheckUserData, CheckMetaData and CheckNetworkConfig.
//
// All but the store is pure: no clock, no random, no environment, no disk.
package seed

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// LabelCloudInit is the volume label by which cloud-init finds its seed.
const LabelCloudInit = "cidata"

// Names of the files that cloud-init's NoCloud reads.
const (
	FileUserData      = "user-data"
	FileMetaData      = "meta-data"
	FileNetworkConfig = "network-config"
)

// MaxContent is the largest sum of the sizes of a seed's files, in bytes, that
// is written.
const MaxContent = 10 << 20

// A File is one file of a seed. A name that was read from an image may contain
// slashes; one that is written may not.
type File struct {
	Name string
	Data []byte
}

// A Seed is what a guest sees: a volume label and files. The order of the files
// has no meaning.
type Seed struct {
	Label string
	Files []File
}

// CloudInit returns the seed with the given contents. A nil networkConfig means
// no such file, which differs from an empty one only in its digest: cloud-init
// treats both alike.
func CloudInit(userData, metaData string, networkConfig *string) Seed {
	s := Seed{Label: LabelCloudInit, Files: []File{
		{Name: FileUserData, Data: []byte(userData)},
		{Name: FileMetaData, Data: []byte(metaData)},
	}}
	if networkConfig != nil {
		s.Files = append(s.Files, File{Name: FileNetworkConfig, Data: []byte(*networkConfig)})
	}
	return s
}

// File returns the content of the named file.
func (s Seed) File(name string) (data []byte, ok bool) {
	for _, f := range s.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

// sorted returns the files in the order of their names, which is the order that
// the digest and the image use.
func (s Seed) sorted() []File {
	return slices.SortedFunc(slices.Values(s.Files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}

// A Digest is the identity of a seed's content.
type Digest [sha256.Size]byte

// digestPrefix separates this digest from any other use of SHA-256, and names
// the version of the rule. Changing the rule changes every digest, so every
// seed of every user would differ from its state: don't.
const digestPrefix = "terraform-provider-libvirt seed 1\x00"

// Digest returns the logical digest: SHA-256 over the label and, in the order of
// their names, each file's name and bytes. Every part is preceded by its length,
// so no two seeds hash the same bytes.
func (s Seed) Digest() Digest {
	h := sha256.New()
	h.Write([]byte(digestPrefix))
	part := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	part([]byte(s.Label))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s.Files))))
	for _, f := range s.sorted() {
		part([]byte(f.Name))
		part(f.Data)
	}
	return Digest(h.Sum(nil))
}

// String returns the digest in hexadecimal, as it stands in file names.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

const tag = "sha256:"

// Tagged returns the digest as attributes show it: "sha256:" and hexadecimal.
func (d Digest) Tagged() string { return tag + d.String() }

// ParseDigest reads what String or Tagged wrote.
func ParseDigest(text string) (Digest, error) {
	b, err := hex.DecodeString(strings.TrimPrefix(text, tag))
	if err != nil || len(b) != sha256.Size {
		return Digest{}, fmt.Errorf("parse digest %q: want %s and %d hexadecimal digits", text, tag, hex.EncodedLen(sha256.Size))
	}
	return Digest(b), nil
}
