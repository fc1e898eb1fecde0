package domain

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

func TestFollowMemory(t *testing.T) {
	mem := func(memory, current int64) tree.Value {
		return tree.ObjectValue(map[string]tree.Value{"memory": tree.IntValue(memory), "memory_unit": tree.StringValue("KiB"), "current_memory": tree.IntValue(current)})
	}
	cases := map[string]struct {
		config, before, wanted tree.Value
		current                string
	}{
		"grows with the memory":        {tree.NullValue, mem(1024, 1024), mem(2048, 1024), "2048"},
		"shrinks with the memory":      {tree.NullValue, mem(2048, 2048), mem(1024, 2048), "1024"},
		"a smaller balloon stays":      {tree.NullValue, mem(2048, 512), mem(4096, 512), "512"},
		"a balloon that was asked for": {tree.NullValue, mem(1024, 1024), mem(2048, 1536), "1536"},
		"one that stays as asked for":  {mem(2048, 1024), mem(1024, 1024), mem(2048, 1024), "1024"},
		"nothing changes":              {tree.NullValue, mem(1024, 1024), mem(1024, 1024), "1024"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := followMemory(c.config, c.before, c.wanted).Attr("current_memory").String(); got != c.current {
				t.Errorf("current_memory = %s, want %s", got, c.current)
			}
		})
	}
	none := tree.ObjectValue(map[string]tree.Value{"memory": tree.IntValue(1)})
	if got := followMemory(tree.NullValue, none, none.With("memory", tree.IntValue(2))); !got.Attr("current_memory").IsNull() {
		t.Errorf("a balloon appeared: %s", got)
	}
}

func TestFollowCPUs(t *testing.T) {
	cpus := func(most, current int64) tree.Value {
		return tree.ObjectValue(map[string]tree.Value{"vcpu": tree.IntValue(most), "vcpu_current": tree.IntValue(current)})
	}
	cases := map[string]struct {
		config, before, wanted tree.Value
		current                string
	}{
		"all of more":                 {tree.NullValue, cpus(1, 1), cpus(2, 1), "2"},
		"all of fewer":                {tree.NullValue, cpus(2, 2), cpus(1, 2), "1"},
		"some stay some":              {tree.NullValue, cpus(2, 1), cpus(4, 1), "1"},
		"others were asked for":       {tree.NullValue, cpus(2, 2), cpus(4, 3), "3"},
		"one that stays as asked for": {cpus(4, 2), cpus(2, 2), cpus(4, 2), "2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := followCPUs(c.config, c.before, c.wanted).Attr("vcpu_current").String(); got != c.current {
				t.Errorf("vcpu_current = %s, want %s", got, c.current)
			}
		})
	}
	if got := withPluggedIn(tree.NullValue.With("vcpu", tree.IntValue(3))); got.Attr("vcpu_current").String() != "3" {
		t.Errorf("absent: %s", got)
	}
}
