package domain_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

func TestAccDevices_refused(t *testing.T) {
	acctest.Case(t, "a guest that says no when it is asked to let go of a memory module keeps it: the apply gives its answer, and module and memory wait; of another device it is an error, and all is taken back")
	const name = "refuses"
	ports := "<controller type='pci' index='0' model='pcie-root'/>" + strings.Repeat("<controller type='pci' model='pcie-root-port'/>", 6)
	b := newBench(t, name, `<title>before</title><maxMemory slots='2' unit='MiB'>512</maxMemory><memory unit='MiB'>256</memory><vcpu>1</vcpu>
<cpu><numa><cell id='0' cpus='0' memory='131072' unit='KiB'/></numa></cpu>`, ports+`<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
<memory model='dimm'><target><size unit='MiB'>128</size><node>0</node></target></memory>`)
	guest := lab.Observe(t, name)
	b.definition, b.guest = definitions(t, []string{name})[name], b.shown(t)
	element := func(start, end string) string {
		t.Helper()
		found := regexp.MustCompile(`(?s)    ` + start + `.*?` + end + `\n`).FindString(b.xml)
		if found == "" {
			t.Fatalf("there is no %s in\n%s", start, b.xml)
		}
		return found
	}
	live := func(pairs ...string) tree.Value {
		return b.config(t, append(pairs, "<title>before", "<title>after")...).SetAt("update.allow", tree.StringValue("live"))
	}
	// What libvirt says when the guest answers, by ACPI, that it will not.
	const answer = "operation failed: unplug of device was rejected by the guest"
	defer virttest.Install(b.host, virttest.Fail(virttest.Op("detach a device from domain"), virttest.Coded(virt.ErrOperationFailed, answer)))()

	done, err := b.k.Update(context.Background(), b.plan(t, live(element("<rng ", "</rng>"), "")))
	errorSays(t, err, "take devices.rngs[0] out of the guest", answer, "The previous definition is in force again")
	b.check(t, "a guest that refuses to let go of an rng", done, err, false)

	config := live(element("<memory model='dimm'", "</memory>"), "", "<memory unit='KiB'>262144", "<memory unit='KiB'>131072", "<currentMemory unit='KiB'>262144", "<currentMemory unit='KiB'>131072")
	done, err = b.k.Update(context.Background(), b.plan(t, config))
	if err != nil {
		t.Fatalf("a guest that keeps a module is no error: %v", err)
	}
	said := ""
	for _, w := range done.Warnings {
		said += fmt.Sprintf("%s: %s: %s\n", w.Path, w.Summary, w.Detail)
	}
	if !lab.Says(fmt.Sprintf("The guest of %q has not let go of devices.memorydevs[0] yet", name), "libvirt asked it to, and it said no", answer, "The definition has lost the device", "status.pending").MatchString(said) {
		t.Errorf("it says\n%s", said)
	}
	if !slices.ContainsFunc(done.Steps, func(s kind.Step) bool { return s.Name == "memory module" && s.Outcome == kind.Deferred }) {
		t.Errorf("the steps are %v", done.Steps)
	}
	var waits []string
	for _, p := range b.k.Rules().Waiting(b.k.Type(), done.Facts.Definition, done.Facts.Guest, config) {
		waits = append(waits, p.String())
	}
	slices.Sort(waits)
	if want := []string{"current_memory", "devices.memorydevs[0]", "memory"}; !slices.Equal(waits, want) {
		t.Errorf("what waits is %q, want %q", waits, want)
	}
	if xml := lab.Virsh(t, "dumpxml", "--inactive", name); strings.Contains(xml, "model='dimm'") || !strings.Contains(xml, "<title>after") {
		t.Errorf("the definition is\n%s", xml)
	}
	if xml := lab.Virsh(t, "dumpxml", name); !strings.Contains(xml, "model='dimm'") || !strings.Contains(xml, "<memory unit='KiB'>262144") {
		t.Errorf("the guest has\n%s", xml)
	}
	guest.Untouched(t, name)
}
