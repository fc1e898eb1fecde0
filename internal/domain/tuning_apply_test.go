package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// applyOf is an update under way that is to do some changes in a running guest.
func applyOf(definition, guest, wanted tree.Value, live ...change.Change) *apply {
	return &apply{before: &sight{name: "web", definition: definition, guest: guest}, wanted: wanted, live: live}
}

// inList is a change in an element of a list, or of all of it if below is empty.
func inList(list, key, below string, desired tree.Value) change.Change {
	return change.Change{Path: element(list, key, below), Desired: desired}
}

func counted(n int64) change.Change {
	return change.Change{Path: tree.ParsePath("io_threads"), Desired: numberOrNull(n)}
}

func corrected(c change.Change) change.Change { c.Live = true; return c }

func TestIOThreadsThatComeAndGo(t *testing.T) {
	gone := tree.NullValue
	cases := map[string]struct {
		definition, guest, wanted tree.Value
		live                      []change.Change
		comes, goes               string
	}{
		"the last":                             {threads(3), threads(3), threads(2), []change.Change{counted(2)}, "[]", "[3]"},
		"one more":                             {threads(1), threads(1), threads(2), []change.Change{counted(2)}, "[2]", "[]"},
		"none any more":                        {threads(2), threads(2), threads(0), []change.Change{counted(0)}, "[]", "[1 2]"},
		"from the list":                        {threads(2, 5, 7), threads(2, 5, 7), threads(1, 7), []change.Change{inList(ioThreadList, "5", "", gone)}, "[]", "[5]"},
		"to the list":                          {threads(1, 5), threads(1, 5), threads(2, 5, 7), []change.Change{inList(ioThreadList, "7", "", tree.ObjectValue(nil))}, "[7]", "[]"},
		"another one is somebody's":            {threads(3), threads(4), threads(2), []change.Change{counted(2)}, "[]", "[3]"},
		"another number is somebody's":         {threads(2), threads(3, 1, 2, 9), threads(1), []change.Change{counted(1)}, "[]", "[2]"},
		"more, and one is somebody's":          {threads(1), threads(2, 1, 9), threads(2), []change.Change{counted(2)}, "[2]", "[]"},
		"none any more, and one is somebody's": {threads(1), threads(2), threads(0), []change.Change{counted(0)}, "[]", "[1]"},
		"one that somebody took out already":   {threads(3), threads(2), threads(2), []change.Change{counted(2)}, "[]", "[]"},
		"somebody's is put back":               {threads(1), threads(2), threads(1), []change.Change{corrected(counted(1))}, "[]", "[2]"},
		"somebody's number is put back": {
			threads(1), threads(2, 1, 9), threads(1),
			[]change.Change{corrected(counted(1)), corrected(inList(ioThreadList, "1", "", gone)), corrected(inList(ioThreadList, "9", "", gone))}, "[]", "[9]",
		},
		"one is put back that somebody took out": {threads(2), threads(1), threads(2), []change.Change{corrected(counted(2))}, "[2]", "[]"},
		"nothing is planned of it":               {threads(1), threads(2), threads(1), nil, "[]", "[]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := applyOf(c.definition, c.guest, c.wanted, c.live...)
			comes, goes := a.threads()
			if fmt.Sprint(comes) != c.comes || fmt.Sprint(goes) != c.goes {
				t.Errorf("%v come and %v go, want %s and %s", comes, goes, c.comes, c.goes)
			}
			a.leaveForeignThreads(comes, goes)
			left := slices.DeleteFunc(slices.Concat(ioThreadsOf(c.guest), comes), func(n int64) bool { return slices.Contains(goes, n) })
			foreign := len(c.live) > 0 && a.does("io_threads") && len(left) != len(ioThreadsOf(c.wanted))
			if late := a.isLate(tree.Root.Attr("io_threads")); late != foreign || len(a.warnings) > 0 != foreign {
				t.Errorf("with %v left, the count is late: %v, and the warnings are %v", left, late, a.warnings)
			}
		})
	}
}

