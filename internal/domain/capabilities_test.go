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
			found, reason := unbuildable(context.Background(), host, flight{name: "d", old: c.old}, c.now)
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
