package virt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// tuned sets something on one side after the other, and then takes another value
// to both: each time exactly the sides meant show it.
func tuned(t testing.TB, d *virt.Domain, first, second string, set func(value int, side virt.Affect) error) {
	t.Helper()
	try(t, timed(t, "live", func() error { return set(1, virt.AffectLive) }))
	shows(t, d, first, "!"+first)
	try(t, set(1, virt.AffectConfig))
	shows(t, d, first, first)
	try(t, timed(t, "both", func() error { return set(2, both) }))
	shows(t, d, second, second)
}

// refused calls something on each side and in one call on both, and wants the
// code and no change.
func refused(t testing.TB, d *virt.Domain, code int, call func(virt.Affect) error, on ...virt.Affect) {
	t.Helper()
	if on == nil {
		on = []virt.Affect{virt.AffectLive, virt.AffectConfig, both}
	}
	live, config := sides(t, d)
	for _, side := range on {
		coded(t, call(side), code)
	}
	if l, c := sides(t, d); l != live || c != config {
		t.Error("a refused change changed something")
	}
}

func TestAccDomainTune_cpu(t *testing.T) {
	acctest.Case(t, "shares, periods and quotas of a running guest")
	ctx := context.Background()
	d, _ := machine{top: "<iothreads>1</iothreads>"}.boot(t, "cputune")
	set := func(p virt.Parameters) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetSchedulerParameters(ctx, p, side) }
	}
	read := func(side virt.Affect) virt.Parameters { return got(d.SchedulerParameters(ctx, side))(t) }
	if live, config := read(virt.AffectLive), read(virt.AffectConfig); live["shares"] != 1024 || live["quota"] != -1 || config["shares"] != 0 {
		t.Errorf("without limits: %v, %v", live, config)
	}
	tuned(t, d, `<shares>510</shares>`, `<shares>520</shares>`, func(n int, side virt.Affect) error { return set(virt.Parameters{"shares": 500 + int64(n)*10})(side) })
	// Some kernels refuse a guest less than one of its parts has.
	for _, prefix := range []string{"global_", "", "emulator_", "iothread_"} {
		base := map[bool]int64{true: 80000, false: 50000}[prefix == "global_"]
		shown := func(n int64) string { return fmt.Sprintf("<%squota>%d</", prefix, base+n*1000) }
		tuned(t, d, shown(1), shown(2), func(n int, side virt.Affect) error {
			return set(virt.Parameters{prefix + "quota": base + int64(n)*1000, prefix + "period": 90000})(side)
		})
		if live, config := read(virt.AffectLive), read(virt.AffectConfig); live[prefix+"quota"] != base+2000 || live[prefix+"period"] != 90000 || config[prefix+"quota"] != base+2000 {
			t.Errorf("%s: %v, %v", prefix, live, config)
		}
	}
	// There are two ways to take a quota away, one for each side.
	try(t, set(virt.Parameters{"quota": 0})(both))
	shows(t, d, `<quota>52000</quota>`, `!<quota>`)
	try(t, set(virt.Parameters{"quota": -1})(virt.AffectLive))
	shows(t, d, `<quota>-1</quota>`, `!<quota>`)
	if live := read(virt.AffectLive); live["quota"] != -1 {
		t.Errorf("without a quota: %v", live)
	}
	refused(t, d, virt.ErrInvalidArg, set(virt.Parameters{"period": 1}))
	refused(t, d, virt.ErrInvalidArg, set(virt.Parameters{"quota": 1}))
	refused(t, d, virt.ErrInvalidArg, set(virt.Parameters{"shares": 1}), virt.AffectLive, both)
	try(t, set(virt.Parameters{"shares": 1})(virt.AffectConfig)) // the next start will say what it thinks of it
	want(t, set(virt.Parameters{"weight": 1})(both), "set the CPU limits of domain", "no such parameter: weight")
	want(t, set(virt.Parameters{"shares": -1})(both), "shares: -1 is out of range")
}

