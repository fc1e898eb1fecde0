package domain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// barren is a host that has one active network and pool, one of each that is off,
// and nothing else of what these definitions name.
func barren() *fakeView {
	f := &fakeView{
		networks: map[string]virt.NetworkStanding{"lan": {Standing: settledStanding}, "off": {Standing: offStanding}},
		pools:    map[string]virt.PoolStanding{"p": {Standing: settledStanding, Target: "/p"}, "off": {Standing: offStanding}, "nfs": {Standing: offStanding, Type: "netfs", Target: "/nfs"}},
		gone:     []string{"/gone", "/gone2", "/base", "/nfs/a", "p:gone", "/usr/bin/gone"},
		below:    map[string]string{"/over": "/base"},
		noLinks:  []string{"br9"},
		offers:   refuses(func(o virt.Offer) bool { return o.Machine == "pc-q35-99" }),
		usb:      []virt.USBDevice{{Bus: 1, Device: 1, Vendor: "0x1d6b", Product: "0x0002"}},
		devices:  []string{"pci_0000_00_00_0"},
	}
	return f
}

func domainWith(os, devices string) string {
	return "<domain type='qemu'><name>d</name><os><type arch='x86_64' machine='q35'>hvm</type>" + os + "</os><devices>" + devices + "</devices></domain>"
}

// diskXML is a disk with a cache, so that something beside its source can change.
func diskXML(target, file, cache string) string {
	return fmt.Sprintf("<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='%s'/><source file='%s'/><target dev='%s'/></disk>", cache, file, target)
}

func nicXML(mac, network string) string {
	return fmt.Sprintf("<interface type='network'><mac address='52:54:00:00:00:%s'/><source network='%s'/></interface>", mac, network)
}

