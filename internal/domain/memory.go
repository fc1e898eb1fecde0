package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// memoryAspect is the guest's memory: the maximum, which is fixed while it
// runs, and the balloon, which libvirt moves up to that at any time.
var memoryAspect = &aspect{
	name: "memory",
	owns: []string{"memory", "memory_unit", "memory_dump_core", "current_memory", "current_memory_unit", "maximum_memory", "maximum_memory_unit", "maximum_memory_slots"},
	rule: memoryRule,
	live: func(ctx context.Context, a *apply) error {
		if a.takesOut(moduleList) {
			return nil // it is set when they have gone
		}
		return setBalloon(ctx, a)
	},
}

func memoryRule(c change.Change, now situation) (change.Class, string) {
	switch c.Path.Pattern() {
	case "current_memory", "current_memory_unit":
	case "maximum_memory", "maximum_memory_unit", "maximum_memory_slots":
		return change.ClassNextBoot, "QEMU lays out the room for memory modules when the guest starts."
	case "memory_dump_core":
		return change.ClassNextBoot, "QEMU takes it when the guest starts."
	default:
		return change.ClassNextBoot, "The maximum of a running guest is fixed; only the balloon (current_memory) moves, up to it."
	}
	if !hasBalloon(now.guest) {
		return change.ClassNextBoot, "The guest has no memory balloon, so what it uses is fixed while it runs."
	}
	most := wholeMemory(now.guest)
	if want := c.Desired.Num(); want != nil && c.Unit == "bytes" && most > 0 {
		if kib, _ := want.Int64(); kib <= most*1024 {
			return change.ClassLive, ""
		}
		return change.ClassNextBoot, fmt.Sprintf("The running guest has at most %d KiB; the rest comes with its next start.", most)
	}
	return change.ClassNextBoot, "Without a value, the balloon is the whole memory from the next start on."
}

func hasBalloon(guest tree.Value) bool {
	return guest.At("devices.mem_balloon.model").Str() != "none"
}

// balloonIsLate says that the guest still has more memory than it is to have.
// Every guest boots with all of it, and gives the rest back once its driver
// runs; libvirt cannot tell that from a balloon that somebody let go.
func balloonIsLate(c change.Change) bool {
	desired, guest := c.Desired.Num(), c.Actual.Num()
	return c.Path.Pattern() == "current_memory" && desired != nil && guest != nil && guest.Cmp(desired) > 0
}

// kibibytes reads a quantity of a definition, 0 if it is absent.
func kibibytes(v tree.Value, name string) int64 {
	bytes := change.Bytes(v.Attr(name), v.Attr(name+"_unit"), "KiB").Num()
	if bytes == nil {
		return 0
	}
	n, _ := bytes.Int64()
	return (n + 1023) / 1024
}

// balloonTime is how long an apply waits for the guest to give memory back or
// take it. It answers within a second or two for each GiB; a guest that takes
// longer goes on by itself.
const balloonTime = 30 * time.Second

// setBalloon sets the balloon of the running guest and waits for the guest to
// follow, which it does in its own time.
func setBalloon(ctx context.Context, a *apply) error {
	// A module moves the balloon: one that is to stay where it is goes back there.
	named := a.does(moduleList) && !a.update.Config.Attr("current_memory").IsNull()
	if !a.does("current_memory") && !named || a.isLate(tree.Root.Attr("current_memory")) {
		return nil
	}
	was, want := kibibytes(a.before.running(), "current_memory"), kibibytes(a.wanted, "current_memory")
	set := func(kib int64) func(context.Context) error {
		return func(ctx context.Context) error { return a.before.dom.SetMemory(ctx, kib, virt.AffectLive) }
	}
	reached := func(kib int64) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			now, err := a.k.look(ctx, a.before.dom.UUID())
			if err != nil {
				return false, err
			}
			return kibibytes(now.running(), "current_memory") == kib, nil
		}
	}
	back := func(ctx context.Context) error {
		if err := set(was)(ctx); err != nil {
			return err
		}
		done, err := waitFor(ctx, balloonTime, reached(was))
		if err == nil && !done {
			err = fmt.Errorf("the guest was asked for its %d KiB again, and has not got there within %s; it goes on by itself if it has the balloon's driver", was, balloonTime)
		}
		return err
	}
	if a.does(moduleList) && a.does("current_memory") {
		// What a module brings comes by itself, as soon as the guest's driver has
		// taken it; before that, libvirt refuses to set so much.
		if done, err := waitFor(ctx, balloonTime, reached(want)); err != nil || done {
			return err
		}
	}
	if err := a.try(ctx, set(want), back); err != nil {
		return err
	}
	done, err := waitFor(ctx, balloonTime, reached(want))
	if err == nil && !done {
		balloon := tree.Root.Attr("current_memory")
		a.late = append(a.late, balloon)
		a.warnings = append(a.warnings, kind.Problem{
			Path: balloon, Summary: fmt.Sprintf("The guest of %q has not reached its new amount of memory yet", a.before.name),
			Detail: fmt.Sprintf("libvirt asked it for %d KiB, and it did not get there within %s. It goes on by itself if it has the balloon's driver; status.pending lists current_memory until then.", want, balloonTime),
		})
	}
	return err
}

// waitFor asks until the answer is yes or the time is up.
func waitFor(ctx context.Context, most time.Duration, ask func(context.Context) (bool, error)) (bool, error) {
	deadline := time.Now().Add(most)
	for {
		if yes, err := ask(ctx); yes || err != nil {
			return yes, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// followMemory keeps the balloon at the whole of the memory where it was
// there before and the configuration does not say how much: libvirt sets
// current_memory to memory when a domain is first defined and leaves it alone
// later, so that a guest whose memory grew would go on with the old amount.
func followMemory(config, before, wanted tree.Value) tree.Value {
	balloon := kibibytes(before, "current_memory")
	if !config.Attr("current_memory").IsNull() || balloon == 0 || balloon != wholeMemory(before) || balloon != kibibytes(wanted, "current_memory") {
		return wanted
	}
	if whole := wholeMemory(wanted); whole != kibibytes(wanted, "memory") {
		return wanted.With("current_memory", tree.IntValue(whole)).With("current_memory_unit", tree.StringValue("KiB"))
	}
	return wanted.With("current_memory", wanted.Attr("memory")).With("current_memory_unit", wanted.Attr("memory_unit"))
}
