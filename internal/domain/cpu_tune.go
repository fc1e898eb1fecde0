package domain

import (
	"context"
	"math"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// cpuTuneAspect is how much of the host's CPUs a guest gets: its weight among
// the guests of the host, and how much of each period it may compute.
var cpuTuneAspect = &aspect{
	name: "cpu_tune",
	owns: []string{
		"cpu_tune.shares",
		"cpu_tune.global_period", "cpu_tune.global_quota", "cpu_tune.period", "cpu_tune.quota",
		"cpu_tune.emulator_period", "cpu_tune.emulator_quota", "cpu_tune.io_thread_period", "cpu_tune.io_thread_quota",
	},
	rule: func(c change.Change, _ situation) (change.Class, string) {
		if c.Path.Pattern() == "cpu_tune.shares" && c.Desired.IsNull() {
			return change.ClassNextBoot, "libvirt can give a running guest another weight, and cannot take one away: which one a guest without shares has is up to the host, when the guest starts."
		}
		return change.ClassLive, "" // a quota that is taken away is none, and the period is the kernel's
	},
	live: setCPUTime,
}

// threadsAspect is what libvirt gives the threads of a guest when it makes
// them: how the host's kernel schedules them, and their parts of its caches and
// of the bandwidth of its memory.
var threadsAspect = &aspect{
	name: "threads",
	owns: []string{
		"cpu_tune.vcpu_sched", "cpu_tune.emulator_sched", "cpu_tune.io_thread_sched",
		"cpu_tune.cache_tune", "cpu_tune.memory_tune", "cpu_tune.energy_tune", "default_io_thread",
	},
	rule: func(change.Change, situation) (change.Class, string) {
		return change.ClassNextBoot, "libvirt gives it to the threads of the guest when it starts them, and has no call for it later."
	},
}

// cpuLimit is how many microseconds of each period something may compute. A
// quota below 0 is no limit.
type cpuLimit struct{ period, quota int64 }

// What something has that no definition limits.
const (
	kernelPeriod = 100000
	noQuota      = -1
)

// ratio is how many CPUs it may use.
func (t cpuLimit) ratio() float64 {
	if t.quota < 0 {
		return math.Inf(1)
	}
	return float64(t.quota) / float64(t.period)
}

// cpuParts are what is limited, the whole guest first: how the attributes of
// each begin, and how libvirt's parameters do.
var cpuParts = []struct{ attr, param string }{{"global_", "global_"}, {"", ""}, {"emulator_", "emulator_"}, {"io_thread_", "iothread_"}}

// cpuLimitOf is what a definition gives a part.
func cpuLimitOf(definition tree.Value, part string) cpuLimit {
	t := cpuLimit{kernelPeriod, noQuota}
	if n := whole(definition.At("cpu_tune." + part + "period")); n > 0 {
		t.period = n
	}
	if n := whole(definition.At("cpu_tune." + part + "quota")); n > 0 {
		t.quota = n
	}
	return t
}

// cpuCall sets one parameter of a guest, and takes it back.
type cpuCall struct {
	name      string
	want, was int64
}

// cpuCalls are the calls that bring a guest from one set of limits to another,
// a part each. In between, no part may have more than the whole guest has: a
// kernel with control groups of the first version refuses that.
func cpuCalls(was, want [4]cpuLimit) (calls []cpuCall) {
	of := func(i int) (out []cpuCall) {
		param, w, n := cpuParts[i].param, was[i], want[i]
		if w.period != n.period {
			out = append(out, cpuCall{param + "period", n.period, w.period})
		}
		if w.quota != n.quota {
			out = append(out, cpuCall{param + "quota", n.quota, w.quota})
		}
		periodFirst := cpuLimit{n.period, w.quota}.ratio() <= cpuLimit{w.period, n.quota}.ratio() // the less on the way
		if len(out) == 2 && periodFirst == (i == 0) {
			out[0], out[1] = out[1], out[0]
		}
		return out
	}
	if want[0].ratio() > was[0].ratio() {
		calls = of(0)
	}
	for i := range cpuParts[1:] {
		calls = append(calls, of(i+1)...)
	}
	if want[0].ratio() <= was[0].ratio() {
		calls = append(calls, of(0)...)
	}
	return calls
}

// setCPUTime sets what the running guest may compute.
func setCPUTime(ctx context.Context, a *apply) error {
	var calls []cpuCall
	if a.does("cpu_tune.shares") {
		// The guest may have the weight that the host gives by itself.
		now, err := a.before.dom.SchedulerParameters(ctx, virt.AffectLive)
		if err != nil {
			return err
		}
		calls = append(calls, cpuCall{"shares", whole(a.wanted.At("cpu_tune.shares")), now["shares"]})
	}
	var was, want [4]cpuLimit
	for i, part := range cpuParts {
		was[i], want[i] = cpuLimitOf(a.before.running(), part.attr), cpuLimitOf(a.wanted, part.attr)
		if !a.does("cpu_tune." + part.attr + "period") {
			want[i].period = was[i].period
		}
		if !a.does("cpu_tune." + part.attr + "quota") {
			want[i].quota = was[i].quota
		}
	}
	for _, c := range append(calls, cpuCalls(was, want)...) {
		set := func(n int64) func(context.Context) error {
			return func(ctx context.Context) error {
				return a.before.dom.SetSchedulerParameters(ctx, virt.Parameters{c.name: n}, virt.AffectLive)
			}
		}
		if err := a.try(ctx, set(c.want), set(c.was)); err != nil {
			return err
		}
	}
	return nil
}
