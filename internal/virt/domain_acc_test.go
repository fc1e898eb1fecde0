package virt_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt/virttest"
)

// tiny is a domain that boots the throwaway host's guest, with the agent and a
// card on the network default.
func tiny(t testing.TB, h *virt.Host, name string) *virt.Domain {
	t.Helper()
	there := lab.Host(t)
	g := there.Guest()
	return temporary(t, h, fmt.Sprintf(`<domain type="qemu"><name>%s</name><memory unit="MiB">160</memory><vcpu>1</vcpu>
<os><type arch="x86_64" machine="q35">hvm</type><kernel>%s</kernel><initrd>%s</initrd><cmdline>%s</cmdline></os>
<features><acpi/></features><devices>
<interface type="network"><source network="default"/><model type="virtio"/></interface>
<serial type="file"><source path="%s" append="on"/></serial>
<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>
</devices></domain>`, name, g.Kernel, g.Initrd, g.Cmdline, there.ConsoleLog(name)))
}

// temporary defines a domain that is gone after the test.
func temporary(t testing.TB, h *virt.Host, xml string) *virt.Domain {
	t.Helper()
	ctx := context.Background()
	d := got(h.DefineDomain(ctx, xml, virt.DefineFlags{Validate: true}))(t)
	t.Cleanup(func() {
		_ = d.Destroy(ctx, false)
		if err := d.Undefine(ctx, virt.UndefineFlags{ManagedSave: true, SnapshotsMetadata: true, CheckpointsMetadata: true, NVRAM: true, TPM: true}); err != nil && !virt.IsNotFound(err) {
			t.Error(err)
		}
	})
	return d
}

// until waits for a condition.
func until(t testing.TB, what string, within time.Duration, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !f(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, within)
		}
	}
}

func TestAccDomain_addressesAndPower(t *testing.T) {
	acctest.Case(t, "a guest's addresses by lease and agent; shut down by ACPI and by the agent")
	ctx := context.Background()
	h := shared(t)
	d := tiny(t, h, "tiny")
	for _, by := range []virt.PowerButton{virt.ByACPI, virt.ByAgent} {
		try(t, d.Start(ctx, virt.StartFlags{}))
		until(t, "the agent tells an address", 4*time.Minute, func() bool {
			return len(addresses(t, d, virt.AddressAgent)) > 0
		})
		lease, agent := addresses(t, d, virt.AddressLease), addresses(t, d, virt.AddressAgent)
		if _, err := d.InterfaceAddresses(ctx, virt.AddressARP); err != nil {
			want(t, err, `read addresses of domain "tiny"`, "nlmsg") // some kernels answer what this libvirt does not understand
		}
		for ip := range lease {
			if !agent[ip] {
				t.Errorf("lease %v, agent %v", lease, agent)
			}
			if !leased(t, h, ip) {
				t.Errorf("the network does not list the lease of %s", ip)
			}
		}
		if len(lease) != 1 {
			t.Errorf("leases %v", lease)
		}
		try(t, d.Shutdown(ctx, by))
		until(t, "the guest shuts down", 4*time.Minute, func() bool { return !got(d.IsActive(ctx))(t) })
	}
	err := second(d.InterfaceAddresses(ctx, virt.AddressAgent))
	if !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("the agent of a guest that is off: %v", err)
	}
}

func addresses(t testing.TB, d *virt.Domain, source virt.AddressSource) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	nics, err := d.InterfaceAddresses(context.Background(), source)
	if source == virt.AddressAgent && virt.HasCode(err, virt.ErrAgentUnresponsive) {
		return out // it is not there yet
	}
	try(t, err)
	for _, nic := range nics {
		for _, a := range nic.Addresses {
			if ip := got(netip.ParseAddr(a.Address))(t); ip.Is4() && !ip.IsLoopback() {
				out[a.Address] = true
				if nic.MAC == "" {
					t.Errorf("no MAC: %+v", nic)
				}
			}
		}
	}
	return out
}

func leased(t testing.TB, h *virt.Host, ip string) bool {
	t.Helper()
	n := got(h.LookupNetworkByName(context.Background(), "default"))(t)
	for _, l := range got(n.Leases(context.Background()))(t) {
		if l.IP == ip && l.MAC != "" {
			return true
		}
	}
	return false
}

