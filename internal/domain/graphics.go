package domain

import (
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// graphicsPlug are the displays. They neither come nor go while the guest runs.
// Who may look at one changes at any time: the password of VNC and of SPICE, and
// until when it is valid, if the guest was started with a password; without one,
// QEMU asks nobody for any until the next start.
//
// libvirt answers OK to more than it does. A password that is taken away is gone
// from the guest's XML, and QEMU goes on asking for it; a sharing policy is not
// changed at all.
var graphicsPlug = &plug{
	noun: "display",
	list: "devices.graphics",
	in: func(tree.Value, situation) string {
		return "libvirt can neither plug a display in nor take one out; QEMU opens its displays when the guest starts."
	},
	field: graphicsField,
}

var graphicsAspect = graphicsPlug.aspect()

func graphicsField(path string, display tree.Value, c change.Change) string {
	kind, field, _ := strings.Cut(path, ".")
	if display.Attr(kind).IsNull() {
		return "libvirt cannot make a display another kind of display while the guest runs."
	}
	switch {
	case kind != "vnc" && kind != "spice":
		return "libvirt changes nothing in a display of this kind while the guest runs."
	case field == "passwd", field == "passwd_valid_to":
		return passwordStays(display.Attr(kind), field, c)
	case field == "share_policy":
		return "libvirt accepts another sharing policy for a running guest and does nothing."
	case field == "connected":
		return "libvirt uses it with the next password that it sets, and QEMU when the guest starts."
	}
	return "QEMU takes it when it opens the display, as the guest starts."
}

// passwordStays says why the password of a display, or until when it is valid,
// cannot change, "" if it can.
func passwordStays(display tree.Value, field string, c change.Change) string {
	switch {
	case display.Attr("passwd").IsNull():
		return "The running guest has no password on this display, and QEMU asks for one only if it had one at the start."
	case field == "passwd_valid_to" && c.Desired.IsNull():
		return "Without it the password of the running guest would be valid for ever; it may be about to go, too."
	case field == "passwd" && c.Desired.IsNull():
		return "libvirt accepts it for a running guest, and QEMU goes on asking for the password until the next start."
	}
	return ""
}

// hasDisplay says whether the guest has a display of a kind: "vnc", "spice", …
func hasDisplay(guest tree.Value, kind string) bool {
	return slices.ContainsFunc(guest.At("devices.graphics").Elems(), func(g tree.Value) bool { return !g.Attr(kind).IsNull() })
}
