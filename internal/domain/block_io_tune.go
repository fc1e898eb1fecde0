package domain

import (
	"context"
	"maps"
	"slices"
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

// setBlockIO gives the running guest its weight and its limits, each by itself:
// the others stay, and none is set before another that is refused.
func setBlockIO(ctx context.Context, a *apply) error {
	set := func(b virt.Blkio) func(context.Context) error {
		return func(ctx context.Context) error { return a.before.dom.SetBlkioParameters(ctx, b, virt.AffectLive) }
	}
	if a.does("block_io_tune.weight") {
		guest, err := a.before.dom.BlkioParameters(ctx, virt.AffectLive) // it has one also where nobody gave it one
		if err != nil {
			return err
		}
		if err := a.try(ctx, set(virt.Blkio{Weight: whole(a.wanted.At("block_io_tune.weight"))}), set(virt.Blkio{Weight: guest.Weight})); err != nil {
			return err
		}
	}
	for _, c := range a.deviceCalls() {
		of := func(n int64) virt.Blkio {
			return virt.Blkio{Devices: map[string]virt.Parameters{c.path: {c.limit: n}}}
		}
		if err := a.try(ctx, set(of(c.want)), set(of(c.was))); err != nil {
			return err
		}
	}
	return nil
}

// deviceCall sets one limit of a device in the running guest, and takes it back.
type deviceCall struct {
	path, limit string
	want, was   int64
}

// deviceCalls are the limits that the plan changes. Another one of the same
// device, which somebody set in the running guest alone, stays.
func (a *apply) deviceCalls() (calls []deviceCall) {
	was, now := limitsOf(a.before.running()), limitsOf(a.wanted)
	paths := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(now)))
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		for _, limit := range deviceLimits {
			w, n := was[path][limit], now[path][limit]
			if w != n && a.doesField(blockIODevices, strings.ToLower(path), limit) {
				calls = append(calls, deviceCall{path, limit, n, w})
			}
		}
	}
	return calls
}

// limitsOf are the limits of a definition, by the paths of the devices.
func limitsOf(definition tree.Value) map[string]virt.Parameters {
	out := map[string]virt.Parameters{}
	for _, d := range definition.At(blockIODevices).Elems() {
		limits := virt.Parameters{}
		for _, limit := range deviceLimits {
			limits[limit] = whole(d.Attr(limit))
		}
		out[d.Attr("path").Str()] = limits
	}
	return out
}
