package change

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// DriftDigest names one drift: this path of this object, from this value to
// that one. Another drift, of another object or of the same path, has another
// digest, so an approval never covers more than what was seen. How the
// configuration spells the value that it wants does not matter: where there is
// drift, that is the baseline.
func DriftDigest(object string, path tree.Path, baseline, actual tree.Value) string {
	return digest(object, path.String(), baseline.String(), actual.String())
}

// guestDigest names drift of a running guest from its definition.
func guestDigest(object string, path tree.Path, definition, guest tree.Value) string {
	return digest(object, "guest", path.String(), definition.String(), guest.String())
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
