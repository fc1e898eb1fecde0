package virt

import (
	"reflect"
	"slices"
	"testing"
)

func TestHostCapabilitiesIn(t *testing.T) {
	got, err := hostCapabilitiesIn(`<capabilities>
	<host><uuid>03000200-0400-0500-0006-000700080009</uuid>
	<cpu><arch>x86_64</arch><model>Skylake</model><vendor>Intel</vendor><topology sockets='1' dies='1' cores='4' threads='2'/>
	<feature name='vmx'/><feature name='ds'/><pages unit='KiB' size='4'/><pages unit='KiB' size='2048'/></cpu>
	<power_management><suspend_mem/></power_management><iommu support='yes'/>
	<migration_features><live/><uri_transports><uri_transport>tcp</uri_transport><uri_transport>rdma</uri_transport></uri_transports></migration_features>
	<topology><cells num='1'><cell id='0'><memory unit='KiB'>16318</memory><cpus num='2'><cpu id='0' core_id='0'/><cpu id='4' core_id='0'/></cpus></cell></cells></topology>
	<secmodel><model>apparmor</model><doi>0</doi></secmodel><secmodel><model>dac</model></secmodel></host>
	<guest><os_type>hvm</os_type><arch name='x86_64'><wordsize>64</wordsize><emulator>/usr/bin/qemu-system-x86_64</emulator>
	<machine maxCpus='288'>pc-q35-7.2</machine><machine canonical='pc-q35-7.2' maxCpus='288'>q35</machine>
	<domain type='qemu'/><domain type='kvm'><machine>pc</machine><machine>q35</machine></domain></arch></guest></capabilities>`)
	if err != nil {
		t.Fatal(err)
	}
	want := HostCapabilities{
		UUID: "03000200-0400-0500-0006-000700080009", Arch: "x86_64", CPUModel: "Skylake", CPUVendor: "Intel", CPUFeatures: []string{"ds", "vmx"},
		PageSizes: []uint64{4, 2048}, IOMMU: true, MigrationTransports: []string{"tcp", "rdma"}, SecurityModels: []string{"apparmor", "dac"},
		Sockets: 1, Cores: 4, Threads: 2, Cells: []NUMACell{{0, 16318, []int64{0, 4}}}, SuspendMem: true,
		Guests: []GuestKind{{"hvm", "x86_64", "/usr/bin/qemu-system-x86_64", 64, []string{"pc", "pc-q35-7.2", "q35"}, []string{"qemu", "kvm"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := hostCapabilitiesIn("<capabilities>"); err == nil {
		t.Error("half a document is read")
	}
}

func TestDomainOfferIn(t *testing.T) {
	got, err := domainOfferIn(`<domainCapabilities><path>/usr/bin/qemu-system-x86_64</path><domain>qemu</domain><machine>pc-q35-7.2</machine><arch>x86_64</arch>
	<vcpu max='288'/><iothreads supported='yes'/>
	<os supported='yes'><enum name='firmware'><value>efi</value></enum><loader supported='yes'><value>/OVMF.fd</value><enum name='secure'><value>yes</value><value>no</value></enum></loader></os>
	<cpu><mode name='host-passthrough' supported='no'/><mode name='host-model' supported='yes'><model fallback='forbid'>EPYC</model><feature policy='require' name='acpi'/><feature policy='disable' name='svm'/></mode>
	<mode name='custom' supported='yes'><model usable='yes'>qemu64</model><model usable='no'>Haswell</model><model usable='unknown'>athlon</model></mode></cpu>
	<memoryBacking supported='yes'><enum name='sourceType'><value>file</value><value>memfd</value></enum></memoryBacking>
	<devices><disk supported='yes'><enum name='bus'><value>sata</value><value>virtio</value></enum></disk><video supported='yes'><enum name='modelType'><value>vga</value></enum></video><tpm supported='no'/></devices>
	<features><gic supported='no'/><backup supported='yes'/><async-teardown supported='yes'/></features></domainCapabilities>`)
	if err != nil {
		t.Fatal(err)
	}
	want := DomainOffer{
		Emulator: "/usr/bin/qemu-system-x86_64", Arch: "x86_64", Machine: "pc-q35-7.2", VirtType: "qemu", MaxVCPUs: 288, IOThreads: true,
		Firmware: []string{"efi"}, Loaders: []string{"/OVMF.fd"}, SecureBoot: true, CPUModes: []string{"host-model", "custom"},
		CPUModels: []string{"athlon", "qemu64"}, UnusableCPUModels: []string{"Haswell"}, HostModel: "EPYC", HostFeatures: []string{"acpi"},
		MemoryBacking: []string{"file", "memfd"},
		Devices:       map[string]map[string][]string{"disk": {"bus": {"sata", "virtio"}}, "video": {"model_type": {"vga"}}},
		Features:      map[string]bool{"gic": false, "backup": true, "async_teardown": true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNodeCapabilities(t *testing.T) {
	names := NodeCapabilities()
	if !slices.IsSorted(names) || !slices.Contains(names, "pci") || slices.Contains(names, "") {
		t.Errorf("got %q", names)
	}
}
