package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// The two machines of the field finding: a router and a headend, each with a disk
// and a seed, on a network of their own. What a person wrote for them is in
// config; what the incumbent stored beside it in state.

const (
	fieldPool    = "takeover"
	fieldNetwork = "takeover-lan"
)

// field is what the two machines are made of.
type field struct {
	heirs []heir
	dir   string // of the pool
}

func fieldUserData(machine string) string {
	return "#cloud-config\nhostname: " + machine + "\n"
}

func fieldMetaData(machine string) string { return "instance-id: " + machine + "\n" }

// staging is where the incumbent put the images of seeds. It is gone.
func staging(machine string) string {
	return "/tmp/terraform-provider-libvirt-cloudinit/cloudinit-gone-" + machine + ".iso"
}

// define defines an object from XML by hand.
func defineXML(t testing.TB, command, xml string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "it.xml")
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, command, file)
}

// uuidOf asks virsh.
func uuidOf(t testing.TB, command, name string) string {
	t.Helper()
	return strings.TrimSpace(lab.Virsh(t, command, name))
}

// makeField makes network, pool, volumes and machines by hand and starts them.
func makeField(t testing.TB) *field {
	t.Helper()
	f := &field{dir: filepath.Join(t.TempDir(), "vault")}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defineXML(t, "net-define", `<network><name>takeover-lan</name><domain name='field.test'/><ip address='10.91.7.1' prefix='24'><dhcp><range start='10.91.7.10' end='10.91.7.99'/><host mac='52:54:00:91:07:02' name='headend' ip='10.91.7.2'/></dhcp></ip></network>`)
	lab.Virsh(t, "net-autostart", fieldNetwork)
	lab.Virsh(t, "net-start", fieldNetwork)
	lab.Virsh(t, "pool-define-as", fieldPool, "dir", "--target", f.dir)
	lab.Virsh(t, "pool-start", fieldPool)
	bridge := between(lab.Virsh(t, "net-dumpxml", fieldNetwork), "<bridge name='", "'")
	network, pool := uuidOf(t, "net-uuid", fieldNetwork), uuidOf(t, "pool-uuid", fieldPool)
	f.heirs = []heir{
		{"libvirt_network", "lan", attrs{"name": fieldNetwork, "autostart": true, "domain": attrs{"name": "field.test"}, "ips": []attrs{{
			"address": "10.91.7.1", "prefix": 24, "dhcp": attrs{
				"ranges": []attrs{{"start": "10.91.7.10", "end": "10.91.7.99"}},
				"hosts":  []attrs{{"mac": "52:54:00:91:07:02", "name": "headend", "ip": "10.91.7.2"}},
			},
		}}}, attrs{"id": network, "uuid": network, "bridge": attrs{"name": bridge}}},
		{"libvirt_pool", "vault", attrs{"name": fieldPool, "type": "dir", "target": attrs{"path": f.dir + "/"}},
			attrs{"id": pool, "uuid": pool, "capacity": 1, "allocation": 1, "available": 1}},
	}
	for _, machine := range []string{"router", "headend"} {
		f.addMachine(t, machine)
	}
	return f
}

// addMachine makes one machine with its volumes. The router has two interfaces
// and starts with the host; the headend has a data disk and a display.
func (f *field) addMachine(t testing.TB, machine string) {
	t.Helper()
	lab.Virsh(t, "vol-create-as", fieldPool, machine+".qcow2", "64M", "--format", "qcow2")
	image := foreignImage("cidata", map[string]string{"user-data": fieldUserData(machine), "meta-data": fieldMetaData(machine)})
	if err := os.WriteFile(filepath.Join(f.dir, machine+"-seed.iso"), image, 0o644); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "pool-refresh", fieldPool)
	volume := func(name string) attrs {
		key := filepath.Join(f.dir, name)
		return attrs{"id": key, "key": key, "path": key, "allocation": 4096, "physical": 4096}
	}
	root := volume(machine + ".qcow2")
	root["target"] = attrs{"format": attrs{"type": "qcow2"}, "path": root["path"], "permissions": attrs{"mode": "600"}}
	seedState := volume(machine + "-seed.iso")
	seedState["capacity"], seedState["create"] = len(image), attrs{"content": attrs{"url": staging(machine)}}
	f.heirs = append(f.heirs,
		heir{"libvirt_volume", machine, attrs{"name": machine + ".qcow2", "pool": fieldPool, "capacity": 64, "capacity_unit": "MiB",
			"target": attrs{"format": attrs{"type": "qcow2"}, "permissions": attrs{"mode": "600"}}}, root},
		heir{"libvirt_cloudinit_disk", machine, attrs{"name": machine, "user_data": fieldUserData(machine), "meta_data": fieldMetaData(machine)},
			attrs{"id": "0123456789abcdef", "path": staging(machine), "size": 45056}},
		heir{"libvirt_volume", machine + "-seed", attrs{"name": machine + "-seed.iso", "pool": fieldPool,
			"create": attrs{"content": attrs{"url": "${libvirt_cloudinit_disk." + machine + ".path}"}}}, seedState},
		f.machine(t, machine),
	)
}

