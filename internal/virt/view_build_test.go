package virt

import (
	"reflect"
	"testing"
)

func TestCapabilitiesIn(t *testing.T) {
	got, err := capabilitiesIn(`<domainCapabilities><machine>pc-q35-7.2</machine><vcpu max='288'/>
<os supported='yes'><enum name='firmware'><value>efi</value></enum><loader supported='yes'><enum name='type'><value>rom</value></enum></loader></os>
<cpu><mode name='host-passthrough' supported='no'/><mode name='host-model' supported='yes'><model fallback='forbid'>EPYC</model></mode>
<mode name='custom' supported='yes'><model usable='yes'>qemu64</model><model usable='no'>EPYC</model></mode></cpu>
<devices><disk supported='yes'><enum name='bus'><value>virtio</value><value>sata</value></enum></disk>
<hostdev supported='yes'><enum name='pciBackend'/></hostdev><tpm supported='no'><enum name='model'><value>x</value></enum></tpm></devices></domainCapabilities>`)
	want := Capabilities{Machine: "pc-q35-7.2", MaxVCPUs: 288, Values: map[string][]string{
		"os.firmware": {"efi"}, "cpu.mode": {"host-model", "custom"}, "cpu.model": {"qemu64", "EPYC"}, "disk.bus": {"virtio", "sata"},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := capabilitiesIn("<domainCapabilities"); err == nil {
		t.Error("no error for a broken document")
	}
}

// An interface that is a device of the host crashes libvirt 9.0 when it is asked
// for the command line, so that it must not get there in any spelling.
func TestWithoutHostSide(t *testing.T) {
	for document, want := range map[string]string{
		`<domain type='qemu'><devices><disk/></devices></domain>`:                                                              `<domain type='qemu'><devices><disk/></devices></domain>`,
		`<domain><devices><interface type='hostdev'><source><address/></source></interface><disk/></devices></domain>`:         `<domain><devices><disk/></devices></domain>`,
		`<domain><devices>` + "\n<interface type='user'/>\n<a/><hostdev mode='subsystem'/>é</devices></domain>\n":              "<domain><devices>\n\n<a/>é</devices></domain>\n",
		`<domain><metadata><x:devices xmlns:x='y'><interface/></x:devices></metadata><devices><interface/></devices></domain>`: `<domain><metadata><x:devices xmlns:x='y'><interface/></x:devices></metadata><devices></devices></domain>`,
		`<domain><!-- <interface/> --><devices><interface><interface/></interface><b/></devices></domain>`:                     `<domain><!-- <interface/> --><devices><b/></devices></domain>`,
		// Volumes are files.
		`<domain><devices><disk type='volume' device='disk'><driver a='"'/><source pool='p' volume='v&amp;w' mode='host' x:y='1'/><target/></disk></devices></domain>`:                 `<domain><devices><disk type="file" device="disk"><driver a='"'/><source x:y="1" file="/p/v&amp;w"/><target/></disk></devices></domain>`,
		`<domain><devices><disk device='lun' type='volume'><source volume='v' pool='p'><slices/></source></disk><disk type='file'><source file='a'/></disk></devices></domain>`:        `<domain><devices><disk device="lun" type="block"><source dev="/p/v"><slices/></source></disk><disk type='file'><source file='a'/></disk></devices></domain>`,
		`<domain><devices><disk type='file'><backingStore type='volume'><source pool='p' volume='v'/></backingStore></disk><x type='volume'><source pool='p'/></x></devices></domain>`: `<domain><devices><disk type='file'><backingStore type="file"><source file="/p/v"/></backingStore></disk><x type='volume'><source pool='p'/></x></devices></domain>`,
	} {
		if got, err := withoutHostSide(document); err != nil || got != want {
			t.Errorf("of %s\ngot  %s, %v\nwant %s", document, got, err, want)
		}
	}
	if _, err := withoutHostSide("<domain><devices><"); err == nil {
		t.Error("no error for a broken document")
	}
}
