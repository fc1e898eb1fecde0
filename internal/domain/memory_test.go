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
		before, wanted tree.Value
		current        string
	}{
		"grows with the memory":        {mem(1024, 1024), mem(2048, 1024), "2048"},
		"shrinks with the memory":      {mem(2048, 2048), mem(1024, 2048), "1024"},
		"a smaller balloon stays":      {mem(2048, 512), mem(4096, 512), "512"},
		"a balloon that was asked for": {mem(1024, 1024), mem(2048, 1536), "1536"},
		"nothing changes":              {mem(1024, 1024), mem(1024, 1024), "1024"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := followMemory(c.before, c.wanted).Attr("current_memory").String(); got != c.current {
				t.Errorf("current_memory = %s, want %s", got, c.current)
			}
		})
	}
	none := tree.ObjectValue(map[string]tree.Value{"memory": tree.IntValue(1)})
	if got := followMemory(none, none.With("memory", tree.IntValue(2))); !got.Attr("current_memory").IsNull() {
		t.Errorf("a balloon appeared: %s", got)
	}
}