func TestAccDomainTune_memory(t *testing.T) {
	acctest.Case(t, "memory limits of a running guest, also taken away")
	ctx := context.Background()
	d, _ := machine{}.boot(t, "memtune")
	set := func(p virt.Parameters) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetMemoryParameters(ctx, p, side) }
	}
	const mib = int64(1 << 10)
	none := virt.Parameters{"hard_limit": virt.NoLimit, "soft_limit": virt.NoLimit, "swap_hard_limit": virt.NoLimit}
	for _, side := range []virt.Affect{virt.AffectLive, virt.AffectConfig} {
		if p := got(d.MemoryParameters(ctx, side))(t); !maps.Equal(p, none) {
			t.Errorf("without limits: %v", p)
		}
	}
	tuned(t, d, `<soft_limit unit='KiB'>1048576<`, `<soft_limit unit='KiB'>2097152<`, func(n int, side virt.Affect) error { return set(virt.Parameters{"soft_limit": int64(n) << 20})(side) })
	tuned(t, d, `<hard_limit unit='KiB'>1048576<`, `<hard_limit unit='KiB'>2097152<`, func(n int, side virt.Affect) error { return set(virt.Parameters{"hard_limit": int64(n) << 20})(side) })
	if p := got(d.MemoryParameters(ctx, virt.AffectLive))(t); p["hard_limit"] != 2048*mib || p["soft_limit"] != 2048*mib {
		t.Errorf("got %v", p)
	}
	tuned(t, d, `<swap_hard_limit unit='KiB'>3145728<`, `<swap_hard_limit unit='KiB'>4194304<`, func(n int, side virt.Affect) error {
		return set(virt.Parameters{"swap_hard_limit": int64(n+2) << 20})(side)
	})
	refused(t, d, virt.ErrInvalidArg, set(virt.Parameters{"hard_limit": 5 << 20}))
	refused(t, d, virt.ErrInvalidArg, set(virt.Parameters{"swap_hard_limit": 1 << 20}))
	refused(t, d, virt.ErrArgumentUnsupported, set(virt.Parameters{"min_guarantee": mib}))
	try(t, set(none)(both))
	shows(t, d, `!<(soft|hard|swap_hard)_limit`, `!<(soft|hard|swap_hard)_limit`)
}

func TestAccDomainTune_numa(t *testing.T) {
	acctest.Case(t, "the NUMA nodes of a running guest's memory change in mode restrictive alone, its mode never")
	ctx := context.Background()
	d, _ := machine{top: `<numatune><memory mode="restrictive" nodeset="0"/></numatune>`}.boot(t, "restrictive")
	set := func(d *virt.Domain, n virt.Numa) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetNumaParameters(ctx, n, side) }
	}
	if n := got(d.NumaParameters(ctx, virt.AffectLive))(t); n != (virt.Numa{Nodeset: "0", Mode: "restrictive"}) {
		t.Errorf("got %+v", n)
	}
	try(t, set(d, virt.Numa{Nodeset: "0"})(both)) // the only node there is
	refused(t, d, virt.ErrConfigUnsupported, set(d, virt.Numa{Nodeset: "7"}), virt.AffectLive, both)
	refused(t, d, virt.ErrOperationInvalid, set(d, virt.Numa{Mode: "preferred"}), virt.AffectLive, both)
	try(t, set(d, virt.Numa{Mode: "preferred", Nodeset: "0"})(virt.AffectConfig))
	shows(t, d, `<memory mode='restrictive' nodeset='0'/>`, `<memory mode='preferred' nodeset='0'/>`)
	if n := got(d.NumaParameters(ctx, virt.AffectConfig))(t); n.Mode != "preferred" {
		t.Errorf("got %+v", n)
	}
	want(t, set(d, virt.Numa{Mode: "lenient"})(both), "no such mode: lenient")

	strict, _ := machine{}.boot(t, "strict")
	try(t, set(strict, virt.Numa{Nodeset: "0"})(virt.AffectLive)) // where there was none, once
	shows(t, strict, `<memory mode='strict' nodeset='0'/>`, `!<numatune>`)
	refused(t, strict, virt.ErrOperationInvalid, set(strict, virt.Numa{Nodeset: "0"}), virt.AffectLive)
}

