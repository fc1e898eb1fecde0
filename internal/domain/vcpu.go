package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// vcpuAspect is the number of virtual CPUs: the maximum, which is fixed while
// the guest runs, and how many of them are plugged in.
var vcpuAspect = &aspect{
	name: "vcpu",
	owns: []string{"vcpu", "vcpu_current", "vcpu_cpuset", "vcpu_placement", "vcpus"},
	rule: vcpuRule,
	live: plugCPUs,
}

func vcpuRule(c change.Change, now situation) (change.Class, string) {
	switch c.Path.Pattern() {
	case "vcpu":
		return change.ClassNextBoot, "The maximum of a running guest is fixed; only the CPUs plugged in (vcpu_current) change, up to it."
	case "vcpu_current":
	default:
		return change.ClassNextBoot, "The guest takes it from the definition when it starts."
	}
	have, most := pluggedIn(now.guest), whole(now.guest.Attr("vcpu"))
	want := whole(c.Desired)
	switch {
	case want == 0:
		return change.ClassNextBoot, "Without a value, all CPUs are plugged in from the next start on."
	case want > most:
		return change.ClassNextBoot, fmt.Sprintf("The running guest has room for %d; the rest comes with its next start.", most)
	case want < have && now.guest.Attr("type").Str() == "qemu":
		// QEMU takes it out without telling libvirt, and the next CPU that is
		// plugged in ends the process (QEMU 7.2).
		return change.ClassNextBoot, "QEMU loses track of a CPU that is taken out of an emulated guest (type qemu)."
	case have-want > pluggable(now.guest):
		return change.ClassNextBoot, "CPUs that the guest was started with cannot be taken out, only those plugged in since."
	}
	return change.ClassLive, ""
}

// withPluggedIn writes out how many CPUs are plugged in. libvirt leaves the
// number away where it is all of them, so that its absence means no absence.
func withPluggedIn(definition tree.Value) tree.Value {
	if definition.Attr("vcpu_current").IsNull() {
		return definition.With("vcpu_current", definition.Attr("vcpu"))
	}
	return definition
}

// followCPUs keeps all CPUs plugged in where all were and the configuration
// does not say how many. A list of single CPUs of which some were withdrawn goes
// as a whole: libvirt takes it as the list of all, and makes another.
func followCPUs(config, before, wanted tree.Value) tree.Value {
	if config.Attr("vcpus").IsNull() && wanted.At("vcpus.vcpu").Len() < before.At("vcpus.vcpu").Len() {
		wanted = wanted.With("vcpus", tree.NullValue)
	}
	if config.Attr("vcpu_current").IsNull() && pluggedIn(before) == whole(before.Attr("vcpu")) && pluggedIn(wanted) == pluggedIn(before) {
		return wanted.With("vcpu_current", wanted.Attr("vcpu"))
	}
	return wanted
}

// pluggedIn is the number of CPUs that a guest has now.
func pluggedIn(guest tree.Value) int64 {
	if n := whole(guest.Attr("vcpu_current")); n > 0 {
		return n
	}
	return whole(guest.Attr("vcpu"))
}

// pluggable is how many of the guest's CPUs can be taken out.
func pluggable(guest tree.Value) (n int64) {
	for _, cpu := range guest.At("vcpus.vcpu").Elems() {
		if cpu.Attr("enabled").Str() == "yes" && cpu.Attr("hotpluggable").Str() == "yes" {
			n++
		}
	}
	return n
}

func whole(v tree.Value) int64 {
	if v.Num() == nil {
		return 0
	}
	n, _ := v.Num().Int64()
	return n
}

// unplugTime is how long an apply waits for a guest to let go of a CPU. libvirt
// itself gives up after five seconds, and the guest may follow after that.
const unplugTime = 20 * time.Second

// plugCPUs plugs CPUs into the running guest or takes them out. Taking out is
// the guest's decision, so what it has is read back.
func plugCPUs(ctx context.Context, a *apply) error {
	if !a.does("vcpu_current") {
		return nil
	}
	was, want := pluggedIn(a.before.running()), whole(a.wanted.Attr("vcpu_current"))
	a.Add(func(ctx context.Context) error { return a.unplugCPUs(ctx, was) })
	asked := a.before.dom.SetVcpus(ctx, uint(want), virt.AffectLive)
	if asked != nil && (want > was || !virt.HasCode(asked, virt.ErrOperationTimeout)) {
		return asked
	}
	reached := func(ctx context.Context) (bool, error) {
		now, err := a.k.look(ctx, a.before.dom.UUID())
		if err != nil {
			return false, err
		}
		return pluggedIn(now.running()) == want, nil
	}
	done, err := waitFor(ctx, unplugTime, reached)
	if err != nil || done {
		return err
	}
	return errors.Join(fmt.Errorf("the guest did not let go of its CPUs within %s: it has %d, not %d", unplugTime, was, want), asked)
}

// unplugCPUs takes CPUs out again that were plugged in.
func (a *apply) unplugCPUs(ctx context.Context, was int64) error {
	now, err := a.k.look(ctx, a.before.dom.UUID())
	if err != nil || pluggedIn(now.running()) == was {
		return err
	}
	if now.running().Attr("type").Str() == "qemu" {
		return fmt.Errorf("the guest keeps its %d CPUs until its next start, instead of %d: QEMU loses track of one that is taken out of an emulated guest", pluggedIn(now.running()), was)
	}
	return a.before.dom.SetVcpus(ctx, uint(was), virt.AffectLive)
}
