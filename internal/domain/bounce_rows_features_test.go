package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// anotherEmulator is another path of the host's emulator.
func anotherEmulator(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "qemu-system-x86_64")
	if err := os.Symlink("/usr/bin/qemu-system-x86_64", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// anotherPartition makes the control groups of /machine/lab, which libvirt does
// not make by itself. It returns why that is not possible, "" if it is.
func anotherPartition(t testing.TB) string {
	t.Helper()
	const script = `
for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
	[ -e $group/cgroup.procs ] || continue
	below=$group
	for name in machine lab.partition; do
		mkdir -p $below/$name
		for file in cpuset.cpus cpuset.mems; do
			[ ! -e $below/$name/$file ] || [ -n "$(cat $below/$name/$file)" ] || cat $below/$file > $below/$name/$file
		done
		below=$below/$name
	done
	[ ! -e /sys/fs/cgroup/cgroup.controllers ] || break
done
ls -d /sys/fs/cgroup/machine/lab.partition /sys/fs/cgroup/cpu*/machine/lab.partition 2> /dev/null`
	out, _ := lab.Host(t).Exec(context.Background(), "sh", "-c", script)
	if !strings.Contains(out, "lab.partition") {
		return "this machine lets us make no control groups"
	}
	return ""
}

// featureRows are what the machine has beside its devices, and what QEMU is told
// and given for it. Each guest gets many of them at once.
func featureRows(t testing.TB) []bounce.Row {
	emulator := anotherEmulator(t)
	partition := anotherPartition(t)
	qemu := bounce.Row{
		Name: "qemu",
		Base: bounce.Fields{
			"devices.emulator": `"/usr/bin/qemu-system-x86_64"`, "sec_label": `[{ type = "static", model = "dac", relabel = "no", label = "0:0" }]`, "resource": `{ partition = "/machine" }`,
			"qemu_commandline": `{ args = [{ value = "-name" }, { value = "lab" }], envs = [{ name = "LAB", value = "one" }] }`,
		},
		Steps: []bounce.Step{{
			Change: bounce.Fields{
				"devices.emulator": fmt.Sprintf("%q", emulator), "sec_label": `[{ type = "static", model = "dac", relabel = "yes", label = "+0:+0" }]`, "resource": `{ partition = "/machine/lab" }`,
				"qemu_commandline": `{ args = [{ value = "-name" }, { value = "lab,debug-threads=on" }], envs = [{ name = "LAB", value = "two" }] }`,
				"id_map":           `{ ui_ds = [{ start = 0, target = 1000, count = 10 }], gi_ds = [{ start = 0, target = 1000, count = 10 }] }`,
			},
			Boot: bounce.Leaves{
				"devices/emulator": emulator, "seclabel/@relabel": "yes", "seclabel/label": "+0:+0", "resource/partition": "/machine/lab", "idmap/uid/@target": "1000", "idmap/gid/@target": "1000",
				"qemu:commandline/qemu:arg[2]/@value": "lab,debug-threads=on", "qemu:commandline/qemu:env/@value": "two",
			},
			Want: bounce.Waits(
				"devices.emulator", "qemu_commandline.args[1].value", "qemu_commandline.envs[0].value",
				"sec_label[dac].relabel", "sec_label[dac].label", "resource.partition", "id_map.ui_ds[0]", "id_map.gi_ds[0]",
			),
		}},
	}
	qemu.Unavailable = partition
	return withACPI([]bounce.Row{
		{
			Name: "features",
			Base: bounce.Fields{
				"vcpu": "2", "cpu.mode": `"custom"`, "cpu.model": `"qemu64"`, "cpu.topology": `{ sockets = 2, dies = 1, cores = 1, threads = 1 }`,
				"features.hyper_v": `{ relaxed = { state = "on" } }`, "clock": `{ offset = "utc", timer = [{ name = "pit", tick_policy = "delay" }] }`,
				"gen_id": `"43dc0cf8-809b-4adb-9bea-a9abb5f3d90e"`, "pm": `{ suspend_to_mem = { enabled = "no" } }`,
			},
			Steps: []bounce.Step{{
				Change: bounce.Fields{
					"cpu.topology": `{ sockets = 1, dies = 1, cores = 2, threads = 1 }`,
					"features.pae": "true", "features.apic": `{}`, "features.pmu": `{ state = "off" }`, "features.smm": `{ state = "on" }`, "features.vm_core_info": `{ state = "on" }`,
					"features.hyper_v": `{ relaxed = { state = "off" }, vendor_id = { state = "on", value = "LabOfHV" } }`,
					"clock":            `{ offset = "localtime", timer = [{ name = "pit", tick_policy = "discard" }, { name = "hpet", present = "no" }] }`,
					"gen_id":           `"43dc0cf8-809b-4adb-9bea-a9abb5f3d90f"`, "pm": `{ suspend_to_mem = { enabled = "yes" }, suspend_to_disk = { enabled = "no" } }`,
					"on_lock_failure": `"poweroff"`,
				},
				Boot: bounce.Leaves{
					"cpu/topology/@sockets": "1", "cpu/topology/@cores": "2",
					"features/pae": "(empty)", "features/apic": "(empty)", "features/pmu/@state": "off", "features/smm/@state": "on", "features/vmcoreinfo/@state": "on",
					"features/hyperv/relaxed/@state": "off", "features/hyperv/vendor_id/@value": "LabOfHV",
					"clock/@offset": "localtime", "clock/timer/@tickpolicy": "discard", "clock/timer[2]/@name": "hpet",
					"genid": "43dc0cf8-809b-4adb-9bea-a9abb5f3d90f", "pm/suspend-to-mem/@enabled": "yes", "pm/suspend-to-disk/@enabled": "no", "on_lockfailure": "poweroff",
				},
				Want: bounce.Waits(
					"cpu.topology.sockets", "cpu.topology.cores", "features.apic", "features.pae", "features.pmu.state", "features.smm.state", "features.vm_core_info.state",
					"features.hyper_v.relaxed.state", "features.hyper_v.vendor_id.state", "features.hyper_v.vendor_id.value",
					"clock.offset", "clock.timer[pit].tick_policy", "clock.timer[hpet]", "gen_id", "pm.suspend_to_mem.enabled", "pm.suspend_to_disk.enabled", "on_lock_failure",
				),
			}},
		},
		qemu,
		{Name: "launch-security", Unavailable: "this QEMU cannot do SEV, and the apply refuses it with nothing changed"},
		{Name: "key-wrap", Unavailable: "this QEMU has no key wrap, and the apply refuses it with nothing changed"},
	})
}
