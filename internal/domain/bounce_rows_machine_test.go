package domain_test

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// machineTypes are the versions of the machine types that this host emulates.
type machineTypes struct {
	pc     string   // what pc stands for
	q35    string   // what q35 stands for
	others []string // other versions of q35, the newest first
}

var (
	aliasOf = regexp.MustCompile(`<machine canonical='([^']+)'[^>]*>(pc|q35)<`)
	version = regexp.MustCompile(`<machine[^>]*>(pc-q35-(\d+)\.(\d+))<`)
)

func machinesOf(t testing.TB) (m machineTypes) {
	t.Helper()
	text := lab.Virsh(t, "capabilities")
	for _, found := range aliasOf.FindAllStringSubmatch(text, -1) {
		if found[2] == "pc" {
			m.pc = found[1]
		} else {
			m.q35 = found[1]
		}
	}
	age := map[string]int{}
	for _, found := range version.FindAllStringSubmatch(text, -1) {
		major, _ := strconv.Atoi(found[2]) // digits
		minor, _ := strconv.Atoi(found[3])
		if name := found[1]; name != m.q35 && age[name] == 0 {
			age[name] = 1000*major + minor
			m.others = append(m.others, name)
		}
	}
	slices.SortFunc(m.others, func(a, b string) int { return age[b] - age[a] })
	return m
}

// machineRows are what QEMU builds the machine from.
func machineRows(t testing.TB) []bounce.Row {
	m := machinesOf(t)
	toPC := bounce.Row{
		Name: "machine-pc", Base: bounce.Fields{"features.acpi": "true"}, // without it, a pc has no power button
		Steps: []bounce.Step{{
			// The balloon gets another place on another bus, and every other device
			// would: that follows, and is not listed of its own.
			Change: bounce.Fields{"os.type_machine": `"pc"`}, Boot: bounce.Leaves{"os/type/@machine": m.pc, "devices/memballoon/address/@bus": "0x00"},
			Want: bounce.Waits("os.type_machine"),
		}},
	}
	if m.pc == "" || m.q35 == "" {
		toPC.Unavailable = "this QEMU has not both machine types, pc and q35"
	}
	older := bounce.Row{Name: "machine-version", Unavailable: "this QEMU has fewer than three versions of q35"}
	if len(m.others) >= 2 {
		older.Unavailable = ""
		older.Base = bounce.Fields{"os.type_machine": strconv.Quote(m.others[1])}
		older.Steps = []bounce.Step{{
			Change: bounce.Fields{"os.type_machine": strconv.Quote(m.others[0])}, Boot: bounce.Leaves{"os/type/@machine": m.others[0]}, Want: bounce.Waits("os.type_machine"),
		}}
	}
	custom := bounce.Fields{"cpu.mode": `"custom"`, "cpu.model": `"qemu64"`}
	return []bounce.Row{
		toPC, older,
		{
			Name: "name",
			Steps: []bounce.Step{{
				Change: bounce.Fields{"name": `"another-name"`}, Boot: bounce.Leaves{"name": "another-name"}, Want: bounce.Offline(),
			}},
		},
		{
			Name: "cpu-model", Base: custom,
			Steps: []bounce.Step{{
				Change: bounce.Fields{"cpu.model": `"kvm64"`}, Boot: bounce.Leaves{"cpu/model": "kvm64"}, Want: bounce.Waits("cpu.model"),
			}},
		},
		{
			Name: "cpu-mode", Base: custom,
			Steps: []bounce.Step{{
				Change: bounce.Fields{"cpu.mode": `"maximum"`, "cpu.model": bounce.Gone}, Boot: bounce.Leaves{"cpu/@mode": "maximum", "cpu/model": bounce.Absent},
				Want: bounce.Waits("cpu.match", "cpu.mode", "cpu.model", "cpu.model_fallback"), // what goes with a model
			}},
		},
		{
			Name: "cpu-feature", Base: custom,
			Steps: []bounce.Step{{
				Change: bounce.Fields{"cpu.features": `[{ name = "svm", policy = "disable" }]`},
				Boot:   bounce.Leaves{"cpu/feature/@name": "svm", "cpu/feature/@policy": "disable"}, Want: bounce.Waits("cpu.features[svm]"),
			}},
		},
	}
}

// cdroms are two empty drives with their places in the order of boot.
func cdroms(sda, sdb string) string {
	return `[
      { device = "cdrom", target = { dev = "sda", bus = "sata" }, boot = { order = ` + sda + ` } },
      { device = "cdrom", target = { dev = "sdb", bus = "sata" }, boot = { order = ` + sdb + ` } },
    ]`
}

// bootRows are the order of boot.
func bootRows(testing.TB) []bounce.Row {
	return []bounce.Row{
		{
			Name: "boot-devices", Base: bounce.Fields{"os.boot_devices": `[{ dev = "hd" }]`},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"os.boot_devices": `[{ dev = "network" }, { dev = "hd" }]`},
				Boot:   bounce.Leaves{"os/boot/@dev": "network", "os/boot[2]/@dev": "hd"},
				Want:   bounce.Waits("os.boot_devices[0].dev", "os.boot_devices[1]"),
			}},
		},
		{
			Name: "boot-order", Base: bounce.Fields{"devices.disks": cdroms("1", "2")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"devices.disks": cdroms("2", "1")},
				Boot:   bounce.Leaves{"devices/disk/boot/@order": "2", "devices/disk[2]/boot/@order": "1"},
				Want:   bounce.Waits("devices.disks[sda].boot.order", "devices.disks[sdb].boot.order"),
			}},
		},
	}
}
