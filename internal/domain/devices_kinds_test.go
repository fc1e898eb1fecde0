package domain

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// roomy is a guest with room for memory modules.
const roomy = `<maxMemory slots="2" unit="MiB">512</maxMemory><memory unit="MiB">128</memory><cpu><numa><cell id="0" cpus="0" memory="131072"/></numa></cpu>`

// Each kind of device is judged by what libvirt can plug in, and by what the
// running guest has for it.
func TestJudgeKindsOfDevices(t *testing.T) {
	decode := func(top, devices string) tree.Value {
		t.Helper()
		guest, err := spec.Domain().Decode(`<domain type="qemu"><name>x</name>` + top + `<os><type arch="x86_64" machine="q35">hvm</type></os><features><acpi/></features><devices>` + devices + `</devices></domain>`)
		if err != nil {
			t.Fatal(err)
		}
		return guest
	}
	// comes and goes are the changes of all devices of a document that the guest
	// does not have already.
	comes := func(devices string) (out []change.Change) {
		for _, p := range plugs {
			for i, e := range decode("", devices).At(p.list).Elems() {
				out = append(out, change.Change{Path: tree.ParsePath(p.list).Elem(i, ""), Kind: change.Addition, Desired: e})
			}
		}
		if len(out) == 0 {
			t.Fatalf("no devices in %s", devices)
		}
		return out
	}
	goes := func(devices string) []change.Change {
		out := comes(devices)
		for i, c := range out {
			out[i].Kind, out[i].Desired, out[i].Actual, out[i].Guest = change.Removal, tree.NullValue, c.Desired, c.Desired
		}
		return out
	}
	str := tree.StringValue
	field := func(path string, desired tree.Value) []change.Change {
		return []change.Change{{Path: tree.ParsePath(path), Desired: desired}}
	}
	bytes := func(path string, mib int64) change.Change {
		return change.Change{Path: tree.ParsePath(path), Unit: "bytes", Desired: tree.IntValue(mib << 20)}
	}
	const (
		channels = `<controller type="virtio-serial" index="0"/>`
		usb      = `<controller type="usb" index="0" model="qemu-xhci"/>`
		spice    = `<graphics type="spice" autoport="yes"/>`
		vnc      = `<graphics type="vnc" autoport="yes" passwd="x"/>`
		open     = `<graphics type="vnc" autoport="yes"/>`
		agent    = `<channel type="unix"><target type="virtio" name="org.example.a"/></channel>`
		vdagent  = `<channel type="spicevmc"><target type="virtio" name="com.redhat.spice.0"/></channel>`
		virtiofs = `<filesystem type="mount"><driver type="virtiofs"/><source dir="/x"/><target dir="x"/></filesystem>`
		nine     = `<filesystem type="mount"><source dir="/x"/><target dir="x"/></filesystem>`
		redirect = `<redirdev bus="usb" type="tcp"><source mode="bind" host="127.0.0.1" service="0"/></redirdev>`
		shmem    = `<shmem name="x"><model type="ivshmem-plain"/><size unit="M">4</size></shmem>`
		scsi     = `<controller type="scsi" index="0" model="virtio-scsi"/>`
		onSCSI   = `<disk type="file"><target dev="sdb" bus="scsi"/><address type="drive" controller="0" bus="0" target="0" unit="1"/></disk>`
		dimm     = `<memory model="dimm"><target><size unit="MiB">128</size><node>0</node></target></memory>`
		elastic  = `<memory model="virtio-mem"><target><size unit="MiB">128</size><node>0</node><block unit="MiB">2</block><requested unit="MiB">32</requested></target></memory>`
		shared   = `<memoryBacking><source type="memfd"/><access mode="shared"/></memoryBacking>`
		cells    = `<cpu><numa><cell id="0" cpus="0" memory="65536" memAccess="shared"/><cell id="1" cpus="1" memory="65536"/></numa></cpu>`
		ports    = pcieRoot + port1 + port2
	)
	grown := strings.Replace(roomy, ">128<", ">256<", 1)
	full := strings.Replace(roomy, ">128<", ">384<", 1)
	cases := map[string]struct {
		top, guest string
		changes    []change.Change
		want       string // effects in order
		reason     string // part of it, where the first one is not live
	}{
		"a channel":                      {"", channels, comes(agent), "live", ""},
		"a channel without a controller": {"", ports, comes(agent), "next_boot", "no virtio-serial controller"},
		"a channel of another kind":      {"", channels, comes(`<channel type="pty"><target type="guestfwd" address="10.0.2.1" port="4600"/></channel>`), "next_boot", "Only a channel on virtio"},
		"a channel of a display":         {"", channels + spice, comes(vdagent), "live", ""},
		"a channel without its display":  {"", channels + vnc, comes(vdagent), "next_boot", "display of the kind spice"},
		"a channel goes":                 {"", channels + agent, goes(agent), "live", ""},
		"the source of a channel":        {"", channels + agent, field("devices.channels[0].source.unix.path", str("/x")), "next_boot", "cannot change a channel"},
		"a console":                      {"", channels, comes(`<console type="pty"><target type="virtio"/></console>`), "live", ""},
		"a console that is a port":       {"", channels, comes(`<serial type="pty"/><console type="pty"><target type="serial"/></console>`)[:1], "next_boot", "is a serial port"},
		"a serial port":                  {"", ports, comes(`<serial type="pty"><target type="isa-serial"/></serial>`), "next_boot", "type isa-serial is built in"},
		"a serial port on USB":           {"", usb, comes(`<serial type="pty"><target type="usb-serial"/></serial>`), "live", ""},
		"a serial port on no USB":        {"", ports, comes(`<serial type="pty"><target type="usb-serial"/></serial>`), "next_boot", "no USB controller"},
		"a serial port on PCI":           {"", ports + bridge4, comes(`<serial type="pty"><target type="pci-serial"/></serial>`), "live", ""},
		"a serial port without a slot":   {"", ports, comes(`<serial type="pty"><target type="pci-serial"/></serial>`), "next_boot", "pcie-to-pci-bridge"},
		"a parallel port":                {"", ports, comes(`<parallel type="pty"/>`), "next_boot", "part of the machine"},

		"another password":          {"", vnc, field("devices.graphics[0].vnc.passwd", str("canary")), "live", ""},
		"a password for ever":       {"", vnc, []change.Change{{Path: tree.ParsePath("devices.graphics[0].vnc.passwd_valid_to"), Kind: change.Withdrawal}}, "next_boot", "valid for ever"},
		"a password for longer":     {"", vnc, field("devices.graphics[0].vnc.passwd_valid_to", str("2035-01-01T00:00:00")), "live", ""},
		"no password any more":      {"", vnc, field("devices.graphics[0].vnc.passwd", tree.NullValue), "next_boot", "goes on asking"},
		"a first password":          {"", open, field("devices.graphics[0].vnc.passwd", str("canary")), "next_boot", "no password on this display"},
		"a sharing policy":          {"", vnc, field("devices.graphics[0].vnc.share_policy", str("ignore")), "next_boot", "does nothing"},
		"another port of a display": {"", vnc, field("devices.graphics[0].vnc.port", tree.IntValue(5901)), "next_boot", "opens the display"},
		"another kind of display":   {"", vnc, field("devices.graphics[0].spice.port", tree.IntValue(5901)), "next_boot", "another kind of display"},
		"a display":                 {"", ports, comes(vnc), "next_boot", "neither plug a display in"},

		"virtiofs":                     {shared, ports, comes(virtiofs), "live", ""},
		"virtiofs without memory":      {"", ports, comes(virtiofs), "next_boot", "without sharing it"},
		"virtiofs with half of it":     {cells, ports, comes(virtiofs), "next_boot", "without sharing it"},
		"virtiofs with all of it":      {shared + cells, ports, comes(virtiofs), "live", ""},
		"9p":                           {shared, ports, comes(nine), "next_boot", "9p"},
		"a redirected device":          {"", usb, comes(redirect), "live", ""},
		"a redirected device, no USB":  {"", ports, comes(redirect), "next_boot", "no USB controller"},
		"shared memory":                {"", ports + bridge4, comes(shmem), "live", ""},
		"shared memory without a slot": {"", ports, comes(shmem), "next_boot", "pcie-to-pci-bridge"},
		"shared memory of old":         {"", ports + bridge4, comes(strings.Replace(shmem, "ivshmem-plain", "ivshmem", 1)), "next_boot", `model "ivshmem"`},
		"a lease":                      {"", ports, comes(`<lease><lockspace>s</lockspace><key>k</key><target path="/x"/></lease>`), "live", ""},

		"a SCSI controller":             {"", ports, comes(scsi), "live", ""},
		"an old SCSI controller":        {"", ports, comes(strings.Replace(scsi, "virtio-scsi", "lsilogic", 1)), "next_boot", "pcie-to-pci-bridge"},
		"a SCSI controller goes":        {"", ports + scsi, goes(scsi), "live", ""},
		"a SCSI controller with a disk": {"", ports + scsi + onSCSI, goes(scsi), "next_boot", "the disk sdb on it"},
		"a USB controller":              {"", ports, comes(usb), "next_boot", "no USB controller in and takes none out"},
		"a port":                        {"", ports, comes(port2), "next_boot", "no pci controller in"},

		"a DIMM and its memory":         {roomy, ports, append(comes(dimm), bytes("memory", 256)), "live live", ""},
		"a DIMM and more memory":        {roomy, ports, append(comes(dimm), bytes("memory", 300)), "live next_boot", "maximum of a running guest"},
		"a DIMM and its balloon":        {roomy, ports, append(comes(dimm), bytes("memory", 256), bytes("current_memory", 200)), "live live live", ""},
		"memory without a DIMM":         {roomy, ports, []change.Change{bytes("memory", 256)}, "next_boot", "maximum of a running guest"},
		"a DIMM goes with its memory":   {grown, ports + dimm, append(goes(dimm), bytes("memory", 128)), "live live", ""},
		"three DIMMs for two slots":     {roomy, ports, comes(dimm + dimm + dimm), "live live next_boot", "no free slot for a memory module"},
		"a DIMM beyond the maximum":     {full, ports + dimm, comes(dimm + dimm)[:1], "live", ""},
		"two DIMMs beyond the maximum":  {full, ports, comes(dimm + dimm), "live next_boot", "has room for 0 KiB more"},
		"a DIMM without room":           {`<memory unit="MiB">128</memory>`, ports, comes(dimm), "next_boot", "without maximum_memory"},
		"a DIMM without NUMA":           {`<maxMemory slots="2" unit="MiB">512</maxMemory><memory unit="MiB">128</memory>`, ports, comes(dimm), "next_boot", "no NUMA cell (cpu.numa)"},
		"a DIMM for another cell":       {roomy, ports, comes(strings.Replace(dimm, "<node>0", "<node>1", 1)), "next_boot", "target.node"},
		"virtio-mem":                    {roomy, ports, append(comes(elastic), bytes("memory", 256)), "live live", ""},
		"virtio-mem and its balloon":    {roomy, ports, append(comes(elastic), bytes("current_memory", 160)), "live live", ""},
		"virtio-mem and too much of it": {roomy, ports, append(comes(elastic), bytes("current_memory", 161)), "live next_boot", "at most 131072 KiB"},
		"virtio-mem without a port":     {roomy, pcieRoot, comes(elastic), "next_boot", "no free PCI port"},
		"virtio-mem goes":               {grown, ports + elastic, goes(elastic), "next_boot", "cannot be taken out"},
		"more of virtio-mem":            {grown, ports + elastic, []change.Change{bytes("devices.memorydevs[0].target.requested", 64)}, "live", ""},
		"more than virtio-mem has":      {grown, ports + elastic, []change.Change{bytes("devices.memorydevs[0].target.requested", 256)}, "next_boot", "module is smaller"},
		"more of a DIMM":                {grown, ports + dimm, []change.Change{bytes("devices.memorydevs[0].target.requested", 64)}, "next_boot", "model virtio-mem"},
		"another size":                  {grown, ports + elastic, []change.Change{bytes("devices.memorydevs[0].target.size", 256)}, "next_boot", "when the module is plugged in"},
		"a module for files":            {roomy, ports, comes(strings.Replace(dimm, "dimm", "nvdimm", 1)), "next_boot", "model nvdimm"},
	}
	k := New(nil)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			guest := decode(c.top, c.guest)
			v := k.Judge(kind.Judgement{
				Prior: tree.NullValue.With("name", str("x")).SetAt("status.power", str("running")), Config: tree.NullValue.SetAt("update.allow", str("live")),
				Changes: c.changes, Guest: guest, Definition: guest,
			})
			var got []string
			for _, f := range v.Fields {
				got = append(got, f[strings.LastIndex(f, " ")+1:])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v, want %s; %+v", v.Fields, c.want, v.Refusals)
			}
			if said := len(v.Refusals) > 0 && strings.Contains(v.Refusals[0].Detail, c.reason); said != (c.reason != "") {
				t.Errorf("refusals %+v, want %q", v.Refusals, c.reason)
			}
			for _, r := range v.Refusals {
				if strings.Contains(r.Summary+r.Detail, "canary") {
					t.Errorf("a password is in %+v", r)
				}
			}
		})
	}
}