func TestSettingsOfIOThreads(t *testing.T) {
	of := func(settings ...any) tree.Value { // of thread 5
		one := tree.NullValue.With("id", tree.IntValue(5))
		for i := 0; i < len(settings); i += 2 {
			one = one.SetAt(settings[i].(string), tree.IntValue(int64(settings[i+1].(int))))
		}
		return threads(1).SetAt(ioThreadList, tree.ListValue([]tree.Value{one}))
	}
	cases := map[string]struct {
		guest, wanted tree.Value
		live          change.Change
		isNew         bool
		now, was      string
	}{
		"one that changes":           {of("pool_max", 8), of("pool_max", 9), inList(ioThreadList, "5", "pool_max", tree.IntValue(9)), false, "map[thread_pool_max:9]", "map[thread_pool_max:8]"},
		"one that comes":             {of(), of("poll.max", 9), inList(ioThreadList, "5", "poll.max", tree.IntValue(9)), false, "map[poll_max_ns:9]", "map[poll_max_ns:32768]"},
		"beside one of somebody's":   {of("pool_max", 8, "pool_min", 3), of("pool_max", 9, "pool_min", 1), inList(ioThreadList, "5", "pool_max", tree.IntValue(9)), false, "map[thread_pool_max:9]", "map[thread_pool_max:8]"},
		"when another thread comes":  {of("pool_max", 8), of("pool_max", 9), counted(2), false, "map[]", "map[]"},
		"when another thread is set": {of("pool_max", 8), of("pool_max", 9), inList(ioThreadList, "6", "pool_max", tree.IntValue(9)), false, "map[]", "map[]"},
		"of a new thread":            {threads(0), of("pool_max", 9), counted(1), true, "map[thread_pool_max:9]", "map[thread_pool_max:64]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now, was := applyOf(c.guest, c.guest, c.wanted, c.live).settingsOf(5, c.isNew)
			if fmt.Sprint(now) != c.now || fmt.Sprint(was) != c.was {
				t.Errorf("%v instead of %v, want %s instead of %s", now, was, c.now, c.was)
			}
		})
	}
}

func TestLimitsOfDevices(t *testing.T) {
	of := func(limits ...any) tree.Value {
		device := tree.NullValue.With("path", tree.StringValue("/dev/Sda"))
		for i := 0; i < len(limits); i += 2 {
			device = device.With(limits[i].(string), tree.IntValue(int64(limits[i+1].(int))))
		}
		return tree.NullValue.SetAt(blockIODevices, tree.ListValue([]tree.Value{device}))
	}
	none := tree.ObjectValue(nil)
	whole := func(v tree.Value) change.Change {
		return inList(blockIODevices, "/dev/sda", "", v.At(blockIODevices).Elems()[0])
	}
	cases := map[string]struct {
		guest, wanted tree.Value
		live          change.Change
		calls         string
	}{
		"one":                       {of("read_bytes_sec", 1), of("read_bytes_sec", 2), inList(blockIODevices, "/dev/sda", "read_bytes_sec", tree.IntValue(2)), "[{/dev/Sda read_bytes_sec 2 1}]"},
		"one that goes":             {of("read_bytes_sec", 1), of(), inList(blockIODevices, "/dev/sda", "read_bytes_sec", tree.NullValue), "[{/dev/Sda read_bytes_sec 0 1}]"},
		"beside one of somebody's":  {of("read_bytes_sec", 1, "write_iops_sec", 7), of("read_bytes_sec", 2), inList(blockIODevices, "/dev/sda", "read_bytes_sec", tree.IntValue(2)), "[{/dev/Sda read_bytes_sec 2 1}]"},
		"a device":                  {none, of("read_bytes_sec", 2), whole(of("read_bytes_sec", 2)), "[{/dev/Sda read_bytes_sec 2 0}]"},
		"a device, as somebody has": {of("write_iops_sec", 7), of("read_bytes_sec", 2), whole(of("read_bytes_sec", 2)), "[{/dev/Sda read_bytes_sec 2 0}]"},
		"a device goes":             {of("read_bytes_sec", 2, "write_iops_sec", 7), none, inList(blockIODevices, "/dev/sda", "", tree.NullValue), "[{/dev/Sda read_bytes_sec 0 2} {/dev/Sda write_iops_sec 0 7}]"},
		"another device":            {of("read_bytes_sec", 1), of("read_bytes_sec", 2), inList(blockIODevices, "/dev/sdb", "read_bytes_sec", tree.IntValue(2)), "[]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(applyOf(c.guest, c.guest, c.wanted, c.live).deviceCalls()); got != c.calls {
				t.Errorf("%s, want %s", got, c.calls)
			}
		})
	}
}

