package domain_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

func TestAccDestroy_failedStartKeepsFirmware(t *testing.T) {
	core := acctest.Case(t, "a machine whose first start failed is made again, whatever protect says, and takes neither UEFI variables nor the state of a TPM with it that were there before it; what stays is named")
	if _, err := os.Stat(uefiVars); err != nil {
		acctest.Unavailable(t, "the firmware of this system has other names")
	}
	h := lab.Host(t)
	const uuid = "5f3c1a52-7c1e-4c58-9f53-2d8a0c9f1e77"
	// What a machine left that is brought back under its name and UUID.
	vars, tpmDir := h.Dir()+"/varlib/qemu/nvram/returned_VARS.fd", h.Dir()+"/varlib/swtpm/"+uuid
	former := bare{name: "returned", more: fmt.Sprintf("uuid = %q", uuid), os: uefi(uefiVars, ""), devices: tpm("")}
	lab.StartProject(t, core, configOf(t, former), unprotected).Must(0, "apply", "-auto-approve")
	lab.Virsh(t, "destroy", "returned")
	lab.Virsh(t, "undefine", "returned", "--keep-nvram", "--keep-tpm")
	t.Cleanup(func() { _, _ = os.RemoveAll(tpmDir), os.Remove(vars) })
	files := contents(t, vars, tpmDir)
	if len(files) < 2 {
		t.Fatalf("the former machine left %d files, so that this proves nothing", len(files))
	}
	kept := func(when string) {
		t.Helper()
		if now := contents(t, vars, tpmDir); !maps.Equal(now, files) {
			t.Errorf("%s: the files of the former machine are others: %d of %d", when, len(now), len(files))
		}
	}
	broken := former
	broken.more += "\n  protect = true\n  " + refusedByQEMU
	p := lab.StartProject(t, core, configOf(t, broken))
	p.Refuses([]string{"which is defined now", "no-such-device"}, "apply", "-auto-approve")
	kept("the start failed")
	// The next apply takes the failed one away, and fails likewise.
	out := p.Must(1, "apply", "-auto-approve")
	for _, parts := range [][]string{
		{`The UEFI variables of domain "returned" stay on the host`, "returned_VARS.fd was not deleted", "may be older than the domain"},
		{`The state of the TPM of domain "returned" stays on the host`, "may be older than the domain", uuid},
	} {
		if !lab.Says(parts...).MatchString(out) {
			t.Errorf("nothing says %q:\n%s", parts, out)
		}
	}
	kept("the failed one was made again")
	p.Must(0, "untaint", "libvirt_domain.returned")
	former.more += "\n  protect = false"
	p.Write(configOf(t, former))
	p.Must(0, "apply", "-auto-approve")
	p.Must(0, "destroy", "-auto-approve")
	// Now it has run: they are its own, and go with it.
	undefined(t, "returned")
	if now := contents(t, vars, tpmDir); len(now) > 0 {
		t.Errorf("a machine that has run leaves %d files", len(now))
	}
}

// contents are the files below some places, each with the sum of what is in it.
func contents(t testing.TB, places ...string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	for _, place := range places {
		err := filepath.WalkDir(place, func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() || strings.HasSuffix(file, ".lock") {
				return nil
			}
			if err != nil {
				return err
			}
			data, err := os.ReadFile(file)
			all[file] = sha256.Sum256(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
