package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// shape is a hand-made machine of testdata/machines.
type shape struct {
	name string
	// then is what is done with it once it is defined, by virsh; started is it
	// unless off says why it cannot be here, and libvirt says that with refused.
	then         [][]string
	off, refused string
}

// shapes are the machines. What cannot be started here says why; it is adopted
// all the same. In direct-kernel a guest is up and reports; the others that run
// have no system, and of them QEMU's process alone is watched.
var shapes = []shape{
	{name: "direct-kernel"},
	{name: "foreign-metadata"},
	{name: "hostdev-pci", off: "the test host has no IOMMU, and no device to give away", refused: "host doesn't support passthrough of host PCI devices"},
	{name: "hostdev-usb", off: "the test host has no USB (/sys/bus/usb)", refused: "/sys/bus/usb/devices"},
	{name: "managed-save", then: [][]string{{"managedsave", "managed-save"}}},
	{name: "many-lines"},
	{name: "network-disks", off: "the disks are on a Ceph cluster, whose secret libvirt does not have, and on a volume group that is not there", refused: "no secret with matching uuid"},
	{name: "no-relabel"},
	{name: "numa-huge-pages", off: "huge pages are set aside of a whole machine's memory, which a test host does not do, and it mounts none", refused: "hugetlbfs filesystem is not mounted"},
	{name: "numa-memory-slots"},
	{name: "odd-name", then: [][]string{{"autostart", `1st machine, "old" ${x} été`}}, off: "it is to be one that is off"},
	{name: "paused", then: [][]string{{"suspend", "paused"}}},
	{name: "pinned"},
	{name: "proxmox-like"},
	{name: "qemu-arguments"},
	{name: "router-eight-nics", then: [][]string{{"autostart", "router-eight-nics"}}},
	{name: "router-limits", off: "the kernel of the test host has no traffic control", refused: "tc qdisc add"},
	{name: "router-vlans", off: "the test host has no Open vSwitch and no interface eth9", refused: "eth9"},
	{name: "snapshots", then: [][]string{{"snapshot-create-as", "snapshots", "before-upgrade"}}},
	{name: "uefi-by-kind"},
	{name: "virt-install-cloud"},
	{name: "virt-install-debian"},
	{name: "virt-install-host-cpu", off: "the test host has no KVM, and libvirt passes the host's CPU to a guest only through that", refused: "CPU mode 'host-passthrough'"},
	{name: "virt-manager-bios"},
	{name: "virt-manager-desktop"},
	{name: "virtiofs"},
	{name: "volumes-by-name"},
	{name: "windows-11"},
}

// lan is a network that a person wrote.
const lan = `<network>
  <name>adopt-lan</name>
  <bridge name="virbr31" stp="off"/>
  <ip address="10.31.0.1" netmask="255.255.255.0">
    <dhcp>
      <range start="10.31.0.100" end="10.31.0.200"/>
      <host mac="52:54:00:ad:07:06" name="router" ip="10.31.0.6"/>
    </dhcp>
  </ip>
  <portgroup name="customers"/>
</network>
`

var image = regexp.MustCompile(`@POOL@/([a-z0-9-]+\.(qcow2|raw|img|iso))`)

// layOut makes the machines, their images and their network, by other hands than
// the provider's.
func layOut(t *testing.T) {
	t.Helper()
	h := lab.Host(t)
	file := filepath.Join(t.TempDir(), "x.xml")
	define := func(command, xml string) {
		if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Virsh(t, command, file)
	}
	define("net-define", lan)
	lab.Virsh(t, "net-start", "adopt-lan")
	if err := os.Mkdir(filepath.Join(h.PoolDir(), "share"), 0o755); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(shapeNames(), "transient") {
		xml := contents(t, filepath.Join("testdata", "machines", name+".xml"))
		for _, m := range image.FindAllStringSubmatch(xml, -1) {
			makeImage(t, filepath.Join(h.PoolDir(), m[1]))
		}
		texts[name] = strings.NewReplacer("@POOL@", h.PoolDir(), "@KERNEL@", h.Guest().Kernel, "@INITRD@", h.Guest().Initrd,
			"@CMDLINE@", h.Guest().Cmdline, "@CONSOLE@", h.ConsoleLog(name)).Replace(xml)
	}
	for _, name := range []string{"volumes-by-name.qcow2", "adopt-base.qcow2", "adopt-gone.qcow2"} {
		makeImage(t, filepath.Join(h.PoolDir(), name))
	}
	makeImage(t, filepath.Join(h.PoolDir(), "volumes-by-name-overlay.qcow2"), "-b", filepath.Join(h.PoolDir(), "adopt-base.qcow2"), "-F", "qcow2")
	lab.Virsh(t, "pool-refresh", "default")
	if err := os.Remove(filepath.Join(h.PoolDir(), "adopt-gone.qcow2")); err != nil { // the pool goes on to list it
		t.Fatal(err)
	}
	define("create", texts["transient"])
	for _, s := range shapes {
		define("define", texts[s.name])
		s.start(t)
	}
	lab.Observe(t, "direct-kernel") // its guest is up
	for _, s := range shapes {
		for _, command := range s.then {
			lab.Virsh(t, command...)
		}
	}
}

