package virt_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/host"
)

// element is the whole element of a device.
func element(t testing.TB, document, kind, alias string) string {
	t.Helper()
	for _, e := range regexp.MustCompile(`(?s)<`+kind+`[ >].*?</`+kind+`>`).FindAllString(document, -1) {
		if strings.Contains(e, "<alias name='"+alias+"'/>") {
			return e
		}
	}
	t.Fatalf("no %s %s in:\n%s", kind, alias, document)
	return ""
}

// disc is a CD with one file.
func disc(t testing.TB, label string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), label+".iso")
	try(t, os.WriteFile(path, got(seed.Seed{Label: label, Files: []seed.File{{Name: "note", Data: []byte(label)}}}.ISO())(t), 0o644))
	return path
}

// edited replaces what the pattern matches, which must be there.
func edited(t testing.TB, element, pattern, by string) string {
	t.Helper()
	out := regexp.MustCompile(pattern).ReplaceAllString(element, by)
	if out == element {
		t.Fatalf("no %s in %s", pattern, element)
	}
	return out
}

var screen = regexp.MustCompile(`(?s)<graphics .*?</graphics>`)

const (
	nicOf  = `<interface type="network"><mac address="52:54:00:aa:bb:01"/><source network="default"/><model type="virtio"/><alias name="ua-nic"/></interface>`
	vnc    = `<graphics type="vnc" port="-1" autoport="yes" passwd="old"/><video><model type="vga"/></video>`
	tapped = `<model type='virtio'/>` // what follows the source of a card
)

