package domain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// seats are the devices of a kind in a domain's XML, in its order: a name of each,
// and its place on the PCI bus.
func seats(t testing.TB, kind, named string, dumpxml ...string) (out []string) {
	t.Helper()
	for _, elem := range regexp.MustCompile(`(?s)<`+kind+`[ >].*?</`+kind+`>`).FindAllString(lab.Virsh(t, append([]string{"dumpxml"}, dumpxml...)...), -1) {
		name := kind
		if m := regexp.MustCompile(named + `='([^']+)'`).FindStringSubmatch(elem); m != nil {
			name = m[1]
		}
		place := regexp.MustCompile(`bus='0x..' slot='0x..'`).FindString(elem)
		if place == "" {
			t.Fatalf("a %s has no place on the PCI bus:\n%s", kind, elem)
		}
		out = append(out, name+" "+place)
	}
	return out
}

func TestAccDevices_exactlyOneGoes(t *testing.T) {
	core := acctest.Case(t, "of three interfaces the first, of three disks the middle one, of two rng devices that are alike but for their addresses the first, of two identical ones the last: exactly that one goes, and MACs, PCI addresses and order of the rest stay, on the host and in state")
	const name, alike = "exactly", "exactly-alike"
	forget(t, name, alike)
	for _, dev := range []string{"vda", "vdb", "vdc"} {
		image(t, name+"-"+dev+".raw")
	}
	nic := func(n int) string {
		return fmt.Sprintf(`{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = "default" } } }`, macOf(name, n))
	}
	body := func(interfaces, devs, rngs, alikeRNGs string) string {
		return machine{name: name, more: pluggable, devices: ports(12) + "\n interfaces = [" + interfaces + "]\n disks = [" + devs + "]\n rngs = [" + rngs + "]"}.block(t) +
			machine{name: alike, more: pluggable, devices: ports(6) + "\n rngs = [" + alikeRNGs + "]"}.block(t)
	}
	on := func(bus int) string {
		return strings.TrimSuffix(rng, "}") + fmt.Sprintf(", address = { pci = { domain = 0, bus = %d, slot = 0, function = 0 } } }", bus)
	}
	a, b, c := disk(t, name, "vda", ""), disk(t, name, "vdb", ""), disk(t, name, "vdc", "")
	p := project(t, core, body(nic(1)+", "+nic(2)+", "+nic(3), a+", "+b+", "+c, on(9)+", "+on(10), rng+", "+rng))
	p.Must(0, "apply", "-auto-approve")
	kinds := []struct {
		domain, kind, named string
		list                string
		all, goes           int // how many there are, and which of them goes
	}{
		{name, "interface", "address", "devices.interfaces", 3, 0},
		{name, "disk", "dev", "devices.disks", 3, 1},
		{name, "rng", "none", "devices.rngs", 2, 0},
		{alike, "rng", "none", "devices.rngs", 2, 1},
	}
	look := func() (host, inactive, state [][]string) {
		s := tell(t, p)
		for _, k := range kinds {
			host = append(host, seats(t, k.kind, k.named, k.domain))
			inactive = append(inactive, seats(t, k.kind, k.named, "--inactive", k.domain))
			var devices []string
			all, _ := at(s.state(k.domain), k.list).([]any)
			for _, device := range all {
				devices = append(devices, fmt.Sprint(device))
			}
			state = append(state, devices)
		}
		return host, inactive, state
	}
	guest, other := lab.Observe(t, name), lab.Observe(t, alike)
	host, inactive, state := look()
	for i, k := range kinds {
		for where, all := range map[string]*[]string{"the guest": &host[i], "the definition": &inactive[i], "state": &state[i]} {
			if len(*all) != k.all {
				t.Fatalf("%s of %s has of the kind %s %q", where, k.domain, k.kind, *all)
			}
			*all = slices.Delete(*all, k.goes, k.goes+1)
		}
	}
	configure(t, p, body(nic(2)+", "+nic(3), a+", "+c, on(10), rng))
	s := tell(t, p)
	plans(t, s, name, "devices.disks[vdb]: removed live", "devices.interfaces["+macOf(name, 1)+"]: removed live", "devices.rngs[0]: removed live")
	plans(t, s, alike, "devices.rngs[1]: removed live")
	p.Must(0, "apply", "plan")
	p.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, name)
	other.Untouched(t, alike)
	hostNow, inactiveNow, stateNow := look()
	for i, k := range kinds {
		for where, sides := range map[string][2][]string{"the guest": {host[i], hostNow[i]}, "the definition": {inactive[i], inactiveNow[i]}, "state": {state[i], stateNow[i]}} {
			if want, got := sides[0], sides[1]; !slices.Equal(got, want) {
				t.Errorf("%s of %s has of the kind %s %q, want %q", where, k.domain, k.kind, got, want)
			}
		}
	}
}