// libvirt says nothing of where a vCPU runs that is not plugged in, and refuses a
// pin to no CPU at all.
func TestUndoOfAPin(t *testing.T) {
	pin := func(cpu int64) tree.Value {
		return tree.NullValue.With("vcpu", tree.IntValue(cpu)).With("cpu_set", tree.StringValue("1"))
	}
	wanted := tree.NullValue.SetAt(vcpuPins, tree.ListValue([]tree.Value{pin(0), pin(3)}))
	added := func(key string) change.Change { return inList(vcpuPins, key, "", tree.ObjectValue(nil)) }
	a := applyOf(tree.NullValue, tree.NullValue, wanted, added("0"), added("3"))
	var calls []string
	call := func(_ context.Context, cpu uint, cpus virt.CPUSet, _ virt.Affect) error {
		if len(cpus) == 0 {
			return errors.New("no CPU at all")
		}
		calls = append(calls, fmt.Sprint(cpu, cpus))
		return nil
	}
	if err := a.pinAll(t.Context(), vcpuPins, "vcpu", map[uint]virt.CPUSet{0: {0, 1}}, call); err != nil {
		t.Fatal(err)
	}
	err := a.RollBack(t.Context(), errors.New("something after that"), "look")
	if !strings.Contains(err.Error(), "is in force again") || fmt.Sprint(calls) != "[0 [1] 3 [1] 0 [0 1]]" {
		t.Errorf("%v after the calls %v", err, calls)
	}
}

func TestMetadataWrites(t *testing.T) {
	const a, b, b2, c = `<a:a xmlns:a="a"/>`, `<b:b xmlns:b="b"/>`, `<b:b xmlns:b="b" n="2"/>`, `<c:c xmlns:c="c"/>`
	const a2 = `<a:a xmlns:a="a" n="2"/>`
	cases := map[string]struct {
		defined, wanted, guest string
		corrects               bool
		writes                 string
		left                   bool
	}{
		"one that changes":             {a + b, a2 + b, a + b, false, "[a]", false},
		"one that comes":               {a, a + b, a, false, "[b]", false},
		"one that goes":                {a + b, a, a + b, false, "[b:gone]", false},
		"beside somebody's own":        {a, a2, a + c, false, "[a]", true},
		"beside one that they changed": {a + b, a2 + b, a + b2, false, "[a]", true},
		"beside one that they removed": {a + b, a2 + b, a, false, "[a]", true},
		"which is put back":            {a + b, a + b, a + b2, true, "[b]", false},
		"which comes back":             {a + b, a + b, a, true, "[b]", false},
		"as it is in the guest":        {a, a2, a2, false, "[]", false},
	}
	read := func(text string) map[string]metadataElement {
		elements, err := metadataElements(text)
		if err != nil {
			t.Fatal(err)
		}
		return elements
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes, left := metadataWrites(read(tc.defined), read(tc.wanted), read(tc.guest), tc.corrects)
			said := []string{}
			for _, w := range writes {
				if w.now.xml == "" {
					w.uri += ":gone"
				}
				said = append(said, w.uri)
			}
			if fmt.Sprint(said) != tc.writes || left != tc.left {
				t.Errorf("%v are written, others left: %v; want %s, %v", said, left, tc.writes, tc.left)
			}
		})
	}
}