// machine defines and starts a machine, and returns it as configuration and state
// have it.
func (f *field) machine(t testing.TB, machine string) heir {
	t.Helper()
	h := lab.Host(t)
	name, mac := "field-"+machine, map[string]string{"router": "52:54:00:91:07:01", "headend": "52:54:00:91:07:02"}[machine]
	var xml string
	network := fmt.Sprintf(`<interface type='network'><mac address='%s'/><source network='%s'/><model type='virtio'/></interface>`, mac, fieldNetwork)
	nics := []attrs{{"mac": attrs{"address": strings.ToUpper(mac)}, "model": attrs{"type": "virtio"}, "source": attrs{"network": attrs{"network": fieldNetwork}}}}
	devices := attrs{}
	if machine == "router" {
		network += `<interface type='network'><source network='default'/><model type='e1000e'/></interface>`
		nics = append(nics, attrs{"model": attrs{"type": "e1000e"}, "source": attrs{"network": attrs{"network": "default"}}})
		devices["channels"] = []attrs{{"source": attrs{"unix": attrs{}}, "target": attrs{"virt_io": attrs{"name": "org.qemu.guest_agent.0"}}}}
		xml = `<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>`
	} else {
		devices["graphics"] = []attrs{{"vnc": attrs{"auto_port": true, "listen": "127.0.0.1"}}}
		devices["rngs"] = []attrs{{"model": "virtio", "backend": attrs{"random": "/dev/urandom"}}}
		xml = `<graphics type='vnc' autoport='yes' listen='127.0.0.1'/><rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>`
	}
	devices["interfaces"] = nics
	devices["disks"] = []attrs{
		{"driver": attrs{"name": "qemu", "type": "qcow2"}, "source": attrs{"volume": attrs{"pool": fieldPool, "volume": machine + ".qcow2"}}, "target": attrs{"dev": "vda", "bus": "virtio"}},
		{"device": "cdrom", "source": attrs{"volume": attrs{"pool": fieldPool, "volume": machine + "-seed.iso"}}, "target": attrs{"dev": "sda", "bus": "sata"}},
	}
	devices["serials"] = []attrs{{"source": attrs{"file": attrs{"path": h.ConsoleLog(name), "append": "on"}}, "target": attrs{"port": 0}}}
	defineXML(t, "define", fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os>
<features><acpi/></features><clock offset='utc'/><devices>
<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='%[5]s' volume='%[6]s.qcow2'/><target dev='vda' bus='virtio'/></disk>
<disk type='volume' device='cdrom'><source pool='%[5]s' volume='%[6]s-seed.iso'/><target dev='sda' bus='sata'/></disk>
%[7]s%[8]s<serial type='file'><source path='%[9]s' append='on'/><target port='0'/></serial></devices></domain>`,
		name, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, fieldPool, machine, network, xml, h.ConsoleLog(name)))
	lab.Virsh(t, "start", name)
	config := attrs{
		"name": name, "type": "qemu", "memory": 128, "memory_unit": "MiB", "vcpu": 1, "running": true,
		"os":       attrs{"type": "hvm", "type_arch": "x86_64", "type_machine": "q35", "kernel": h.Guest().Kernel, "initrd": h.Guest().Initrd, "cmdline": h.Guest().Cmdline},
		"features": attrs{"acpi": true}, "clock": attrs{"offset": "utc"}, "devices": devices,
	}
	state := attrs{"uuid": uuidOf(t, "domuuid", name), "id": 4711} // the number of a run that is long over
	if machine == "router" {
		// The incumbent sets it at creation, and reads it back only if it is in the
		// state, where it comes from an import alone.
		config["autostart"], state["autostart"] = true, nil
		lab.Virsh(t, "autostart", name)
	}
	return heir{"libvirt_domain", machine, config, state}
}

// between is the text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