// start starts a machine, or shows that it cannot be started, for the reason that
// is given.
func (s shape) start(t *testing.T) {
	t.Helper()
	if s.off != "" && s.refused == "" {
		return
	}
	_, err := lab.Host(t).Virsh(context.Background(), "start", s.name)
	switch {
	case s.refused == "" && err != nil:
		t.Fatal(err)
	case s.refused != "" && err == nil:
		t.Logf("%s can be started here, though elsewhere %s", s.name, s.off)
	case s.refused != "" && !strings.Contains(err.Error(), s.refused):
		t.Errorf("%s: %s, it says here, and libvirt says: %v", s.name, s.off, err)
	}
}

func makeImage(t *testing.T, file string, args ...string) {
	t.Helper()
	format := "raw"
	if strings.HasSuffix(file, ".qcow2") {
		format = "qcow2"
	}
	argv := append([]string{"create", "-q", "-f", format}, args...)
	argv = append(argv, file)
	if args == nil {
		argv = append(argv, "8M")
	}
	if out, err := exec.Command("qemu-img", argv...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func shapeNames() (all []string) {
	for _, s := range shapes {
		all = append(all, s.name)
	}
	return all
}

// picture is all that virsh says of the host and of what runs on it, to the
// byte, with QEMU's processes.
type picture map[string]string

func takePicture(t *testing.T) picture {
	t.Helper()
	p := picture{}
	note := func(args ...string) { p[strings.Join(args, " ")] = lab.Virsh(t, args...) }
	uuids := func(args ...string) []string { return strings.Fields(lab.Virsh(t, args...)) }
	for _, uuid := range uuids("list", "--all", "--uuid") {
		for _, command := range []string{"domid", "domstate --reason", "dumpxml --security-info", "dumpxml --inactive --security-info", "dominfo", "snapshot-list"} {
			note(append(strings.Fields(command), uuid)...)
		}
	}
	for _, uuid := range uuids("net-list", "--all", "--uuid") {
		note("net-dumpxml", uuid)
		note("net-dumpxml", "--inactive", uuid)
		note("net-info", uuid)
	}
	note("pool-dumpxml", "default") // with the space that is free: a refresh would tell of another
	note("pool-dumpxml", "--inactive", "default")
	note("vol-list", "default")
	files, err := os.ReadDir(lab.Host(t).PoolDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Type().IsRegular() && strings.Contains(p["vol-list default"], " "+f.Name()+" ") {
			p["XML of "+f.Name()] = accessTime.ReplaceAllString(lab.Virsh(t, "vol-dumpxml", "--pool", "default", f.Name()), "")
			p["file "+f.Name()] = fileFacts(t, filepath.Join(lab.Host(t).PoolDir(), f.Name()))
		}
	}
	machines, err := lab.Host(t).Machines()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		p["QEMU of "+m.Name] = fmt.Sprintf("process %d since %d", m.PID, m.Start)
	}
	return p
}

// fileFacts are what a file is: bytes, place on the disk, owner, mode and the times
// of changes.
func fileFacts(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("stat", "--format", "inode %i, mode %a, owner %u:%g, %s bytes in %b blocks, written %y, changed %z", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x %s", sha256.Sum256(content), out)
}

// cpuTime moves by itself, and so does the time at which a file was last read.
var (
	cpuTime    = regexp.MustCompile(`(?m)^CPU time:.*$`)
	accessTime = regexp.MustCompile(`<atime>.*</atime>`)
)

// unchanged fails the test if anything is not as it was.
func (p picture) unchanged(t *testing.T, after string) {
	t.Helper()
	now := takePicture(t)
	for what, was := range p {
		if a, b := cpuTime.ReplaceAllString(was, ""), cpuTime.ReplaceAllString(now[what], ""); a != b {
			t.Errorf("after %s, %s is not as it was:\n%s\nnow:\n%s", after, what, a, b)
		}
	}
	for what := range now {
		if _, known := p[what]; !known {
			t.Errorf("after %s, there is %s", after, what)
		}
	}
}

// again defines what is written of a machine as another machine, and returns what
// would be written of that.
func again(t *testing.T, r *reader, o *object) *object {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := "again-" + o.name
	xml, err := roots[kindDomain]().Encode(o.essence.With("name", text(name)))
	if err != nil {
		t.Errorf("%s: what is written of it cannot be given to libvirt: %v", o.name, err)
		return nil
	}
	file := filepath.Join(t.TempDir(), "again.xml")
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := lab.Host(t).Virsh(ctx, "define", file); err != nil {
		t.Errorf("%s: libvirt does not take what is written of it: %v\n%s", o.name, err, out)
		return nil
	}
	defer lab.Virsh(t, "undefine", name)
	all, err := r.handles(ctx, kindDomain)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(h handle) bool { return h.name == name })
	made, _, err := r.read(ctx, all[i])
	if err != nil {
		t.Fatal(err)
	}
	return made
}
