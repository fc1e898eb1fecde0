package domain_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// What libvirt answers OK to, and does not do, or does more of than it was asked.
// Of the changes known to be such, none is made live; here all the others are.

// silence is an update during which one call is answered with OK and not made.
type silence struct {
	what    string
	replace []string // of the configuration, in pairs
	op      string   // the first call of this kind is not made
	instead []string // a command of virsh that runs in its place; nil: nothing happens
	says    []string // parts of the error, in this order
}

// otherwise makes an update during which the first call of an operation is
// answered with OK, and something else happens instead of it.
func (b *bench) otherwise(t *testing.T, config tree.Value, op string, instead func()) (done kind.Done, calls []virt.Call, err error) {
	t.Helper()
	u, met := b.plan(t, config), false
	recorder := virttest.Record(b.host)
	defer recorder.Stop()
	defer virttest.Install(b.host, virttest.Instead(virttest.Nth(1, virttest.Op(op)), func(virt.Call) {
		met = true
		if instead != nil {
			instead()
		}
	}))()
	done, err = b.k.Update(context.Background(), u)
	if !met {
		t.Fatalf("the update does not %s, so that this shows nothing; it did %v", op, recorder.Writes())
	}
	return done, recorder.Writes(), err
}

func TestAccFailures_silence(t *testing.T) {
	acctest.Case(t, "whatever libvirt answers OK to during an update of a running guest and does not do, or does more of than it was asked, is found by reading back and said, nothing leaves the guest, and all is as before")
	const name, mac = "silent", "52:54:00:57:e9:11"
	pool := lab.Host(t).PoolDir()
	for _, file := range []string{"vda", "vdb", "one", "two"} {
		image(t, name+"-"+file+".raw")
	}
	ports := "<controller type='pci' index='0' model='pcie-root'/>" + strings.Repeat("<controller type='pci' model='pcie-root-port'/>", 8)
	disk := func(dev string) string {
		return fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s/%s-%s.raw'/><target dev='%s' bus='virtio'/></disk>`, pool, name, dev, dev)
	}
	b := newBench(t, name, `<title>before</title><metadata><x:site xmlns:x="urn:x" rack="7"/></metadata>
<memory unit='MiB'>128</memory><vcpu>1</vcpu><iothreads>1</iothreads><cputune><shares>1024</shares><emulatorpin cpuset='0-1'/></cputune>
<on_reboot>restart</on_reboot>`, ports+disk("vda")+fmt.Sprintf(`
<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='%s/%s-one.raw'/><target dev='sda' bus='sata'/><readonly/></disk>
<interface type='network'><mac address='%s'/><source network='default'/><model type='virtio'/><link state='up'/><filterref filter='clean-traffic'/></interface>
<graphics type='vnc' autoport='yes' passwd='before'/><rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>`, pool, name, mac))
	guest := lab.Observe(t, name)

	down := []string{"<link state='up'/>", "<link state='down'/>"}
	limits := []string{"<target dev='vda' bus='virtio'/>", "<target dev='vda' bus='virtio'/><iotune><total_iops_sec>500</total_iops_sec></iotune>"}
	rng := regexp.MustCompile(`(?s)    <rng .*?</rng>\n`).FindString(b.xml)
	card := regexp.MustCompile(`(?s)<interface .*?</interface>`).FindString(b.xml)
	unfiltered := definition(t, strings.NewReplacer("<filterref filter='clean-traffic'/>", "", down[0], down[1]).Replace(card))
	nic := "devices.interfaces[" + mac + "]."
	notTaken := func(path string) []string {
		return []string{fmt.Sprintf("The running guest of domain %q did not take %s", name, path), "libvirt accepted the change", "The previous definition is in force again"}
	}
	beside := func(path, with string) []string {
		return []string{fmt.Sprintf("%s of the guest of domain %q changed without being asked for", path, name), "It went along with " + with, "The previous definition is in force again"}
	}
	const update, metadata = "update a device of domain", "set metadata of domain"
	rows := []silence{
		{"a title", []string{"<title>before", "<title>after"}, metadata, nil, notTaken("title")},
		{"metadata", []string{`rack="7"`, `rack="8"`}, metadata, nil, notTaken("metadata.xml")},
		{"a weight", []string{"<shares>1024", "<shares>512"}, "set the CPU limits of domain", nil, notTaken("cpu_tune.shares")},
		{"a pin", []string{"cpuset='0-1'", "cpuset='0'"}, "pin the emulator of domain", nil, notTaken("cpu_tune.emulator_pin.cpu_set")},
		{"an I/O thread", []string{"<iothreads>1", "<iothreads>2"}, "add an I/O thread to domain", nil, notTaken("io_threads")},
		{"a lifecycle action", []string{"<on_reboot>restart", "<on_reboot>destroy"}, "set a lifecycle action of domain", nil, notTaken("on_reboot")},
		{"limits of a disk", limits, "set the limits of a disk of domain", nil, notTaken("devices.disks[vda].io_tune.total_iops_sec")},
		{"another medium", []string{name + "-one.raw", name + "-two.raw"}, update, nil, notTaken("devices.disks[sda].source.file.file")},
		{"a link", down, update, nil, notTaken(nic + "link.state")},
		{"a filter", []string{"<filterref filter='clean-traffic'/>", ""}, update, nil, notTaken(nic + "filter_ref.filter")},
		{"a password", []string{"passwd='before'", "passwd='after'"}, update, nil, notTaken("devices.graphics[0].vnc.passwd")},
		{"a disk that comes", []string{"  <devices>", "  <devices>" + disk("vdb")}, "attach a device to domain", nil, []string{
			"plug devices.disks[vdb] in", "libvirt accepted it, and the guest does not have it", "The previous definition is in force again",
		}},
		{"a link, before a device leaves", append([]string{rng, ""}, down...), update, nil, notTaken(nic + "link.state")},
		{"more of an interface than was asked", down, update, []string{"update-device", name, unfiltered, "--live"}, beside(nic+"filter_ref.filter", nic+"link.state")},
		{
			"more limits than were asked", limits, "set the limits of a disk of domain", []string{"blkdeviotune", name, "vda", "--total-iops-sec", "500", "--total-bytes-sec", "1048576", "--live"},
			beside("devices.disks[vda].io_tune.total_bytes_sec", "devices.disks[vda].io_tune.total_iops_sec"),
		},
		{"autostart", nil, "set autostart of domain", nil, []string{`libvirt did not take autostart of domain "` + name + `"`, "The previous definition is in force again"}},
		{"the definition", []string{"<title>before", "<title>after"}, "define domain", nil, []string{`libvirt did not take title of domain "` + name + `"`, "The previous definition is in force again"}},
	}
	configOf := func(r silence) tree.Value {
		config := b.config(t, r.replace...).SetAt("update.allow", tree.StringValue("live"))
		return config.With("autostart", tree.BoolValue(r.replace == nil))
	}
	b.plainly(t, rows, configOf)
	for _, r := range rows {
		config := configOf(r)
		done, calls, err := b.otherwise(t, config, r.op, func() {
			if r.instead != nil {
				lab.Virsh(t, r.instead...)
			}
		})
		errorSays(t, err, r.says...)
		if err == nil {
			t.Fatalf("%s: the update of a guest that did not get it is a success: %v", r.what, done.Facts.Status)
		}
		b.check(t, r.what+" is answered OK, and not done", done, err, false)
		for _, c := range calls {
			if c.Op == "detach a device from domain" {
				t.Errorf("%s: a device left the guest, although what came before it was not done", r.what)
			}
		}
	}
	guest.Untouched(t, name)
}

// plainly makes the updates of all rows, and takes them back: what they ask for
// can be done. Then it remembers how guest and definition are.
func (b *bench) plainly(t *testing.T, rows []silence, configOf func(silence) tree.Value) {
	t.Helper()
	first := b.config(t).SetAt("update.allow", tree.StringValue("live"))
	for _, r := range rows {
		if r.instead == nil {
			b.settle(t, configOf(r))
			b.settle(t, first)
		}
	}
	b.definition, b.guest = definitions(t, []string{b.name})[b.name], b.shown(t)
}
