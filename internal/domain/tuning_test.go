package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// tuned is a running guest with something of everything.
func tuned() tree.Value {
	str, num := tree.StringValue, tree.IntValue
	list := func(elems ...tree.Value) tree.Value { return tree.ListValue(elems) }
	return tree.NullValue.With("memory", num(128)).With("memory_unit", str("MiB")).With("vcpu", num(2)).With("vcpu_current", num(1)).
		With("io_threads", num(3)).
		SetAt("numa_tune.memory.mode", str("restrictive")).SetAt("devices.mem_balloon.model", str("virtio")).
		SetAt("devices.disks", list(tree.NullValue.SetAt("driver.io_thread", num(2)))).
		SetAt("devices.controllers", list(tree.NullValue.SetAt("driver.io_threads.io_thread", list(tree.NullValue.With("id", num(1))))))
}

// withBothCPUs is the guest with both CPUs plugged in, of which one can go.
func withBothCPUs(guest tree.Value) tree.Value {
	cpu := tree.NullValue.With("id", tree.IntValue(1)).With("enabled", tree.StringValue("yes")).With("hotpluggable", tree.StringValue("yes"))
	return guest.With("vcpu_current", tree.IntValue(2)).SetAt("vcpus.vcpu", tree.ListValue([]tree.Value{cpu}))
}

// element is the path of an element of a list, and below it.
func element(list, key, below string) tree.Path {
	p := tree.ParsePath(list).Elem(0, key)
	if below != "" {
		p = append(p, tree.ParsePath(below)...)
	}
	return p
}