func TestAccDomain_states(t *testing.T) {
	acctest.Case(t, "states of a guest of QEMU's: paused, crashed and kept, hard and graceful stop, a second start")
	ctx := context.Background()
	h := shared(t)
	// A boot sector that rings the bell of the pvpanic device: the guest has crashed.
	sector := make([]byte, 512)
	copy(sector, []byte{0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xf4}) // mov dx,0505h; mov al,1; out dx,al; hlt
	sector[510], sector[511] = 0x55, 0xaa
	floppy := filepath.Join(t.TempDir(), "floppy")
	try(t, os.WriteFile(floppy, append(sector, make([]byte, 1440<<10-512)...), 0o644))
	d := bare(t, h, "crasher", `<on_crash>preserve</on_crash><devices><disk type="file" device="floppy"><source file="`+floppy+`"/><target dev="fda"/></disk><panic model="isa"/></devices>`)
	is := func(want virt.State, active bool) {
		t.Helper()
		var s virt.State
		var reason int
		until(t, "the guest is "+want.String(), 4*time.Minute, func() bool { s, reason, _ = d.State(ctx); return s == want })
		if virt.IsPausedByHand(s, reason) != (want == virt.StatePaused) {
			t.Errorf("%v for the reason %d: paused by hand: %v", s, reason, virt.IsPausedByHand(s, reason))
		}
		if s.Active() != active || got(d.IsActive(ctx))(t) != active {
			t.Errorf("%v: Active says %v, libvirt %v", s, s.Active(), got(d.IsActive(ctx))(t))
		}
	}
	is(virt.StateShutoff, false)
	try(t, d.Start(ctx, virt.StartFlags{Paused: true}))
	is(virt.StatePaused, true)
	if err := d.Start(ctx, virt.StartFlags{}); !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("a second start: %v", err)
	}
	try(t, d.Resume(ctx))
	is(virt.StateCrashed, true)
	try(t, d.Destroy(ctx, true))
	is(virt.StateShutoff, false)
	if err := d.Destroy(ctx, false); !virt.HasCode(err, virt.ErrOperationInvalid) {
		t.Errorf("a stop of what is off: %v", err)
	}
	if id := got(d.ID(ctx))(t); id != -1 {
		t.Errorf("id %d", id)
	}
}