func TestWhatAnApplyRefuses(t *testing.T) {
	volume := func(pool, name string) string {
		return fmt.Sprintf("<disk type='volume' device='disk'><source pool='%s' volume='%s'/><target dev='vdv'/></disk>", pool, name)
	}
	const share = "<filesystem type='mount'><source dir='%s'/><target dir='%s'/></filesystem>"
	type row struct {
		before, now string // devices; before "none": a creation
		osB, osN    string
		starts      bool
		gets        string // the element that the running guest gets
		want        []string
	}
	over := func(below string) string {
		return strings.Replace(diskXML("vda", "/top", "none"), "</disk>", "<backingStore type='file'><format type='qcow2'/><source file='"+below+"'/></backingStore></disk>", 1)
	}
	cases := map[string]row{
		"a disk is told another backing file": {before: over("/gone"), now: over("/gone2"), want: []string{"backing file /gone2 does not exist"}},
		"a disk keeps its backing file":       {before: over("/gone"), now: over("/gone")},
		"creation":                            {before: "none", now: nicXML("01", "x") + diskXML("vda", "/gone", "none"), want: []string{`network "x" does not exist`, "file /gone does not exist"}},
		"creation with all":                   {before: "none", now: nicXML("01", "lan") + diskXML("vda", "/there", "none")},
		"nothing changes":                     {before: nicXML("01", "x") + diskXML("vda", "/gone", "none"), now: nicXML("01", "x") + diskXML("vda", "/gone", "none")},
		"something else of the disk":          {before: diskXML("vda", "/gone", "none"), now: diskXML("vda", "/gone", "writeback")},
		"the disk moves in the list":          {before: diskXML("vda", "/gone", "none") + diskXML("vdb", "/b", "none"), now: diskXML("vdb", "/b", "none") + diskXML("vda", "/gone", "none")},
		"the disk gets another target":        {before: diskXML("vda", "/gone", "none"), now: diskXML("vdb", "/gone", "none")},
		"another disk comes beside it":        {before: diskXML("vda", "/gone", "none"), now: diskXML("vda", "/gone", "none") + diskXML("vdb", "/there", "none")},
		"another disk that is gone as well":   {before: diskXML("vda", "/gone", "none"), now: diskXML("vdb", "/gone2", "none") + diskXML("vda", "/gone", "none"), want: []string{"file /gone2 does not exist"}},
		"the same file once more":             {before: diskXML("vda", "/gone", "none"), now: diskXML("vdb", "/gone", "none") + diskXML("vda", "/gone", "none"), want: []string{"file /gone does not exist"}},
		"a disk is given another file":        {before: diskXML("vda", "/there", "none"), now: diskXML("vda", "/gone", "none"), want: []string{"file /gone does not exist"}},
		"a disk gets back a file":             {before: diskXML("vda", "/gone", "none"), now: diskXML("vda", "/there", "none")},
		"a file whose backing file is gone":   {before: diskXML("vda", "/there", "none"), now: diskXML("vda", "/over", "none"), want: []string{"backing file /base does not exist"}},
		"the backing file went since":         {before: diskXML("vda", "/over", "none"), now: diskXML("vda", "/over", "writeback")},
		"an interface joins a missing one":    {before: nicXML("01", "x"), now: nicXML("01", "x") + nicXML("02", "x"), want: []string{`network "x" does not exist`}},
		"the first of two goes":               {before: nicXML("01", "lan") + nicXML("02", "x"), now: nicXML("02", "x")},
		"networks are exchanged":              {before: nicXML("01", "lan") + nicXML("02", "x"), now: nicXML("01", "x") + nicXML("02", "lan")},
		"a bridge":                            {before: "", now: "<interface type='bridge'><source bridge='br9'/></interface>", want: []string{`bridge "br9" does not exist on the host`}},
		"a filter":                            {before: nicXML("01", "lan"), now: strings.Replace(nicXML("01", "lan"), "</interface>", "<filterref filter='none'/></interface>", 1), want: []string{`network filter "none" does not exist`}},
		"a portgroup is no reason":            {before: "", now: "<interface type='network'><source network='lan' portgroup='none'/></interface>"},
		"pool and volume":                     {before: "none", now: volume("none", "v") + volume("p", "gone"), want: []string{`pool "none" does not exist`, `volume "gone" of pool "p" does not exist`}},
		"a volume moves to a missing one":     {before: volume("p", "v"), now: volume("p", "gone"), want: []string{`volume "gone" of pool "p" does not exist`}},
		"a network that is off, later":        {before: "", now: nicXML("01", "off")},
		"a network that is off, live":         {before: "", now: nicXML("01", "off"), gets: "52:54:00:00:00:01", want: []string{`network "off" is not active`}},
		"a network that is off, another live": {before: "", now: nicXML("01", "off"), gets: "52:54:00:00:00:02"},
		"a network that is off, at a start":   {before: "none", now: nicXML("01", "off"), starts: true, want: []string{`network "off" is not active`}},
		"a pool that is off, later":           {before: "", now: volume("off", "v")},
		"a pool that is off, at a start":      {before: "", now: volume("off", "v"), starts: true, want: []string{`pool "off" is not active`}},
		"a file of a pool that is off":        {before: "", now: diskXML("vda", "/nfs/a", "none")},
		"the same, at a start":                {before: "", now: diskXML("vda", "/nfs/a", "none"), starts: true, want: []string{"file /nfs/a does not exist"}},
		"a start of what it had":              {before: diskXML("vda", "/gone", "none"), now: diskXML("vda", "/gone", "none"), starts: true, want: []string{"file /gone does not exist"}},
		"a share":                             {before: "", now: fmt.Sprintf(share, "/gone", "s"), want: []string{"directory /gone does not exist"}},
		"a share by another name":             {before: fmt.Sprintf(share, "/gone", "s"), now: fmt.Sprintf(share, "/gone", "t")},
		"kernel and initrd":                   {osB: "<kernel>/gone</kernel>", osN: "<kernel>/gone</kernel><initrd>/gone2</initrd>", want: []string{"file /gone2 does not exist"}},
		"loader":                              {osB: "<loader>/there</loader>", osN: "<loader>/gone</loader>", want: []string{"file /gone does not exist"}},
		"template without an NVRAM":           {before: "", osN: "<nvram template='/gone'/>", want: []string{"template /gone does not exist"}},
		"template with an NVRAM":              {before: "", osN: "<nvram template='/gone'>/there</nvram>"},
		"a USB device, later":                 {before: "", now: "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/><product id='0x2'/></source></hostdev>"},
		"a USB device, at a start":            {before: "", now: "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/><product id='0x2'/></source></hostdev>", starts: true, want: []string{"USB device 0x1:0x2 is not there"}},
		"a PCI device":                        {before: "", now: "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='9' slot='0' function='0'/></source></hostdev>", want: []string{"PCI device 0000:09:00.0 is not there"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := flight{name: "d", old: domainWith(c.osB, c.before), starts: c.starts, gets: func(_, key string) bool { return c.gets != "" && key == c.gets }}
			if c.before == "none" {
				f.old = ""
			}
			found, err := refusedIn(context.Background(), barren(), f, domainWith(c.osN, c.now))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range found {
				got = append(got, one.what)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRefusalOfAMachine(t *testing.T) {
	old := domainWith("", "")
	now := strings.Replace(old, "q35", "pc-q35-99", 1)
	found, err := refusedIn(context.Background(), barren(), flight{name: "d", old: old}, now)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	p := found[0].refusal(context.Background(), barren(), "d", tree.NullValue)
	if want := `os.type_machine is "pc-q35-99". Machine types of the emulator: pc, pc-q35-7.1, pc-q35-7.2, q35. The way out: change os.type_machine; virsh capabilities lists what is. Nothing was changed.`; p.Detail != want {
		t.Errorf("got  %s\nwant %s", p.Detail, want)
	}
	// The same machine once more, though the emulator changes to nothing worse.
	found, err = refusedIn(context.Background(), barren(), flight{name: "d", old: now}, strings.Replace(now, "<memory", "<title/><memory", 1))
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A refusal names domain, attribute, value, what there is, and the way out; the
// path leads into the configuration, whatever the order in the document.
func TestRefusalSaysAll(t *testing.T) {
	host := barren()
	for i := range 9 {
		host.networks[fmt.Sprintf("net%d", i)] = virt.NetworkStanding{Standing: settledStanding}
	}
	config, err := spec.Domain().Decode(domainWith("", diskXML("vdb", "/there", "none")+diskXML("vda", "/gone", "none")+nicXML("01", "lan")+nicXML("02", "net99")+
		"<disk type='volume'><source pool='p' volume='gone'/><target dev='vdc'/></disk>"+"<interface type='bridge'><source bridge='br9'/></interface>"))
	if err != nil {
		t.Fatal(err)
	}
	now := domainWith("", "<disk type='volume'><source pool='p' volume='gone'/><target dev='vdc'/></disk>"+diskXML("vda", "/gone", "none")+nicXML("02", "net99")+"<interface type='bridge'><source bridge='br9'/></interface>")
	found, err := refusedIn(context.Background(), host, flight{name: "d"}, now)
	if err != nil || len(found) != 4 {
		t.Fatalf("%v, %v", found, err)
	}
	want := map[string]string{
		"devices.disks[vda].source.file.file": `devices.disks[vda].source.file.file is "/gone". The way out: put it there, or change the attribute. Nothing was changed.`,
		"devices.disks[vdc].source.volume.volume": `devices.disks[vdc].source.volume.volume is "gone". Volumes of pool "p": p-a, p-b. The way out: create the volume first, and name it by a reference (libvirt_volume.x.name) ` +
			`so that the core knows the order, or name another one; if it is a file that is there, virsh pool-refresh p. Nothing was changed.`,
		"devices.interfaces[52:54:00:00:00:02].source.network.network": `devices.interfaces[52:54:00:00:00:02].source.network.network is "net99". Networks of the host: net0, net1, net2, net3, net4, net5 and 5 more. ` +
			`The way out: create the network first, and name it by a reference (libvirt_network.x.name) so that the core knows the order, or name another one. Nothing was changed.`,
		"devices.interfaces[2].source.bridge.bridge": `devices.interfaces[2].source.bridge.bridge is "br9". Bridges of the host: br0, br1. The way out: create it on the host first, or name another one. Nothing was changed.`,
	}
	for _, f := range found {
		p := f.refusal(context.Background(), host, "d", config)
		if w, ok := want[p.Path.String()]; !ok || p.Detail != w {
			t.Errorf("at %s\ngot  %s\nwant %s", p.Path, p.Detail, w)
		}
		if !strings.HasPrefix(p.Summary, `Domain "d" cannot start as configured: `) {
			t.Errorf("summary %s", p.Summary)
		}
		if got := config.Get(p.Path).Str(); got != f.ref.value {
			t.Errorf("%s leads to %q, not to %q", p.Path, got, f.ref.value)
		}
	}
}

func TestChoices(t *testing.T) {
	for _, c := range []struct {
		choices choices
		written string
		want    string
	}{
		{choices{}, "x", ""},
		{choices{title: "Pools"}, "x", "Pools: none. "},
		{choices{"Pools", []string{"b", "a", "b"}}, "x", "Pools: a, b. "},
		{choices{"Models", []string{"a1", "b1", "c1", "Haswell", "d1", "e1", "f1", "Haswell-noTSX", "Broadwell"}}, "haswel", "Models: Haswell, Broadwell, a1, e1, b1, c1 and 3 more. "},
	} {
		if got := c.choices.sentence(c.written); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
