package domain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// fakeView answers from tables; what is in none is there, or unknown.
type fakeView struct {
	networks map[string]virt.NetworkStanding
	links    map[string]virt.NetworkLinks
	daemon   virt.Version
	pools    map[string]virt.PoolStanding
	gone     []string          // files, and volumes as pool:name
	below    map[string]string // image: the backing file that is gone
	filters  map[string]bool
	noLinks  []string
	devices  []string
	usb      []virt.USBDevice
	offers   func(virt.Offer) error
	offered  virt.Capabilities
	builds   func(document string) error
	mended   func(*fakeView) // what somebody did since it answered last; seen after Forget
	broken   error           // of every question
}

func (f *fakeView) Forget() {
	if f.mended != nil {
		f.mended(f)
	}
}

func (f *fakeView) Networks(context.Context) (map[string]virt.NetworkStanding, error) {
	return f.networks, f.broken
}

func (f *fakeView) NetworkLinks(_ context.Context, network string) (virt.NetworkLinks, error) {
	return f.links[network], f.broken
}

func (f *fakeView) Daemon(context.Context) (virt.Version, error) { return f.daemon, f.broken }

func (f *fakeView) Pools(context.Context) (map[string]virt.PoolStanding, error) {
	return f.pools, f.broken
}

func (f *fakeView) File(_ context.Context, name string) virt.Presence {
	if f.broken == nil && slices.Contains(f.gone, name) {
		return virt.Gone
	}
	return virt.Unknown
}

func (f *fakeView) Suspect(ctx context.Context, name string) virt.Presence { return f.File(ctx, name) }

func (f *fakeView) Volume(ctx context.Context, pool, name string) virt.Presence {
	return f.File(ctx, pool+":"+name)
}

func (f *fakeView) MissingBelow(_ context.Context, name, format string) string {
	if f.broken != nil || format == "raw" || format == "" {
		return ""
	}
	return f.below[name]
}

func (f *fakeView) Filters(context.Context) (map[string]bool, error) { return f.filters, f.broken }

func (f *fakeView) LacksLink(_ context.Context, name string) (bool, error) {
	return slices.Contains(f.noLinks, name), f.broken
}

func (f *fakeView) NodeDevices(context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for _, d := range f.devices {
		out[d] = true
	}
	return out, f.broken
}

func (f *fakeView) USBDevices(context.Context) ([]virt.USBDevice, error) { return f.usb, f.broken }

func (f *fakeView) Offers(_ context.Context, o virt.Offer) error {
	if f.broken != nil || f.offers == nil {
		return f.broken
	}
	return f.offers(o)
}

func (f *fakeView) Capabilities(_ context.Context, o virt.Offer) (virt.Capabilities, error) {
	return f.offered, f.Offers(context.Background(), o)
}

func (f *fakeView) Builds(_ context.Context, document string) error {
	if f.builds == nil {
		return f.broken
	}
	return f.builds(document)
}

func (f *fakeView) Volumes(_ context.Context, pool string) ([]string, error) {
	return []string{pool + "-a", pool + "-b"}, f.broken
}

func (f *fakeView) Links(context.Context) (map[string]string, error) {
	return map[string]string{"br0": "bridge", "br1": "bridge", "eth0": "ethernet"}, f.broken
}

func (f *fakeView) Machines(context.Context, virt.Offer) ([]string, error) {
	return []string{"pc", "pc-q35-7.1", "pc-q35-7.2", "q35"}, f.broken
}

// refuses is libvirt's answer to an offer that it does not make.
func refuses(bad func(virt.Offer) bool) func(virt.Offer) error {
	return func(o virt.Offer) error {
		if bad(o) {
			return &virt.Error{Op: "read the domain capabilities of", Code: virt.ErrInvalidArg, Message: "not supported"}
		}
		return nil
	}
}

var (
	settledStanding   = virt.Standing{Active: true, Autostart: true, Persistent: true}
	byHandStanding    = virt.Standing{Active: true, Persistent: true}
	offStanding       = virt.Standing{Persistent: true}
	transientStanding = virt.Standing{Active: true}
)