func TestAccDomain_undefine(t *testing.T) {
	acctest.Case(t, "what a domain still has keeps it from being undefined until the flag for it is given")
	ctx := context.Background()
	h := shared(t)
	there := lab.Host(t)
	dir := t.TempDir()
	loader, nvram := filepath.Join(dir, "loader.fd"), filepath.Join(dir, "nvram.fd")
	try(t, os.WriteFile(loader, make([]byte, 1<<20), 0o644))
	firmware := func() *virt.Domain {
		try(t, os.WriteFile(nvram, make([]byte, 64<<10), 0o644))
		return temporary(t, h, `<domain type="qemu"><name>laden</name><memory unit="MiB">16</memory><vcpu>1</vcpu><os><type arch="x86_64" machine="q35">hvm</type>`+
			`<loader readonly="yes" type="pflash">`+loader+`</loader><nvram>`+nvram+`</nvram></os><features><acpi/></features></domain>`)
	}
	d := firmware()
	if err := d.Undefine(ctx, virt.UndefineFlags{}); err == nil || virt.IsNotFound(err) {
		t.Errorf("with an NVRAM file: %v", err)
	}
	try(t, d.Undefine(ctx, virt.UndefineFlags{KeepNVRAM: true, TPM: true}))
	if _, err := os.Stat(nvram); err != nil {
		t.Errorf("the NVRAM file was to be kept: %v", err)
	}
	d = firmware()
	try(t, d.Undefine(ctx, virt.UndefineFlags{NVRAM: true, KeepTPM: true}))
	if _, err := os.Stat(nvram); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the NVRAM file was to go: %v", err)
	}
	if _, err := os.Stat(loader); err != nil {
		t.Errorf("the firmware itself went: %v", err)
	}

	disk := volume(t, h, volumeXML("pictured", 1<<20, `<target><format type="qcow2"/></target>`))
	s := bare(t, h, "pictured", `<devices><disk type="file"><driver name="qemu" type="qcow2"/><source file="`+disk.Path()+`"/><target dev="vda"/></disk></devices>`)
	got(there.Virsh(ctx, "snapshot-create-as", "pictured", "monday"))(t)
	if names := got(s.Snapshots(ctx))(t); len(names) != 1 || names[0].Name != "monday" {
		t.Errorf("snapshots %q", names)
	}
	if names := got(s.Checkpoints(ctx))(t); len(names) != 0 {
		t.Errorf("checkpoints %q", names)
	}
	want(t, s.Undefine(ctx, virt.UndefineFlags{NVRAM: true, TPM: true, ManagedSave: true}), `undefine domain "pictured"`, "snapshot")
	try(t, s.Undefine(ctx, virt.UndefineFlags{SnapshotsMetadata: true, CheckpointsMetadata: true}))

	m := bare(t, h, "saved", "")
	try(t, m.Start(ctx, virt.StartFlags{}))
	got(there.Virsh(ctx, "managedsave", "saved"))(t)
	if !got(m.HasManagedSave(ctx))(t) {
		t.Error("no managed save")
	}
	want(t, m.Undefine(ctx, virt.UndefineFlags{SnapshotsMetadata: true}), `undefine domain "saved"`, "managed save")
	try(t, m.Start(ctx, virt.StartFlags{ForceBoot: true}))
	if got(m.HasManagedSave(ctx))(t) {
		t.Error("the managed save is still there")
	}
	// Undefined while it runs, it goes on without a definition.
	try(t, m.Undefine(ctx, virt.UndefineFlags{ManagedSave: true}))
	if got(m.IsPersistent(ctx))(t) || !got(m.IsActive(ctx))(t) {
		t.Error("it is persistent, or off")
	}
	try(t, m.Destroy(ctx, false))
	if _, _, err := m.State(ctx); !virt.IsNotFound(err) {
		t.Errorf("a transient domain that was stopped: %v", err)
	}
}

func TestAccDomain_metadataHasTwoSides(t *testing.T) {
	acctest.Case(t, "guest and definition hold metadata of their own")
	ctx := context.Background()
	d := bare(t, shared(t), "described", "")
	try(t, d.Start(ctx, virt.StartFlags{}))
	const uri = "urn:example:test"
	read := func(side virt.Affect) string {
		t.Helper()
		text, err := d.Metadata(ctx, virt.MetadataElement, uri, side)
		if virt.HasCode(err, virt.ErrNoDomainMetadata) {
			return ""
		}
		try(t, err)
		return text
	}
	try(t, d.SetMetadata(ctx, virt.MetadataElement, "<g>1</g>", "x", uri, virt.AffectLive))
	try(t, d.SetMetadata(ctx, virt.MetadataElement, "<g>2</g>", "x", uri, virt.AffectConfig))
	if l, c := read(virt.AffectLive), read(virt.AffectConfig); !strings.Contains(l, ">1<") || !strings.Contains(c, ">2<") {
		t.Errorf("live %q, config %q", l, c)
	}
	if xml := got(d.XML(ctx, virt.XMLInactive|virt.XMLSecure))(t); !strings.Contains(xml, ">2</x:g>") || strings.Contains(xml, ">1</x:g>") {
		t.Errorf("the definition is %s", xml)
	}
	try(t, d.SetMetadata(ctx, virt.MetadataElement, "", "", uri, virt.AffectLive|virt.AffectConfig))
	if l, c := read(virt.AffectLive), read(virt.AffectConfig); l != "" || c != "" {
		t.Errorf("after removal: live %q, config %q", l, c)
	}
}

