package domain

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// pinsAspect is on which of the host's CPUs the threads of a guest may run: its
// virtual CPUs, its I/O threads, and QEMU's own.
var pinsAspect = &aspect{
	name: "pins",
	owns: []string{vcpuPins, ioThreadPins, emulatorPin},
	rule: pinsRule,
	live: setPins,
}

const (
	vcpuPins     = "cpu_tune.vcpu_pin"
	ioThreadPins = "cpu_tune.io_thread_pin"
	emulatorPin  = "cpu_tune.emulator_pin"
)

func pinsRule(c change.Change, now situation) (change.Class, string) {
	thread, ofThread := numberOf(c.Path, ioThreadPins)
	cpu, ofCPU := numberOf(c.Path, vcpuPins)
	switch {
	case ofThread && c.Desired.IsNull() && slices.Contains(leavingThreads(now), thread) && !threadInUse(now.guest, thread):
		return change.ClassLive, "" // it goes with its thread
	case c.Desired.IsNull():
		return change.ClassNextBoot, "libvirt can widen a pin of a running guest, and cannot take it away. A cpu_set with all CPUs of the host comes to the same at once."
	case ofCPU && cpu >= pluggedInAfter(now):
		return change.ClassNextBoot, fmt.Sprintf("The running guest has no vCPU %d plugged in; the pin comes with the next start.", cpu)
	case ofThread && !slices.Contains(ioThreadsOf(now.guest), thread) && !slices.Contains(arrivingThreads(now), thread):
		return change.ClassNextBoot, fmt.Sprintf("The running guest has no I/O thread %d, and gets none now; the pin comes with the next start.", thread)
	}
	return change.ClassLive, ""
}

// pluggedInAfter is the number of CPUs that the running guest has once the plan
// is carried out. libvirt plugs them in from the lowest number on.
func pluggedInAfter(now situation) int64 {
	for _, c := range now.beside {
		if c.Path.Pattern() != "vcpu_current" {
			continue
		}
		if class, _ := vcpuRule(c, now); class == change.ClassLive {
			return whole(c.Desired)
		}
	}
	return pluggedIn(now.guest)
}

// numberOf is the numeric identity of the element of a list that a path leads to, or
// into.
func numberOf(p tree.Path, list string) (n int64, ok bool) {
	key, ok := elementOf(p, list)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(key, 10, 64)
	return n, err == nil
}

// setPins pins threads of the running guest.
func setPins(ctx context.Context, a *apply) error {
	dom := a.before.dom
	if a.does(vcpuPins) {
		now, err := dom.VcpuPins(ctx, virt.AffectLive)
		if err != nil {
			return err
		}
		was := map[uint]virt.CPUSet{}
		for i, cpus := range now {
			was[uint(i)] = cpus
		}
		if err := a.pinAll(ctx, vcpuPins, "vcpu", was, dom.PinVcpu); err != nil {
			return err
		}
	}
	if a.does(ioThreadPins) {
		was, err := dom.IOThreads(ctx, virt.AffectLive)
		if err != nil {
			return err
		}
		if err := a.pinAll(ctx, ioThreadPins, "io_thread", was, dom.PinIOThread); err != nil {
			return err
		}
	}
	if !a.does(emulatorPin) {
		return nil
	}
	was, err := dom.EmulatorPin(ctx, virt.AffectLive)
	if err != nil {
		return err
	}
	want, err := cpusOf(a.wanted.At(emulatorPin))
	if err != nil {
		return err
	}
	pin := func(cpus virt.CPUSet) func(context.Context) error {
		return func(ctx context.Context) error { return dom.PinEmulator(ctx, cpus, virt.AffectLive) }
	}
	return a.try(ctx, pin(want), pin(was))
}

// pinAll pins those of a kind of threads that are to be done. was is where the
// threads may run now, pinned or not.
func (a *apply) pinAll(ctx context.Context, list, number string, was map[uint]virt.CPUSet, call func(context.Context, uint, virt.CPUSet, virt.Affect) error) error {
	for _, elem := range a.wanted.At(list).Elems() {
		thread := uint(whole(elem.Attr(number)))
		if !a.doesElement(list, fmt.Sprint(thread)) {
			continue
		}
		want, err := cpusOf(elem)
		if err != nil {
			return err
		}
		pin := func(cpus virt.CPUSet) func(context.Context) error {
			return func(ctx context.Context) error {
				if len(cpus) == 0 {
					return nil // it runs nowhere: libvirt refuses such a pin, and has no call that takes one away
				}
				return call(ctx, thread, cpus, virt.AffectLive)
			}
		}
		if err := a.try(ctx, pin(want), pin(was[thread])); err != nil {
			return err
		}
	}
	return nil
}

func cpusOf(pin tree.Value) (virt.CPUSet, error) {
	text := pin.Attr("cpu_set").Str()
	numbers, ok := spec.Set(text)
	if !ok {
		return nil, fmt.Errorf("cpu_set %q is no set of CPUs", text)
	}
	return numbers, nil
}