func TestAccDomainUpdate_both(t *testing.T) {
	acctest.Case(t, "what an update of a device changes on a running guest and in its definition, in one call, and takes back")
	ctx := context.Background()
	m := roomy()
	m.devices += diskOf(t, "ua-disk") + nicOf
	d, _ := m.boot(t, "mutable")
	for _, c := range []struct{ name, kind, from, to, shows string }{
		{"startup policy", "disk", `<source file=`, `<source startupPolicy='optional' file=`, `startupPolicy='optional'`},
		{"link", "interface", tapped, tapped + `<link state='down'/>`, `<link state='down'/>`},
		{"coalesce", "interface", tapped, tapped + `<coalesce><rx><frames max='7'/></rx></coalesce>`, `<frames max='7'/>`},
		{"isolation", "interface", tapped, tapped + `<port isolated='yes'/>`, `<port isolated='yes'/>`},
		{"filter", "interface", tapped, tapped + `<filterref filter='no-mac-spoofing'/>`, `<filterref filter='no-mac-spoofing'/>`},
		{"bridge", "interface", `type='network'(?s)(.*?)<source [^>]*>`, `type='bridge'$1<source bridge='virbr0'/>`, `<interface type='bridge'>\s*<mac address='52:54:00:aa:bb:01'/>\s*<source bridge='virbr0'/>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			alias := map[string]string{"disk": "ua-disk", "interface": "ua-nic"}[c.kind]
			_, config := sides(t, d)
			before := element(t, config, c.kind, alias)
			try(t, timed(t, "set", func() error {
				return d.UpdateDevice(ctx, edited(t, before, c.from, c.to), both, virt.UpdateFlags{})
			}))
			shows(t, d, c.shows, c.shows)
			if c.name == "link" {
				got(lab.Host(t).WaitReport(ctx, "mutable", 4*time.Minute, func(r host.Report) bool { up, ok := r.Links["52:54:00:aa:bb:01"]; return ok && !up }))(t)
			}
			try(t, timed(t, "take back", func() error { return d.UpdateDevice(ctx, before, both, virt.UpdateFlags{}) }))
			shows(t, d, "!"+c.shows, "!"+c.shows)
			if _, now := sides(t, d); now != config {
				t.Errorf("the definition was\n%s\nand is\n%s", config, now)
			}
		})
	}
}

func diskOf(t testing.TB, alias string) string {
	return `<disk type="file" device="disk"><driver name="qemu" type="raw" cache="none"/><source file="` + blank(t, 1<<20) + `"/><target dev="vda" bus="virtio"/><serial>one</serial><alias name="` + alias + `"/></disk>`
}

func TestAccDomainUpdate_refused(t *testing.T) {
	acctest.Case(t, "what an update of a device cannot change while the guest runs changes nothing; the definition takes it")
	ctx := context.Background()
	h := shared(t)
	m := roomy()
	m.devices += diskOf(t, "ua-disk") + nicOf + `<rng model="virtio"><backend model="random">/dev/urandom</backend><alias name="ua-rng"/></rng>` + vnc
	d, _ := m.boot(t, "rigid")
	const no = virt.ErrUnsupported
	live, config := sides(t, d)
	for _, c := range []struct {
		name, kind, from, to string
		live, config         int
		shows                string
	}{
		{"cache", "disk", `cache='none'`, `cache='writethrough'`, no, 0, `cache='writethrough'`},
		{"discard", "disk", `cache='none'`, `cache='none' discard='unmap'`, no, 0, `discard='unmap'`},
		{"error policy", "disk", `cache='none'`, `cache='none' error_policy='report'`, no, 0, `error_policy='report'`},
		{"io", "disk", `cache='none'`, `cache='none' io='threads'`, no, 0, `io='threads'`},
		{"serial", "disk", `<serial>one`, `<serial>two`, no, 0, `<serial>two<`},
		{"readonly", "disk", `<target`, `<readonly/><target`, no, 0, `<readonly/>`},
		{"shareable", "disk", `<target`, `<shareable/><target`, no, 0, `<shareable/>`},
		{"iotune", "disk", `<target`, `<iotune><total_iops_sec>100</total_iops_sec></iotune><target`, no, 0, `<total_iops_sec>100<`},
		{"source", "disk", `file='[^']*'`, `file='/elsewhere'`, virt.ErrConfigUnsupported, 0, `/elsewhere`},
		{"bus", "disk", `dev='vda' bus='virtio'(?s)(.*?)<address [^>]*>`, `dev='vda' bus='scsi'$1`, no, 0, `dev='vda' bus='scsi'`},
		{"mtu", "interface", tapped, tapped + `<mtu size='1400'/>`, no, 0, `<mtu size='1400'/>`},
		{"model", "interface", tapped, `<model type='e1000e'/>`, no, 0, `e1000e`},
		{"queues", "interface", tapped, tapped + `<driver queues='2'/>`, no, 0, `queues='2'`},
		{"tap", "interface", tapped, tapped + `<target dev='mytap0'/>`, no, 0, `mytap0`},
		{"rom", "interface", tapped, tapped + `<rom enabled='no'/>`, no, 0, `<rom enabled='no'/>`},
		{"address", "interface", `<address [^>]*>`, `<address type='pci' domain='0x0000' bus='0x0f' slot='0x00' function='0x0'/>`, virt.ErrDeviceMissing, virt.ErrDeviceMissing, ``},
		{"user network", "interface", `type='network'(?s)(.*?)<source [^>]*>`, `type='user'$1`, no, 0, `<interface type='user'>`},
		{"missing network", "interface", `network='default'`, `network='nowhere'`, virt.ErrNoNetwork, 0, `network='nowhere'`},
		{"mac", "interface", `bb:01`, `bb:02`, virt.ErrDeviceMissing, virt.ErrDeviceMissing, ``},
		{"alias", "interface", `ua-nic`, `ua-other`, virt.ErrDeviceMissing, virt.ErrDeviceMissing, ``},
		{"keymap", "graphics", `autoport='yes'`, `autoport='yes' keymap='de'`, no, 0, `keymap='de'`},
		{"source of randomness", "rng", `/dev/urandom`, `/dev/random`, virt.ErrConfigUnsupported, no, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			find := func(document string) string {
				if c.kind == "graphics" {
					return screen.FindString(document)
				}
				return element(t, document, c.kind, map[string]string{"disk": "ua-disk", "interface": "ua-nic", "rng": "ua-rng"}[c.kind])
			}
			e := edited(t, find(config), c.from, c.to)
			running := e
			if c.kind == "graphics" { // what libvirt filled in at the start must not differ
				running = edited(t, find(live), c.from, c.to)
			}
			coded(t, d.UpdateDevice(ctx, running, virt.AffectLive, virt.UpdateFlags{}), c.live)
			if err := d.UpdateDevice(ctx, e, both, virt.UpdateFlags{}); err == nil {
				t.Error("both sides took it")
			}
			if l, c := sides(t, d); l != live || c != config {
				t.Error("a refused update changed something")
			}
			err := d.UpdateDevice(ctx, e, virt.AffectConfig, virt.UpdateFlags{})
			if c.config != 0 {
				coded(t, err, c.config)
				return
			}
			try(t, err)
			shows(t, d, "", c.shows)
			if l, _ := sides(t, d); l != live {
				t.Error("the guest was changed")
			}
			got(h.DefineDomain(ctx, config, virt.DefineFlags{}))(t)
		})
	}
}

