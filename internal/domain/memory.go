package domain

import (
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// followMemory keeps the balloon at the whole of the memory where it was
// there before: libvirt sets current_memory to memory when a domain is first
// defined and leaves it alone later, so that a guest whose memory grew would
// go on with the old amount.
func followMemory(before, wanted tree.Value) tree.Value {
	total := func(v tree.Value, name string) tree.Value {
		return change.Bytes(v.Attr(name), v.Attr(name+"_unit"), "KiB")
	}
	was, balloon := total(before, "memory"), total(before, "current_memory")
	if balloon.IsNull() || !tree.Equal(was, balloon) || !tree.Equal(balloon, total(wanted, "current_memory")) {
		return wanted
	}
	return wanted.With("current_memory", wanted.Attr("memory")).With("current_memory_unit", wanted.Attr("memory_unit"))
}
