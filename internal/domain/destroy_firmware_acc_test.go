package domain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

const (
	uefiCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	uefiVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// uefi are the lines of os for a firmware with its variables in a file; "" leaves
// the file to libvirt.
func uefi(template, file string) string {
	named := ""
	if file != "" {
		named = fmt.Sprintf(", nv_ram = %q", file)
	}
	return fmt.Sprintf("loader = %q\n loader_type = \"pflash\"\n loader_readonly = \"yes\"\n nv_ram = { template = %q%s }", uefiCode, template, named)
}

func tpm(more string) string {
	return fmt.Sprintf(`tpms = [{ model = "tpm-crb", backend = { emulator = { version = "2.0" %s } } }]`, more)
}

// copyOf is a copy of a file in a directory of the test.
func copyOf(t testing.TB, file, name string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestAccDestroy_firmware(t *testing.T) {
	core := acctest.Case(t, "UEFI variables and a TPM's state go with the domain, where libvirt made them for it alone; a template, a file of one's own, one that another domain names and a persistent TPM stay, and are named")
	if _, err := os.Stat(uefiVars); err != nil {
		acctest.Unavailable(t, "the firmware of this system has other names")
	}
	h := lab.Host(t)
	inside, outside := "/var/lib/libvirt/qemu/nvram/", h.Dir()+"/varlib/qemu/nvram/" // one directory, as the host and as the test sees it
	own := filepath.Join(t.TempDir(), "own.fd")
	template := copyOf(t, uefiVars, "template.fd")
	machines := []bare{
		{name: "uefi", os: uefi(uefiVars, ""), devices: tpm("")},
		{name: "chosen", os: `firmware = "efi"`},
		{name: "named", os: uefi(uefiVars, inside+"by-name.fd")},
		{name: "own", os: uefi(uefiVars, own), devices: tpm(`, persistent_state = "yes"`)},
		{name: "same", os: uefi(template, template)},
		{name: "shared", os: uefi(uefiVars, inside+"shared_VARS.fd")},
		{name: "unstarted", off: true, os: uefi(uefiVars, "")},
	}
	p := lab.StartProject(t, core, configOf(t, machines...), unprotected)
	p.Must(0, "apply", "-auto-approve")
	file := t.TempDir() + "/d.xml"
	if err := os.WriteFile(file, []byte(fmt.Sprintf("<domain type='qemu'><name>borrower</name><memory>65536</memory><os><type arch='x86_64' machine='q35'>hvm</type><loader readonly='yes' type='pflash'>%s</loader><nvram template='%sshared_VARS.fd'>/nowhere/borrower.fd</nvram></os><features><acpi/></features></domain>", uefiCode, inside)), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Virsh(t, "define", file)
	t.Cleanup(func() { lab.Virsh(t, "undefine", "borrower", "--keep-nvram") })
	tpmOf := func(name string) string {
		return h.Dir() + "/varlib/swtpm/" + strings.TrimSpace(lab.Virsh(t, "domuuid", name))
	}
	goes := []string{outside + "uefi_VARS.fd", outside + "chosen_VARS.fd", outside + "by-name.fd", tpmOf("uefi")}
	stays := []string{own, template, outside + "shared_VARS.fd", tpmOf("own"), uefiCode, uefiVars}
	for _, f := range append(append([]string{}, goes...), stays...) {
		exists(t, f, true)
	}
	out := p.Must(0, "destroy", "-auto-approve")
	for _, parts := range [][]string{
		{`The UEFI variables of domain "own" stay on the host`, own + " was not deleted", "not in libvirt's own directory"},
		{`The state of the TPM of domain "own" stays on the host`, "persistent_state"},
		{`The UEFI variables of domain "same" stay on the host`, template + " was not deleted"},
		{`The UEFI variables of domain "shared" stay on the host`, `domain "borrower" names it too`},
	} {
		if !lab.Says(parts...).MatchString(out) {
			t.Errorf("nothing says %q:\n%s", parts, out)
		}
	}
	for _, name := range []string{"uefi", "chosen", "named", "unstarted"} {
		if strings.Contains(out, fmt.Sprintf("of domain %q stay", name)) {
			t.Errorf("%s is said to leave something:\n%s", name, out)
		}
	}
	for _, m := range machines {
		undefined(t, m.name)
	}
	for _, f := range goes {
		exists(t, f, false)
	}
	for _, f := range stays {
		exists(t, f, true)
	}
	_ = os.Remove(outside + "shared_VARS.fd")
}

func TestAccDestroy_failedCreationKeepsVariables(t *testing.T) {
	core := acctest.Case(t, "a creation that is taken back, because libvirt did not keep what was asked for, does not delete the file of UEFI variables that its definition named")
	if _, err := os.Stat(uefiVars); err != nil {
		acctest.Unavailable(t, "the firmware of this system has other names")
	}
	own := copyOf(t, uefiVars, "own.fd")
	m := bare{name: "stillborn", off: true, os: uefi(own, own), more: "extra_xml = [{ path = \"/domain/novel\", xml = \"<novel/>\" }]"}
	p := lab.StartProject(t, core, configOf(t, m), unprotected)
	p.Refuses([]string{"did not take extra_xml"}, "apply", "-auto-approve")
	undefined(t, "stillborn")
	exists(t, own, true)
}
