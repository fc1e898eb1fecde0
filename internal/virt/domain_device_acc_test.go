package virt_test

import (
	"context"
	"encoding/xml"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// roomy has a slot for everything that can be plugged in.
func roomy() machine {
	return machine{
		memory: `<maxMemory slots="4" unit="MiB">2048</maxMemory><memory unit="MiB">256</memory><memoryBacking><source type="memfd"/><access mode="shared"/></memoryBacking>`,
		cpu:    `<cpu><numa><cell id="0" cpus="0" memory="262144"/></numa></cpu>`,
		devices: `<controller type="scsi" index="0" model="virtio-scsi"/><controller type="usb" model="qemu-xhci"/><controller type="pci" model="pcie-root"/>` +
			strings.Repeat(`<controller type="pci" model="pcie-root-port"/>`, 20) + `<controller type="pci" model="pcie-to-pci-bridge"/>`,
	}
}

// deviceXML is the content of the device of that alias, "" if there is none.
func deviceXML(t testing.TB, document, alias string) string {
	t.Helper()
	var d struct {
		Devices struct {
			All []struct {
				Inner string `xml:",innerxml"`
				Alias struct {
					Name string `xml:"name,attr"`
				} `xml:"alias"`
			} `xml:",any"`
		} `xml:"devices"`
	}
	try(t, xml.Unmarshal([]byte(document), &d))
	for _, dev := range d.Devices.All {
		if dev.Alias.Name == alias {
			return dev.Inner
		}
	}
	return ""
}

var addressElement = regexp.MustCompile(`<address [^>]*>`)

// away waits until the guest has let go of a device.
func away(t testing.TB, d *virt.Domain, alias string) {
	t.Helper()
	begin := time.Now()
	until(t, "the guest lets go of "+alias, 4*time.Minute, func() bool { l, _ := sides(t, d); return deviceXML(t, l, alias) == "" })
	t.Logf("%s is gone after %s", alias, time.Since(begin).Round(time.Millisecond))
}

func blank(t testing.TB, size int64) string {
	t.Helper()
	f := got(os.CreateTemp(t.TempDir(), "blank"))(t)
	try(t, f.Truncate(size))
	try(t, f.Close())
	return f.Name()
}

func diskXML(t testing.TB, kind, target, bus string) string {
	return `<disk type="file" device="` + kind + `"><driver name="qemu" type="raw"/><source file="` + blank(t, 1<<20) + `"/><target dev="` + target + `" bus="` + bus + `"/>ALIAS</disk>`
}

func TestAccDomainDevice_attach(t *testing.T) {
	acctest.Case(t, "which kinds of devices can be plugged into a running guest, which only into the definition, which not at all")
	ctx := context.Background()
	dir := t.TempDir()
	d, _ := roomy().boot(t, "sockets")
	const no, unsure = virt.ErrUnsupported, virt.ErrInternal // libvirt knows, or learns from QEMU
	for _, c := range []struct {
		name, xml    string
		live, config int // codes, 0 if it works
	}{
		{"disk-virtio", diskXML(t, "disk", "vdb", "virtio"), 0, 0},
		{"disk-scsi", diskXML(t, "disk", "sdb", "scsi"), 0, 0},
		{"disk-usb", diskXML(t, "disk", "sdc", "usb"), 0, 0},
		{"cdrom-scsi", diskXML(t, "cdrom", "sde", "scsi"), 0, 0},
		{"network", `<interface type="network"><source network="default"/><model type="virtio"/>ALIAS</interface>`, 0, 0},
		{"bridge", `<interface type="bridge"><source bridge="virbr0"/><model type="e1000e"/>ALIAS</interface>`, 0, 0},
		{"user", `<interface type="user"><model type="virtio"/>ALIAS</interface>`, 0, 0},
		{"virtiofs", `<filesystem type="mount"><driver type="virtiofs"/><source dir="` + dir + `"/><target dir="share"/>ALIAS</filesystem>`, 0, 0},
		{"channel", `<channel type="unix"><target type="virtio" name="org.example.x"/>ALIAS</channel>`, 0, 0},
		{"console", `<console type="pty"><target type="virtio"/>ALIAS</console>`, 0, 0},
		{"serial-pci", `<serial type="pty"><target type="pci-serial"><model name="pci-serial"/></target>ALIAS</serial>`, 0, 0},
		{"serial-usb", `<serial type="pty"><target type="usb-serial"><model name="usb-serial"/></target>ALIAS</serial>`, 0, 0},
		{"rng", `<rng model="virtio"><backend model="random">/dev/urandom</backend>ALIAS</rng>`, 0, 0},
		{"watchdog", `<watchdog model="i6300esb" action="none">ALIAS</watchdog>`, 0, 0},
		{"shmem", `<shmem name="sm"><model type="ivshmem-plain"/><size unit="M">4</size>ALIAS</shmem>`, 0, 0},
		{"redirdev", `<redirdev bus="usb" type="tcp"><source mode="bind" host="127.0.0.1" service="0"/>ALIAS</redirdev>`, 0, 0},
		{"input-usb", `<input type="tablet" bus="usb">ALIAS</input>`, 0, 0},
		{"input-virtio", `<input type="keyboard" bus="virtio">ALIAS</input>`, 0, 0},
		{"scsi-controller", `<controller type="scsi" index="5" model="virtio-scsi">ALIAS</controller>`, 0, 0},

		{"disk-sata", diskXML(t, "disk", "sdd", "sata"), unsure, 0},
		{"cdrom-sata", diskXML(t, "cdrom", "sdf", "sata"), unsure, 0},
		{"floppy", diskXML(t, "floppy", "fda", "fdc"), no, 0},
		{"9p", `<filesystem type="mount"><source dir="` + dir + `"/><target dir="nine"/>ALIAS</filesystem>`, no, 0},
		{"serial-isa", `<serial type="pty"><target type="isa-serial"/>ALIAS</serial>`, unsure, 0},
		{"parallel", `<parallel type="pty">ALIAS</parallel>`, unsure, 0},
		{"usb-controller", `<controller type="usb" index="5" model="qemu-xhci">ALIAS</controller>`, no, 0},
		{"channel-controller", `<controller type="virtio-serial" index="5">ALIAS</controller>`, no, 0},
		{"root-port", `<controller type="pci" index="40" model="pcie-root-port"><model name="pcie-root-port"/><target chassis="40" port="0x28"/>ALIAS</controller>`, no, 0},
		{"sound", `<sound model="ich9">ALIAS</sound>`, no, 0},

		{"memballoon", `<memballoon model="virtio">ALIAS</memballoon>`, no, no},
		{"graphics", `<graphics type="vnc"/>`, no, no},
		{"audio", `<audio id="7" type="none"/>`, no, no},
		{"tpm", `<tpm model="tpm-crb"><backend type="emulator"/>ALIAS</tpm>`, no, no},
		{"hub", `<hub type="usb">ALIAS</hub>`, no, no},
		{"iommu", `<iommu model="intel">ALIAS</iommu>`, no, no},
		{"video", `<video><model type="virtio"/>ALIAS</video>`, no, no},
		{"panic", `<panic model="isa">ALIAS</panic>`, no, no},
	} {
		t.Run(c.name, func(t *testing.T) {
			alias := "ua-" + c.name
			xml := strings.Replace(c.xml, "ALIAS", `<alias name="`+alias+`"/>`, 1)
			if c.live == 0 {
				plugged(t, d, xml, alias)
				return
			}
			live, config := sides(t, d)
			coded(t, d.AttachDevice(ctx, xml, both), c.live)
			coded(t, d.AttachDevice(ctx, xml, virt.AffectLive), c.live)
			if l, c := sides(t, d); l != live || c != config {
				t.Error("a refused device changed something")
			}
			if c.config != 0 {
				coded(t, d.AttachDevice(ctx, xml, virt.AffectConfig), c.config)
				return
			}
			try(t, d.AttachDevice(ctx, xml, virt.AffectConfig))
			if l, c := sides(t, d); l != live || deviceXML(t, c, alias) == "" {
				t.Error("it is not in the definition, or changed the guest")
			}
			try(t, d.DetachDeviceAlias(ctx, alias, virt.AffectConfig))
			if _, c := sides(t, d); deviceXML(t, c, alias) != "" {
				t.Error("it is still in the definition")
			}
		})
	}
}

// plugged attaches a device to both sides, and detaches it again.
func plugged(t *testing.T, d *virt.Domain, xml, alias string) {
	t.Helper()
	ctx := context.Background()
	try(t, timed(t, "attach", func() error { return d.AttachDevice(ctx, xml, both) }))
	l, c := sides(t, d)
	live, config := deviceXML(t, l, alias), deviceXML(t, c, alias)
	if live == "" || config == "" {
		t.Fatalf("guest %q, definition %q", live, config)
	}
	if a, b := addressElement.FindString(live), addressElement.FindString(config); a != b {
		t.Errorf("the address is %s in the guest and %s in the definition", a, b)
	}
	try(t, timed(t, "detach", func() error { return d.DetachDeviceAlias(ctx, alias, both) }))
	if _, c := sides(t, d); deviceXML(t, c, alias) != "" {
		t.Error("it is still in the definition")
	}
	away(t, d, alias)
}

func TestAccDomainDevice_twins(t *testing.T) {
	acctest.Case(t, "of two equal devices the alias tells which goes; their element takes the first")
	ctx := context.Background()
	d, _ := roomy().boot(t, "twins")
	const rng = `<rng model="virtio"><backend model="random">/dev/urandom</backend>ALIAS</rng>`
	for name, xml := range map[string]string{
		"rng":      rng,
		"tablet":   `<input type="tablet" bus="usb">ALIAS</input>`,
		"keyboard": `<input type="keyboard" bus="virtio">ALIAS</input>`,
		"console":  `<console type="pty"><target type="virtio"/>ALIAS</console>`,
		"serial":   `<serial type="pty"><target type="pci-serial"><model name="pci-serial"/></target>ALIAS</serial>`,
		"redirdev": `<redirdev bus="usb" type="tcp"><source mode="bind" host="127.0.0.1" service="0"/>ALIAS</redirdev>`,
		"user":     `<interface type="user"><model type="virtio"/>ALIAS</interface>`,
	} {
		t.Run(name, func(t *testing.T) {
			castor, pollux := "ua-castor-"+name, "ua-pollux-"+name
			for _, alias := range []string{castor, pollux} {
				try(t, d.AttachDevice(ctx, strings.Replace(xml, "ALIAS", `<alias name="`+alias+`"/>`, 1), both))
			}
			l, c := sides(t, d)
			live, config := deviceXML(t, l, castor), deviceXML(t, c, castor)
			try(t, d.DetachDeviceAlias(ctx, pollux, both))
			away(t, d, pollux)
			l, c = sides(t, d)
			if deviceXML(t, c, pollux) != "" || deviceXML(t, l, castor) != live || deviceXML(t, c, castor) != config {
				t.Errorf("the wrong one went:\n%s\n%s", l, c)
			}
			try(t, d.DetachDeviceAlias(ctx, castor, both))
			away(t, d, castor)
		})
	}
	for _, alias := range []string{"ua-first", "ua-second"} {
		try(t, d.AttachDevice(ctx, strings.Replace(rng, "ALIAS", `<alias name="`+alias+`"/>`, 1), both))
	}
	try(t, d.DetachDevice(ctx, strings.Replace(rng, "ALIAS", "", 1), both))
	away(t, d, "ua-first")
	shows(t, d, "ua-second", "ua-second")
	shows(t, d, "!ua-first", "!ua-first")
	// What has no address is looked for by its other properties, and here the
	// definition's mouse of old is the first that has them.
	for _, alias := range []string{"ua-mouse-1", "ua-mouse-2"} {
		try(t, d.AttachDevice(ctx, `<input type="mouse" bus="ps2"><alias name="`+alias+`"/></input>`, virt.AffectConfig))
	}
	try(t, d.DetachDeviceAlias(ctx, "ua-mouse-2", virt.AffectConfig))
	_, c := sides(t, d)
	if n := strings.Count(c, "<input type='mouse' bus='ps2'"); n != 2 || !strings.Contains(c, "ua-mouse-1") || !strings.Contains(c, "ua-mouse-2") {
		t.Errorf("%d mice are left, and this libvirt may take the right one:\n%s", n, c)
	}
}

func TestAccDomainDevice_memoryModule(t *testing.T) {
	acctest.Case(t, "a running guest gets more memory by a module; whether it lets go of it again is for it to say")
	ctx := context.Background()
	d, g := roomy().boot(t, "module")
	xml := `<memory model="dimm"><target><size unit="MiB">128</size><node>0</node></target><alias name="ua-module"/></memory>`
	try(t, timed(t, "attach", func() error { return d.AttachDevice(ctx, xml, both) }))
	total := `<memory unit='KiB'>393216</memory>`
	shows(t, d, total, total)
	l, c := sides(t, d)
	if a, b := addressElement.FindString(deviceXML(t, l, "ua-module")), addressElement.FindString(deviceXML(t, c, "ua-module")); !strings.Contains(a, `slot='0' base='0x`) || !strings.Contains(b, `slot='0'/`) {
		t.Errorf("the module lies at %s, in the definition at %s", a, b)
	}
	got(lab.Host(t).WaitReport(ctx, "module", 4*time.Minute, func(r host.Report) bool { return r.MemKiB >= g.Report().MemKiB+120<<10 }))(t)
	err := timed(t, "detach", func() error { return d.DetachDeviceAlias(ctx, "ua-module", both) })
	_, c = sides(t, d)
	switch there := deviceXML(t, c, "ua-module") != ""; {
	case err == nil && there, err != nil && (!there || !virt.HasCode(err, virt.ErrOperationFailed)):
		t.Errorf("%s: %v; in the definition: %v", codeOf(err), err, there)
	}
	for end := time.Now().Add(5 * time.Second); deviceXML(t, l, "ua-module") != "" && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		l, _ = sides(t, d)
	}
	t.Logf("%s: %v; still in the guest after 5 s: %v", codeOf(err), err, deviceXML(t, l, "ua-module") != "")
	if deviceXML(t, l, "ua-module") == "" {
		shows(t, d, `<memory unit='KiB'>262144</memory>`, `<memory unit='KiB'>262144</memory>`)
	}
}