func TestAccDomainTune_blkio(t *testing.T) {
	acctest.Case(t, "disk weights of a running guest; limits on devices of the host")
	ctx := context.Background()
	d, _ := machine{}.boot(t, "blkio")
	set := func(b virt.Blkio) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetBlkioParameters(ctx, b, side) }
	}
	tuned(t, d, `<weight>210</weight>`, `<weight>220</weight>`, func(n int, side virt.Affect) error { return set(virt.Blkio{Weight: 200 + int64(n)*10})(side) })
	if b := got(d.BlkioParameters(ctx, virt.AffectLive))(t); b.Weight != 220 || len(b.Devices) != 0 {
		t.Errorf("got %+v", b)
	}
	absent := virt.Blkio{Devices: map[string]virt.Parameters{
		"/dev/nowhere":   {"read_bytes_sec": 1 << 20, "write_iops_sec": 40, "weight": 300},
		"/dev/elsewhere": {"write_bytes_sec": 2 << 20, "read_iops_sec": 30},
	}}
	refused(t, d, virt.ErrSystem, set(virt.Blkio{Devices: map[string]virt.Parameters{"/dev/nowhere": {"read_bytes_sec": 1 << 20}}}), virt.AffectLive, both)
	try(t, set(absent)(virt.AffectConfig))
	if b := got(d.BlkioParameters(ctx, virt.AffectConfig))(t); !reflect.DeepEqual(b, virt.Blkio{Weight: 220, Devices: absent.Devices}) {
		t.Errorf("got %+v", b)
	}
	try(t, set(virt.Blkio{Devices: map[string]virt.Parameters{"/dev/nowhere": {"read_bytes_sec": 0, "write_iops_sec": 0, "weight": 0}}})(virt.AffectConfig))
	shows(t, d, "!<device>", "!/dev/nowhere")
	shows(t, d, "!<device>", "/dev/elsewhere")
	want(t, set(virt.Blkio{Devices: map[string]virt.Parameters{"/dev/a,b": {"weight": 1}}})(both), `"/dev/a,b"`)
	want(t, set(virt.Blkio{Devices: map[string]virt.Parameters{"/dev/a": {"speed": 1}}})(both), "no such parameter of a device: speed")
	want(t, set(virt.Blkio{Weight: -1})(both), "out of range")
}

func TestAccDomainTune_iotune(t *testing.T) {
	acctest.Case(t, "limits of a running guest's disk, in groups too; one of a kind takes the place of all of that kind")
	ctx := context.Background()
	d, _ := machine{devices: diskOf(t, "ua-disk")}.boot(t, "iotune")
	set := func(tune virt.IoTune) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetBlockIoTune(ctx, "vda", tune, side) }
	}
	limits := func(p virt.Parameters) func(virt.Affect) error { return set(virt.IoTune{Limits: p}) }
	zero := got(d.BlockIoTune(ctx, "vda", virt.AffectLive))(t)
	if len(zero.Limits) != 19 || zero.Group != "" || slices.Max(slices.Collect(maps.Values(zero.Limits))) != 0 {
		t.Errorf("without limits: %+v", zero)
	}
	tuned(t, d, `<total_iops_sec>110<`, `<total_iops_sec>120<`, func(n int, side virt.Affect) error {
		return limits(virt.Parameters{"total_iops_sec": 100 + int64(n)*10, "total_bytes_sec": 8 << 20})(side)
	})
	// Kinds are bytes and operations, each also for bursts. Others stay.
	try(t, limits(virt.Parameters{"read_iops_sec": 50})(both))
	shows(t, d, `<read_iops_sec>50<`, `<read_iops_sec>50<`)
	shows(t, d, `!<total_iops_sec>`, `!<total_iops_sec>`)
	shows(t, d, `<total_bytes_sec>8388608<`, `<total_bytes_sec>8388608<`)
	try(t, limits(virt.Parameters{"total_bytes_sec_max": 16 << 20, "total_bytes_sec_max_length": 5})(both))
	if tune := got(d.BlockIoTune(ctx, "vda", virt.AffectLive))(t); tune.Limits["total_bytes_sec_max_length"] != 5 || tune.Limits["read_iops_sec"] != 50 {
		t.Errorf("QEMU has %+v", tune)
	}
	refused(t, d, virt.ErrInvalidArg, limits(virt.Parameters{"read_iops_sec": 50, "total_iops_sec": 50}))
	refused(t, d, virt.ErrConfigUnsupported, limits(virt.Parameters{"write_bytes_sec": 1 << 20}), virt.AffectLive, both)
	refused(t, d, virt.ErrInvalidArg, func(side virt.Affect) error { return d.SetBlockIoTune(ctx, "vdz", zero, side) })
	try(t, set(virt.IoTune{Group: "slow"})(both))
	if tune := got(d.BlockIoTune(ctx, "vda", virt.AffectLive))(t); tune.Group != "slow" || tune.Limits["read_iops_sec"] != 50 {
		t.Errorf("QEMU has %+v", tune)
	}
	try(t, set(zero)(both))
	shows(t, d, `!<iotune>`, `!<iotune>`)
	// UpdateDevice refuses them: TestAccDomainUpdate_refused.
	if b := got(d.BlockInfo(ctx, "vda"))(t); b != (virt.BlockInfo{Capacity: 1 << 20, Physical: 1 << 20}) {
		t.Errorf("got %+v", b)
	}
	coded(t, second(d.BlockInfo(ctx, "vdz")), virt.ErrInvalidArg)
	for _, err := range []error{d.SetThrottleGroup(ctx, "slow", virt.Parameters{"total_iops_sec": 100}, both), d.DelThrottleGroup(ctx, "slow", both)} {
		var old *virt.TooOldError
		if v := got(shared(t).Versions(ctx))(t); v.Daemon < 11002000 && !errors.As(err, &old) {
			t.Errorf("libvirt %s: %v", v.Daemon, err)
		}
	}
}

