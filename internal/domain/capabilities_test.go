package domain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

const wishful = `<domain type='qemu'><name>d</name><vcpu current='1'>9</vcpu><os firmware='bios'><type arch='x86_64' machine='q35'>hvm</type></os>
<cpu mode='custom'><model fallback='allow'> bogus </model></cpu><devices>
<disk type='file'><target dev='xvda' bus='xen'/></disk><disk type='file'><target dev='vda' bus='virtio'/></disk>
<video><model type='gop'/></video><tpm model='tpm-spapr'/><rng model='odd'/><graphics type='rdp'/></devices></domain>`

func offered() virt.Capabilities {
	return virt.Capabilities{Machine: "pc-q35-7.2", MaxVCPUs: 8, Values: map[string][]string{
		"os.firmware": {"efi"}, "cpu.mode": {"maximum", "custom"}, "cpu.model": {"qemu64", "kvm64"}, "disk.bus": {"virtio", "sata"},
		"video.modelType": {"vga"}, "tpm.model": {"tpm-crb"}, "rng.model": {"virtio"}, "graphics.type": {"vnc"},
	}}
}

func TestUnlisted(t *testing.T) {
	host := well()
	host.offered = offered()
	host.offers = nil
	var got []string
	for _, f := range unlisted(context.Background(), host, wishful) {
		got = append(got, f.what)
	}
	want := []string{
		`firmware "bios" is not offered by the host for machine type pc-q35-7.2`,
		`CPU model "bogus" is not offered by the host for machine type pc-q35-7.2`,
		`disk bus "xen" is not offered by the host for machine type pc-q35-7.2`,
		`video model "gop" is not offered by the host for machine type pc-q35-7.2`,
		`TPM model "tpm-spapr" is not offered by the host for machine type pc-q35-7.2`,
		`model of a random number generator "odd" is not offered by the host for machine type pc-q35-7.2`,
		`display "rdp" is not offered by the host for machine type pc-q35-7.2`,
		"machine type pc-q35-7.2 has at most 8 vCPUs, not 9",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A host that tells nothing has nothing to say.
	host.offered = virt.Capabilities{}
	if got := unlisted(context.Background(), host, wishful); len(got) > 0 {
		t.Errorf("of a host that does not tell: %v", got)
	}
	host.offered, host.offers = offered(), refuses(func(virt.Offer) bool { return true })
	if got := unlisted(context.Background(), host, wishful); len(got) > 0 {
		t.Errorf("of a machine that is not offered: %v", got)
	}
}

// libvirt's answer decides, and the capabilities explain it.
func TestUnbuildable(t *testing.T) {
	says := func(code int, message string) error {
		return &virt.Error{Op: "make the command line of domain", Code: code, Message: message}
	}
	plain := strings.Replace(domainWith("", ""), "<os>", "<os firmware='efi'>", 1)
	bogus := strings.Replace(plain, "<devices>", "<cpu mode='custom'><model>bogus</model></cpu><devices>", 1)
	bios := strings.Replace(plain, "efi", "bios", 1)
	both := strings.Replace(bogus, "efi", "bios", 1)
	for name, c := range map[string]struct {
		old, now string
		starts   bool
		builds   map[string]error // by document; what is in none is built
		findings []string         // the attributes
		reason   string
	}{
		"all is well": {old: plain, now: plain},
		"a model that is not listed, and libvirt knows it": {old: plain, now: bogus},
		"a model that nobody knows":                        {old: plain, now: bogus, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus")}, findings: []string{"cpu.model"}},
		"the same at a creation":                           {now: bogus, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus")}, findings: []string{"cpu.model"}},
		"two at once":                                      {old: plain, now: both, builds: map[string]error{both: says(virt.ErrInternal, "Unknown CPU model bogus")}, findings: []string{"os.firmware", "cpu.model"}},
		"it was so before":                                 {old: bogus, now: both, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus"), both: says(virt.ErrInternal, "Unknown CPU model bogus")}},
		"another one beside it":                            {old: bogus, now: both, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus"), both: says(virt.ErrOperationFailed, "no firmware")}, findings: []string{"os.firmware"}},
		"it was so before, and the guest starts":           {old: bogus, now: bogus, starts: true, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus")}, findings: []string{"cpu.model"}},
		"a restart for another reason":                     {old: bogus, now: both, starts: true, builds: map[string]error{bogus: says(virt.ErrInternal, "Unknown CPU model bogus"), both: says(virt.ErrInternal, "Unknown CPU model bogus")}, findings: []string{"os.firmware", "cpu.model"}},
		"a start of what no QEMU has any more":             {old: plain, now: plain, starts: true, builds: map[string]error{plain: says(virt.ErrConfigUnsupported, "gone.")}, reason: "libvirt says: gone. The way out"},
		"a start while something passes":                   {old: plain, now: plain, starts: true, builds: map[string]error{plain: says(virt.ErrSystem, "busy")}},
		"something passes, beside what is not listed":      {old: plain, now: bogus, builds: map[string]error{bogus: says(virt.ErrSystem, "busy")}},
		"the same, with a word that is alike":              {old: plain, now: bogus, builds: map[string]error{bogus: says(virt.ErrSystem, "cannot lock /run/bogus-2 of bogusness")}},
		"what no list has":                                 {old: plain, now: plain + " ", builds: map[string]error{plain + " ": says(virt.ErrConfigUnsupported, "no such thing.")}, reason: "libvirt says: no such thing. The way out"},
		"CPU features":                                     {old: plain, now: plain + " ", builds: map[string]error{plain + " ": says(virt.ErrCPUIncompatible, "missing features: x")}, reason: "missing features: x. The way out: take a CPU model"},
		"an error that may pass":                           {old: plain, now: plain + " ", builds: map[string]error{plain + " ": says(virt.ErrInternal, "Advice from numad is needed")}},
		"a device that is busy":                            {old: plain, now: plain + " ", builds: map[string]error{plain + " ": says(virt.ErrSystem, "busy")}},
		"a driver without command lines":                   {old: plain, now: bios, builds: map[string]error{bios: says(virt.ErrNoSupport, "not supported")}},
		"no right to ask":                                  {old: plain, now: bios, builds: map[string]error{bios: says(virt.ErrAccessDenied, "denied")}},
		"another error":                                    {old: plain, now: bios, builds: map[string]error{bios: errors.New("lost")}},
	} {
		t.Run(name, func(t *testing.T) {
			host := well()
			host.offers, host.offered = nil, offered()
			host.builds = func(document string) error { return c.builds[document] }
			found, reason := unbuildable(context.Background(), host, flight{name: "d", old: c.old, starts: c.starts}, c.now)
			var got []string
			for _, f := range found {
				got = append(got, f.ref.attribute())
			}
			if !slices.Equal(got, c.findings) {
				t.Errorf("got %q, want %q", got, c.findings)
			}
			switch {
			case (reason != nil) != (c.reason != ""):
				t.Errorf("got %v, want %q", reason, c.reason)
			case reason != nil && (!strings.Contains(reason.Detail, c.reason) || !strings.Contains(reason.Detail, "Nothing was changed") || !strings.Contains(reason.Summary, `"d"`)):
				t.Errorf("got %s: %s, want %q", reason.Summary, reason.Detail, c.reason)
			}
		})
	}
}

// A restart of a guest whose definition does not change is no small thing either:
// what cannot be built any more does not come up again.
func TestObstaclesOfAStart(t *testing.T) {
	document := domainWith("", "")
	for _, c := range []struct {
		starts, changes bool
		want            bool
	}{{true, false, true}, {true, true, true}, {false, true, false}, {false, false, false}} {
		host := well()
		asked := 0
		host.builds = func(string) error {
			asked++
			return &virt.Error{Code: virt.ErrConfigUnsupported, Message: "machine type is gone"}
		}
		f := flight{name: "d", old: document, starts: c.starts, changes: c.changes, gets: func(string, string) bool { return false }}
		found, reason, err := obstacles(context.Background(), host, f, document)
		if err != nil || len(found) > 0 || (reason != nil) != c.want {
			t.Errorf("starts %v, changes %v: got %v, %v, %v", c.starts, c.changes, found, reason, err)
		}
		if !c.starts && !c.changes && asked > 0 {
			t.Error("libvirt was asked for nothing")
		}
	}
}

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		message, value string
		want           bool
	}{
		{"Unknown CPU model bogus", "bogus", true}, {"'bogus' is unknown", "bogus", true}, {"bogus", "bogus", true},
		{"Unknown CPU model bogus-2", "bogus", false}, {"bogus-2 and bogus.", "bogus", true}, {"pid 5129", "512", false}, {"", "x", false}, {"x", "", false}, {"überbogus", "bogus", false},
	} {
		if got := mentions(c.message, c.value); got != c.want {
			t.Errorf("%q in %q: %v", c.value, c.message, got)
		}
	}
}
