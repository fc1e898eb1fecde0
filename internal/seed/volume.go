package seed

import "regexp"

// shortDigest is how many digits of a digest the name of a volume has. The volume
// is looked into to know the rest.
const shortDigest = 12

// VolumeName returns NAME-DIGEST12.iso: what the volume of a seed is called that
// lies in a pool by itself. The name is escaped as in FileName. Other content has
// another volume, so that none is written to while a guest reads it.
func VolumeName(name string, digest Digest) string {
	return escapeName(name) + "-" + digest.String()[:shortDigest] + ".iso"
}

var volumeName = regexp.MustCompile(`^([A-Za-z0-9_@+=-][A-Za-z0-9._@+=~-]*)-([0-9a-f]{12})\.iso$`)

// ParseVolumeName takes the name of a volume apart: the seed's name, escaped, and
// the first digits of the digest. ok is false for any other name. Names of others
// may look alike: only the content tells.
func ParseVolumeName(volume string) (name, short string, ok bool) {
	m := volumeName.FindStringSubmatch(volume)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// Begins says whether the digest begins with these digits.
func (d Digest) Begins(short string) bool {
	return len(short) == shortDigest && d.String()[:shortDigest] == short
}
