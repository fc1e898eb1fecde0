package domain_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/bounce"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// pins is cpu_tune with pins to one CPU of the host, of vCPU 0, of QEMU's own
// threads and of an I/O thread.
func pins(cpu string) bounce.Fields {
	return bounce.Fields{
		"cpu_tune.vcpu_pin": fmt.Sprintf(`[{ vcpu = 0, cpu_set = %q }]`, cpu), "cpu_tune.emulator_pin": fmt.Sprintf(`{ cpu_set = %q }`, cpu),
		"cpu_tune.io_thread_pin": fmt.Sprintf(`[{ io_thread = 1, cpu_set = %q }]`, cpu),
	}
}

func pinned(cpu string) bounce.Leaves {
	return bounce.Leaves{
		"cputune/vcpupin/@vcpu": "0", "cputune/vcpupin/@cpuset": cpu, "cputune/emulatorpin/@cpuset": cpu,
		"cputune/iothreadpin/@iothread": "1", "cputune/iothreadpin/@cpuset": cpu,
	}
}

// two says why a row that needs two of something of the host is not played, ""
// if the host has them.
func two(t testing.TB, command, pattern, what string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(lab.Virsh(t, strings.Fields(command)...))
	if found == nil {
		t.Fatalf("virsh %s has no %s", command, pattern)
	}
	if found[1] == "0" || found[1] == "1" {
		return "a host with one " + what
	}
	return ""
}

