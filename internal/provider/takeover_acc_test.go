package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

const ours = "driftsafe/libvirt"

func TestAccTakeover_incumbent(t *testing.T) {
	c := acctest.Case(t, "two running machines of dmacvicar/libvirt 0.9, their configuration as it is: after one state replace-provider the plan is empty and touches nothing, though autostart is absent, the staging directory gone and the runtime ids are stale")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	w.asIncumbent()
	w.observe("field-router", "field-headend")
	w.replaceProvider(w.theirs(), ours)
	w.empty("at once")
	w.project.Must(0, "apply", "-auto-approve")
	w.empty("after an apply of nothing")
	w.empty("without a refresh", "-refresh=false")
}

func TestAccTakeover_tellsWhatDiffers(t *testing.T) {
	c := acctest.Case(t, "what somebody changed behind the back of dmacvicar/libvirt is told after it is taken over, nothing else is, and an apply puts it right without touching the guests")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	w.asIncumbent()
	lab.Virsh(t, "autostart", "--disable", "field-router")
	lab.Virsh(t, "setvcpus", "field-headend", "3", "--config", "--maximum")
	lab.Virsh(t, "net-autostart", fieldNetwork, "--disable")
	w.observe("field-router", "field-headend")
	w.replaceProvider(w.theirs(), ours)
	out := w.project.Must(2, "plan", "-detailed-exitcode")
	for _, part := range []string{"Plan: 0 to add, 3 to change, 0 to destroy", "autostart: none", "vcpu: none"} {
		if !strings.Contains(out, part) {
			t.Errorf("the plan does not say %q:\n%s", part, out)
		}
	}
	w.untouched("the plan")
	w.project.Must(0, "apply", "-auto-approve")
	for _, name := range []string{"field-router", "field-headend"} {
		w.guests[name].Untouched(t, name)
	}
	if now := w.definitions(); !strings.Contains(now["list field-router"], "enable") || !strings.Contains(now["net-list "+fieldNetwork], "yes") || !strings.Contains(now["list field-headend"], ">1</vcpu>") {
		t.Errorf("the host has\n%v", now)
	}
	w.before = w.definitions()
	w.empty("afterwards")
}

// asOld is a state of versions 0.6 to 0.8: other attributes, some of the same
// names with another meaning, and the identity in id alone.
func (f *field) asOld(h heir) attrs {
	name := h.config["name"]
	switch h.typ {
	case "libvirt_network":
		return attrs{"id": h.state["id"], "name": name, "mode": "none", "domain": "field.test", "bridge": "virbr7", "addresses": []any{"10.91.7.0/24"}, "autostart": true, "mtu": nil,
			"dhcp": []attrs{{"enabled": true}}, "dns": []attrs{{"enabled": true, "hosts": []any{}}}, "routes": []any{}, "xml": []any{}}
	case "libvirt_pool":
		return attrs{"id": h.state["id"], "name": name, "type": "dir", "path": nil, "target": []attrs{{"path": f.dir}}, "capacity": 7, "allocation": 7, "available": 7, "source": []any{}, "xml": []any{}}
	case "libvirt_volume":
		return attrs{"id": h.state["id"], "name": name, "pool": fieldPool, "format": "qcow2", "size": 67108864, "source": nil, "base_volume_id": nil, "base_volume_name": nil, "base_volume_pool": nil, "xml": []any{}}
	case "libvirt_cloudinit_disk":
		return attrs{"id": filepath.Join(f.dir, h.label+"-seed.iso") + ";" + aUUID, "name": h.label + "-seed.iso", "pool": fieldPool, "user_data": fieldUserData(h.label), "meta_data": fieldMetaData(h.label), "network_config": ""}
	}
	return attrs{"id": h.state["uuid"], "name": name, "memory": 128, "vcpu": 1, "type": "qemu", "running": true, "autostart": false, "arch": "x86_64", "machine": "q35", "emulator": "/usr/bin/qemu-system-x86_64",
		"cpu": []attrs{{"mode": "host-passthrough"}}, "metadata": nil, "description": "", "cloudinit": nil, "qemu_agent": false, "fw_cfg_name": "opt/com.coreos/config",
		"disk":              []attrs{{"volume_id": filepath.Join(f.dir, h.label+".qcow2"), "scsi": false, "wwn": ""}},
		"network_interface": []attrs{{"network_name": fieldNetwork, "mac": "52:54:00:91:07:01", "wait_for_lease": true, "addresses": []any{"10.91.7.11"}}},
		"console":           []attrs{{"type": "pty", "target_port": "0", "target_type": "serial"}}, "graphics": []any{}, "video": []any{}, "boot_device": []any{}, "tpm": []any{}, "xml": []any{}, "nvram": []any{},
	}
}