func TestTuningRules(t *testing.T) {
	str, num := tree.StringValue, tree.IntValue
	to := func(path string, desired tree.Value) change.Change {
		return change.Change{Path: tree.ParsePath(path), Desired: desired}
	}
	unset := func(path string) change.Change {
		return change.Change{Path: tree.ParsePath(path), Kind: change.Withdrawal, Actual: num(1)}
	}
	bytes := func(path string, mib int64) change.Change {
		return change.Change{Path: tree.ParsePath(path), Unit: "bytes", Desired: num(mib << 20)}
	}
	added := func(list, key string, elem tree.Value) change.Change {
		return change.Change{Path: element(list, key, ""), Kind: change.Addition, Desired: elem}
	}
	removed := func(list, key string) change.Change {
		return change.Change{Path: element(list, key, ""), Kind: change.Removal, Actual: tree.ObjectValue(nil)}
	}
	in := func(list, key, below string, desired tree.Value) change.Change {
		return change.Change{Path: element(list, key, below), Desired: desired}
	}
	elem := tree.ObjectValue(nil)
	guest := tuned()
	limited := guest.SetAt("memory_tune.hard_limit", num(200)).SetAt("memory_tune.hard_limit_unit", str("MiB"))
	generous := guest.SetAt("memory_tune.hard_limit", num(4<<20)).SetAt("memory_tune.swap_hard_limit", num(8<<20))
	module := tree.NullValue.With("model", str("dimm")).SetAt("target.size", num(256)).SetAt("target.size_unit", str("MiB"))
	const live = ""
	// The text is in the reason for next_boot; empty: live.
	cases := map[string]struct {
		change change.Change
		why    string
		guest  tree.Value // null: the one with everything
		beside []change.Change
	}{
		"shares":                          {change: to("cpu_tune.shares", num(2048)), why: live},
		"shares taken away":               {change: unset("cpu_tune.shares"), why: "cannot take one away"},
		"quota":                           {change: to("cpu_tune.quota", num(50000)), why: live},
		"quota taken away":                {change: unset("cpu_tune.global_quota"), why: live},
		"period taken away":               {change: unset("cpu_tune.io_thread_period"), why: live},
		"scheduler":                       {change: to("cpu_tune.emulator_sched.scheduler", str("batch")), why: "threads of the guest"},
		"scheduler of CPUs":               {change: added("cpu_tune.vcpu_sched", "", elem), why: "threads of the guest"},
		"caches":                          {change: in("cpu_tune.cache_tune", "", "vcpus", str("0")), why: "threads of the guest"},
		"pin added":                       {change: added(vcpuPins, "0", elem), why: live},
		"pin of a CPU not plugged in":     {change: added(vcpuPins, "1", elem), why: "no vCPU 1 plugged in"},
		"that comes with it":              {change: added(vcpuPins, "1", elem), why: live, beside: []change.Change{to("vcpu_current", num(2))}},
		"that comes at the next start":    {change: added(vcpuPins, "1", elem), why: "no vCPU 1 plugged in", beside: []change.Change{to("vcpu_current", num(3))}},
		"pin of a CPU that is taken out":  {change: in(vcpuPins, "1", "cpu_set", str("1")), why: "no vCPU 1 plugged in", guest: withBothCPUs(guest), beside: []change.Change{to("vcpu_current", num(1))}},
		"pin changed":                     {change: in(vcpuPins, "0", "cpu_set", str("1")), why: live},
		"pin of a CPU without a place":    {change: added(vcpuPins, "2", elem), why: "no vCPU 2"},
		"pin removed":                     {change: removed(vcpuPins, "0"), why: "cannot take it away"},
		"emulator pinned":                 {change: to("cpu_tune.emulator_pin.cpu_set", str("0")), why: live},
		"emulator not pinned":             {change: unset("cpu_tune.emulator_pin.cpu_set"), why: "cannot take it away"},
		"pin of an I/O thread":            {change: added(ioThreadPins, "3", elem), why: live},
		"of one that is not there":        {change: added(ioThreadPins, "4", elem), why: "no I/O thread 4"},
		"of one that comes by the count":  {change: added(ioThreadPins, "4", elem), why: live, beside: []change.Change{to("io_threads", num(4))}},
		"of one beyond the count":         {change: added(ioThreadPins, "5", elem), why: "no I/O thread 5", beside: []change.Change{to("io_threads", num(4))}},
		"of one that comes by the list":   {change: added(ioThreadPins, "7", elem), why: live, beside: []change.Change{added(ioThreadList, "7", elem)}},
		"of another than comes":           {change: added(ioThreadPins, "8", elem), why: "no I/O thread 8", beside: []change.Change{added(ioThreadList, "7", elem)}},
		"of one that comes later":         {change: added(ioThreadPins, "7", elem), why: "no I/O thread 7", beside: []change.Change{added(ioThreadList, "7", tree.NullValue.SetAt("poll.weight", num(1)))}},
		"of one, not known how many":      {change: added(ioThreadPins, "4", elem), why: "no I/O thread 4", beside: []change.Change{to("io_threads", tree.UnknownValue)}},
		"pin of an I/O thread removed":    {change: removed(ioThreadPins, "3"), why: "cannot take it away"},
		"with its thread":                 {change: removed(ioThreadPins, "3"), why: live, beside: []change.Change{to("io_threads", num(2))}},
		"with its thread, from the list":  {change: removed(ioThreadPins, "3"), why: live, beside: []change.Change{removed(ioThreadList, "3")}},
		"with its thread, which stays":    {change: removed(ioThreadPins, "2"), why: "cannot take it away", beside: []change.Change{to("io_threads", num(1))}},
		"with another thread":             {change: removed(ioThreadPins, "1"), why: "cannot take it away", beside: []change.Change{to("io_threads", num(2))}},
		"more I/O threads":                {change: to("io_threads", num(4)), why: live},
		"not known how many I/O threads":  {change: to("io_threads", tree.UnknownValue), why: live},
		"one I/O thread less":             {change: to("io_threads", num(2)), why: live},
		"used by a disk":                  {change: to("io_threads", num(1)), why: "uses I/O thread 2"},
		"no I/O threads":                  {change: unset("io_threads"), why: "uses I/O thread 1"},
		"no I/O threads, none used":       {change: unset("io_threads"), why: live, guest: guest.SetAt("devices", tree.NullValue)},
		"the count of a shorter list":     {change: to("io_threads", num(2)), why: "uses I/O thread 2", beside: []change.Change{removed(ioThreadList, "2")}},
		"I/O thread added":                {change: added(ioThreadList, "7", elem), why: live},
		"I/O thread that weighs polling":  {change: added(ioThreadList, "7", tree.NullValue.SetAt("poll.weight", num(1))), why: "weight of polling"},
		"I/O thread removed":              {change: removed(ioThreadList, "3"), why: live},
		"used by a controller":            {change: removed(ioThreadList, "1"), why: "uses I/O thread 1"},
		"pool of an I/O thread":           {change: in(ioThreadList, "1", "pool_max", num(8)), why: live},
		"pool taken away":                 {change: in(ioThreadList, "1", "pool_max", tree.NullValue), why: "cannot take it away"},
		"polling":                         {change: in(ioThreadList, "1", "poll.max", num(8)), why: live},
		"weight of polling":               {change: in(ioThreadList, "1", "poll.weight", num(8)), why: "weight of polling"},
		"hard limit":                      {change: bytes("memory_tune.hard_limit", 672), why: live}, // 128, a quarter, 512
		"hard limit with less to spare":   {change: bytes("memory_tune.hard_limit", 671), why: "at least 688128 KiB"},
		"hard limit of the guest's size":  {change: bytes("memory_tune.hard_limit", 128), why: "kills a guest"},
		"hard limit, not known yet":       {change: to("memory_tune.hard_limit", tree.UnknownValue), why: "kills a guest"},
		"hard limit raised":               {change: bytes("memory_tune.hard_limit", 300), why: live, guest: limited},
		"hard limit lowered":              {change: bytes("memory_tune.hard_limit", 199), why: "kills a guest", guest: limited},
		"hard limit and a module":         {change: bytes("memory_tune.hard_limit", 672), why: "at least 1015808 KiB", beside: []change.Change{added(moduleList, "", module)}},
		"room for a module too":           {change: bytes("memory_tune.hard_limit", 992), why: live, beside: []change.Change{added(moduleList, "", module)}},
		"swap limit":                      {change: bytes("memory_tune.swap_hard_limit", 672), why: live},
		"swap limit below the hard limit": {change: bytes("memory_tune.swap_hard_limit", 800), why: "hard_limit", guest: generous, beside: []change.Change{bytes("memory_tune.hard_limit", 100)}},
		"swap limit with the hard limit":  {change: bytes("memory_tune.swap_hard_limit", 800), why: live, guest: generous, beside: []change.Change{bytes("memory_tune.hard_limit", 700)}},
		"swap limit below the guest":      {change: bytes("memory_tune.swap_hard_limit", 100), why: "kills a guest"},
		"soft limit below the guest":      {change: bytes("memory_tune.soft_limit", 10), why: live},
		"hard limit taken away":           {change: unset("memory_tune.hard_limit"), why: live},
		"guarantee":                       {change: bytes("memory_tune.min_guarantee", 10), why: "cannot change it"},
		"locked memory":                   {change: to("memory_backing.memory_locked", tree.BoolValue(true)), why: "takes the guest's memory"},
		"nodes":                           {change: to("numa_tune.memory.nodeset", str("0-1")), why: live},
		"nodes in another mode":           {change: to("numa_tune.memory.nodeset", str("0-1")), why: "only in the mode restrictive", guest: guest.SetAt("numa_tune.memory.mode", str("strict"))},
		"nodes where there were none":     {change: to("numa_tune.memory.nodeset", str("0")), why: "only in the mode restrictive", guest: guest.SetAt("numa_tune", tree.NullValue)},
		"nodes taken away":                {change: unset("numa_tune.memory.nodeset"), why: "cannot take the choice"},
		"mode":                            {change: to("numa_tune.memory.mode", str("strict")), why: "binds its memory"},
		"nodes of a cell":                 {change: added("numa_tune.mem_nodes", "0", elem), why: "binds its memory"},
		"disk weight":                     {change: to("block_io_tune.weight", num(200)), why: live},
		"disk weight taken away":          {change: unset("block_io_tune.weight"), why: "cannot take one away"},
		"device added":                    {change: added(blockIODevices, "/dev/sda", elem), why: live},
		"device removed":                  {change: removed(blockIODevices, "/dev/sda"), why: live},
		"limit of a device taken away":    {change: in(blockIODevices, "/dev/sda", "read_bytes_sec", tree.NullValue), why: live},
		"throttle group":                  {change: added("throttle_groups.throttle_groups", "slow", elem), why: "makes the groups"},
		"event counted":                   {change: added(perfEvents, "page_faults", elem), why: live},
		"event not counted":               {change: removed(perfEvents, "page_faults"), why: live},
		"crash":                           {change: to("on_crash", str("preserve")), why: live},
		"crash, as usual":                 {change: unset("on_crash"), why: live},
		"lock lost":                       {change: to("on_lock_failure", str("pause")), why: "lock manager"},
		"statistics":                      {change: to("devices.mem_balloon.stats.period", num(5)), why: live},
		"no statistics":                   {change: unset("devices.mem_balloon.stats.period"), why: live},
		"statistics without a balloon":    {change: to("devices.mem_balloon.stats.period", num(5)), why: "no memory balloon", guest: guest.SetAt("devices.mem_balloon.model", str("none"))},
		"model of the balloon":            {change: to("devices.mem_balloon.model", str("none")), why: "neither attach nor detach"},
		"group of the host":               {change: to("resource.partition", str("/other")), why: "control group"},
		"threads of QEMU's own main loop": {change: to("default_io_thread.pool_max", num(5)), why: "threads of the guest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := c.guest
			if g.IsNull() {
				g = guest
			}
			now := newSituation(true, g, g)
			now.beside = append(c.beside, c.change)
			if a := aspectOf(c.change.Path.Pattern()); a == nil {
				t.Fatal("nobody owns it")
			}
			class, reason := classify(c.change, now)
			if want := map[bool]change.Class{true: change.ClassLive, false: change.ClassNextBoot}[c.why == live]; class != want {
				t.Errorf("it is %s (%s), not %s", class, reason, want)
			}
			if !strings.Contains(reason, c.why) || c.why == live && reason != "" {
				t.Errorf("the reason is %q, without %q", reason, c.why)
			}
		})
	}
}

