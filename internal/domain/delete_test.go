package domain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
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

func TestUntouchedKeepsWhatIsOlder(t *testing.T) {
	const emulator, passthrough = "<tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>", "<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>"
	for name, c := range map[string]struct {
		uuid         tree.Value
		os, tpm      string
		nvram, state bool
	}{
		"neither":                              {tree.StringValue("d1"), "", "", false, false},
		"variables":                            {tree.UnknownValue, "<nvram>/vars.fd</nvram>", "", true, false},
		"a TPM of a UUID that was chosen":      {tree.StringValue("d1"), "", emulator, false, true},
		"a TPM of a UUID that is still to be":  {tree.UnknownValue, "", emulator, false, false},
		"a TPM of a UUID that nobody has said": {tree.NullValue, "", emulator, false, false},
		"a TPM of the host":                    {tree.StringValue("d1"), "", passthrough, false, false},
	} {
		planned, err := spec.Domain().Decode("<domain type='kvm'><name>m</name><os><type>hvm</type>" + c.os + "</os><devices>" + c.tpm + "</devices></domain>")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := untouched(planned.With("uuid", c.uuid)), (virt.UndefineFlags{KeepNVRAM: c.nvram, KeepTPM: c.state}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestOlderLibvirtCannotKeepTPM(t *testing.T) {
	if err := refuseOlder(8009000, "m"); err != nil {
		t.Errorf("8.9.0 can keep it: %v", err)
	}
	err := refuseOlder(8000000, "m")
	var refused *kind.ProblemError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`domain "m"`, "libvirt 8.0.0", "8.9.0", "untaint ADDRESS", "virsh undefine m"} {
		if text := refused.Error(); !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
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
