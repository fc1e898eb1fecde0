package change

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// DriftDigest names one drift: this path of this object, from this value to
// that one, against this desired value. Another drift, of another object or of
// the same path, has another digest, so an approval never covers more than
// what was seen.
func DriftDigest(object string, path tree.Path, baseline, actual, desired tree.Value) string {
	h := sha256.New()
	for _, part := range []string{object, path.String(), baseline.String(), actual.String(), desired.String()} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
