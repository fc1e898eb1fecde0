package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// A Store is a private directory with images and plain files. It is a cache:
// whoever knows a content can put its file back.
type Store struct{ dir string }

// defaultStore is where seeds lie below the user's directory for state.
const defaultStore = "terraform-provider-libvirt/seeds"

// OpenStore chooses the directory: the configured one, else that below
// $XDG_STATE_HOME, else that below ~/.local/state. Nothing on the disk is
// touched, so it can be asked during a plan. getenv is os.Getenv.
func OpenStore(configured string, getenv func(string) string) (Store, error) {
	if configured != "" {
		if configured == "~" || strings.HasPrefix(configured, "~/") {
			return Store{}, fmt.Errorf(`choose the seed store: "~" in %q is not expanded: set seed_store = pathexpand(%q)`, configured, configured)
		}
		dir, err := filepath.Abs(configured)
		if err != nil {
			return Store{}, fmt.Errorf("choose the seed store: %q is relative, and the working directory is unknown: set seed_store to an absolute path: %w", configured, err)
		}
		return Store{dir}, nil
	}
	// A relative value is to be ignored, says the specification of XDG_STATE_HOME.
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return Store{filepath.Join(state, defaultStore)}, nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return Store{filepath.Join(home, ".local/state", defaultStore)}, nil
	}
	return Store{}, errors.New("choose the seed store: neither XDG_STATE_HOME nor HOME is set to an absolute path: set one of them, or seed_store in the provider's configuration")
}

// Dir returns the directory.
func (s Store) Dir() string { return s.dir }

// Path returns where the file with this name and content lies. It is a pure
// function.
func (s Store) Path(name string, content Content) string {
	return filepath.Join(s.dir, FileName(name, content))
}

// FileName returns NAME-sha256-DIGEST.iso, for a plain text with .ign or .sh at
// its end. The name is part of it, so that two seeds of equal content do not
// share a file that the end of one would take from the other. Characters of a
// name that are special to paths, URLs or shells are written as = and two
// hexadecimal digits.
func FileName(name string, content Content) string {
	return escapeName(name) + "-sha256-" + content.Digest().String() + content.extension()
}

var fileName = regexp.MustCompile(`^([A-Za-z0-9_@+=-][A-Za-z0-9._@+=~-]*)-sha256-([0-9a-f]{64})\.(?:iso|ign|sh)$`)

// ParsePath takes a path or URL apart that ends in a FileName: it tells the
// digest of the content without opening anything. ok is false for any other.
func ParsePath(path string) (name string, digest Digest, ok bool) {
	m := fileName.FindStringSubmatch(path[strings.LastIndexByte(path, '/')+1:])
	if m == nil {
		return "", Digest{}, false
	}
	digest, err := ParseDigest(m[2])
	return unescapeName(m[1]), digest, err == nil
}

// maxEscaped leaves room for the digest within the 255 bytes of a file name.
const maxEscaped = 160

// escapeName is injective, but for names that are too long: these end in a hash.
func escapeName(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '_', c == '-', c == '@', c == '+', c == '.' && i > 0: // no hidden files
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() <= maxEscaped {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return b.String()[:maxEscaped-35] + "=~" + hex.EncodeToString(sum[:16])
}

// unescapeName undoes escapeName as far as that is possible.
func unescapeName(escaped string) string {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] == '=' && i+2 < len(escaped) {
			if c, err := hex.DecodeString(escaped[i+1 : i+3]); err == nil {
				b.Write(c)
				i += 2
				continue
			}
		}
		b.WriteByte(escaped[i])
	}
	return b.String()
}

// Placed says where an image is.
type Placed struct {
	Path    string
	Size    int64 // bytes
	Written bool  // false: it was there already, and intact
}

// Put makes sure that the file is in the store. A file that is there is compared
// byte by byte, and replaced if it differs; a reader never sees half a file. Any
// number of processes may put the same or other contents at once.
func (s Store) Put(name string, content Content) (Placed, error) {
	img, err := content.Bytes()
	if err != nil {
		return Placed{}, err
	}
	p := Placed{Path: s.Path(name, content), Size: int64(len(img))}
	if intact(p.Path, img) {
		return p, nil
	}
	p.Written = true
	if err := s.write(p.Path, img); err != nil {
		return Placed{}, fmt.Errorf("store seed image %s: %w (%s)", p.Path, err, s.wayOut(err, p.Path))
	}
	return p, nil
}

// intact tells whether path is a private, regular file with this content.
// Whatever is wrong with it, the answer is to write it again.
func intact(path string, want []byte) bool {
	// No link is followed, and a FIFO in the way must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(want)) {
		return false
	}
	// Others may not read it. The inode stays: a guest may have it in its drive.
	if info.Mode().Perm()&0o077 != 0 && f.Chmod(0o600) != nil {
		return false
	}
	have, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return err == nil && bytes.Equal(have, want)
}

// write puts the file in place in one step, and returns when it is on the disk.
func (s Store) write(path string, img []byte) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".seed-*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(img); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(s.dir)
}

// syncDirectory makes a rename survive a power cut. The file is in place
// already, so a file system that cannot sync directories is no failure.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// wayOut says what can be done about an error of write.
func (s Store) wayOut(err error, path string) string {
	elsewhere := "set seed_store in the provider's configuration to a directory "
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space there, or " + elsewhere + "on a file system that has some"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return elsewhere + "that this user may write to; the one in use is " + s.dir
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of " + s.dir + " is no directory: remove it, or " + elsewhere + "elsewhere"
	}
	if info, statErr := os.Lstat(path); statErr == nil && info.IsDir() {
		return "a directory is in the way: remove " + path
	}
	return "or " + elsewhere + "that works; the one in use is " + s.dir
}

// ErrForeign says that a file was left alone because its name is not one that a
// Store gives.
var ErrForeign = errors.New("its name is not that of a seed image of this provider")

// Remove removes an image, from whatever store it is in, if its name is a
// FileName; else it returns ErrForeign. A file that is gone already is no error.
func Remove(path string) error {
	if _, _, ok := ParsePath(path); !ok {
		return fmt.Errorf("remove seed image %s: %w", path, ErrForeign)
	}
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("remove seed image %s: it is a directory, which this provider did not make: remove it by hand", path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	// A part of the path may have become a file: then the image is gone, too.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("remove seed image %s: %w", path, err)
	}
	return nil
}
