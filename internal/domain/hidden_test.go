package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What libvirt 9.0 shows of a PC that has the standard sound and the standard USB
// controller, in full and in the form for another host.
const (
	standardSound = "<audio id='1' type='none'/>"
	standardUSB   = "<controller type='usb' index='0' model='piix3-uhci'><alias name='usb'/></controller>"
	otherSound    = "<audio id='1' type='file' path='/out.wav'/>"
	otherUSB      = "<controller type='usb' index='0' model='qemu-xhci'/>"
	sata          = "<controller type='sata' index='0'/>"
)

func TestWithHidden(t *testing.T) {
	decode := func(devices string) tree.Value {
		v, err := spec.Domain().Decode(domainWith("", devices))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	shown := strings.Replace(standardUSB, "<alias name='usb'/>", "", 1)
	for what, c := range map[string]struct {
		side, other, full string
		asks              bool
		want              string
	}{
		"the definition is to have another": {sata, sata + otherSound + otherUSB, standardUSB + sata + standardSound, true, sata + shown + standardSound},
		"both have the standard":            {sata, sata, standardUSB + sata + standardSound, false, sata},
		"both have another":                 {sata + otherSound + otherUSB, sata + otherSound, sata + otherUSB + otherSound, false, sata + otherSound + otherUSB},
		"the other has one more":            {sata, sata + "<controller type='usb' index='1' model='qemu-xhci'/>", standardUSB + sata, true, sata},
		"the other has none":                {sata + otherSound, "", sata + otherSound, false, sata + otherSound},
		"one without an identity":           {"", "<controller type='usb'/>", standardUSB, true, ""},
	} {
		side, other := decode(c.side), decode(c.other)
		if got := hides(side, other); got != c.asks {
			t.Errorf("%s: asks %v", what, got)
		}
		if got, want := withHidden(side, other, decode(c.full)), decode(c.want); !tree.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got.At("devices"), want.At("devices"))
		}
	}
}
