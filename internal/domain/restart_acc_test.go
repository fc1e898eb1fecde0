package domain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// Whatever ends a restart half way, the guest runs again, with the definition
// that it had.
func TestAccDomain_failedRestartBringsTheGuestBack(t *testing.T) {
	acctest.Case(t, "a planned restart that fails (a start that is refused, an answer that is lost, a user who gives up) leaves the guest running with its old definition")
	const name = "restarted"
	ctx := context.Background()
	image := lab.Host(t).Guest()
	host := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	defer func() { _ = host.Close() }()
	k := domain.New(func() *virt.Host { return host })
	str := tree.StringValue
	config := tree.ObjectValue(map[string]tree.Value{
		"name": str(name), "type": str("qemu"), "memory": tree.IntValue(131072), "vcpu": tree.IntValue(1), "title": str("before"), "running": tree.BoolValue(true),
	}).SetAt("os.type", str("hvm")).SetAt("os.type_machine", str("q35")).SetAt("os.kernel", str(image.Kernel)).SetAt("os.initrd", str(image.Initrd)).SetAt("os.cmdline", str(image.Cmdline)).
		SetAt("features.acpi", tree.BoolValue(true)).SetAt("update.allow", str("restart")).SetAt("update.shutdown.timeout", tree.IntValue(60)).
		SetAt("devices.serials", tree.ListValue([]tree.Value{tree.NullValue.SetAt("source.file.path", str(lab.Host(t).ConsoleLog(name))).SetAt("source.file.append", str("on"))}))
	made, err := k.Create(ctx, config, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { lab.Virsh(t, "destroy", name); lab.Virsh(t, "undefine", name) }()
	before := lab.Virsh(t, "dumpxml", "--inactive", name)
	state := k.Rules().Project(k.Type(), config, made.Facts.Definition).With("uuid", made.Facts.Definition.Attr("uuid")).With("status", made.Facts.Status)
	planned := state.With("title", str("after")).With("memory", tree.IntValue(163840)).With("status", tree.NullValue)

	cases := map[string]struct {
		hook func(cancel func()) virt.Hook
		says string
	}{
		"the start is refused": {func(func()) virt.Hook {
			return virttest.Fail(virttest.Nth(1, virttest.Op("start domain")), virttest.Internal("no room for it"))
		}, "no room for it"},
		"the answer to the shutdown is lost": {func(func()) virt.Hook {
			return virttest.FailAfter(virttest.Nth(1, virttest.Op("shut down domain")), virttest.ConnectionLost)
		}, "was lost"},
		"the user gives up after the button was pressed": {func(cancel func()) virt.Hook {
			return virttest.FailAfter(virttest.Nth(1, virttest.Op("shut down domain")), func(virt.Call) error { cancel(); return nil })
		}, "context canceled"},
	}
	for what, c := range cases {
		guest := lab.Observe(t, name)
		ctx, cancel := context.WithCancel(ctx)
		remove := virttest.Install(host, c.hook(cancel))
		done, err := k.Update(ctx, kind.Update{
			Config: planned.With("update", config.Attr("update")), Prior: state, Planned: planned, Owned: config, Effect: change.EffectRestart,
			Changes: []change.Change{{Path: tree.ParsePath("memory"), Actual: tree.IntValue(134217728)}, {Path: tree.ParsePath("title"), Actual: str("before")}},
		})
		remove()
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if power := done.Facts.Status.Attr("power").Str(); !done.Exists || power != "running" || done.Facts.Definition.Attr("title").Str() != "before" {
			t.Errorf("%s: what is said to be true: %s, %s", what, power, done.Facts.Definition.Attr("title"))
		}
		if after := lab.Virsh(t, "dumpxml", "--inactive", name); after != before {
			t.Errorf("%s: the definition was\n%s\nand is\n%s", what, before, after)
		}
		again := lab.Observe(t, name)
		if again.Report().BootID == guest.Report().BootID {
			t.Errorf("%s: the guest was never down, so that this proves nothing", what)
		}
	}
}

// A guest that somebody paused is paused for a reason.
func TestAccDomain_restartOfAPausedGuest(t *testing.T) {
	acctest.Case(t, "a planned restart of a guest that somebody paused ends with the new guest paused, and one that fails because the guest does not shut down ends with the old one paused")
	const name = "napping"
	var guest *lab.Guest
	pause := func() {
		guest = lab.Observe(t, name)
		lab.Virsh(t, "suspend", name)
	}
	isPaused := func(*terraform.State) error {
		if got := strings.TrimSpace(lab.Virsh(t, "domstate", "--reason", name)); got != "paused (user)" {
			return fmt.Errorf("the guest is %s", got)
		}
		return nil
	}
	with := func(timeout int, more string) string {
		return machine{name: name, more: fmt.Sprintf("%s\nupdate = { allow = \"restart\", shutdown = { timeout = %d } }\n%s", pluggable, timeout, more)}.config(t)
	}
	const maximum = `cpu = { mode = "maximum" }`
	restart := lab.Apply(with(60, maximum), attr("change.effect", "restart"), attr("status.power", "paused"), attr("status.state", "settled"), isPaused,
		func(*terraform.State) error {
			lab.Virsh(t, "resume", name)
			if now := lab.Observe(t, name); now.Report().BootID == guest.Report().BootID {
				return fmt.Errorf("the plan said restart, and the guest that was paused runs on")
			}
			return nil
		})
	restart.PreConfig = pause
	lab.Steps(t, lab.Apply(with(60, "")), restart)

	deaf := func(more string) string {
		return strings.Replace(with(2, more+"\ndestroy = { shutdown = { timeout = 1 } }"), `cmdline      = "`, `cmdline      = "guest.nopower=1 `, 1)
	}
	lab.Steps(t,
		lab.Apply(deaf("")),
		resource.TestStep{PreConfig: pause, Config: deaf(maximum), ExpectError: lab.Says("did not shut down within 2s")},
		resource.TestStep{PreConfig: func() {
			if err := isPaused(nil); err != nil {
				t.Error(err)
			}
			lab.Virsh(t, "resume", name)
			guest.Untouched(t, name)
		}, Config: deaf("")},
	)
}
