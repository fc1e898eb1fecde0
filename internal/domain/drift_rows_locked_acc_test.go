package domain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
)

func TestAccDrift_locked(t *testing.T) {
	core := acctest.Case(t, "firmware, UEFI variables, TPM and architecture that somebody edited are held, also where all drift is to be put back; the warning offers no approval, and what the configuration agrees with is settled")
	if _, err := os.Stat(uefiVars); err != nil {
		acctest.Unavailable(t, "the firmware of this system has other names")
	}
	const older = "/usr/share/OVMF/OVMF_CODE.fd"
	own, other := copyOf(t, uefiVars, "own.fd"), copyOf(t, uefiVars, "other.fd")
	// Whoever wants all drift put back does not mean this.
	const revert = "features = { acpi = true }\n  update = { drift = \"revert\" }"
	quoted := func(s string) string { return fmt.Sprintf("%q", s) }
	never := []string{"It is never changed by a plan.", "Else repair it by hand."}
	edited := group{
		machines: []machine{
			{name: "lock-uefi", off: true, os: uefi(uefiVars, own), more: revert},
			{name: "lock-tpm", off: true, devices: tpm(""), more: revert},
			{name: "lock-arch", off: true, more: revert},
		},
		rows: []row{
			{on: "lock-uefi", does: "edit the firmware", act: edit(uefiCode+"<", older+"<"),
				sees:       map[string]string{"os.loader": older},
				held:       []hold{{"os.loader", "locked", quoted(uefiCode), quoted(older), "loader = " + quoted(older)}},
				warns:      never,
				definition: []string{older + "<"}},
			{on: "lock-uefi", does: "edit the file of the UEFI variables", act: edit(own+"<", other+"<"),
				sees:       map[string]string{"os.nv_ram.nv_ram": other},
				held:       []hold{{"os.nv_ram.nv_ram", "locked", quoted(own), quoted(other), "nv_ram = " + quoted(other)}},
				definition: []string{other + "<"}},
			{on: "lock-tpm", does: "edit the TPM", act: edit("<tpm model='tpm-crb'>", "<tpm model='tpm-tis'>"),
				sees:       map[string]string{"devices.tpms.0.model": "tpm-tis"},
				held:       []hold{{"devices.tpms[0].model", "locked", `"tpm-crb"`, `"tpm-tis"`, `model = "tpm-tis"`}},
				warns:      never,
				definition: []string{"<tpm model='tpm-tis'>"}},
			{on: "lock-arch", does: "edit the architecture", act: edit("arch='x86_64'", "arch='i686'", "/usr/bin/qemu-system-x86_64", "/usr/bin/qemu-system-i386"),
				sees:       map[string]string{"os.type_arch": "i686"},
				held:       []hold{{"os.type_arch", "locked", `"x86_64"`, `"i686"`, `type_arch = "i686"`}},
				warns:      never,
				definition: []string{"arch='i686'"}},
		},
	}
	p := edited.run(t, core)

	// No digest approves it: neither one of the state, which has none, nor one of
	// the warning.
	seen := tell(t, p)
	for _, m := range edited.machines {
		for i := range words(seen.state(m.name), "status.held") {
			if d := at(seen.state(m.name), fmt.Sprintf("status.held.%d.approve", i)); d != nil {
				t.Errorf("%s: a digest approves what is locked: %v", m.name, d)
			}
		}
		for _, text := range seen.about(m.name) {
			if strings.Contains(text, "approve") || strings.Contains(text, "To put it back") {
				t.Errorf("%s: the warning offers to put back what is locked: %s", m.name, text)
			}
		}
	}

	// The way out that the warning names: the configuration agrees.
	agreed := ""
	for _, m := range edited.machines {
		block := strings.NewReplacer(uefiCode, older, quoted(own), quoted(other), "tpm-crb", "tpm-tis").Replace(m.block(t))
		if m.name == "lock-arch" {
			block = strings.Replace(block, "x86_64", "i686", 1)
		}
		agreed += block
	}
	before := definitions(t, edited.names())
	configure(t, p, agreed)
	plans(t, tell(t, p), "lock-tpm", "devices.tpms[0].model: agreed none")
	p.Must(0, "apply", "plan")
	settled := tell(t, p)
	for name, xml := range definitions(t, edited.names()) {
		plans(t, settled, name)
		if state := at(settled.state(name), "status.state"); state != "settled" || len(settled.about(name)) > 0 {
			t.Errorf("%s agrees with the host, and is %v: %q", name, state, settled.about(name))
		}
		_, was, _ := strings.Cut(before[name], "</metadata>")
		if _, now, _ := strings.Cut(xml, "</metadata>"); now != was || now == "" {
			t.Errorf("%s: to agree changed its definition from\n%s\nto\n%s", name, before[name], xml)
		}
	}
}

func TestAccDrift_conflict(t *testing.T) {
	core := acctest.Case(t, "where somebody changed the host and the configuration asks for a third value, that is planned, and a warning names all three; of what is held by itself, too; where both ask for the same nothing is done")
	const on, off, same = "conflict-on", "conflict-off", "conflict-same"
	body := func(title string, memory int) string {
		titled := fmt.Sprintf("title = %q", title)
		return machine{name: on, more: titled}.block(t) + machine{name: off, off: true, memory: memory, more: titled}.block(t) +
			machine{name: same, off: true, memory: memory, more: titled}.block(t)
	}
	forget(t, on, off, same)
	p := project(t, core, body("first", 128))
	p.Must(0, "apply", "-auto-approve")
	guest := lab.Observe(t, on)
	virsh("desc $ --live --config --title theirs")(t, on)
	virsh("desc $ --config --title theirs", "setmaxmem $ 192M --config")(t, off)
	virsh("desc $ --config --title last", "setmaxmem $ 160M --config")(t, same)

	configure(t, p, body("last", 160))
	seen := tell(t, p)
	title := `title was "first" at the last apply, is "theirs" on the host now, and becomes "last".`
	plans(t, seen, on, "title: live")
	says(t, seen, on, `The plan for domain "conflict-on" needs a second look`, title)
	plans(t, seen, off, "memory: none", "title: none")
	says(t, seen, off, title, "memory was 134217728 bytes at the last apply, is 201326592 bytes on the host now, and becomes 167772160 bytes.")
	plans(t, seen, same, "memory: agreed none") // it was held until now
	if text := seen.about(same); len(text) > 0 {
		t.Errorf("host and configuration agree, and a plan warns: %q", text)
	}
	p.Must(0, "apply", "plan")
	guest.Untouched(t, on)
	for name, xml := range definitions(t, []string{on, off, same}) {
		if !strings.Contains(xml, "<title>last</title>") {
			t.Errorf("%s: the configuration did not win:\n%s", name, xml)
		}
	}
	if xml := lab.Virsh(t, "dumpxml", on); !strings.Contains(xml, "<title>last</title>") {
		t.Errorf("the guest has another title:\n%s", xml)
	}
	memoryIs(t, off, 160)
	after := tell(t, p)
	for _, name := range []string{on, off, same} {
		plans(t, after, name)
		if text := after.about(name); len(text) > 0 {
			t.Errorf("%s: a warning after the apply: %q", name, text)
		}
	}
}
