package network_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// inside runs a shell command on the host.
func inside(t testing.TB, command string) {
	t.Helper()
	if _, err := lab.Host(t).Exec(context.Background(), "sh", "-c", command); err != nil {
		t.Fatal(err)
	}
}

// plugIn plugs a cable of somebody else's into a bridge.
func plugIn(t testing.TB, bridge string) {
	t.Helper()
	inside(t, "ip link add cable0 type veth peer name cable1 && ip link set cable0 master "+bridge+" up && ip link set cable1 up")
	t.Cleanup(func() { inside(t, "ip link del cable0 2>/dev/null || true") })
}

// lease tells libvirt of a lease of ten minutes, as its DHCP server does.
func lease(t testing.TB, bridge, mac, ip, name string) {
	t.Helper()
	inside(t, fmt.Sprintf(`for helper in /usr/lib/libvirt/libvirt_leaseshelper /usr/lib*/libvirt/libvirt_leaseshelper /usr/libexec/libvirt_leaseshelper; do
  [ -x "$helper" ] || continue
  DNSMASQ_INTERFACE=%[1]s VIR_BRIDGE_NAME=%[1]s DNSMASQ_LEASE_EXPIRES=$(( $(date +%%s) + 600 )) "$helper" add %[2]s %[3]s %[4]s
  exit
done
exit 1`, bridge, mac, ip, name))
	if out := lab.Virsh(t, "net-dhcp-leases", "leased"); !strings.Contains(out, mac) {
		t.Fatalf("there is no such lease:\n%s", out)
	}
}

// documented defines or creates a machine without a system.
func documented(t testing.TB, command, name, devices string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".xml")
	text := fmt.Sprintf("<domain type='qemu'><name>%s</name><memory unit='MiB'>32</memory><os><type arch='x86_64'>hvm</type></os><devices>%s</devices></domain>", name, devices)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, command, file)
}

func listed(t testing.TB, command, name string, want bool) {
	t.Helper()
	out := lab.Virsh(t, strings.Fields(command)...)
	if strings.Contains(" "+strings.Join(strings.Fields(out), " ")+" ", " "+name+" ") != want {
		t.Errorf("%s: %s listed should be %v:\n%s", command, name, want, out)
	}
}

