package domain_test

import (
	"fmt"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
)

// vnc writes a display that people reach by VNC.
func vnc(more string) string { return list(fmt.Sprintf(`{ vnc = { auto_port = true, %s } }`, more)) }

// displayRows are who may look at a display, and what else it is.
func displayRows(testing.TB) []bounce.Row {
	const (
		ours   = `passwd = "ours"`
		theirs = `passwd = "theirs"`
		passwd = "devices/graphics/@passwd"
		valid  = "devices/graphics/@passwdValidTo"
		at     = "devices.graphics[0].vnc."
		until  = "2035-01-01T00:00:00"
	)
	live := bounce.Always(bounce.Live)
	change := func(name, from, to string, step bounce.Step) bounce.Row {
		step.Change = bounce.Fields{"devices.graphics": vnc(to)}
		return bounce.Row{Name: name, Base: bounce.Fields{"devices.graphics": vnc(from)}, Steps: []bounce.Step{step}}
	}
	return []bounce.Row{
		change("vnc-password", ours, theirs, bounce.Step{Live: bounce.Leaves{passwd: "theirs"}, Want: live}),
		change("vnc-password-valid-to", ours+`, passwd_valid_to = "2034-01-01T00:00:00"`, ours+`, passwd_valid_to = "`+until+`"`, bounce.Step{Live: bounce.Leaves{valid: until}, Want: live}),
		change("vnc-first-password", `share_policy = "allow-exclusive"`, `share_policy = "allow-exclusive", `+ours, bounce.Step{
			Boot: bounce.Leaves{passwd: "ours"}, Want: bounce.Waits(at + "passwd"),
		}),
		change("vnc-password-withdrawn", ours, `share_policy = "allow-exclusive"`, bounce.Step{
			Boot: bounce.Leaves{passwd: bounce.Absent}, Want: bounce.Waits(at+"passwd", at+"share_policy"),
		}),
		change("vnc-share-policy", ours+`, share_policy = "ignore"`, ours+`, share_policy = "force-shared"`, bounce.Step{
			Boot: bounce.Leaves{"devices/graphics/@sharePolicy": "force-shared"}, Want: bounce.Waits(at + "share_policy"),
		}),
		change("vnc-keymap", ours+`, keymap = "de"`, ours+`, keymap = "fr"`, bounce.Step{
			Boot: bounce.Leaves{"devices/graphics/@keymap": "fr"}, Want: bounce.Waits(at + "keymap"),
		}),
		change("vnc-listen", ours+`, listen = "127.0.0.1"`, ours+`, listen = "127.0.0.2"`, bounce.Step{
			Boot: bounce.Leaves{"devices/graphics/@listen": "127.0.0.2"}, Want: bounce.Waits(at+"listen", at+"listeners[0].address.address"), // libvirt says it twice
		}),
		{
			// With it comes the way by which SPICE takes the sound.
			Name: "spice-added", Base: bounce.Fields{"devices.videos": `[{ model = { type = "vga", heads = 1, primary = "yes" } }]`},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.graphics": list(`{ spice = { auto_port = true, passwd = "ours" } }`)},
				Boot:   bounce.Leaves{"devices/graphics/@type": "spice"}, Want: bounce.Waits("devices.graphics[0]", "devices.audios[1]"),
			}},
		},
		{
			// libvirt gives every display a graphics card.
			Name: "vnc-added", Base: bounce.Fields{"devices.videos": `[{ model = { type = "vga", heads = 1, primary = "yes" } }]`},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.graphics": vnc(ours)}, Boot: bounce.Leaves{passwd: "ours"}, Want: bounce.Waits("devices.graphics[0]"),
			}},
		},
	}
}