// What has its owner by its root has it in all that is below, so that no path of
// these trees falls to the definition by oversight.
func TestTuningIsOwned(t *testing.T) {
	roots := []string{
		"cpu_tune", "io_threads", "io_thread_i_ds", "default_io_thread", "memory_tune", "memory_backing", "numa_tune", "block_io_tune",
		"throttle_groups", "perf", "on_poweroff", "on_reboot", "on_crash", "on_lock_failure", "resource", "devices.mem_balloon", "vcpus",
	}
	tried := 0
	resourceType().Walk(func(pattern string, a *tree.Attribute) {
		if a.Type.Kind == tree.Object || a.Type.Kind == tree.List && a.Type.Elem.Kind == tree.Object {
			return
		}
		if slices.ContainsFunc(roots, func(root string) bool { return within(pattern, root) }) {
			if tried++; aspectOf(pattern) == nil {
				t.Errorf("nobody owns %s", pattern)
			}
		}
	})
	if tried < 150 {
		t.Errorf("only %d paths were tried", tried)
	}
}

func TestCPUCalls(t *testing.T) {
	none := cpuLimit{kernelPeriod, noQuota}
	all := func(whole, parts cpuLimit) [4]cpuLimit { return [4]cpuLimit{whole, parts, none, none} }
	cases := map[string]struct {
		was, want [4]cpuLimit
		calls     string
	}{
		"nothing":                      {all(none, none), all(none, none), "[]"},
		"from none":                    {all(none, none), all(cpuLimit{kernelPeriod, 80000}, cpuLimit{kernelPeriod, 50000}), "[quota=50000 global_quota=80000]"},
		"to none":                      {all(cpuLimit{kernelPeriod, 80000}, cpuLimit{kernelPeriod, 50000}), all(none, none), "[global_quota=-1 quota=-1]"},
		"up":                           {all(cpuLimit{kernelPeriod, 50000}, cpuLimit{kernelPeriod, 40000}), all(cpuLimit{kernelPeriod, 90000}, cpuLimit{kernelPeriod, 80000}), "[global_quota=90000 quota=80000]"},
		"down":                         {all(cpuLimit{kernelPeriod, 90000}, cpuLimit{kernelPeriod, 80000}), all(cpuLimit{kernelPeriod, 50000}, cpuLimit{kernelPeriod, 40000}), "[quota=40000 global_quota=50000]"},
		"a part: the less on the way":  {all(none, cpuLimit{100000, 50000}), all(none, cpuLimit{50000, 25000}), "[quota=25000 period=50000]"},
		"a part: and back":             {all(none, cpuLimit{50000, 25000}), all(none, cpuLimit{100000, 50000}), "[period=100000 quota=50000]"},
		"the whole: the more":          {all(cpuLimit{100000, 50000}, none), all(cpuLimit{50000, 25000}, none), "[global_period=50000 global_quota=25000]"},
		"the whole: and back":          {all(cpuLimit{50000, 25000}, none), all(cpuLimit{100000, 50000}, none), "[global_quota=50000 global_period=100000]"},
		"a first quota and its period": {all(none, none), all(none, cpuLimit{50000, 25000}), "[quota=25000 period=50000]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			calls := cpuCalls(c.was, c.want)
			said := make([]string, len(calls))
			now := map[string]int64{}
			for i, call := range calls {
				said[i] = fmt.Sprintf("%s=%d", call.name, call.want)
				now[call.name] = call.want
			}
			if fmt.Sprint(said) != c.calls {
				t.Errorf("%v, want %s", said, c.calls)
			}
			for i, part := range cpuParts {
				for name, n := range map[string][2]int64{part.param + "period": {c.was[i].period, c.want[i].period}, part.param + "quota": {c.was[i].quota, c.want[i].quota}} {
					if got, called := now[name]; n[0] != n[1] && got != n[1] || called != (n[0] != n[1]) {
						t.Errorf("%s is %d after the calls, and was to go from %d to %d", name, got, n[0], n[1])
					}
				}
			}
		})
	}
}

