package domain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// kindOf is the kind on a connection of its own, which remembers nothing.
func kindOf(t testing.TB) (*Kind, *virt.Host) {
	t.Helper()
	host := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	t.Cleanup(func() { _ = host.Close() })
	return New(func() *virt.Host { return host }), host
}

// problemsOf are the problems of a domain as a refresh that begins now sees them.
func problemsOf(t testing.TB, name string) []string {
	t.Helper()
	k, host := kindOf(t)
	rec := virttest.Record(host)
	s, err := k.look(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	problems := k.bootProblems(context.Background(), s)
	if w := rec.Writes(); len(w) > 0 {
		t.Errorf("looking for problems wrote: %v", w)
	}
	return problems
}

// defineXML makes libvirt define what a document says.
func defineXML(t testing.TB, command, xml string) {
	t.Helper()
	file := t.TempDir() + "/document.xml"
	writeTo(t, file, xml)
	lab.Virsh(t, command, file)
}

func writeTo(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func moveFile(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// onHost runs a command on the host.
func onHost(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := lab.Host(t).Exec(context.Background(), name, args...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// defineOff defines a domain that is off and has the devices.
func defineOff(t testing.TB, name, os, devices string) {
	t.Helper()
	defineXML(t, "define", fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>32</memory>
<os><type arch='x86_64' machine='q35'>hvm</type>%s</os><features><acpi/></features><devices>%s</devices></domain>`, name, os, devices))
}

// a trouble is a cause and the sentence that it leads to.
type trouble struct {
	name   string
	cause  func()
	want   []string
	starts bool // the guest starts all the same: the trouble is at the host's boot, or what it starts with
	mend   func()
}

// tell goes through the troubles of a domain. Before each, and when it is
// mended, nothing is said. A trouble of the next start is shown to be one.
func tell(t *testing.T, domain string, troubles []trouble) {
	t.Helper()
	if got := problemsOf(t, domain); len(got) > 0 {
		t.Fatalf("before anything is wrong: %q", got)
	}
	for _, c := range troubles {
		c.cause()
		if got := problemsOf(t, domain); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if out, err := lab.Host(t).Virsh(context.Background(), "start", domain, "--paused"); err == nil {
			lab.Virsh(t, "destroy", domain)
			if !c.starts {
				t.Errorf("%s: a false alarm, it starts: %s", c.name, out)
			}
		} else if c.starts {
			t.Errorf("%s: it does not start: %v", c.name, err)
		}
		c.mend()
		if got := problemsOf(t, domain); len(got) > 0 {
			t.Fatalf("%s, when it is mended: %q", c.name, got)
		}
	}
}

func TestAccBootProblems_networks(t *testing.T) {
	acctest.Case(t, "what is wrong with networks, bridges and filters shows before the next start, with the command that mends it")
	const (
		lan    = `<network><name>bootlan</name><bridge name='bootvir0'/><portgroup name='office'/></network>`
		bridge = `<network><name>bootbridged</name><forward mode='bridge'/><bridge name='bootbr0'/></network>`
		filter = `<filter name='bootfilter'><rule action='accept' direction='in'><all/></rule></filter>`
		mac    = "52:54:00:b0:07:0"
	)
	virsh := func(args ...string) func() { return func() { lab.Virsh(t, args...) } }
	all := func(steps ...func()) func() {
		return func() {
			for _, s := range steps {
				s()
			}
		}
	}
	document := func(command, xml string) func() { return func() { defineXML(t, command, xml) } }
	link := func(args ...string) func() {
		return func() { onHost(t, "ip", append([]string{"link"}, args...)...) }
	}
	define := all(document("net-define", lan), virsh("net-start", "bootlan"), virsh("net-autostart", "bootlan"))
	define()
	defer all(virsh("net-destroy", "bootlan"), virsh("net-undefine", "bootlan"))()
	document("nwfilter-define", filter)()
	defer virsh("nwfilter-undefine", "bootfilter")()
	for _, l := range []string{"bootbr0", "bootbr1", "bootbr2"} {
		link("add", l, "type", "bridge")()
		link("set", l, "up")()
		defer link("del", l)()
	}
	all(document("net-define", bridge), virsh("net-start", "bootbridged"), virsh("net-autostart", "bootbridged"))()
	defer all(virsh("net-destroy", "bootbridged"), virsh("net-undefine", "bootbridged"))()
	nic := func(n int, typ, source, more string) string {
		return fmt.Sprintf(`<interface type='%s'><mac address='%s%d'/><source %s/><model type='virtio'/>%s</interface>`, typ, mac, n, source, more)
	}
	defineOff(t, "bootnets", "", nic(1, "network", "network='bootlan' portgroup='office'", "<filterref filter='bootfilter'/>")+
		nic(2, "network", "network='bootbridged'", "")+nic(3, "bridge", "bridge='bootbr1'", ""))
	defer virsh("undefine", "bootnets")()
	virsh("autostart", "bootnets")()
	defineOff(t, "bootdirect", "", nic(4, "direct", "dev='bootbr2' mode='bridge'", ""))
	defer virsh("undefine", "bootdirect")()

	// What was deleted is added, and a network that goes takes its bridge along.
	tell(t, "bootnets", []trouble{
		{
			name: "no autostart", cause: virsh("net-autostart", "--disable", "bootlan"), mend: virsh("net-autostart", "bootlan"), starts: true,
			want: []string{`network "bootlan" is not set to autostart, this domain is (virsh net-autostart bootlan)`},
		},
		{
			name: "not active", cause: virsh("net-destroy", "bootlan"), mend: virsh("net-start", "bootlan"),
			want: []string{`network "bootlan" is not active, nothing that needs it can start (virsh net-start bootlan)`},
		},
		{
			name: "undefined", cause: all(virsh("net-destroy", "bootlan"), virsh("net-undefine", "bootlan")), mend: define,
			want: []string{`network "bootlan" does not exist, interface ` + mac + `1 needs it (define it, or change the interface)`},
		},
		{
			name: "transient", starts: true,
			cause: all(virsh("net-destroy", "bootlan"), virsh("net-undefine", "bootlan"), document("net-create", lan)),
			mend:  all(virsh("net-destroy", "bootlan"), define),
			want: []string{`network "bootlan" has no definition and ends with the host's next boot, this domain is set to autostart ` +
				`(virsh net-dumpxml bootlan > FILE; virsh net-define FILE; virsh net-autostart bootlan)`},
		},
		{
			name: "portgroup", starts: true,
			cause: virsh("net-update", "bootlan", "delete", "portgroup", "<portgroup name='office'/>", "--live", "--config"),
			mend:  virsh("net-update", "bootlan", "add", "portgroup", "<portgroup name='office'/>", "--live", "--config"),
			want:  []string{`network "bootlan" has no portgroup "office", interface ` + mac + `1 would start without its VLAN and limits (virsh net-edit bootlan, or change the interface)`},
		},
		{
			name: "bridge of a network", cause: link("del", "bootbr0"), mend: link("add", "bootbr0", "type", "bridge"),
			want: []string{`bridge "bootbr0" of network "bootbridged" does not exist on the host, interface ` + mac + `2 needs it (create it, or virsh net-edit bootbridged)`},
		},
		{
			name: "bridge", cause: link("del", "bootbr1"), mend: link("add", "bootbr1", "type", "bridge"),
			want: []string{`bridge "bootbr1" does not exist on the host, interface ` + mac + `3 needs it (create it, or change the interface)`},
		},
		{
			name: "filter", cause: virsh("nwfilter-undefine", "bootfilter"), mend: document("nwfilter-define", filter),
			want: []string{`network filter "bootfilter" does not exist, interface ` + mac + `1 needs it (virsh nwfilter-define FILE, or change the interface)`},
		},
	})
	tell(t, "bootdirect", []trouble{
		{
			name: "device", cause: link("del", "bootbr2"), mend: link("add", "bootbr2", "type", "bridge"),
			want: []string{`network device "bootbr2" does not exist on the host, interface ` + mac + `4 needs it (create it, or change the interface)`},
		},
	})
	virsh("autostart", "--disable", "bootnets")()
	virsh("net-autostart", "--disable", "bootlan")()
	if got := problemsOf(t, "bootnets"); len(got) > 0 {
		t.Errorf("of a domain that the host does not start: %q", got)
	}
}

func TestAccBootProblems_storage(t *testing.T) {
	acctest.Case(t, "a pool that is off and a disk, medium, backing file, kernel, firmware or directory that is gone show before the next start")
	dir, pool := t.TempDir(), t.TempDir()
	files := func(names ...string) {
		for _, n := range names {
			writeTo(t, filepath.Join(dir, n), strings.Repeat("x", 1<<16))
		}
	}
	files("raw.img", "seed.iso", "code.fd", "vars.fd")
	for name, from := range map[string]string{"kernel": lab.Host(t).Guest().Kernel, "initrd": lab.Host(t).Guest().Initrd} {
		if err := os.Link(from, filepath.Join(dir, name)); err != nil {
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			writeTo(t, filepath.Join(dir, name), string(content))
		}
	}
	virsh := func(args ...string) func() { return func() { lab.Virsh(t, args...) } }
	all := func(steps ...func()) func() {
		return func() {
			for _, s := range steps {
				s()
			}
		}
	}
	nvram := dir + "/nvram.fd" // a start makes it from the template
	away := func(file string) func() {
		return func() { _ = os.Remove(nvram); moveFile(t, file, file+".away") }
	}
	back := func(file string) func() { return func() { moveFile(t, file+".away", file) } }
	if err := os.Mkdir(dir+"/share", 0o755); err != nil {
		t.Fatal(err)
	}
	poolXML := fmt.Sprintf(`<pool type='dir'><name>bootpool</name><target><path>%s</path></target></pool>`, pool)
	definePool := func() {
		defineXML(t, "pool-define", poolXML)
		all(virsh("pool-start", "bootpool"), virsh("pool-autostart", "bootpool"))()
	}
	definePool()
	defer all(virsh("pool-destroy", "bootpool"), virsh("pool-undefine", "bootpool"))()
	makeVolume := virsh("vol-create-as", "bootpool", "vol.img", "1M")
	makeVolume()
	for _, image := range [][]string{{"low"}, {"mid", "-b", pool + "/low", "-F", "qcow2"}, {"top", "-b", pool + "/mid", "-F", "qcow2"}} {
		if out, err := exec.Command("qemu-img", append([]string{"create", "-q", "-f", "qcow2", pool + "/" + image[0]}, append(image[1:], "1M")...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	disk := func(device, format, source, target string) string {
		return fmt.Sprintf(`<disk type='file' device='%s'><driver name='qemu' type='%s'/><source file='%s'/><target dev='%s' bus='%s'/></disk>`,
			device, format, source, target, map[bool]string{true: "sata", false: "virtio"}[device == "cdrom"])
	}
	defineOff(t, "bootdisks", fmt.Sprintf(`<loader readonly='yes' type='pflash'>%s/code.fd</loader><nvram template='%[1]s/vars.fd'>%[1]s/nvram.fd</nvram><kernel>%[1]s/kernel</kernel><initrd>%[1]s/initrd</initrd>`, dir),
		disk("disk", "raw", dir+"/raw.img", "vda")+disk("disk", "qcow2", pool+"/top", "vdb")+disk("cdrom", "raw", dir+"/seed.iso", "sda")+
			`<disk type='volume' device='disk'><driver name='qemu' type='raw'/><source pool='bootpool' volume='vol.img'/><target dev='vdc' bus='virtio'/></disk>`+
			fmt.Sprintf(`<filesystem type='mount'><source dir='%s/share'/><target dir='share'/></filesystem>`, dir))
	defer virsh("undefine", "bootdisks", "--nvram")()
	virsh("autostart", "bootdisks")()

	gone := func(name, file, want string) trouble {
		return trouble{name: name, cause: away(file), mend: back(file), want: []string{fmt.Sprintf(want, file)}}
	}
	tell(t, "bootdisks", []trouble{
		gone("disk", dir+"/raw.img", "disk vda: file %s is gone (put it back, or change the disk)"),
		gone("medium", dir+"/seed.iso", "disk sda: medium %s is gone (put it back, or virsh change-media bootdisks sda --eject --config)"),
		gone("kernel", dir+"/kernel", "os.kernel: file %s is gone (put it back, or change os.kernel)"),
		gone("initrd", dir+"/initrd", "os.initrd: file %s is gone (put it back, or change os.initrd)"),
		gone("loader", dir+"/code.fd", "os.loader: file %s is gone (put it back, or change os.loader)"),
		gone("template", dir+"/vars.fd", "os.nv_ram: template %s is gone (put it back, or change os.nv_ram.template: there is no NVRAM yet)"),
		gone("directory", dir+"/share", "filesystem share: directory %s is gone (put it back, or change the filesystem)"),
		gone("top of a chain", pool+"/top", "disk vdb: file %s is gone (put it back, or change the disk)"),
		gone("backing file", pool+"/mid", "disk vdb: backing file %s is gone (put it back: the image above it is of no use alone)"),
		gone("lowest of a chain", pool+"/low", "disk vdb: backing file %s is gone (put it back: the image above it is of no use alone)"),
		{
			name: "volume deleted", cause: virsh("vol-delete", "vol.img", "bootpool"), mend: makeVolume,
			want: []string{`disk vdc: volume "vol.img" of pool "bootpool" is gone (put it back, with virsh pool-refresh bootpool if it is a file that is there, or change the disk)`},
		},
		{
			name: "volume removed behind libvirt's back", cause: away(pool + "/vol.img"), mend: back(pool + "/vol.img"),
			want: []string{`disk vdc: volume "vol.img" of pool "bootpool" is gone (put it back, with virsh pool-refresh bootpool if it is a file that is there, or change the disk)`},
		},
		{
			name: "no autostart", cause: virsh("pool-autostart", "--disable", "bootpool"), mend: virsh("pool-autostart", "bootpool"), starts: true,
			want: []string{`pool "bootpool" is not set to autostart, this domain is (virsh pool-autostart bootpool)`},
		},
		{
			name: "not active", cause: virsh("pool-destroy", "bootpool"), mend: virsh("pool-start", "bootpool"),
			want: []string{`pool "bootpool" is not active, nothing that needs it can start (virsh pool-start bootpool)`},
		},
		{
			name: "undefined", cause: all(virsh("pool-destroy", "bootpool"), virsh("pool-undefine", "bootpool")), mend: definePool,
			want: []string{`pool "bootpool" does not exist, disk vdc needs it (define it, or change the disk)`},
		},
		{
			name: "transient", starts: true,
			cause: func() {
				all(virsh("pool-destroy", "bootpool"), virsh("pool-undefine", "bootpool"))()
				defineXML(t, "pool-create", poolXML)
			},
			mend: all(virsh("pool-destroy", "bootpool"), definePool),
			want: []string{`pool "bootpool" has no definition and ends with the host's next boot, this domain is set to autostart ` +
				`(virsh pool-dumpxml bootpool > FILE; virsh pool-define FILE; virsh pool-autostart bootpool)`},
		},
	})
	virsh("autostart", "--disable", "bootdisks")()
}

func TestAccBootProblems_machine(t *testing.T) {
	acctest.Case(t, "an emulator, machine type, accelerator or host device that is gone, and a managed save from before a change, show before the next start")
	dir := t.TempDir()
	virsh := func(args ...string) func() { return func() { lab.Virsh(t, args...) } }
	emulator := dir + "/qemu"
	if err := os.Symlink("/usr/bin/qemu-system-x86_64", emulator); err != nil {
		t.Fatal(err)
	}
	defineOff(t, "bootmachine", "", "<emulator>"+emulator+"</emulator>")
	defer virsh("undefine", "bootmachine")()
	tell(t, "bootmachine", []trouble{{
		name: "emulator", cause: func() { moveFile(t, emulator, emulator+".away") }, mend: func() { moveFile(t, emulator+".away", emulator) },
		want: []string{"emulator " + emulator + " is gone (install it, or change devices.emulator)"},
	}})

	// libvirt refuses to define what it cannot start, but loads it: as after an
	// upgrade of QEMU, or on a machine whose BIOS forgot the virtualisation.
	edit := func(from, to string) func() {
		return func() {
			file := filepath.Join(lab.Host(t).Dir(), "etc/qemu/bootmachine.xml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), from) {
				t.Fatalf("%s is not in\n%s", from, text)
			}
			writeTo(t, file, strings.Replace(string(text), from, to, 1))
			if err := lab.Host(t).RestartDaemon(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	machine := textBetween(lab.Virsh(t, "dumpxml", "bootmachine"), "machine='", "'")
	tell(t, "bootmachine", []trouble{
		{
			name: "machine type", cause: edit("machine='"+machine, "machine='pc-q35-1.0"), mend: edit("machine='pc-q35-1.0", "machine='"+machine),
			want: []string{`machine type "pc-q35-1.0" is not offered by ` + emulator + ` (change os.type_machine; virsh capabilities lists what is)`},
		},
		{
			name: "accelerator", cause: edit("type='qemu'", "type='kvm'"), mend: edit("type='kvm'", "type='qemu'"),
			want: []string{`virtualisation type "kvm" is not offered by this host with ` + emulator + ` (change type; virsh capabilities lists what is)`},
		},
	})

	device := func(bus string) func() {
		return func() {
			_, _ = lab.Host(t).Virsh(context.Background(), "undefine", "bootdevice")
			defineOff(t, "bootdevice", "", fmt.Sprintf(`<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='%s' slot='0' function='0'/></source></hostdev>`, bus))
		}
	}
	device("0")()
	defer virsh("undefine", "bootdevice")()
	tell(t, "bootdevice", []trouble{
		{
			name: "PCI device", cause: device("0x55"), mend: device("0"),
			want: []string{"PCI device 0000:55:00.0 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)"},
		},
		{
			name: "mediated device", mend: device("0"),
			cause: func() {
				lab.Virsh(t, "undefine", "bootdevice")
				defineOff(t, "bootdevice", "", `<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>`)
			},
			want: []string{"mediated device c2177883-f1bb-47f0-914d-32a22e3a8804 is not there (put it in place, or change the device; virsh nodedev-list shows those that are)"},
		},
	})

	defineOff(t, "bootsave", "", `<serial type='pty'/><graphics type='vnc' passwd='secret'/><interface type='network'><source network='default'/></interface>`)
	defer virsh("undefine", "bootsave")()
	virsh("start", "bootsave")()
	virsh("managedsave", "bootsave")()
	if got := problemsOf(t, "bootsave"); len(got) > 0 {
		t.Errorf("a managed save of the same definition: %q", got)
	}
	virsh("setmaxmem", "bootsave", "64M", "--config")()
	virsh("desc", "bootsave", "--config", "changed since")()
	want := []string{"a managed save would bring back an older definition at the next start, which differs in description, memory (virsh managedsave-remove bootsave drops it, with what the guest had in its memory)"}
	if got := problemsOf(t, "bootsave"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want[0])
	}
	virsh("start", "bootsave", "--paused")()
	if xml := lab.Virsh(t, "dumpxml", "bootsave"); strings.Contains(xml, "changed since") {
		t.Errorf("a false alarm: the guest has the new definition\n%s", xml)
	}
	if got := problemsOf(t, "bootsave"); len(got) > 0 {
		t.Errorf("of a guest that runs: %q", got)
	}
	virsh("destroy", "bootsave")()
}

func textBetween(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	out, _, _ := strings.Cut(rest, after)
	return out
}

func TestAccBootProblems_noFalseAlarms(t *testing.T) {
	acctest.Case(t, "a file that only the daemon sees, a file that no pool has listed yet, an image rebased behind libvirt's back, and a look-up that fails give no alarm")
	ctx := context.Background()
	pool := lab.Host(t).PoolDir()
	const private = "/var/lib/libvirt/bootprivate.img"
	onHost(t, "truncate", "-s", "1M", private)
	defer onHost(t, "rm", private)
	qemuImg := func(args ...string) {
		if out, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, image := range []string{"boot-low", "boot-mid", "boot-top"} {
		defer os.Remove(pool + "/" + image)
	}
	qemuImg("create", "-q", "-f", "qcow2", pool+"/boot-low", "1M")
	qemuImg("create", "-q", "-f", "qcow2", "-b", pool+"/boot-low", "-F", "qcow2", pool+"/boot-mid")
	qemuImg("create", "-q", "-f", "qcow2", "-b", pool+"/boot-mid", "-F", "qcow2", pool+"/boot-top")
	lab.Virsh(t, "pool-refresh", "default")
	qemuImg("rebase", "-b", pool+"/boot-low", "-F", "qcow2", pool+"/boot-top")
	if err := os.Remove(pool + "/boot-mid"); err != nil {
		t.Fatal(err)
	}
	writeTo(t, pool+"/boot-new", "x")
	defer os.Remove(pool + "/boot-new")
	disk := func(format, file, target string) string {
		return fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='%s'/><source file='%s'/><target dev='%s' bus='virtio'/></disk>`, format, file, target)
	}
	defineOff(t, "bootquiet", "", disk("raw", private, "vda")+disk("qcow2", pool+"/boot-top", "vdb")+disk("raw", pool+"/boot-new", "vdc")+
		`<disk type='file' device='cdrom'><source file='/gone/optional.iso' startupPolicy='optional'/><target dev='sda' bus='sata'/></disk>`+
		`<interface type='network'><source network='default'/></interface>`)
	defer lab.Virsh(t, "undefine", "bootquiet")
	lab.Virsh(t, "net-autostart", "default")
	lab.Virsh(t, "autostart", "bootquiet")
	if got := problemsOf(t, "bootquiet"); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	lab.Virsh(t, "start", "bootquiet", "--paused") // and rightly so
	lab.Virsh(t, "destroy", "bootquiet")

	defineOff(t, "boottrouble", "", disk("raw", pool+"/boot-never", "vda")+`<interface type='bridge'><source bridge='nobridge'/></interface>`+
		`<interface type='network'><source network='nonet'/><filterref filter='nofilter'/></interface><hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x55' slot='0' function='0'/></source></hostdev>`+
		`<disk type='volume' device='disk'><source pool='nopool' volume='v'/><target dev='vdb' bus='virtio'/></disk>`)
	defer lab.Virsh(t, "undefine", "boottrouble")
	if got := problemsOf(t, "boottrouble"); len(got) != 6 {
		t.Errorf("%d problems, want 6: %q", len(got), got)
	}
	for name, answer := range map[string]virttest.Answer{"denied": virttest.PermissionDenied, "lost": virttest.ConnectionLost, "broken": virttest.Internal("x")} {
		k, host := kindOf(t)
		s, err := k.look(ctx, "boottrouble")
		if err != nil {
			t.Fatal(err)
		}
		virttest.Install(host, virttest.Fail(virttest.Reads, answer))
		if got := k.bootProblems(ctx, s); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAccBootProblems_cost(t *testing.T) {
	acctest.Case(t, "looking for the problems of 200 domains takes no call per domain of a host that is near")
	ctx := context.Background()
	const domains = 200
	pool := lab.Host(t).PoolDir()
	_, host := kindOf(t)
	defined := make([]*virt.Domain, domains)
	lab.Virsh(t, "vol-create-as", "default", "boot-base", "1M", "--format", "qcow2")
	defer lab.Virsh(t, "vol-delete", "boot-base", "default")
	header, err := os.ReadFile(pool + "/boot-base")
	if err != nil {
		t.Fatal(err)
	}
	for i := range defined {
		name := fmt.Sprintf("bootmany%d", i)
		writeTo(t, fmt.Sprintf("%s/%s", pool, name), string(header))
		defer os.Remove(fmt.Sprintf("%s/%s", pool, name))
		var err error
		defined[i], err = host.DefineDomain(ctx, fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>32</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='%s/%[1]s'/><target dev='vda' bus='virtio'/></disk>
<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='default' volume='boot-base'/><target dev='vdb' bus='virtio'/></disk>
<interface type='network'><source network='default'/><filterref filter='clean-traffic'/></interface><interface type='bridge'><source bridge='virbr0'/></interface>
</devices></domain>`, name, pool), virt.DefineFlags{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = defined[i].Undefine(ctx, virt.UndefineFlags{}) }()
	}
	refresh := func(look func(*Kind, *sight)) (took, cpu time.Duration, calls int) {
		k, host := kindOf(t)
		if err := host.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		rec := virttest.Record(host)
		start, busy := time.Now(), cpuTime(t)
		var all sync.WaitGroup
		work := make(chan string)
		for range 10 {
			all.Go(func() {
				for uuid := range work {
					s, err := k.look(ctx, uuid)
					if err != nil {
						t.Error(err)
						continue
					}
					look(k, s)
				}
			})
		}
		for _, d := range defined {
			work <- d.UUID()
		}
		close(work)
		all.Wait()
		return time.Since(start), cpuTime(t) - busy, len(rec.Calls())
	}
	// The machine may be busy with other things: the quickest of some is it.
	best := func(look func(*Kind, *sight)) (took, cpu time.Duration, calls int) {
		took, cpu, calls = refresh(look)
		for range 4 {
			t2, c2, n := refresh(look)
			took, cpu, calls = min(took, t2), min(cpu, c2), max(calls, n)
		}
		return took, cpu, calls
	}
	without, idle, before := best(func(*Kind, *sight) {})
	with, busy, after := best(func(k *Kind, s *sight) {
		if got := k.bootProblems(ctx, s); len(got) > 0 {
			t.Errorf("%s: %q", s.name, got)
		}
	})
	t.Logf("%d domains: %s, %s of CPU and %d calls without; %s, %s of CPU and %d calls with the problems: %s more per domain, of which %s of CPU",
		domains, without, idle, before, with, busy, after, (with-without)/domains, (busy-idle)/domains)
	if after-before > 40 {
		t.Errorf("%d calls more for %d domains", after-before, domains)
	}
}

// cpuTime is what this process has used.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
