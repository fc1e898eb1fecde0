package domain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

func TestLossOfSaysWhereItIs(t *testing.T) {
	for _, c := range []struct{ xml, what, byHand string }{
		{
			`<domainsnapshot><memory snapshot='no'/><disks><disk name='vda' snapshot='internal'/><disk name='vdb' snapshot='no'/><disk name='vdc' snapshot='internal'/></disks></domainsnapshot>`,
			`snapshot "it's", inside the image of vda, vdc`, `virsh snapshot-delete 'my machine' 'it'\''s'`,
		},
		{
			`<domainsnapshot><memory snapshot='external' file='/pool/m.ram'/><disks><disk name='vda' snapshot='external' type='file'><source file='/pool/over'/></disk><disk name='vdb' snapshot='external' type='block'><source dev='/dev/vg/over'/></disk></disks></domainsnapshot>`,
			`snapshot "it's", in /pool/over, /dev/vg/over, /pool/m.ram`, `virsh snapshot-delete 'my machine' 'it'\''s' --metadata`,
		},
		{`<domainsnapshot/>`, `snapshot "it's"`, `virsh snapshot-delete 'my machine' 'it'\''s'`},
		{`<broken`, `snapshot "it's"`, `virsh snapshot-delete 'my machine' 'it'\''s'`},
	} {
		got := lossOf("my machine", virt.Snapshot{Name: "it's", XML: c.xml})
		if got != (loss{c.what, c.byHand}) {
			t.Errorf("got  %+v\nwant %+v", got, loss{c.what, c.byHand})
		}
	}
}

func TestHasVariables(t *testing.T) {
	for os, want := range map[string]bool{
		`<os><type>hvm</type></os>`:                                                       false,
		`<os firmware='bios'><type>hvm</type></os>`:                                       false,
		`<os firmware='efi'><type>hvm</type></os>`:                                        true,
		`<os><type>hvm</type><loader type='pflash' readonly='yes'>/code.fd</loader></os>`: true,
		`<os><type>hvm</type><nvram>/vars.fd</nvram></os>`:                                true,
	} {
		def, err := spec.Domain().Decode("<domain type='kvm'><name>m</name>" + os + "</domain>")
		if err != nil {
			t.Fatal(err)
		}
		if got := hasVariables(def); got != want {
			t.Errorf("%s: %v", os, got)
		}
	}
}

func TestNamesOfFirmware(t *testing.T) {
	for _, c := range []struct {
		os, file string
		want     bool
	}{
		{`<nvram>/var/lib/libvirt/qemu/nvram/a_VARS.fd</nvram>`, "/var/lib/libvirt/qemu/nvram/a_VARS.fd", true},
		{`<nvram>/var/lib/libvirt/qemu//nvram/a_VARS.fd</nvram>`, "/var/lib/libvirt/qemu/nvram/a_VARS.fd", true},
		{`<nvram>/var/lib/libvirt/qemu/nvram/b_VARS.fd</nvram>`, "/var/lib/libvirt/qemu/nvram/a_VARS.fd", false},
		{`<nvram type='file'><source file='/x/a'/></nvram>`, "/x/a", true},
		{`<nvram template='/x/a'>/y</nvram>`, "/x/a", true},
		{`<loader>/x/a</loader>`, "/x/a", true},
		// Where libvirt chooses the directory, the name is what is known.
		{`<nvram>/home/me/.config/libvirt/qemu/nvram/a_VARS.qcow2</nvram>`, "a_VARS", true},
		{`<nvram>/home/me/.config/libvirt/qemu/nvram/aa_VARS.fd</nvram>`, "a_VARS", false},
		{`<nvram>/home/me/a_VARS.fd</nvram>`, "a_VARS", false},
		{``, "a_VARS", false},
	} {
		n, err := needsOf(fmt.Sprintf("<domain type='kvm'><os>%s</os></domain>", c.os))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.names(c.file); got != c.want {
			t.Errorf("%s names %s: %v", c.os, c.file, got)
		}
	}
}

func TestDepartedForgetsCase(t *testing.T) {
	k := New(nil)
	k.departed.Store(strings.ToLower("52:54:00:AA:00:01"), true)
	if !k.Departed("52:54:00:Aa:00:01") || k.Departed("52:54:00:aa:00:02") || k.Departed("") {
		t.Error("a MAC is not recognised, or a wrong one is")
	}
}