func TestAccDomainTune_perf(t *testing.T) {
	acctest.Case(t, "events of a running guest are counted, and no longer")
	ctx := context.Background()
	d, _ := machine{}.boot(t, "perf")
	tuned(t, d, `<event name='page_faults' enabled='yes'/>`, `<event name='page_faults' enabled='no'/>`, func(n int, side virt.Affect) error {
		return d.SetPerfEvents(ctx, virt.Parameters{"page_faults": int64(2 - n)}, side)
	})
	try(t, d.SetPerfEvents(ctx, virt.Parameters{"cpu_clock": 1, "context_switches": 1}, both))
	p := got(d.PerfEvents(ctx, virt.AffectLive))(t)
	if len(p) != 22 || p["cpu_clock"] != 1 || p["context_switches"] != 1 || p["page_faults"] != 0 {
		t.Errorf("got %v", p)
	}
	// A processor without that counter; the definition does not ask.
	refused(t, d, virt.ErrArgumentUnsupported, func(side virt.Affect) error { return d.SetPerfEvents(ctx, virt.Parameters{"cmt": 1}, side) }, virt.AffectLive, both)
	try(t, d.SetPerfEvents(ctx, virt.Parameters{"cmt": 1}, virt.AffectConfig))
	want(t, d.SetPerfEvents(ctx, virt.Parameters{"luck": 1}, both), "no such parameter: luck")
}

func TestAccDomainTune_lifecycle(t *testing.T) {
	acctest.Case(t, "what happens to a running guest when it powers off, reboots or crashes")
	ctx := context.Background()
	d, _ := machine{}.boot(t, "lifecycle")
	set := func(event, action string) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetLifecycleAction(ctx, event, action, side) }
	}
	actions := []string{"", "preserve", "coredump-restart"}
	tuned(t, d, `<on_crash>preserve<`, `<on_crash>coredump-restart<`, func(n int, side virt.Affect) error { return set("on_crash", actions[n])(side) })
	for _, step := range [][2]string{
		{"on_poweroff", "restart"}, {"on_poweroff", "destroy"}, {"on_reboot", "destroy"}, {"on_reboot", "restart"},
		{"on_crash", "destroy"}, {"on_crash", "restart"}, {"on_crash", "coredump-destroy"}, {"on_poweroff", "restart"},
	} {
		try(t, set(step[0], step[1])(both))
		element := fmt.Sprintf("<%s>%s<", step[0], step[1])
		shows(t, d, element, element)
	}
	refused(t, d, virt.ErrConfigUnsupported, set("on_reboot", "destroy")) // while it restarts after a power-off
	for _, event := range []string{"on_poweroff", "on_reboot"} {
		for _, action := range []string{"preserve", "coredump-destroy", "rename-restart"} {
			refused(t, d, virt.ErrConfigUnsupported, set(event, action))
		}
	}
	want(t, set("on_fire", "destroy")(both), "no such action: on_fire destroy")
	want(t, set("on_crash", "weep")(both), "no such action: on_crash weep")
}

