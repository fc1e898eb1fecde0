package domain_test

import (
	"context"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/domain"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccDomain_failedStepIsTakenBack(t *testing.T) {
	acctest.Case(t, "an update whose last step fails puts the previous definition, text and autostart back, and the guest runs on")
	const name = "halfway"
	ctx := context.Background()
	image := lab.Host(t).Guest()
	host := virt.NewHost(virt.Options{URI: lab.Host(t).URI()})
	defer func() { _ = host.Close() }()
	k := domain.New(func() *virt.Host { return host })
	str := tree.StringValue
	config := tree.ObjectValue(map[string]tree.Value{
		"name": str(name), "type": str("qemu"), "memory": tree.IntValue(131072), "vcpu": tree.IntValue(1), "title": str("before"), "running": tree.BoolValue(true),
	}).SetAt("os.type", str("hvm")).SetAt("os.type_machine", str("q35")).SetAt("os.kernel", str(image.Kernel)).SetAt("os.initrd", str(image.Initrd)).SetAt("os.cmdline", str(image.Cmdline)).
		SetAt("devices.serials", tree.ListValue([]tree.Value{tree.NullValue.SetAt("source.file.path", str(lab.Host(t).ConsoleLog(name))).SetAt("source.file.append", str("on"))}))
	made, err := k.Create(ctx, config, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { lab.Virsh(t, "destroy", name); lab.Virsh(t, "undefine", name) }()
	guest := lab.Observe(t, name)
	before := lab.Virsh(t, "dumpxml", "--inactive", name)
	state := k.Rules().Project(k.Type(), config, made.Facts.Definition).With("uuid", made.Facts.Definition.Attr("uuid")).With("status", made.Facts.Status)
	planned := state.With("title", str("after")).With("memory", tree.IntValue(262144)).With("autostart", tree.BoolValue(true)).With("status", tree.NullValue)

	rec := virttest.Record(host)
	remove := virttest.Install(host, virttest.Fail(virttest.Op("set autostart of domain"), virttest.Internal("a disk that is full")))
	done, err := k.Update(ctx, kind.Update{Config: planned, Prior: state, Planned: planned, Owned: config, Effect: change.EffectNextBoot})
	remove()
	if err == nil || !strings.Contains(err.Error(), "a disk that is full") || !strings.Contains(err.Error(), "The previous definition is in force again") {
		t.Fatalf("got %v", err)
	}
	if !done.Exists || done.Facts.Definition.Attr("title").Str() != "before" {
		t.Errorf("what is said to be true: %v, %s", done.Exists, done.Facts.Definition.Attr("title"))
	}
	if after := lab.Virsh(t, "dumpxml", "--inactive", name); after != before {
		t.Errorf("the definition was\n%s\nand is\n%s", before, after)
	}
	if xml := lab.Virsh(t, "dumpxml", name); !strings.Contains(xml, "<title>before</title>") {
		t.Errorf("the guest's title was not put back:\n%s", xml)
	}
	guest.Untouched(t, name)
	for _, c := range rec.Writes() {
		if strings.HasPrefix(c.Op, "undefine") || strings.HasPrefix(c.Op, "stop") || strings.HasPrefix(c.Op, "shut down") {
			t.Errorf("an update made the call %q", c.Op)
		}
	}
}
