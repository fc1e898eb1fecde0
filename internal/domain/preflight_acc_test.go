package domain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

// A false refusal is worse than none: it keeps people from what would work. So each
// refusal of what libvirt and QEMU cannot do is held against a start, and so is
// what looks like one and is none.
func TestAccPreflight_whatIsRefusedDoesNotStart(t *testing.T) {
	acctest.Case(t, "machines, firmware, CPUs and devices that preflight refuses cannot be started, and those that it lets pass can")
	_, host := kindOf(t)
	ctx := context.Background()
	const name = "flown"
	domain := func(os, more, devices string) string {
		return fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>%s<os%s</os><features><acpi/></features><devices>%s</devices></domain>`, name, more, os, devices)
	}
	const q35 = "><type arch='x86_64' machine='q35'>hvm</type>"
	cpu := func(attributes, inner string) string {
		return domain(q35, "<cpu "+attributes+">"+inner+"</cpu>", "")
	}
	const custom = "mode='custom' match='exact'"
	for what, c := range map[string]struct {
		xml     string
		refused string // the attribute, or what libvirt says; "" if it starts
	}{
		"plain":                            {domain(q35, "", ""), ""},
		"machine type":                     {domain("><type arch='x86_64' machine='pc-q35-99.0'>hvm</type>", "", ""), "os.type_machine"},
		"accelerator":                      {strings.Replace(domain(q35, "", ""), "type='qemu'", "type='xen'", 1), "type"},
		"emulator":                         {domain(q35, "", "<emulator>/nowhere</emulator>"), "devices.emulator"},
		"CPU model":                        {cpu(custom, "<model>bogus</model>"), "cpu.model"},
		"CPU model that may fall back":     {cpu(custom, "<model fallback='allow'>bogus</model>"), "cpu.model"},
		"CPU model of another kind":        {cpu(custom, "<model>cortex-a57</model>"), "cpu.model"},
		"CPU model that QEMU gave up":      {cpu(custom, "<model fallback='forbid'>Icelake-Client</model>"), "cpu.model"},
		"the same, with a fallback":        {cpu(custom, "<model fallback='allow'>Icelake-Client</model>"), ""},
		"CPU model that is not usable":     {cpu(custom+" check='partial'", "<model>Opteron_G5</model>"), "required features"},
		"the same, unchecked":              {cpu(custom, "<model>Opteron_G5</model>"), ""},
		"CPU mode":                         {cpu("mode='host-passthrough'", ""), "cpu.mode"},
		"CPU of the host":                  {cpu("mode='host-model'", ""), ""},
		"CPU feature":                      {cpu(custom, "<model>kvm64</model><feature policy='require' name='bogus'/>"), "unknown CPU feature"},
		"firmware by kind":                 {domain(" firmware='efi'"+q35, "", ""), ""},
		"firmware that there is not":       {domain(" firmware='bios'"+q35, "", ""), "os.firmware"},
		"firmware with features":           {domain(" firmware='efi'"+q35+"<firmware><feature enabled='yes' name='enrolled-keys'/><feature enabled='yes' name='secure-boot'/></firmware>", "", ""), ""},
		"firmware with features that lack": {domain(" firmware='efi'"+q35+"<loader stateless='yes'/>", "", ""), "any firmware"},
		"vCPUs":                            {strings.Replace(domain(q35, "", ""), "<vcpu>1", "<vcpu>512", 1), "vcpu"},
		"disk bus":                         {domain(q35, "", "<disk type='block' device='cdrom'><target dev='xvda' bus='xen'/></disk>"), "devices.disks[].target.bus"},
		"another disk bus":                 {domain(q35, "", "<disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>"), ""},
		"video":                            {domain(q35, "", "<video><model type='gop'/></video>"), "devices.videos[].model.type"},
		"another video":                    {domain(q35, "", "<video><model type='bochs'/></video>"), ""},
		"TPM":                              {domain(q35, "", "<tpm model='tpm-spapr'><backend type='emulator' version='2.0'/></tpm>"), "devices.tpms[].model"},
		"random numbers":                   {domain(q35, "", "<rng model='virtio-transitional'><backend model='builtin'/></rng>"), ""},
		"launch security":                  {domain(q35, "<launchSecurity type='sev'><policy>0x0003</policy><cbitpos>47</cbitpos><reducedPhysBits>1</reducedPhysBits></launchSecurity>", ""), "SEV launch security is not supported"},
		"secret": {domain(q35, "", "<disk type='network'><driver name='qemu' type='raw'/><auth username='x'><secret type='ceph' usage='gone'/></auth><source protocol='rbd' name='a/b'><host name='127.0.0.1'/></source><target dev='vda'/></disk>"),
			"no secret with matching usage"},
		"share without shared memory": {domain(q35, "", "<filesystem type='mount'><driver type='virtiofs'/><source dir='/tmp'/><target dir='x'/></filesystem>"), "requires shared memory"},
	} {
		f := flight{name: name, starts: true, changes: true, gets: func(string, string) bool { return false }}
		found, reason, err := obstacles(ctx, host.View(), f, c.xml)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var said []string
		for _, one := range found {
			said = append(said, one.ref.attribute())
		}
		if reason != nil {
			said = append(said, reason.Detail)
		}
		if c.refused == "" && len(said) > 0 || c.refused != "" && !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.refused) }) {
			t.Errorf("%s: preflight says %q, want %q", what, said, c.refused)
		}
		if err := defineAndStart(t, name, c.xml); (err == nil) != (c.refused == "") {
			t.Errorf("%s: preflight says %q, and defining and starting it %v", what, said, err)
		}
	}
}

// defineAndStart says why a definition is of no use, and leaves nothing behind.
func defineAndStart(t testing.TB, name, xml string) error {
	t.Helper()
	ctx, file := context.Background(), t.TempDir()+"/d.xml"
	writeTo(t, file, xml)
	if _, err := lab.Host(t).Virsh(ctx, "define", file); err != nil {
		return err
	}
	_, err := lab.Host(t).Virsh(ctx, "start", name, "--paused")
	if err == nil {
		lab.Virsh(t, "destroy", name)
	}
	lab.Virsh(t, "undefine", name, "--nvram")
	return err
}
