package virt

import (
	"slices"
	"testing"
)

func TestMachinesIn(t *testing.T) {
	const document = `<capabilities><host/>
<guest><os_type>hvm</os_type><arch name='x86_64'><emulator>/q64</emulator><machine maxCpus='1'>pc</machine><machine>q35</machine>
  <domain type='qemu'/><domain type='kvm'><emulator>/kvm</emulator><machine>fast</machine></domain></arch></guest>
<guest><os_type>hvm</os_type><arch name='aarch64'><emulator>/qarm</emulator><machine>virt</machine><machine>virt</machine></arch></guest></capabilities>`
	for name, c := range map[string]struct {
		offer Offer
		want  []string
	}{
		"all":                   {Offer{}, []string{"fast", "pc", "q35", "virt"}},
		"by architecture":       {Offer{Arch: "aarch64"}, []string{"virt"}},
		"by emulator":           {Offer{Arch: "x86_64", Emulator: "/q64"}, []string{"pc", "q35"}},
		"of one kind of domain": {Offer{Emulator: "/kvm"}, []string{"fast"}},
		"of nobody":             {Offer{Emulator: "/none"}, nil},
	} {
		if got, err := machinesIn(document, c.offer); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := machinesIn("<capabilities", Offer{}); err == nil {
		t.Error("no error for a broken document")
	}
}

func TestLinkIn(t *testing.T) {
	name, kind, err := linkIn(`<interface type='bridge' name='br0'><bridge/></interface>`)
	if err != nil || name != "br0" || kind != "bridge" {
		t.Errorf("got %q, %q, %v", name, kind, err)
	}
	if _, _, err := linkIn("<interface"); err == nil {
		t.Error("no error for a broken document")
	}
}