// cpuRows are the host's CPUs: time, weight, pins, I/O threads.
func cpuRows(t testing.TB) []bounce.Row {
	limits := func(part, quota int) bounce.Fields {
		return bounce.Fields{
			"cpu_tune.global_quota": fmt.Sprint(part * 2), "cpu_tune.period": "50000", "cpu_tune.quota": fmt.Sprint(quota),
			"cpu_tune.emulator_quota": fmt.Sprint(part), "cpu_tune.io_thread_quota": fmt.Sprint(part), "cpu_tune.io_thread_period": "90000",
		}
	}
	limited := func(part, quota int) bounce.Leaves {
		return bounce.Leaves{
			"cputune/global_quota": fmt.Sprint(part * 2), "cputune/period": "50000", "cputune/quota": fmt.Sprint(quota),
			"cputune/emulator_quota": fmt.Sprint(part), "cputune/iothread_quota": fmt.Sprint(part), "cputune/iothread_period": "90000",
		}
	}
	listed := bounce.Fields{"io_thread_i_ds": `{ io_threads = [{ id = 1 }, { id = 2 }] }`}
	pool := func(most string) bounce.Fields {
		return bounce.Fields{
			"io_thread_i_ds":         `{ io_threads = [{ id = 1 }, { id = 2 }, { id = 5, pool_min = 2, pool_max = ` + most + ` }] }`,
			"cpu_tune.io_thread_pin": `[{ io_thread = 5, cpu_set = "0" }]`,
		}
	}
	return []bounce.Row{
		{
			Name: "cpu-time", Base: bounce.Fields{"io_threads": "1"},
			Steps: []bounce.Step{
				{Change: limits(90000, 80000), Live: limited(90000, 80000), Want: bounce.Always(bounce.Live)},
				{Change: limits(50000, 20000), Live: limited(50000, 20000), Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "cpu-pins", Unavailable: two(t, "nodecpumap", `CPUs present: *(\d+)`, "CPU"),
			Base:  pins("0").With("io_threads", "1"),
			Steps: []bounce.Step{{Change: pins("1"), Live: pinned("1"), Want: bounce.Always(bounce.Live)}},
		},
		{
			Name: "io-threads", Base: bounce.Fields{"io_threads": "1"},
			Steps: []bounce.Step{
				{Change: bounce.Fields{"io_threads": "3"}, Live: bounce.Leaves{"iothreads": "3"}, Want: bounce.Always(bounce.Live)},
				{Change: bounce.Fields{"io_threads": bounce.Gone}, Live: bounce.Leaves{"iothreads": bounce.Absent}, Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "io-thread-list", Base: listed,
			Steps: []bounce.Step{
				{
					Change: pool("8"), Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{
						"iothreads": "3", "iothreadids/iothread[3]/@id": "5", "iothreadids/iothread[3]/@thread_pool_min": "2", "iothreadids/iothread[3]/@thread_pool_max": "8",
						"cputune/iothreadpin/@iothread": "5", "cputune/iothreadpin/@cpuset": "0",
					},
				},
				{Change: pool("16"), Live: bounce.Leaves{"iothreadids/iothread[3]/@thread_pool_max": "16"}, Want: bounce.Always(bounce.Live)},
			},
		},
	}
}

func memoryFrom(mode, nodes string) string {
	return fmt.Sprintf(`{ mode = %q, nodeset = %q }`, mode, nodes)
}

// tuningAtStartRows are what a running guest cannot be given, or what cannot be
// taken from it.
func tuningAtStartRows(testing.TB) []bounce.Row {
	scsi := func(thread string) string {
		return `[{ type = "scsi", index = 0, model = "virtio-scsi", driver = { io_thread = ` + thread + ` } }]`
	}
	given := bounce.Fields{
		"cpu_tune.shares": "2048", "cpu_tune.vcpu_pin": `[{ vcpu = 0, cpu_set = "0" }]`, "cpu_tune.emulator_pin": `{ cpu_set = "0" }`, "block_io_tune.weight": "300",
	}
	taken := bounce.Fields{}
	for path := range given {
		taken[path] = bounce.Gone
	}
	return []bounce.Row{
		{
			Name: "given-and-taken",
			Steps: []bounce.Step{
				{
					Change: given, Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{
						"cputune/shares": "2048", "blkiotune/weight": "300", "cputune/vcpupin/@vcpu": "0", "cputune/vcpupin/@cpuset": "0", "cputune/emulatorpin/@cpuset": "0",
					},
				},
				{
					Change: taken, Want: bounce.Waits("cpu_tune.shares", "cpu_tune.vcpu_pin[0]", "cpu_tune.emulator_pin.cpu_set", "block_io_tune.weight"),
					Boot: bounce.Leaves{
						"cputune/shares": bounce.Absent, "blkiotune/weight": bounce.Absent, "cputune/vcpupin/@vcpu": bounce.Absent, "cputune/emulatorpin/@cpuset": bounce.Absent,
					},
				},
			},
			Back: bounce.Wants{
				bounce.AllowNextBoot: {Pending: []string{"cpu_tune.shares", "cpu_tune.vcpu_pin[0]", "cpu_tune.emulator_pin.cpu_set", "block_io_tune.weight"}},
				bounce.AllowLive:     {}, bounce.AllowRestart: {},
			},
		},
		{
			Name: "given-at-start", Base: bounce.Fields{"numa_tune.memory": memoryFrom("restrictive", "0")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{
					"numa_tune.memory": memoryFrom("preferred", "0"), "memory_backing.memory_nosharepages": "true", "cpu_tune.emulator_sched": `{ scheduler = "batch" }`,
					"cpu_tune.vcpu_sched": `[{ vcpus = "0", scheduler = "idle" }]`,
				},
				Boot: bounce.Leaves{"numatune/memory/@mode": "preferred", "memoryBacking/nosharepages": "(empty)", "cputune/emulatorsched/@scheduler": "batch", "cputune/vcpusched/@scheduler": "idle"},
				Want: bounce.Waits("numa_tune.memory.mode", "memory_backing.memory_nosharepages", "cpu_tune.emulator_sched.scheduler", "cpu_tune.vcpu_sched[0]"),
			}},
		},
		{
			Name: "io-thread-in-use", Base: bounce.Fields{"io_threads": "2", "devices.controllers": scsi("2")},
			Steps: []bounce.Step{{
				Change: bounce.Fields{"io_threads": "1", "devices.controllers": scsi("1")},
				Boot:   bounce.Leaves{"iothreads": "1", "devices/controller/driver/@iothread": "1"},
				Want:   bounce.Waits("io_threads", "devices.controllers[scsi 0].driver.io_thread"),
			}},
		},
	}
}

// someDevice is a path that leads to a disk of the host, or to what the kernel
// takes for one.
func someDevice(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob("/sys/block/*/dev")
	if err != nil || len(found) == 0 {
		t.Fatalf("the machine has no disk: %v", err)
	}
	number, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	major, minor, _ := strings.Cut(strings.TrimSpace(string(number)), ":")
	path := filepath.Join(t.TempDir(), "disk")
	if _, err := lab.Host(t).Exec(context.Background(), "mknod", path, "b", major, minor); err != nil {
		t.Fatal(err)
	}
	return path
}

// tuningRows are the host's memory and disks, and what is told and done of a
// guest.
func tuningRows(t testing.TB) []bounce.Row {
	disk := someDevice(t)
	limits := func(hard, soft, swap string) bounce.Fields {
		return bounce.Fields{"memory_tune": `{ hard_limit = ` + hard + `, hard_limit_unit = "MiB", soft_limit = ` + soft + `, soft_limit_unit = "MiB", swap_hard_limit = ` + swap + `, swap_hard_limit_unit = "MiB" }`}
	}
	hard := func(mib string) bounce.Fields {
		return bounce.Fields{"memory_tune": `{ hard_limit = ` + mib + `, hard_limit_unit = "MiB" }`}
	}
	actions := func(poweroff, reboot, crash string) (bounce.Fields, bounce.Leaves) {
		return bounce.Fields{"on_poweroff": fmt.Sprintf("%q", poweroff), "on_reboot": fmt.Sprintf("%q", reboot), "on_crash": fmt.Sprintf("%q", crash)},
			bounce.Leaves{"on_poweroff": poweroff, "on_reboot": reboot, "on_crash": crash}
	}
	ends, ended := actions("destroy", "destroy", "preserve")
	goesOn, wentOn := actions("restart", "restart", "coredump-destroy")
	nodes := bounce.Row{Name: "numa-nodes", Unavailable: two(t, "capabilities", `<cells num='(\d+)'`, "NUMA node")}
	if nodes.Unavailable == "" {
		nodes.Base = bounce.Fields{"numa_tune.memory": memoryFrom("restrictive", "0")}
		nodes.Steps = []bounce.Step{{
			Change: bounce.Fields{"numa_tune.memory": memoryFrom("restrictive", "0-1")}, Live: bounce.Leaves{"numatune/memory/@nodeset": "0-1"},
			Want: bounce.Always(bounce.Live),
		}}
	}
	balloon := func(stats string) string { return `{ model = "virtio"` + stats + ` }` }
	device := func(limits string) bounce.Fields {
		return bounce.Fields{"block_io_tune": fmt.Sprintf(`{ weight = 300, device = [{ path = %q, %s }] }`, disk, limits)}
	}
	return []bounce.Row{
		{
			Name: "weights-and-devices", Base: bounce.Fields{"cpu_tune.shares": "512", "block_io_tune": `{ weight = 200 }`},
			Steps: []bounce.Step{
				{
					Change: device("read_bytes_sec = 1048576, write_iops_sec = 40").With("cpu_tune.shares", "2048"), Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{
						"cputune/shares": "2048", "blkiotune/weight": "300", "blkiotune/device/path": disk,
						"blkiotune/device/read_bytes_sec": "1048576", "blkiotune/device/write_iops_sec": "40",
					},
				},
				{
					Change: device("read_bytes_sec = 2097152"), Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{"blkiotune/device/path": disk, "blkiotune/device/read_bytes_sec": "2097152", "blkiotune/device/write_iops_sec": bounce.Absent},
				},
			},
		},
		{
			Name: "memory-limits",
			Steps: []bounce.Step{
				{
					Change: limits("1024", "512", "2048"), Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{"memtune/hard_limit": "1048576", "memtune/soft_limit": "524288", "memtune/swap_hard_limit": "2097152"},
				},
				{
					Change: limits("4096", "256", "8192"), Want: bounce.Always(bounce.Live),
					Live: bounce.Leaves{"memtune/hard_limit": "4194304", "memtune/soft_limit": "262144", "memtune/swap_hard_limit": "8388608"},
				},
			},
		},
		{
			// The next start would be the guest's end, so that none is made here.
			Name: "memory-limit-below-the-guest", Only: []bounce.Policy{bounce.AllowLive, bounce.AllowNextBoot},
			Steps: []bounce.Step{
				{Change: hard("1024"), Live: bounce.Leaves{"memtune/hard_limit": "1048576"}, Want: bounce.Always(bounce.Live)},
				{Change: hard("100"), Boot: bounce.Leaves{"memtune/hard_limit": "102400"}, Want: bounce.Waits("memory_tune.hard_limit")},
			},
			Back: bounce.Always(bounce.Live),
		},
		nodes,
		{
			Name: "on-event", Steps: []bounce.Step{
				{Change: ends, Live: ended, Want: bounce.Always(bounce.Live)},
				{Change: goesOn, Live: wentOn, Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "statistics", Base: bounce.Fields{"devices.mem_balloon": balloon("")},
			Steps: []bounce.Step{
				{
					Change: bounce.Fields{"devices.mem_balloon": balloon(", stats = { period = 5 }"), "perf.events": `[{ name = "page_faults", enabled = "yes" }]`},
					Live:   bounce.Leaves{"devices/memballoon/stats/@period": "5", "perf/event/@name": "page_faults"}, Want: bounce.Always(bounce.Live),
				},
				{
					Change: bounce.Fields{"devices.mem_balloon": balloon(", stats = { period = 7 }"), "perf.events": `[{ name = "cpu_clock", enabled = "yes" }]`},
					Live:   bounce.Leaves{"devices/memballoon/stats/@period": "7", "perf/event/@name": "cpu_clock"}, Want: bounce.Always(bounce.Live),
				},
			},
		},
	}
}

// tuningByHandRows are what somebody does to all of these with virsh: it is put
// back, in the guest or in both.
func tuningByHandRows(t testing.TB) []bounce.Row {
	disk := someDevice(t)
	limits := bounce.Fields{
		"cpu_tune.shares": "512", "cpu_tune.quota": "80000", "memory_tune.soft_limit": "524288", "on_crash": `"preserve"`,
		"block_io_tune": fmt.Sprintf(`{ weight = 200, device = [{ path = %q, read_bytes_sec = 1048576 }] }`, disk), "perf.events": `[{ name = "page_faults", enabled = "yes" }]`,
		"devices.mem_balloon": `{ model = "virtio", stats = { period = 5 } }`,
	}
	was := bounce.Leaves{
		"cputune/shares": "512", "cputune/quota": "80000", "memtune/soft_limit": "524288", "on_crash": "preserve",
		"blkiotune/weight": "200", "blkiotune/device/read_bytes_sec": "1048576", "perf/event/@name": "page_faults", "devices/memballoon/stats/@period": "5",
	}
	commands := func(side string) (out []string) {
		for _, c := range []string{
			"schedinfo NAME cpu_shares=3000", "schedinfo NAME vcpu_quota=30000", "memtune NAME --soft-limit 300000", "set-lifecycle-action NAME crash restart",
			"blkiotune NAME --weight 400", "blkiotune NAME --device-read-bytes-sec " + disk + ",2097152", "perf NAME --disable page_faults", "dommemstat NAME --period 9",
		} {
			out = append(out, c+" "+side)
		}
		return out
	}
	seen := bounce.Leaves{
		"cputune/shares": "3000", "cputune/quota": "30000", "memtune/soft_limit": "300000", "on_crash": "restart",
		"blkiotune/weight": "400", "blkiotune/device/read_bytes_sec": "2097152", "perf/event/@name": bounce.Absent, "devices/memballoon/stats/@period": "9",
	}
	nothing := bounce.Always(bounce.Want{}) // left to take back
	pinHand := func(side string) []string {
		return []string{"vcpupin NAME 0 1 " + side, "emulatorpin NAME 1 " + side, "iothreadpin NAME 1 1 " + side}
	}
	oneCPU := two(t, "nodecpumap", `CPUs present: *(\d+)`, "CPU")
	return []bounce.Row{
		{
			Name: "limits-live", Base: limits, Back: nothing,
			Steps: []bounce.Step{{Hand: commands("--live"), Seen: seen, Live: was, Want: bounce.Always(bounce.Live)}},
		},
		{
			Name: "limits-both", Base: limits, Back: nothing,
			Steps: []bounce.Step{{Hand: commands("--live --config"), Seen: seen, Live: was, Want: bounce.Always(bounce.Live)}},
		},
		{
			Name: "limits-config", Base: limits, Back: nothing,
			Steps: []bounce.Step{{Hand: commands("--config"), Definition: was, Want: bounce.Always(bounce.None)}},
		},
		{
			Name: "pins-live-and-both", Base: pins("0").With("io_threads", "1"), Back: nothing, Unavailable: oneCPU,
			Steps: []bounce.Step{
				{Hand: pinHand("--live"), Seen: pinned("1"), Live: pinned("0"), Want: bounce.Always(bounce.Live)},
				{Hand: pinHand("--live --config"), Seen: pinned("1"), Live: pinned("0"), Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "io-thread-added", Base: bounce.Fields{"io_threads": "1"}, Back: nothing,
			Steps: []bounce.Step{
				{Hand: []string{"iothreadadd NAME 2 --live"}, Seen: bounce.Leaves{"iothreads": "2"}, Live: bounce.Leaves{"iothreads": "1"}, Want: bounce.Always(bounce.Live)},
				{Hand: []string{"iothreadadd NAME 4 --live --config"}, Seen: bounce.Leaves{"iothreads": "2"}, Live: bounce.Leaves{"iothreads": "1"}, Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "io-thread-deleted", Base: bounce.Fields{"io_threads": "2"}, Back: nothing,
			Steps: []bounce.Step{
				{Hand: []string{"iothreaddel NAME 2 --live"}, Seen: bounce.Leaves{"iothreads": "1"}, Live: bounce.Leaves{"iothreads": "2"}, Want: bounce.Always(bounce.Live)},
				{Hand: []string{"iothreaddel NAME 1 --live --config"}, Seen: bounce.Leaves{"iothreads": "1"}, Live: bounce.Leaves{"iothreads": "2"}, Want: bounce.Always(bounce.Live)},
			},
		},
		{
			Name: "numa-mode-config", Base: bounce.Fields{"numa_tune.memory": memoryFrom("restrictive", "0")}, Back: nothing,
			Steps: []bounce.Step{{
				Hand: []string{"numatune NAME --mode preferred --nodeset 0 --config"}, Definition: bounce.Leaves{"numatune/memory/@mode": "restrictive"},
				Want: bounce.Always(bounce.None),
			}},
		},
	}
}