func TestAccDomainDevice_refusals(t *testing.T) {
	acctest.Case(t, "a device that is not there, is there already or lacks something is refused and changes nothing")
	ctx := context.Background()
	d, _ := roomy().boot(t, "picky")
	const rng = `<rng model="virtio"><backend model="random">/dev/urandom</backend><alias name="ua-only"/></rng>`
	disk := strings.Replace(diskXML(t, "disk", "vdb", "virtio"), "ALIAS", `<alias name="ua-data"/>`, 1)
	for _, side := range []virt.Affect{virt.AffectLive, virt.AffectConfig, both} {
		coded(t, d.DetachDeviceAlias(ctx, "ua-nobody", side), virt.ErrInternal, "no device found with alias ua-nobody")
		coded(t, d.DetachDevice(ctx, disk, side), virt.ErrDeviceMissing)
		coded(t, d.AttachDevice(ctx, `<made-up/>`, side), virt.ErrConfigUnsupported)
	}
	// What is on one side alone is not found on both.
	try(t, d.AttachDevice(ctx, rng, virt.AffectConfig))
	coded(t, d.DetachDeviceAlias(ctx, "ua-only", both), virt.ErrInternal)
	shows(t, d, "!ua-only", "ua-only")
	try(t, d.AttachDevice(ctx, disk, both))
	live, config := sides(t, d)
	for what, c := range map[string]struct {
		xml                string
		both, live, config int
	}{
		"the same target": {diskXML(t, "disk", "vdb", "virtio"), virt.ErrOperationInvalid, virt.ErrXML, virt.ErrOperationInvalid},
		"the same alias": {
			strings.Replace(diskXML(t, "disk", "vdc", "virtio"), "ALIAS", `<alias name="ua-data"/>`, 1),
			virt.ErrConfigUnsupported, virt.ErrConfigUnsupported, virt.ErrConfigUnsupported,
		},
		"the same image":   {strings.NewReplacer("vdb", "vdc", "ua-data", "ua-again").Replace(disk), virt.ErrInternal, virt.ErrInternal, 0},
		"a missing file":   {`<disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="/nowhere/x"/><target dev="vdd" bus="virtio"/></disk>`, virt.ErrSystem, virt.ErrSystem, 0},
		"a missing net":    {`<interface type="network"><source network="nowhere"/><model type="virtio"/></interface>`, virt.ErrNoNetwork, virt.ErrNoNetwork, 0},
		"a missing bridge": {`<interface type="bridge"><source bridge="nowhere0"/><model type="virtio"/></interface>`, virt.ErrSystem, virt.ErrSystem, 0},
	} {
		t.Run(what, func(t *testing.T) {
			xml := strings.Replace(c.xml, "ALIAS", "", 1)
			coded(t, d.AttachDevice(ctx, xml, both), c.both)
			coded(t, d.AttachDevice(ctx, xml, virt.AffectLive), c.live)
			if l, c := sides(t, d); l != live || c != config {
				t.Error("a refused device changed something")
			}
			if c.config != 0 {
				coded(t, d.AttachDevice(ctx, xml, virt.AffectConfig), c.config)
				return
			}
			try(t, d.AttachDevice(ctx, xml, virt.AffectConfig)) // the definition may name what is not there yet
			_, config = sides(t, d)
		})
	}
	off := bare(t, shared(t), "off", "")
	coded(t, off.AttachDevice(ctx, disk, both), virt.ErrOperationInvalid)
	coded(t, off.DetachDeviceAlias(ctx, "ua-data", virt.AffectLive), virt.ErrOperationInvalid)
	coded(t, off.UpdateDevice(ctx, disk, both, virt.UpdateFlags{}), virt.ErrOperationInvalid)
}