// written is what a person writes by the guide: other units, another order, MACs
// in the other case, and only a part of it.
func (f *field) written(h heir) (heir, bool) {
	out := heir{h.typ, h.label, attrs{"name": h.config["name"]}, nil}
	switch {
	case h.typ == "libvirt_cloudinit_disk":
		return out, false
	case h.typ == "libvirt_pool":
		out.config["type"] = "dir"
	case h.typ == "libvirt_volume":
		out.config["pool"] = fieldPool
		if !strings.HasSuffix(h.label, "-seed") {
			out.config["capacity"], out.config["capacity_unit"] = 64<<10, "KiB"
		}
	case h.label == "router":
		out.config["type"], out.config["memory"], out.config["vcpu"], out.config["autostart"] = "qemu", 128<<10, 1, true
		out.config["os"] = attrs{"type_machine": "q35"}
		out.config["devices"] = attrs{
			"interfaces": []attrs{{"source": attrs{"network": attrs{"network": "default"}}, "model": attrs{"type": "e1000e"}}, {"mac": attrs{"address": "52:54:00:91:07:01"}}},
			"disks":      []attrs{{"target": attrs{"dev": "sda"}, "device": "cdrom"}, {"target": attrs{"dev": "vda"}, "source": attrs{"volume": attrs{"pool": fieldPool, "volume": "router.qcow2"}}}},
		}
	case h.label == "headend":
		out.config["type"], out.config["running"] = "qemu", true
		out.config["devices"] = attrs{"interfaces": []attrs{{"mac": attrs{"address": "52:54:00:91:07:02"}}}}
	}
	return out, true
}

// rewrite writes what a person writes in the place of the old configuration.
func (w *takeover) rewrite(f *field) (heirs []heir) {
	for _, h := range f.heirs {
		if h, stays := f.written(h); stays {
			heirs = append(heirs, h)
		}
	}
	all := w.heirs
	w.heirs = heirs
	w.writeConfig()
	w.heirs = all
	return heirs
}

func TestAccTakeover_old(t *testing.T) {
	c := acctest.Case(t, "state of dmacvicar/libvirt 0.8 keeps the identity of each object: what is written anew by the guide, in other units and order, plans nothing; images of seeds move to the volumes that they are")
	f := makeField(t)
	w := newTakeover(t, c, f.heirs)
	t.Cleanup(w.sweep)
	// The images of seeds were no volumes in those states.
	isImage := func(h heir) bool { return h.typ == "libvirt_volume" && strings.HasSuffix(h.label, "-seed") }
	w.heirs = slices.DeleteFunc(slices.Clone(f.heirs), isImage)
	w.writeState(func(h heir) attrs { return f.asOld(h) })
	w.rewrite(f)
	w.write("moved.tf.json", attrs{"moved": []attrs{
		{"from": "libvirt_cloudinit_disk.router", "to": "libvirt_volume.router-seed"}, {"from": "libvirt_cloudinit_disk.headend", "to": "libvirt_volume.headend-seed"},
	}})
	w.heirs = f.heirs
	w.observe("field-router", "field-headend")
	w.replaceProvider(w.theirs(), ours)
	w.project.Refuses([]string{"Nothing is known yet of", "without -refresh=false"}, "plan", "-refresh=false")
	if out := w.project.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "has moved to") || !strings.Contains(out, "Plan: 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("the first plan:\n%s", out)
	}
	w.untouched("the first plan")
	w.project.Must(0, "apply", "-auto-approve")
	w.empty("after an apply")
	w.empty("without a refresh", "-refresh=false")
}

var overridden = regexp.MustCompile(`driftsafe/libvirt in (\S+)`)

func TestAccTakeover_moved(t *testing.T) {
	c := acctest.Case(t, "a moved block takes an object of dmacvicar/libvirt over to another address of this provider; nothing is planned and nothing touched")
	defineXML(t, "net-define", "<network><name>moved-lan</name><ip address='10.91.8.1' prefix='24'/></network>")
	uuid := uuidOf(t, "net-uuid", "moved-lan")
	config := attrs{"name": "moved-lan", "ips": []attrs{{"address": "10.91.8.1", "prefix": 24}}}
	w := newTakeover(t, c, []heir{{"libvirt_network", "old", config, attrs{"id": uuid, "uuid": uuid}}})
	t.Cleanup(w.sweep)
	w.asIncumbent()
	// Both addresses are served by this provider: the core asks the old one for its schema.
	out, _ := w.project.Run("plan")
	at := overridden.FindStringSubmatch(out)
	if at == nil {
		t.Fatalf("no overrides:\n%s", out)
	}
	rc := filepath.Join(t.TempDir(), "both.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"driftsafe/libvirt\" = %q\n    \"dmacvicar/libvirt\" = %[1]q\n  }\n  direct {}\n}\n", at[1])
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.project = w.project.With("TF_CLI_CONFIG_FILE=" + rc)
	w.heirs = []heir{{"libvirt_network", "lan", config, nil}}
	w.writeConfig()
	w.write("moved.tf.json", attrs{"moved": []attrs{{"from": "libvirt_network.old", "to": "libvirt_network.lan"}}})
	w.observe()
	if out := w.project.Must(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "has moved to") || !strings.Contains(out, "Plan: 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("the plan:\n%s", out)
	}
	w.project.Must(0, "apply", "-auto-approve")
	w.empty("afterwards")
	if state := w.project.Must(0, "state", "pull"); !strings.Contains(state, "driftsafe/libvirt") || strings.Contains(state, "dmacvicar/libvirt") {
		t.Errorf("the state has another provider:\n%s", state)
	}
}