// everyNeed names something of each kind.
const everyNeed = `
<domain type='kvm'><name>it's</name>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
    <loader readonly='yes' type='pflash'>/fw/code.fd</loader><nvram template='/fw/vars.fd'>/nvram/it.fd</nvram>
    <kernel>/boot/vmlinuz</kernel><initrd>/boot/initrd</initrd><dtb>/boot/dtb</dtb><acpi><table type='slic'>/boot/slic</table></acpi></os>
  <sysinfo type='fwcfg'><entry name='opt/com.coreos/config' file='/pool/web.ign'/><entry name='opt/x'>no file</entry></sysinfo>
  <devices><emulator>/usr/bin/qemu</emulator>
    <disk type='file' device='disk'><driver type='qcow2'/><source file='/img/over'/><target dev='vda'/></disk>
    <disk type='file' device='disk'><driver type='qcow2'/><source file='/img/top'/><target dev='vdb'/>
      <backingStore type='file'><format type='qcow2'/><source file='/img/mid'/>
        <backingStore type='file'><format type='qcow2'/><source file='/img/low'/></backingStore></backingStore></disk>
    <disk type='file' device='disk'><driver type='qcow2'/><source file='/img/whole'/><target dev='vdc'/><backingStore/></disk>
    <disk type='file' device='disk'><driver type='qcow2'/><source file='/img/ondisk'/><target dev='vdd'/>
      <backingStore type='network'><format type='raw'/><source protocol='nbd' name='x'/></backingStore></disk>
    <disk type='volume' device='disk'><driver type='qcow2'/><source pool='p' volume='v'/><target dev='vde'/></disk>
    <disk type='block' device='disk'><driver type='raw'/><source dev='/dev/vg/lv'/><target dev='vdf'/></disk>
    <disk type='network' device='disk'><source protocol='rbd' name='pool/image'/><target dev='vdg'/></disk>
    <disk type='file' device='cdrom'><source file='/iso/seed.iso'/><target dev='sda'/></disk>
    <disk type='file' device='cdrom'><source file='/iso/may-lack.iso' startupPolicy='optional'/><target dev='sdb'/></disk>
    <disk type='file' device='cdrom'><target dev='sdc'/></disk>
    <filesystem type='mount'><source dir='/srv/share'/><target dir='share'/></filesystem>
    <interface type='network'><mac address='52:54:00:00:00:01'/><source network='lan' portgroup='office'/></interface>
    <interface type='network'><mac address='52:54:00:00:00:02'/><source network='lan'/><filterref filter='clean'/></interface>
    <interface type='bridge'><mac address='52:54:00:00:00:03'/><source bridge='br0'/></interface>
    <interface type='bridge'><mac address='52:54:00:00:00:04'/><source bridge='ovs0'/><virtualport type='openvswitch'/></interface>
    <interface type='direct'><mac address='52:54:00:00:00:05'/><source dev='eth9' mode='bridge'/></interface>
    <interface type='user'><mac address='52:54:00:00:00:06'/></interface>
    <interface type='hostdev'><mac address='52:54:00:00:00:07'/><source><address type='pci' domain='0x0000' bus='0x03' slot='0x10' function='0x1'/></source></interface>
    <hostdev mode='subsystem' type='pci'><source><address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source></hostdev>
    <hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='C2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>
    <hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xabcd'/></source></hostdev>
    <hostdev mode='subsystem' type='usb'><source startupPolicy='optional'><vendor id='0x9999'/><product id='0x9999'/></source></hostdev>
    <hostdev mode='subsystem' type='usb'><source><address bus='1' device='4'/></source></hostdev>
    <hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host2'/><address bus='0' target='1' unit='3'/></source></hostdev>
    <hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='iqn'/></hostdev>
    <hostdev mode='capabilities' type='misc'><source><char>/dev/x</char></source></hostdev>
  </devices></domain>`

