package domain

import (
	"context"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// blockIOTuneAspect is how much of the host's disks a guest gets: its weight
// among the guests of the host, and limits on single devices of the host.
var blockIOTuneAspect = &aspect{
	name: "block_io_tune",
	owns: []string{"block_io_tune"},
	rule: func(c change.Change, _ situation) (change.Class, string) {
		if c.Path.Pattern() == "block_io_tune.weight" && c.Desired.IsNull() {
			return change.ClassNextBoot, "libvirt can give a running guest another weight, and cannot take one away: which one a guest without has is up to the host, when the guest starts."
		}
		return change.ClassLive, ""
	},
	live: setBlockIO,
}

const blockIODevices = "block_io_tune.device"

// deviceLimits are the attributes of a device, which libvirt calls the same. 0
// takes one away.
var deviceLimits = []string{"weight", "read_bytes_sec", "write_bytes_sec", "read_iops_sec", "write_iops_sec"}

// setBlockIO gives the running guest its weight and its limits. Each limit is
// named by itself, so that the others stay.
func setBlockIO(ctx context.Context, a *apply) error {
	was, now := virt.Blkio{Devices: map[string]virt.Parameters{}}, virt.Blkio{Devices: map[string]virt.Parameters{}}
	if a.does("block_io_tune.weight") {
		guest, err := a.before.dom.BlkioParameters(ctx, virt.AffectLive) // it has one also where nobody gave it one
		if err != nil {
			return err
		}
		was.Weight, now.Weight = guest.Weight, whole(a.wanted.At("block_io_tune.weight"))
	}
	before, after := limitsOf(a.before.running()), limitsOf(a.wanted)
	for path := range union(before, after) {
		if !a.doesElement(blockIODevices, strings.ToLower(path)) {
			continue
		}
		for _, limit := range deviceLimits {
			if w, n := before[path][limit], after[path][limit]; w != n {
				put(was.Devices, path, limit, w)
				put(now.Devices, path, limit, n)
			}
		}
	}
	set := func(b virt.Blkio) func(context.Context) error {
		return func(ctx context.Context) error { return a.before.dom.SetBlkioParameters(ctx, b, virt.AffectLive) }
	}
	return a.try(ctx, set(now), set(was))
}

// limitsOf are the limits of a definition, by the paths of the devices.
func limitsOf(definition tree.Value) map[string]virt.Parameters {
	out := map[string]virt.Parameters{}
	for _, d := range definition.At(blockIODevices).Elems() {
		for _, limit := range deviceLimits {
			put(out, d.Attr("path").Str(), limit, whole(d.Attr(limit)))
		}
	}
	return out
}

func put(in map[string]virt.Parameters, path, limit string, n int64) {
	if in[path] == nil {
		in[path] = virt.Parameters{}
	}
	in[path][limit] = n
}

func union(a, b map[string]virt.Parameters) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]virt.Parameters{a, b} {
		for path := range m {
			all[path] = true
		}
	}
	return all
}