func TestAccDomain_namesAndUUIDs(t *testing.T) {
	acctest.Case(t, "a definition never takes the place of another domain; a rename keeps the UUID")
	ctx := context.Background()
	h := shared(t)
	a, b := bare(t, h, "first", ""), bare(t, h, "other", "")
	for what, xml := range map[string]string{
		"another UUID for the name": strings.Replace(got(a.XML(ctx, virt.XMLInactive))(t), a.UUID(), "a7a1b2c3-0000-4000-8000-000000000001", 1),
		"another name for the UUID": strings.Replace(got(a.XML(ctx, virt.XMLInactive))(t), "<name>first<", "<name>third<", 1),
		"the name of another":       strings.Replace(got(a.XML(ctx, virt.XMLInactive))(t), "<name>first<", "<name>other<", 1),
	} {
		if _, err := h.DefineDomain(ctx, xml, virt.DefineFlags{}); !virt.HasCode(err, virt.ErrOperationFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	try(t, a.SetAutostart(ctx, true))
	try(t, a.Rename(ctx, "renamed"))
	if d := got(h.LookupDomainByName(ctx, "renamed"))(t); d.UUID() != a.UUID() || !got(d.Autostart(ctx))(t) {
		t.Error("the rename lost something")
	}
	if err := b.Rename(ctx, "renamed"); err == nil {
		t.Error("renamed to a name that is taken")
	}
	if _, err := h.LookupDomainByName(ctx, "first"); !virt.IsNotFound(err) {
		t.Errorf("the old name: %v", err)
	}
	if xml := got(a.XML(ctx, virt.XMLInactive))(t); !strings.Contains(xml, "<name>renamed<") {
		t.Errorf("the handle reads %s", xml)
	}
}

func TestAccErrors_injectedAreReal(t *testing.T) {
	acctest.Case(t, "the faults that tests inject are what libvirt answers, to the letter")
	ctx := context.Background()
	h := shared(t)
	const nobody = "a7a1b2c3-0000-4000-8000-000000000000"
	pool := got(h.LookupPoolByName(ctx, "default"))(t)
	inactive := got(h.DefinePool(ctx, poolXML("idle", t.TempDir())))(t)
	defer func() { try(t, inactive.Undefine(ctx)) }()
	for name, c := range map[string]struct {
		call   func() error
		answer virttest.Answer
	}{
		"domain":   {func() error { return second(h.LookupDomain(ctx, nobody)) }, virttest.NoSuchObject},
		"network":  {func() error { return second(h.LookupNetwork(ctx, nobody)) }, virttest.NoSuchObject},
		"pool":     {func() error { return second(h.LookupPool(ctx, nobody)) }, virttest.NoSuchObject},
		"volume":   {func() error { return second(pool.LookupVolume(ctx, nobody)) }, virttest.NoSuchObject},
		"inactive": {func() error { return second(inactive.LookupVolume(ctx, nobody)) }, virttest.PoolInactive},
	} {
		genuine := c.call()
		remove := virttest.Install(h, virttest.Fail(virttest.Lookups, c.answer))
		injected := c.call()
		remove()
		var g, i *virt.Error
		if !errors.As(genuine, &g) || !errors.As(injected, &i) {
			t.Fatalf("%s: %v, %v", name, genuine, injected)
		}
		if g.Code != i.Code || g.Domain != i.Domain || strings.ReplaceAll(g.Message, "'idle'", "'default'") != i.Message {
			t.Errorf("%s: libvirt answers %+v, virttest %+v", name, g, i)
		}
	}
	readOnly := open(t, virt.Options{URI: strings.Replace(lab.Host(t).URI(), "libvirt-sock", "libvirt-sock-ro", 1)})
	d := bare(t, h, "untouchable", "")
	same := got(readOnly.LookupDomain(ctx, d.UUID()))(t)
	genuine := same.SetAutostart(ctx, true)
	remove := virttest.Install(h, virttest.Fail(virttest.Writes, virttest.ReadOnly))
	injected := d.SetAutostart(ctx, true)
	remove()
	var g, i *virt.Error
	const text = "operation forbidden: read only access prevents "
	if !errors.As(genuine, &g) || !errors.As(injected, &i) || g.Code != i.Code || g.Domain != i.Domain || !strings.HasPrefix(g.Message, text) || !strings.HasPrefix(i.Message, text) {
		t.Errorf("a read-only connection: libvirt answers %d from %d (%v), virttest %d from %d (%v)", g.Code, g.Domain, g, i.Code, i.Domain, i)
	}
}
