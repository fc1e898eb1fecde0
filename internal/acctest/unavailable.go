package acctest

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
)

// Unavailable ends a case that this host cannot do, for instance because its kernel lacks a
// module. The report counts the case as unavailable and compares all of them, with their
// reasons, with testdata/unavailable.golden. So reason is a fixed text without numbers, paths
// or error messages that differ from run to run; log those before.
func Unavailable(t testing.TB, reason string) {
	t.Helper()
	reason = strings.Join(strings.Fields(reason), " ")
	t.Attr(core.AttrUnavailable, reason)
	t.Skip("unavailable: " + reason)
}