// threads is a definition with a count of I/O threads (0: none) and a list.
func threads(count int64, listed ...int64) tree.Value {
	v := tree.ObjectValue(nil).With("io_threads", numberOrNull(count))
	if len(listed) > 0 {
		v = v.SetAt(ioThreadList, listThreads(listed))
	}
	return v
}

func TestIOThreadsOf(t *testing.T) {
	for want, definition := range map[string]tree.Value{
		"[]": threads(0), "[1 2 3]": threads(3), "[4 1 2]": threads(3, 4), "[2 1]": threads(2, 2), "[5 7]": threads(2, 5, 7),
	} {
		if got := fmt.Sprint(ioThreadsOf(definition)); got != want {
			t.Errorf("%s: %s, want %s", definition, got, want)
		}
	}
}

func TestFollowThreads(t *testing.T) {
	cases := map[string]struct{ config, before, wanted, want tree.Value }{
		"a count alone":                        {threads(3), threads(1), threads(3), threads(3)},
		"a count, and somebody's list":         {threads(1), threads(2, 1, 2), threads(1, 1, 2), threads(1)},
		"a count, and a list of other numbers": {threads(1), threads(2, 5, 7), threads(1, 5, 7), threads(1, 5)},
		"a count, and a part of its list":      {threads(2), threads(1, 2), threads(2, 2), threads(2)},
		"a count that stays":                   {threads(2), threads(2, 2, 1), threads(2, 2, 1), threads(2, 2, 1)},
		"a greater count":                      {threads(3), threads(2, 5, 7), threads(3, 5, 7), threads(3, 5, 7)},
		"no count any more":                    {threads(0), threads(2, 1, 2), threads(0, 1, 2), threads(0)},
		"a list that grows":                    {threads(0, 1, 2, 5), threads(2, 1, 2), threads(2, 1, 2, 5), threads(3, 1, 2, 5)},
		"a list that shrinks":                  {threads(0, 1), threads(2, 1, 2), threads(2, 1), threads(1, 1)},
		"a list beside which there are others": {threads(0, 5), threads(3, 5, 6), threads(3, 5), threads(2, 5)},
		"both":                                 {threads(3, 5), threads(2, 5), threads(3, 5), threads(3, 5)},
		"nobody says":                          {threads(0), threads(2), threads(2), threads(2)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := followThreads(c.config, c.before, c.wanted); !tree.Equal(got.Known(), c.want.Known()) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestIOThreadsAs(t *testing.T) {
	pooled := threads(2).SetAt(ioThreadList, tree.ListValue([]tree.Value{
		tree.NullValue.With("id", tree.IntValue(1)), tree.NullValue.With("id", tree.IntValue(2)).With("pool_max", tree.IntValue(8)),
	}))
	cases := map[string]struct{ definition, guest, want tree.Value }{
		"counted, and one came":     {threads(1), threads(2, 1, 2), threads(2)},
		"counted, in another order": {threads(1), threads(2, 2, 1), threads(2)},
		"counted, with a gap":       {threads(1), threads(2, 1, 5), threads(2, 1, 5)},
		"counted, with a setting":   {threads(2), pooled, pooled},
		"listed, and all came last": {threads(2, 1, 2), threads(2), threads(2, 1, 2)},
		"listed alike":              {threads(2, 5, 7), threads(2, 5, 7), threads(2, 5, 7)},
		"none":                      {threads(0), threads(0), threads(0)},
		"listed, and all are gone":  {threads(1, 5), threads(0), threads(0)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ioThreadsAs(c.definition, c.guest); !tree.Equal(got.Known(), c.want.Known()) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestPerfAs(t *testing.T) {
	events := func(pairs ...string) tree.Value {
		v := tree.ObjectValue(nil)
		var elems []tree.Value
		for i := 0; i < len(pairs); i += 2 {
			elems = append(elems, tree.NullValue.With("name", tree.StringValue(pairs[i])).With("enabled", tree.StringValue(pairs[i+1])))
		}
		if elems == nil {
			return v
		}
		return v.SetAt(perfEvents, tree.ListValue(elems))
	}
	cases := map[string]struct{ definition, guest, want tree.Value }{
		"switched off":                {events(), events("a", "no"), events()},
		"switched off by somebody":    {events("a", "yes"), events("a", "no"), events("a", "no")},
		"counted by somebody":         {events(), events("a", "yes", "b", "no"), events("a", "yes")},
		"named, and never counted":    {events("a", "no", "b", "yes"), events("b", "yes"), events("b", "yes", "a", "no")},
		"not counted though it is to": {events("a", "yes"), events(), events()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := perfAs(c.definition, c.guest); !tree.Equal(got.Known(), c.want.Known()) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
