package domain_test

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// What fails once a guest is down for good is taken back like all else: it runs
// again, under its old name and with its old definition.
func TestAccPower_failedShutdownBringsTheGuestBack(t *testing.T) {
	acctest.Case(t, "a planned shutdown that fails after the guest is down, or that the user gives up, leaves the guest running with its old name and definition")
	const name = "undecided"
	b := newBench(t, name, "<title>before</title><memory unit='MiB'>128</memory>", "")
	config := b.config(t, "<title>before<", "<title>after<", "<name>undecided<", "<name>decided<").
		With("running", tree.BoolValue(false)).SetAt("update.shutdown.timeout", tree.IntValue(60))
	before := definitions(t, []string{name})[name]
	cases := map[string]struct {
		hook func(cancel func()) virt.Hook
		says string
	}{
		"the rename is refused": {func(func()) virt.Hook {
			return virttest.Fail(virttest.Op("rename domain"), virttest.Internal("the name is holy"))
		}, "rename undecided while it is off: "},
		"the answer to the rename is lost": {func(func()) virt.Hook {
			return virttest.FailAfter(virttest.Nth(1, virttest.Op("rename domain")), virttest.ConnectionLost)
		}, "was lost"},
		"the user gives up after the button was pressed": {func(cancel func()) virt.Hook {
			return virttest.FailAfter(virttest.Nth(1, virttest.Op("shut down domain")), func(virt.Call) error { cancel(); return nil })
		}, "context canceled"},
	}
	for what, c := range cases {
		guest := lab.Observe(t, name)
		u := b.plan(t, config)
		if u.Effect != change.EffectShutdown {
			t.Fatalf("the effect is %s", u.Effect)
		}
		ctx, cancel := context.WithCancel(context.Background())
		remove := virttest.Install(b.host, c.hook(cancel))
		done, err := b.k.Update(ctx, u)
		remove()
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "The previous definition is in force again, and what ran runs") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if status := done.Facts.Status; !done.Exists || status.Attr("power").Str() != "running" || done.Facts.Definition.Attr("name").Str() != name {
			t.Errorf("%s: what is said to be true: %s, %s", what, status.Attr("power"), done.Facts.Definition.Attr("name"))
		}
		if after := definitions(t, []string{name})[name]; after != before {
			t.Errorf("%s: the definition was\n%s\nand is\n%s", what, before, after)
		}
		if lab.Observe(t, name).Report().BootID == guest.Report().BootID {
			t.Errorf("%s: the guest was never down, so that this proves nothing", what)
		}
	}

	done, err := b.k.Update(context.Background(), b.plan(t, config))
	if err != nil || done.Facts.Active || done.Facts.Name != "decided" {
		t.Errorf("an update in which nothing fails: %v, %+v", err, done.Facts.Name)
	}
	lab.Virsh(t, "domrename", "decided", name) // for the end of the case
}
