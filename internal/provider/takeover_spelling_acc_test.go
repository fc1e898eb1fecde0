package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/core"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// oldtimer is a machine of the type pc, with two interfaces and two disks.
func (f *field) oldtimer(t *testing.T) heir {
	t.Helper()
	const name, first, second = "field-oldtimer", "52:54:00:91:07:0c", "52:54:00:91:07:0d"
	h := lab.Host(t)
	for _, disk := range []string{"a", "b"} {
		lab.Virsh(t, "vol-create-as", fieldPool, "oldtimer-"+disk+".qcow2", "8M", "--format", "qcow2")
	}
	nic := func(mac, model string) string {
		return fmt.Sprintf("<interface type='network'><mac address='%s'/><source network='%s'/><model type='%s'/></interface>", mac, fieldNetwork, model)
	}
	disk := func(which, dev string) string {
		return fmt.Sprintf("<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='%s' volume='oldtimer-%s.qcow2'/><target dev='%s' bus='virtio'/></disk>", fieldPool, which, dev)
	}
	defineXML(t, "define", fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os><features><acpi/></features><clock offset='utc'/>
<devices>%s<serial type='file'><source path='%s' append='on'/><target port='0'/></serial></devices></domain>`, name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline,
		disk("a", "vda")+disk("b", "vdb")+nic(first, "virtio")+nic(second, "e1000"), h.ConsoleLog(name)))
	lab.Virsh(t, "start", name)
	nicOf := func(mac, model string) attrs {
		return attrs{"mac": attrs{"address": mac}, "model": attrs{"type": model}, "source": attrs{"network": attrs{"network": fieldNetwork}}}
	}
	diskOf := func(which, dev string) attrs {
		return attrs{"driver": attrs{"name": "qemu", "type": "qcow2"}, "source": attrs{"volume": attrs{"pool": fieldPool, "volume": "oldtimer-" + which + ".qcow2"}}, "target": attrs{"dev": dev, "bus": "virtio"}}
	}
	return heir{"libvirt_domain", "oldtimer", attrs{
		"name": name, "type": "qemu", "vcpu": 1,
		"os":       attrs{"type": "hvm", "type_arch": "x86_64", "kernel": h.Guest().Kernel, "initrd": h.Guest().Initrd, "cmdline": h.Guest().Cmdline},
		"features": attrs{"acpi": true}, "clock": attrs{"offset": "utc"},
		"devices": attrs{"interfaces": []attrs{nicOf(first, "virtio"), nicOf(second, "e1000")}, "disks": []attrs{diskOf("a", "vda"), diskOf("b", "vdb")}},
	}, attrs{"uuid": uuidOf(t, "domuuid", name), "id": 4711}}
}

func TestAccTakeover_spelledOtherwise(t *testing.T) {
	c := acctest.Case(t, "q35 and pc against their versioned names, disks and interfaces in another order, other units, MACs in the other case, blocks left out: whether the configuration or the old state writes otherwise than the host, the plan is empty and touches nothing")
	f := makeField(t)
	sweeper := newTakeover(t, c, append(slices.Clone(f.heirs), f.oldtimer(t)))
	t.Cleanup(sweeper.sweep)
	var machines []heir
	for _, h := range sweeper.heirs {
		if h.typ == "libvirt_domain" && h.label != "headend" { // that has one interface
			machines = append(machines, h)
		}
	}
	for name, s := range waysToWrite {
		t.Run(name, func(t *testing.T) { s.config.against(t, c, s.state, machines) })
	}
}

// against takes machines over whose configuration is written one way, and the
// state another.
func (s spelling) against(t *testing.T, c core.Core, state spelling, machines []heir) {
	t.Helper()
	w := newTakeover(t, c, nil)
	stored := map[string]attrs{}
	for _, m := range machines {
		name := m.config["name"].(string)
		versioned := between(lab.Virsh(t, "dumpxml", "--inactive", name), "machine='", "'")
		if alias(versioned) == versioned || !strings.Contains(versioned, "-") {
			t.Fatalf("the host has no versioned type of machine for %s, but %q", name, versioned)
		}
		stored[m.label] = state.of(m.config, versioned)
		w.heirs = append(w.heirs, heir{m.typ, m.label, s.of(m.config, versioned), m.state})
	}
	w.writeConfig()
	shape := readIncumbent(t)
	w.writeState(func(h heir) attrs {
		object := stored[h.label]
		for name, v := range h.state {
			if v != nil {
				object[name] = v
			}
		}
		return shape.whole(t, h.typ, object)
	})
	w.observe("field-router", "field-oldtimer")
	w.replaceProvider(w.theirs(), ours)
	w.empty("at once")
	w.project.Must(0, "apply", "-auto-approve")
	w.empty("after an apply of nothing")
	w.empty("without a refresh", "-refresh=false")
}