func TestAccDevices_late(t *testing.T) {
	core := acctest.Case(t, "a guest that does not let go of a device is not forced: the apply says so, the device is pending, and gone once the guest follows")
	const name = "late"
	forget(t, name)
	with, without := machine{name: name, more: pluggable, devices: ports(6) + "\n rngs = [" + rng + "]"}.block(t), machine{name: name, more: pluggable, devices: ports(6) + "\n rngs = []"}.block(t)
	p := project(t, core, with)
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	lab.Virsh(t, "suspend", name)
	configure(t, p, without)
	out := p.Must(0, "apply", "-auto-approve")
	if !lab.Says(`The guest of "late" has not let go of devices.rngs[0] yet`).MatchString(out) {
		t.Errorf("nobody says that it is late:\n%s", out)
	}
	s := tell(t, p)
	plans(t, s, name)
	if got := words(s.state(name), "status.pending"); !slices.Equal(got, []string{"devices.rngs[0]"}) {
		t.Errorf("pending is %q", got)
	}
	if got := fmt.Sprint(at(s.state(name), "status.last_steps")); !strings.Contains(got, "deferred") {
		t.Errorf("the steps are %s", got)
	}
	lab.Virsh(t, "resume", name)
	unplug("<rng", "domstate $")(t, name)
	s = tell(t, p)
	plans(t, s, name)
	if got := words(s.state(name), "status.pending"); len(got) > 0 {
		t.Errorf("pending is %q", got)
	}
	guest.Untouched(t, name)
}

func TestAccDevices_strangers(t *testing.T) {
	core := acctest.Case(t, "an apply touches no device that is not its own: one of the same name that somebody plugged in, a medium that somebody inserted, a network that libvirt shows as its bridge")
	const name = "strange"
	forget(t, name)
	file := filepath.Join(t.TempDir(), "network.xml")
	if err := os.WriteFile(file, []byte(`<network><name>bridged</name><forward mode="bridge"/><bridge name="virbr0"/></network>`), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "net-define", file)
	lab.Virsh(t, "net-start", "bridged")
	t.Cleanup(func() { lab.Virsh(t, "net-destroy", "bridged"); lab.Virsh(t, "net-undefine", "bridged") })
	image(t, name+"-vdb.raw")
	seed, rescue, theirs := image(t, name+"-seed.raw"), image(t, name+"-rescue.raw"), image(t, name+"-theirs.raw")
	body := func(cd, nic string, devs ...string) string {
		cdrom := fmt.Sprintf(`{ device = "cdrom", driver = { name = "qemu", type = "raw" }, source = { file = { file = %q } %s }, target = { dev = "sda", bus = "sata" }, readonly = true }`, seed, cd)
		return machine{name: name, more: pluggable, devices: ports(6) + "\n" + disks(append(devs, cdrom)...) + fmt.Sprintf(`
    interfaces = [{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = "bridged" } }%s }]`, macOf(name, 1), nic)}.block(t)
	}
	p := project(t, core, body("", "", disk(t, name, "vdb", "")))
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	lab.Virsh(t, "change-media", name, "sda", rescue, "--update", "--live")
	unplug("-vdb.raw", "detach-disk $ vdb --live")(t, name)
	lab.Virsh(t, "attach-disk", name, theirs, "vdb", "--live")

	configure(t, p, body(`, startup_policy = "optional"`, `, filter_ref = { filter = "no-mac-spoofing" }`))
	s := tell(t, p)
	plans(t, s, name, "devices.disks[sda].source.startup_policy: live", "devices.disks[vdb]: removed next_boot", "devices.interfaces["+macOf(name, 1)+"].filter_ref.filter: live")
	p.Must(0, "apply", "plan")
	p.Must(0, "plan", "-detailed-exitcode")
	guest.Untouched(t, name)
	xml := lab.Virsh(t, "dumpxml", name)
	for _, text := range []string{rescue, theirs, "network='bridged'", "filter='no-mac-spoofing'"} {
		if !strings.Contains(xml, text) {
			t.Errorf("the guest has no %s:\n%s", text, xml)
		}
	}
}