// What is built in says so, whatever is changed of it.
func TestBuiltIn(t *testing.T) {
	for _, a := range builtInAspects {
		for _, pattern := range a.owns {
			class, reason := classify(change.Change{Path: tree.ParsePath(pattern)}, newSituation(true, tree.NullValue, tree.NullValue))
			if class != change.ClassNextBoot || len(reason) < 20 {
				t.Errorf("%s: %s, %q", pattern, class, reason)
			}
			if aspectOf(pattern) != a {
				t.Errorf("%s belongs to %s", pattern, aspectOf(pattern).name)
			}
		}
	}
}

// libvirt counts the consoles of a guest otherwise than those of its definition.
func TestConsolesAreCountedByPlace(t *testing.T) {
	guest := guestWith(t, "q35", `<console type="pty"><target type="serial" port="0"/></console><console type="pty"><target type="virtio" port="0"/></console><console type="pty"><target type="virtio" port="1"/></console>`)
	for i, console := range withConsolesCounted(guest).At("devices.consoles").Elems() {
		if got := whole(console.At("target.port")); got != int64(i) {
			t.Errorf("console %d has the number %d", i, got)
		}
	}
}

// The balloon follows what a guest is to use of its modules.
func TestBalloonFollowsModules(t *testing.T) {
	decode := func(memory, module string) tree.Value {
		guest, err := spec.Domain().Decode(`<domain type="qemu"><name>x</name><memory unit="MiB">` + memory + `</memory><currentMemory unit="MiB">128</currentMemory><devices>` + module + `</devices></domain>`)
		if err != nil {
			t.Fatal(err)
		}
		return guest
	}
	const module = `<memory model="virtio-mem"><target><size unit="MiB">128</size><requested unit="MiB">32</requested></target></memory>`
	before := decode("128", "")
	for name, c := range map[string]struct {
		wanted tree.Value
		want   int64
	}{
		"a DIMM":     {decode("256", `<memory model="dimm"><target><size unit="MiB">128</size></target></memory>`), 256 << 10},
		"virtio-mem": {decode("256", module), 160 << 10},
	} {
		if got := kibibytes(followMemory(tree.NullValue, before, c.wanted), "current_memory"); got != c.want {
			t.Errorf("%s: %d KiB, want %d", name, got, c.want)
		}
	}
}