func TestAccDomainTune_bandwidth(t *testing.T) {
	acctest.Case(t, "the bandwidth of a running guest's interface")
	ctx := context.Background()
	d, _ := machine{devices: nicOf}.boot(t, "bandwidth")
	const mac = "52:54:00:aa:bb:01"
	set := func(b virt.Bandwidth) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetInterfaceParameters(ctx, mac, b, side) }
	}
	b := virt.Bandwidth{Inbound: &virt.Rate{Average: 1000, Peak: 2000, Burst: 512}, Outbound: &virt.Rate{Average: 128}}
	try(t, set(b)(virt.AffectConfig))
	const in, out = `<inbound average='1000' peak='2000' burst='512'/>`, `<outbound average='128'/>`
	shows(t, d, "!<bandwidth>", in)
	shows(t, d, "!<bandwidth>", out)
	if now := got(d.InterfaceParameters(ctx, mac, virt.AffectConfig))(t); !reflect.DeepEqual(now, b) {
		t.Errorf("got %+v", now)
	}
	if err := set(b)(virt.AffectLive); err != nil { // a kernel without the queueing discipline sfq
		coded(t, err, virt.ErrInternal, "qdisc")
		shows(t, d, "!<bandwidth>", in)
	} else {
		shows(t, d, in, in)
		if now := got(d.InterfaceParameters(ctx, mac, virt.AffectLive))(t); !reflect.DeepEqual(now, b) {
			t.Errorf("got %+v", now)
		}
	}
	try(t, set(virt.Bandwidth{Inbound: &virt.Rate{}})(both))
	shows(t, d, "!"+in, "!"+in)
	shows(t, d, "", out)
	try(t, set(virt.Bandwidth{Outbound: &virt.Rate{}})(both))
	shows(t, d, "!<(in|out)bound", "!<(in|out)bound")
	shows(t, d, "", `<bandwidth>\s*</bandwidth>`) // an empty element stays
	refused(t, d, virt.ErrInvalidArg, func(side virt.Affect) error { return d.SetInterfaceParameters(ctx, "52:54:00:aa:bb:09", b, side) })
	coded(t, second(d.InterfaceParameters(ctx, "52:54:00:aa:bb:09", virt.AffectLive)), virt.ErrInvalidArg)
}

func TestAccDomainTune_pins(t *testing.T) {
	acctest.Case(t, "a running guest's CPUs, emulator and I/O threads are pinned to CPUs of the host")
	ctx := context.Background()
	d, _ := machine{vcpu: "<vcpu>2</vcpu>", top: "<iothreads>1</iothreads>"}.boot(t, "pins")
	all := got(d.EmulatorPin(ctx, virt.AffectLive))(t)
	if len(all) < 2 {
		acctest.Unavailable(t, "a host with one CPU")
	}
	last := all[len(all)-1]
	cpus := func(n int) virt.CPUSet { return virt.CPUSet{all[0], last}[n-1 : n] }
	first, second := fmt.Sprintf("cpuset='%d'", all[0]), fmt.Sprintf("cpuset='%d'", last)
	tuned(t, d, `<vcpupin vcpu='1' `+first, `<vcpupin vcpu='1' `+second, func(n int, side virt.Affect) error { return d.PinVcpu(ctx, 1, cpus(n), side) })
	tuned(t, d, `<emulatorpin `+first, `<emulatorpin `+second, func(n int, side virt.Affect) error { return d.PinEmulator(ctx, cpus(n), side) })
	tuned(t, d, `<iothreadpin iothread='1' `+first, `<iothreadpin iothread='1' `+second, func(n int, side virt.Affect) error { return d.PinIOThread(ctx, 1, cpus(n), side) })
	for _, side := range []virt.Affect{virt.AffectLive, virt.AffectConfig} {
		pins, emulator, threads := got(d.VcpuPins(ctx, side))(t), got(d.EmulatorPin(ctx, side))(t), got(d.IOThreads(ctx, side))(t)
		one := virt.CPUSet{last}
		if len(pins) != 2 || !slices.Equal(pins[0], all) || !slices.Equal(pins[1], one) || !slices.Equal(emulator, one) || !slices.Equal(threads[1], one) {
			t.Errorf("pins %v, emulator %v, I/O threads %v", pins, emulator, threads)
		}
	}
	if v := got(d.Vcpus(ctx))(t); len(v) != 2 || !slices.Equal(v[1].CPUs, virt.CPUSet{last}) {
		t.Errorf("got %+v", v)
	}
	// A pin can be wide, but not away.
	try(t, d.PinVcpu(ctx, 1, all, both))
	shows(t, d, `<vcpupin vcpu='1'`, `<vcpupin vcpu='1'`)
	pin := func(vcpu uint, cpus virt.CPUSet) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.PinVcpu(ctx, vcpu, cpus, side) }
	}
	refused(t, d, virt.ErrInvalidArg, pin(9, all))
	refused(t, d, virt.ErrInvalidArg, pin(1, nil))
	refused(t, d, virt.ErrSystem, pin(1, virt.CPUSet{last + 7}), virt.AffectLive, both)
	try(t, pin(1, virt.CPUSet{last + 7})(virt.AffectConfig)) // which the next start refuses
	refused(t, d, virt.ErrInvalidArg, func(side virt.Affect) error { return d.PinIOThread(ctx, 9, all, side) })
}