func TestAccDevices_takenBack(t *testing.T) {
	core := acctest.Case(t, "if one device cannot be plugged in, all is taken back: what came leaves, what changed is as before, and nothing had left")
	const name = "takenback"
	forget(t, name)
	image(t, name+"-vda.raw")
	body := func(link, rngs string, devs ...string) string {
		return machine{name: name, more: pluggable, devices: ports(8) + "\n" + disks(devs...) + "\n rngs = [" + rngs + "]" + fmt.Sprintf(`
    interfaces = [{ mac = { address = %q }, model = { type = "virtio" }, source = { network = { network = "default" } }, link = { state = %q } }]`, macOf(name, 1), link)}.block(t)
	}
	const lock = `<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vda' bus='virtio'/></disk>`
	hold, _ := occupied(t, fmt.Sprintf(lock, image(t, name+"-vdb.raw")))
	p := project(t, core, body("up", rng, disk(t, name, "vda", "")))
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	before := []string{lab.Virsh(t, "dumpxml", name), lab.Virsh(t, "dumpxml", "--inactive", name)}
	configure(t, p, body("down", "", disk(t, name, "vda", ""), disk(t, name, "vdb", "")))
	hold(t, "")
	out := p.Must(1, "apply", "-auto-approve")
	if !lab.Says("plug devices.disks[vdb] in", `Failed to get "write" lock`, "The previous definition is in force again").MatchString(out) {
		t.Errorf("the error does not say what happened:\n%s", out)
	}
	guest.Untouched(t, name)
	plain := regexp.MustCompile(` index='\d+'`)
	for i, args := range [][]string{{name}, {"--inactive", name}} {
		if got := lab.Virsh(t, append([]string{"dumpxml"}, args...)...); plain.ReplaceAllString(got, "") != plain.ReplaceAllString(before[i], "") {
			t.Errorf("dumpxml %v was\n%s\nand is\n%s", args, before[i], got)
		}
	}
	configure(t, p, body("up", rng, disk(t, name, "vda", "")))
	p.Must(0, "plan", "-detailed-exitcode")
}

func TestAccDevices_importedWhilePending(t *testing.T) {
	core := acctest.Case(t, "a device that waits for the next start when a machine is imported goes on waiting: the plan is empty, and the guest is not touched")
	const name = "waiting"
	forget(t, name)
	m := machine{name: name, more: pluggable, devices: ports(6)}
	p := project(t, core, m.block(t))
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, name)
	lab.Virsh(t, "attach-disk", name, image(t, name+"-vdb.raw"), "vdb", "--config", "--cache", "none", "--driver", "qemu", "--subdriver", "raw")
	p.Must(0, "state", "rm", "libvirt_domain."+name)
	m.devices += "\n" + disks(disk(t, name, "vdb", ""))
	configure(t, p, m.block(t))
	p.Must(0, "import", "libvirt_domain."+name, name)
	s := tell(t, p)
	plans(t, s, name)
	if got := words(s.state(name), "status.pending"); !slices.Contains(got, "devices.disks[vdb]") {
		t.Errorf("pending is %q", got)
	}
	p.Must(0, "apply", "plan")
	guest.Untouched(t, name)
	if xml := lab.Virsh(t, "dumpxml", name); strings.Contains(xml, "vdb") {
		t.Errorf("the guest has the disk:\n%s", xml)
	}
}
