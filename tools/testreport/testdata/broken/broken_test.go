// Package broken does not build.
package broken

import "testing"

func TestAccBroken(t *testing.T) { undefinedName() }