// well is a host on which everyNeed starts.
func well() *fakeView {
	return &fakeView{
		networks: map[string]virt.NetworkStanding{"lan": {Standing: settledStanding}},
		links:    map[string]virt.NetworkLinks{"lan": {Bridge: "br1", PortGroups: []string{"office"}}},
		pools: map[string]virt.PoolStanding{
			"p": {Standing: settledStanding, Type: "dir", Target: "/pool"}, "isos": {Standing: byHandStanding, Type: "dir", Target: "/iso"},
		},
		filters: map[string]bool{"clean": true},
		devices: []string{"pci_0000_01_00_0", "pci_0000_03_10_1", "mdev_c2177883_f1bb_47f0_914d_32a22e3a8804_0000_05_00_0", "scsi_2_0_1_3"},
		usb:     []virt.USBDevice{{Bus: 2, Device: 9, Vendor: "0x1234", Product: "0xABCD"}, {Bus: 1, Device: 4, Vendor: "0x1", Product: "0x2"}},
	}
}

func TestBootProblems(t *testing.T) {
	without := func(list []string, name string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return strings.HasPrefix(s, name) })
	}
	anyMachine := func(o virt.Offer) bool { return o.Machine != "" }
	cases := map[string]struct {
		cause  func(*fakeView)
		manual bool // not set to autostart
		want   []string
	}{
		"all is well":     {func(*fakeView) {}, false, nil},
		"nothing answers": {func(f *fakeView) { *f = fakeView{broken: errors.New("denied")} }, false, nil},

		"network without autostart": {func(f *fakeView) { f.networks["lan"] = virt.NetworkStanding{Standing: byHandStanding} }, false, []string{
			`network "lan" is not set to autostart, this domain is (virsh net-autostart lan)`}},
		"the same, a domain without": {func(f *fakeView) { f.networks["lan"] = virt.NetworkStanding{Standing: byHandStanding} }, true, nil},
		"network that is off, a domain without": {func(f *fakeView) { f.networks["lan"] = virt.NetworkStanding{Standing: offStanding} }, true, []string{
			`network "lan" is not active, nothing that needs it can start (virsh net-start lan)`}},
		"network that is off and stays off": {func(f *fakeView) { f.networks["lan"] = virt.NetworkStanding{Standing: offStanding} }, false, []string{
			`network "lan" is not active, nothing that needs it can start (virsh net-start lan)`,
			`network "lan" is not set to autostart, this domain is (virsh net-autostart lan)`}},
		"network without a definition": {func(f *fakeView) { f.networks["lan"] = virt.NetworkStanding{Standing: transientStanding} }, false, []string{
			`network "lan" has no definition and ends with the host's next boot, this domain is set to autostart (virsh net-dumpxml lan > FILE; virsh net-define FILE; virsh net-autostart lan)`}},
		"no such network": {func(f *fakeView) { delete(f.networks, "lan") }, true, []string{
			`network "lan" does not exist, interface 52:54:00:00:00:01 needs it (define it, or change the interface)`,
			`network "lan" does not exist, interface 52:54:00:00:00:02 needs it (define it, or change the interface)`}},
		"no such portgroup": {func(f *fakeView) { f.links["lan"] = virt.NetworkLinks{PortGroups: []string{"other"}} }, true, []string{
			`network "lan" has no portgroup "office", interface 52:54:00:00:00:01 would start without its VLAN and limits (virsh net-edit lan, or change the interface)`}},
		"no such links": {func(f *fakeView) { f.noLinks = []string{"br0", "eth9", "ovs0"} }, true, []string{
			`bridge "br0" does not exist on the host, interface 52:54:00:00:00:03 needs it (create it, or change the interface)`,
			`network device "eth9" does not exist on the host, interface 52:54:00:00:00:05 needs it (create it, or change the interface)`}},
		"no bridge behind the network": {func(f *fakeView) {
			f.noLinks = []string{"br1"}
			f.networks["lan"] = virt.NetworkStanding{Standing: settledStanding}
		}, true, []string{
			`bridge "br1" of network "lan" does not exist on the host, interface 52:54:00:00:00:01 needs it (create it, or virsh net-edit lan)`,
			`bridge "br1" of network "lan" does not exist on the host, interface 52:54:00:00:00:02 needs it (create it, or virsh net-edit lan)`}},
		"no such filter": {func(f *fakeView) { f.filters = nil }, true, []string{
			`network filter "clean" does not exist, interface 52:54:00:00:00:02 needs it (virsh nwfilter-define FILE, or change the interface)`}},

		"no such pool": {func(f *fakeView) { delete(f.pools, "p") }, true, []string{
			`pool "p" does not exist, disk vde needs it (define it, or change the disk)`}},
		"pool that is off": {func(f *fakeView) { f.pools["p"] = virt.PoolStanding{Standing: offStanding}; f.gone = []string{"p:v"} }, true, []string{
			`pool "p" is not active, nothing that needs it can start (virsh pool-start p)`}},
		"pool without autostart": {func(f *fakeView) { f.pools["p"] = virt.PoolStanding{Standing: byHandStanding} }, false, []string{
			`pool "p" is not set to autostart, this domain is (virsh pool-autostart p)`}},
		"pool that must be mounted": {func(f *fakeView) {
			f.pools["mnt"] = virt.PoolStanding{Standing: byHandStanding, Type: "netfs", Target: "/img"}
		}, false, []string{`pool "mnt" is not set to autostart, this domain is (virsh pool-autostart mnt)`}},
		"volume": {func(f *fakeView) { f.gone = []string{"p:v"} }, true, []string{
			`disk vde: volume "v" of pool "p" is gone (put it back, with virsh pool-refresh p if it is a file that is there, or change the disk)`}},
		"what a volume lies over": {func(f *fakeView) { f.below = map[string]string{"/pool/v": "/pool/base"} }, true, []string{
			`disk vde: backing file /pool/base is gone (put it back: the image above it is of no use alone)`}},

		"files": {func(f *fakeView) {
			f.gone = []string{"/img/over", "/dev/vg/lv", "/iso/seed.iso", "/iso/may-lack.iso", "/srv/share", "/boot/vmlinuz", "/boot/initrd", "/boot/dtb", "/boot/slic", "/fw/code.fd", "/pool/web.ign"}
			f.below = map[string]string{"/img/over": "/not told of what is gone itself"}
		}, true, []string{
			`disk sda: medium /iso/seed.iso is gone (put it back, or virsh change-media 'it'\''s' sda --eject --config)`,
			`disk vda: file /img/over is gone (put it back, or change the disk)`,
			`disk vdf: file /dev/vg/lv is gone (put it back, or change the disk)`,
			`filesystem share: directory /srv/share is gone (put it back, or change the filesystem)`,
			`os.acpi: table /boot/slic is gone (put it back, or change os.acpi)`,
			`os.dtb: file /boot/dtb is gone (put it back, or change os.dtb)`,
			`os.initrd: file /boot/initrd is gone (put it back, or change os.initrd)`,
			`os.kernel: file /boot/vmlinuz is gone (put it back, or change os.kernel)`,
			`os.loader: file /fw/code.fd is gone (put it back, or change os.loader)`,
			`sys_info: file /pool/web.ign is gone (put it back, or change sys_info)`}},
		"a file of a pool that is off": {func(f *fakeView) {
			f.gone = []string{"/img/over", "/iso/seed.iso"}
			f.pools["nfs"] = virt.PoolStanding{Standing: offStanding, Type: "netfs", Target: "/img"}
			f.pools["isos"] = virt.PoolStanding{Standing: offStanding, Type: "dir", Target: "/iso"}
		}, true, []string{
			`disk sda: medium /iso/seed.iso is gone (put it back, or virsh change-media 'it'\''s' sda --eject --config)`,
			`disk vda: file /img/over is gone (its pool "nfs" is not active: virsh pool-start nfs)`}},
		"backing files": {func(f *fakeView) {
			f.below = map[string]string{
				"/img/over": "/img/base", "/img/top": "/told by the definition", "/img/mid": "/likewise", "/img/low": "/img/lowest",
				"/img/whole": "/the definition says there is none", "/img/ondisk": "/nor is it a file", "/iso/seed.iso": "/raw",
			}
		}, true, []string{
			`disk vda: backing file /img/base is gone (put it back: the image above it is of no use alone)`,
			`disk vdb: backing file /img/lowest is gone (put it back: the image above it is of no use alone)`}},
		"backing file that the definition names": {func(f *fakeView) { f.gone = []string{"/img/mid", "/img/low"} }, true, []string{
			`disk vdb: backing file /img/mid is gone (put it back: the image above it is of no use alone)`}},
		"template, with NVRAM":    {func(f *fakeView) { f.gone = []string{"/fw/vars.fd"} }, true, nil},
		"NVRAM, with a template":  {func(f *fakeView) { f.gone = []string{"/nvram/it.fd"} }, true, nil},
		"template, without NVRAM": {func(f *fakeView) { f.gone = []string{"/fw/vars.fd", "/nvram/it.fd"} }, true, []string{`os.nv_ram: template /fw/vars.fd is gone (put it back, or change os.nv_ram.template: there is no NVRAM yet)`}},

		"PCI devices": {func(f *fakeView) {
			f.devices = append(without(f.devices, "pci_"), "pci_0000_00_00_0")
		}, true, []string{
			`PCI device 0000:01:00.0 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)`,
			`PCI device 0000:03:10.1 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)`}},
		"no PCI devices are known": {func(f *fakeView) { f.devices = without(f.devices, "pci_") }, true, nil},
		"mediated device": {func(f *fakeView) { f.devices = without(f.devices, "mdev_") }, true, []string{
			`mediated device c2177883-f1bb-47f0-914d-32a22e3a8804 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)`}},
		"SCSI device": {func(f *fakeView) { f.devices = append(without(f.devices, "scsi_"), "scsi_0_0_0_0") }, true, []string{
			`SCSI device 2:0:1:3 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)`}},
		"no device is known": {func(f *fakeView) { f.devices = nil }, true, nil},
		"USB devices": {func(f *fakeView) { f.usb = []virt.USBDevice{{Bus: 1, Device: 1, Vendor: "0x1d6b", Product: "0x0002"}} }, true, []string{
			`USB device 0x1234:0xabcd is not there (plug it in; virsh nodedev-list shows those that are)`,
			`USB device bus 1 device 4 is not there (plug it in; virsh nodedev-list shows those that are)`}},
		"no USB device is known": {func(f *fakeView) { f.usb = nil }, true, nil},

		"machine type": {func(f *fakeView) { f.offers = refuses(anyMachine) }, true, []string{
			`machine type "pc-q35-7.2" is not offered by /usr/bin/qemu (change os.type_machine; virsh capabilities lists what is)`}},
		"accelerator": {func(f *fakeView) { f.offers = refuses(func(o virt.Offer) bool { return o.VirtType == "kvm" }) }, true, []string{
			`virtualisation type "kvm" is not offered by this host with /usr/bin/qemu (change type; virsh capabilities lists what is)`}},
		"neither is known": {func(f *fakeView) { f.offers = refuses(func(virt.Offer) bool { return true }) }, true, nil},
		"emulator": {func(f *fakeView) {
			f.offers = refuses(func(virt.Offer) bool { return true })
			f.gone = []string{"/usr/bin/qemu"}
		}, true, []string{`emulator /usr/bin/qemu is gone (install it, or change devices.emulator)`}},
		"another reason": {func(f *fakeView) { f.offers = func(virt.Offer) error { return errors.New("lost") } }, true, nil},
	}
	needs, err := needsOf(everyNeed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := well()
			c.cause(host)
			check := &bootCheck{host: host, domain: "it's", autostart: !c.manual}
			check.check(context.Background(), needs)
			if got := check.problems(); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestBootProblemsOfDocuments(t *testing.T) {
	if _, err := needsOf("<domain"); err == nil {
		t.Error("no error for a broken document")
	}
	n, err := needsOf(`<domain type='qemu'><os><nvram type='file' template='/t'><source file='/n'/></nvram></os></domain>`)
	if err != nil || n.nvram != "/n" || n.template != "/t" {
		t.Errorf("got %+v, %v", n, err)
	}
	for _, address := range []addressDocument{{}, {Domain: "0", Bus: "x", Slot: "0", Function: "0"}} {
		if need := pciNeed(address); need != nil {
			t.Errorf("%+v: %+v", address, need)
		}
	}
	for name, want := range map[string]string{"lan-1": "lan-1", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "": "''"} {
		if got := word(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