func TestAccDomainTune_ioThreads(t *testing.T) {
	acctest.Case(t, "I/O threads come and go on a running guest, unless a disk uses them")
	ctx := context.Background()
	disk := strings.Replace(diskOf(t, "ua-disk"), `cache="none"`, `cache="none" iothread="1"`, 1)
	d, _ := machine{top: "<iothreads>1</iothreads>", devices: disk}.boot(t, "iothreads")
	add := func(id uint) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.AddIOThread(ctx, id, side) }
	}
	del := func(id uint) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.DelIOThread(ctx, id, side) }
	}
	ids := func(live, config []uint) {
		t.Helper()
		for side, want := range map[virt.Affect][]uint{virt.AffectLive: live, virt.AffectConfig: config} {
			if have := slices.Sorted(maps.Keys(got(d.IOThreads(ctx, side))(t))); !slices.Equal(have, want) {
				t.Errorf("side %d has %v, want %v", side, have, want)
			}
		}
	}
	try(t, add(3)(virt.AffectLive))
	try(t, add(4)(virt.AffectConfig))
	try(t, add(5)(both))
	ids([]uint{1, 3, 5}, []uint{1, 4, 5})
	refused(t, d, virt.ErrInvalidArg, add(5))
	try(t, d.PinIOThread(ctx, 5, virt.CPUSet{0}, both))
	set := func(p virt.Parameters) func(virt.Affect) error {
		return func(side virt.Affect) error { return d.SetIOThreadParams(ctx, 5, p, side) }
	}
	try(t, set(virt.Parameters{"poll_max_ns": 5000, "poll_grow": 2, "poll_shrink": 2})(virt.AffectLive))
	refused(t, d, virt.ErrUnsupported, set(virt.Parameters{"poll_max_ns": 5000}), virt.AffectConfig, both)
	tuned(t, d, `<iothread id='5' thread_pool_max='6'`, `<iothread id='5' thread_pool_max='7'`, func(n int, side virt.Affect) error {
		return set(virt.Parameters{"thread_pool_max": int64(5 + n)})(side)
	})
	want(t, set(virt.Parameters{"speed": 1})(both), "no such parameter: speed")
	try(t, del(3)(virt.AffectLive))
	try(t, del(4)(virt.AffectConfig))
	try(t, del(5)(both))
	ids([]uint{1}, []uint{1})
	shows(t, d, `!<iothreadpin iothread='5'`, `!<iothreadpin iothread='5'`)
	refused(t, d, virt.ErrInvalidArg, del(5))
	refused(t, d, virt.ErrInvalidArg, del(1))
	ids([]uint{1}, []uint{1})
}

func TestAccDomainTune_nextStart(t *testing.T) {
	acctest.Case(t, "what a definition takes in silence, the next start refuses")
	ctx := context.Background()
	h := shared(t)
	for name, set := range map[string]func(*virt.Domain) error{
		"a CPU that the host lacks": func(d *virt.Domain) error { return d.PinVcpu(ctx, 0, virt.CPUSet{500}, virt.AffectConfig) },
		"a burst without a limit": func(d *virt.Domain) error {
			return d.SetBlockIoTune(ctx, "vda", virt.IoTune{Limits: virt.Parameters{"total_bytes_sec_max": 1 << 20}}, virt.AffectConfig)
		},
		"too few shares": func(d *virt.Domain) error {
			return d.SetSchedulerParameters(ctx, virt.Parameters{"shares": 1}, virt.AffectConfig)
		},
		"a device that the host lacks": func(d *virt.Domain) error {
			return d.SetBlkioParameters(ctx, virt.Blkio{Devices: map[string]virt.Parameters{"/dev/nowhere": {"read_bytes_sec": 1 << 20}}}, virt.AffectConfig)
		},
		"a counter that the host lacks": func(d *virt.Domain) error {
			return d.SetPerfEvents(ctx, virt.Parameters{"cmt": 1}, virt.AffectConfig)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := bare(t, h, "next", `<devices>`+diskOf(t, "ua-disk")+`</devices>`)
			try(t, set(d))
			err := d.Start(ctx, virt.StartFlags{Paused: true})
			if err == nil {
				t.Fatal("it started")
			}
			t.Log(codeOf(err), err)
			if virt.IsNotFound(err) {
				t.Error("the domain seems to be gone")
			}
		})
	}
}