func TestAccDomainUpdate_graphics(t *testing.T) {
	acctest.Case(t, "a new VNC password and its end hold at once; what libvirt filled in must be in the element for the guest")
	ctx := context.Background()
	m := machine{devices: vnc}
	d, _ := m.boot(t, "screen")
	set := func(document, passwd string) string {
		return edited(t, screen.FindString(document), `passwd='[^']*'( passwdValidTo='[^']*')?`, passwd)
	}
	l, c := sides(t, d)
	const secret, until = `passwd='new'`, ` passwdValidTo='2031-01-01T00:00:00'`
	coded(t, d.UpdateDevice(ctx, set(c, secret), both, virt.UpdateFlags{}), virt.ErrUnsupported, "listen")
	shows(t, d, "passwd='old'", "passwd='old'")
	try(t, d.UpdateDevice(ctx, set(l, secret), virt.AffectLive, virt.UpdateFlags{}))
	shows(t, d, secret, "passwd='old'")
	try(t, d.UpdateDevice(ctx, set(c, secret+until), virt.AffectConfig, virt.UpdateFlags{}))
	shows(t, d, "!passwdValidTo", secret+until)
	try(t, d.UpdateDevice(ctx, set(l, secret+until), virt.AffectLive, virt.UpdateFlags{}))
	shows(t, d, secret+until, secret+until)
	try(t, d.UpdateDevice(ctx, set(l, secret), virt.AffectLive, virt.UpdateFlags{}))
	shows(t, d, "!passwdValidTo", secret+until)
	if plain := got(d.XML(ctx, 0))(t); strings.Contains(plain, "passwd=") {
		t.Error("the password shows without XMLSecure")
	}
	other := edited(t, screen.FindString(l), `127\.0\.0\.1`, "0.0.0.0")
	coded(t, d.UpdateDevice(ctx, other, virt.AffectLive, virt.UpdateFlags{}), virt.ErrUnsupported, "listen")
	try(t, d.UpdateDevice(ctx, other, virt.AffectConfig, virt.UpdateFlags{}))
	shows(t, d, "!0\\.0\\.0\\.0", "listen='0\\.0\\.0\\.0'")
	// The live element on both sides leaves its address in the definition.
	try(t, d.UpdateDevice(ctx, set(l, secret), both, virt.UpdateFlags{}))
	shows(t, d, "listen='127.0.0.1'", "listen='127.0.0.1'")
}