func TestAccDestroy_networkInUse(t *testing.T) {
	core := acctest.Case(t, "a network is not destroyed under guests that are plugged into it, by its name or into its bridge; a lease of a guest that is off does not keep it; domains that are defined with it are named")
	cfg := config(t, "leased", 77, "", `bridge = { name = "virbr77" }`)
	p := lab.StartProject(t, core, cfg, "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	documented(t, "create", "intruder", "<interface type='bridge'><mac address='52:54:00:77:00:01'/><source bridge='virbr77'/></interface>")
	documented(t, "define", "sleeper", "<interface type='network'><mac address='52:54:00:77:00:02'/><source network='leased'/></interface>")
	lab.Virsh(t, "autostart", "sleeper")
	t.Cleanup(func() { lab.Virsh(t, "undefine", "sleeper") })
	lab.Virsh(t, "start", "sleeper")
	was := lab.Virsh(t, "net-dumpxml", "leased")
	p.Refuses([]string{`Refusing to destroy network "leased": running guests are attached to it`, "intruder (52:54:00:77:00:01), sleeper (52:54:00:77:00:02)"}, "destroy", "-auto-approve")
	if now := lab.Virsh(t, "net-dumpxml", "leased"); now != was {
		t.Errorf("the network was\n%s\nand is\n%s", was, now)
	}
	listed(t, "list --name", "intruder", true)
	lab.Virsh(t, "destroy", "intruder")
	lab.Virsh(t, "destroy", "sleeper")
	plugIn(t, "virbr77")
	lease(t, "virbr77", "52:54:00:77:00:02", "192.168.77.102", "sleeper")
	p.Tells([]string{`Network "leased" is gone, and domains are defined with it`, "sleeper (started with the host)"}, "destroy", "-auto-approve")
	listed(t, "net-list --all --name", "leased", false)
}

func TestAccDestroy_networkLeases(t *testing.T) {
	core := acctest.Case(t, "a network goes with the guests that are destroyed before it, though their leases outlive them; a lease of a machine that is not libvirt's keeps it, and is listed, as long as something is plugged in")
	h := lab.Host(t)
	cfg := config(t, "leased", 78, "", `bridge = { name = "virbr78" }`)
	guest := fmt.Sprintf(`
resource "libvirt_domain" "lodger" {
  name        = "lodger"
  type        = "qemu"
  memory      = 128
  memory_unit = "MiB"
  vcpu        = 1
  running     = true
  os = { type = "hvm", type_arch = "x86_64", type_machine = "q35", kernel = %q, initrd = %q, cmdline = %q }
  devices = {
    serials    = [{ source = { file = { path = %q, append = "on" } }, target = { port = 0 } }]
    interfaces = [{ mac = { address = "52:54:00:78:00:01" }, source = { network = { network = libvirt_network.lan.name } }, model = { type = "virtio" }, wait_for_ip = { timeout = 180, source = "lease" } }]
  }
  destroy = { shutdown = { timeout = 1 } }
}
`, h.Guest().Kernel, h.Guest().Initrd, h.Guest().Cmdline, h.ConsoleLog("lodger"))
	p := lab.StartProject(t, core, cfg+guest, "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	plugIn(t, "virbr78")
	lease(t, "virbr78", "52:54:00:ee:00:01", "192.168.78.150", "stranger")
	stranger := []string{`Refusing to destroy network "leased": other machines have addresses from it`, "52:54:00:ee:00:01 (stranger) has 192.168.78.150, until 20", "virsh net-destroy leased"}
	out := p.Must(1, "destroy", "-auto-approve")
	if !lab.Says(stranger...).MatchString(out) || strings.Contains(out, "52:54:00:78:00:01 (") || strings.Contains(out, "52:54:00:78:00:01 has") {
		t.Errorf("the stranger's lease is not told, or that of the guest which was just destroyed is:\n%s", out)
	}
	listed(t, "list --all --name", "lodger", false)
	listed(t, "net-list --name", "leased", true)
	// Another run does not know whose the other lease was.
	p.Refuses([]string{"52:54:00:78:00:01", "52:54:00:ee:00:01 (stranger)"}, "destroy", "-auto-approve")
	listed(t, "net-list --name", "leased", true)
	inside(t, "ip link del cable0") // nobody is there any more: the leases mean nothing
	p.Must(0, "destroy", "-auto-approve")
	listed(t, "net-list --all --name", "leased", false)

	// A network that was ended by hand has no leases to look at.
	p.Write(cfg)
	p.Must(0, "apply", "-auto-approve")
	plugIn(t, "virbr78")
	lease(t, "virbr78", "52:54:00:ee:00:01", "192.168.78.150", "stranger")
	p.Refuses(stranger, "destroy", "-auto-approve")
	lab.Virsh(t, "net-destroy", "leased")
	p.Must(0, "destroy", "-auto-approve")
	listed(t, "net-list --all --name", "leased", false)
}

func TestAccDestroy_guestAndNetwork(t *testing.T) {
	core := acctest.Case(t, "one run destroys guest and network though something else is plugged into the network and the guest's lease is still there")
	cfg := config(t, "leased", 79, "", `bridge = { name = "virbr79" }`) + `
resource "libvirt_domain" "lodger" {
  name    = "lodger2"
  type    = "qemu"
  memory  = 32768
  vcpu    = 1
  running = true
  os      = { type = "hvm", type_arch = "x86_64" }
  devices = { interfaces = [{ mac = { address = "52:54:00:79:00:01" }, source = { network = { network = libvirt_network.lan.name } } }] }
  destroy = { shutdown = { timeout = 1 } }
}
`
	p := lab.StartProject(t, core, cfg, "LIBVIRT_PROTECT=false")
	p.Must(0, "apply", "-auto-approve")
	plugIn(t, "virbr79")
	lease(t, "virbr79", "52:54:00:79:00:01", "192.168.79.101", "lodger2")
	p.Must(0, "destroy", "-auto-approve")
	listed(t, "net-list --all --name", "leased", false)
	listed(t, "list --all --name", "lodger2", false)
}