func TestAccDomainUpdate_media(t *testing.T) {
	acctest.Case(t, "media go in and out of a running guest, which reads each; a locked tray gives way to force alone")
	ctx := context.Background()
	there := lab.Host(t)
	one, two := disc(t, "one"), disc(t, "two")
	with := func(source string) string {
		return `<disk type="file" device="cdrom"><driver name="qemu" type="raw"/>` + source + `<target dev="sdc" bus="sata"/><readonly/><alias name="ua-cd"/></disk>`
	}
	cd := func(path string) string { return with(`<source file="` + path + `"/>`) }
	d, _ := machine{devices: cd(one)}.boot(t, "reader")
	reads := func(name, label string) {
		t.Helper()
		got(there.WaitReport(ctx, name, 4*time.Minute, func(r host.Report) bool { return r.CDs["sr0"].Label == label }))(t)
	}
	change := func(d *virt.Domain, xml string, side virt.Affect, flags virt.UpdateFlags) error {
		return timed(t, "update", func() error { return d.UpdateDevice(ctx, xml, side, flags) })
	}
	reads("reader", "one")
	try(t, change(d, cd(two), both, virt.UpdateFlags{}))
	shows(t, d, two, two)
	reads("reader", "two")
	try(t, change(d, with(""), virt.AffectLive, virt.UpdateFlags{}))
	shows(t, d, "!"+two, two)
	reads("reader", "")
	coded(t, change(d, cd("/nowhere"), both, virt.UpdateFlags{}), virt.ErrSystem)
	shows(t, d, "!/nowhere", "!/nowhere")
	try(t, change(d, cd(one), both, virt.UpdateFlags{}))
	shows(t, d, one, one)
	reads("reader", "one")
	try(t, change(d, with(`<source file="`+one+`" startupPolicy="optional"/>`), both, virt.UpdateFlags{}))
	shows(t, d, `startupPolicy='optional'`, `startupPolicy='optional'`)

	m := machine{devices: cd(one), words: "guest.mountcd=1"}
	locked, _ := m.boot(t, "locked")
	reads("locked", "one")
	live, config := sides(t, locked)
	for what, xml := range map[string]string{"eject": with(""), "swap": cd(two)} {
		coded(t, change(locked, xml, both, virt.UpdateFlags{}), virt.ErrOperationFailed, "tray")
		if l, c := sides(t, locked); l != live || c != config {
			t.Errorf("%s: something was changed\n%s\n%s", what, l, live)
		}
	}
	try(t, change(locked, with(""), both, virt.UpdateFlags{Force: true}))
	shows(t, locked, "!"+one, "!"+one)
	reads("locked", "")
	try(t, change(locked, cd(two), both, virt.UpdateFlags{}))
	shows(t, locked, two, two)
	reads("locked", "two")
	try(t, change(locked, cd(one), both, virt.UpdateFlags{Force: true}))
	shows(t, locked, one, one)
	reads("locked", "one")
}

func TestAccDomainUpdate_virtioMem(t *testing.T) {
	acctest.Case(t, "a running guest is asked for another amount of its virtio memory, which stays plugged in")
	ctx := context.Background()
	m := roomy()
	m.devices += `<memory model="virtio-mem"><target><size unit="KiB">262144</size><node>0</node><block unit="KiB">2048</block><requested unit="KiB">65536</requested></target><alias name="ua-mem"/></memory>`
	d, _ := m.boot(t, "elastic")
	asked := func(kib string) string { return "<requested unit='KiB'>" + kib + "</requested>" }
	of := func(document string) string { return element(t, document, "memory", "ua-mem") }
	has := func(kib string) {
		t.Helper()
		until(t, "the guest has "+kib+" KiB of it", time.Minute, func() bool {
			l, _ := sides(t, d)
			return strings.Contains(of(l), "<current unit='KiB'>"+kib+"</current>")
		})
	}
	has("65536")
	_, c := sides(t, d)
	try(t, d.UpdateDevice(ctx, edited(t, of(c), asked("65536"), asked("131072")), both, virt.UpdateFlags{}))
	shows(t, d, asked("131072"), asked("131072"))
	has("131072")
	l, _ := sides(t, d)
	try(t, d.UpdateDevice(ctx, edited(t, of(l), asked("131072"), asked("98304")), virt.AffectLive, virt.UpdateFlags{}))
	has("98304")
	shows(t, d, asked("98304"), asked("131072"))
	coded(t, d.UpdateDevice(ctx, edited(t, of(c), `<size unit='KiB'>262144`, `<size unit='KiB'>524288`), virt.AffectLive, virt.UpdateFlags{}), virt.ErrConfigUnsupported, "memory size")
	coded(t, d.DetachDeviceAlias(ctx, "ua-mem", both), virt.ErrInternal, "cannot be unplugged")
}

func TestAccDomainUpdate_silent(t *testing.T) {
	acctest.Case(t, "two changes that libvirt accepts and does not make on the running guest")
	ctx := context.Background()
	m := machine{devices: nicOf + vnc}
	d, _ := m.boot(t, "silent")
	l, c := sides(t, d)
	try(t, d.UpdateDevice(ctx, edited(t, element(t, c, "interface", "ua-nic"), `type='network'`, `type='network' trustGuestRxFilters='yes'`), both, virt.UpdateFlags{}))
	shows(t, d, "!trustGuestRxFilters", "trustGuestRxFilters='yes'")
	try(t, d.UpdateDevice(ctx, edited(t, screen.FindString(l), `autoport='yes'`, `autoport='yes' sharePolicy='force-shared'`), virt.AffectLive, virt.UpdateFlags{}))
	shows(t, d, "!sharePolicy", "!sharePolicy")
}
