package domain

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// The UEFI variables and the state of an emulated TPM are part of the machine,
// and go with it. But libvirt deletes whatever file a definition names as the
// variables' (measured: also the firmware's own template, when a definition named
// it as both). So only a file of libvirt's own directory goes, and only if nobody
// else names it.
//
// Of a domain whose creation failed before it ran, neither goes. Such a domain is
// deleted in spite of its protection, as it has nothing to lose; but what lies
// there may be older than it: the variables of a machine that was brought here, or
// the TPM of its UUID. And somebody may have started it since, unseen.

// leaves decides what goes with the domain, and says what stays. unused says that
// its creation failed before it ran.
func (k *Kind) leaves(ctx context.Context, s *sight, unused bool, flags *virt.UndefineFlags) (warnings []kind.Problem, err error) {
	if hasVariables(s.raw) {
		file, why, err := k.keepsVariables(ctx, s)
		if err != nil {
			return nil, err
		}
		there := true
		if unused && why == "" {
			why = "the creation of the domain failed, and the file may be older than the domain. A new domain that names it goes on with it, whatever its template is"
			there = k.host().View().Suspect(ctx, file) != virt.Gone
		}
		flags.NVRAM, flags.KeepNVRAM = why == "", why != ""
		if why != "" && there {
			warnings = append(warnings, kind.Problem{
				Summary: fmt.Sprintf("The UEFI variables of domain %q stay on the host", s.name),
				Detail:  fmt.Sprintf("%s was not deleted: %s. If nobody needs it, remove it by hand.", file, why),
			})
		}
	}
	for _, tpm := range s.raw.At("devices.tpms").Elems() {
		emulator := tpm.At("backend.emulator")
		place := emulator.At("source.dir.path").Str() + emulator.At("source.file.path").Str()
		switch {
		case emulator.IsNull():
		case place != "":
			flags.TPM, flags.KeepTPM = false, true
			warnings = append(warnings, kind.Problem{
				Summary: fmt.Sprintf("The state of the TPM of domain %q stays on the host", s.name),
				Detail:  fmt.Sprintf("The definition names a place of its own for it, %s, and nothing there was deleted. If nobody needs it, remove it by hand.", place),
			})
		case emulator.Attr("persistent_state").Str() == "yes":
			// libvirt does as the definition says if no flag says otherwise.
			warnings = append(warnings, kind.Problem{
				Summary: fmt.Sprintf("The state of the TPM of domain %q stays on the host", s.name),
				Detail:  "The definition says so: persistent_state = \"yes\". libvirt finds it again for a domain of the UUID " + s.dom.UUID() + ".",
			})
		case unused:
			if err := k.refuseUnkept(ctx, s); err != nil {
				return nil, err
			}
			flags.TPM, flags.KeepTPM = false, true
			warnings = append(warnings, kind.Problem{
				Summary: fmt.Sprintf("The state of the TPM of domain %q stays on the host", s.name),
				Detail:  fmt.Sprintf("The creation of the domain failed, and if there is such a state, it may be older than the domain. libvirt finds it again for a domain of the UUID %s. If nobody needs it, remove it by hand: it is in libvirt's directory swtpm/%[1]s.", s.dom.UUID()),
			})
		default:
			flags.TPM = true
		}
	}
	return warnings, nil
}

// keepsTPM is the first libvirt that can be told to keep the state of a TPM.
const keepsTPM = virt.Version(8009000)

// refuseUnkept refuses where libvirt would delete the state of the TPM whatever
// it is told.
func (k *Kind) refuseUnkept(ctx context.Context, s *sight) error {
	versions, err := k.host().Versions(ctx)
	if err != nil {
		return err
	}
	return refuseOlder(versions.Daemon, s.name)
}

func refuseOlder(daemon virt.Version, name string) error {
	if daemon >= keepsTPM {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy domain %q: the state of its TPM would go with it", name),
		Detail: fmt.Sprintf("The creation of the domain failed, and the state of its TPM may be older than the domain. libvirt %s, which the host has, deletes it with the definition; %s could keep it. Nothing was changed. To keep the domain: mend what its start lacks, `virsh start %s`, `untaint ADDRESS`. To give both up: `virsh undefine %[3]s` (with UEFI: --keep-nvram), then repeat.",
			daemon, keepsTPM, name),
	})
}

// hasVariables says whether a definition has UEFI variables, also where libvirt
// chooses their file.
func hasVariables(definition tree.Value) bool {
	os := definition.Attr("os")
	return !os.Attr("nv_ram").IsNull() || !os.Attr("loader").IsNull() || os.Attr("firmware").Str() == "efi"
}

// untouched are the flags that end a definition which has never been started: a
// file of variables that it names was there before, and so was the state of a TPM,
// which libvirt finds by the UUID. A UUID that was drawn for the definition has none.
func untouched(planned tree.Value) virt.UndefineFlags {
	uuid := planned.Attr("uuid")
	chosen := uuid.IsKnown() && uuid.Str() != ""
	return virt.UndefineFlags{KeepNVRAM: hasVariables(planned), KeepTPM: chosen && hasEmulatedTPM(planned)}
}

func hasEmulatedTPM(definition tree.Value) bool {
	return slices.ContainsFunc(definition.At("devices.tpms").Elems(), func(tpm tree.Value) bool {
		return !tpm.At("backend.emulator").IsNull()
	})
}

// keepsVariables says why the file of the UEFI variables is to stay, "" if it
// goes with the domain.
func (k *Kind) keepsVariables(ctx context.Context, s *sight) (file, why string, err error) {
	own, err := needsOf(s.xml)
	if err != nil {
		return "", "", err
	}
	file = own.nvram
	switch {
	case file == "":
		// libvirt chooses it, by the name of the domain; the ending is the format's.
		file = s.name + "_VARS"
	case !path.IsAbs(file):
		return file, "it is not a file that libvirt made", nil
	case !isOwnDirectory(path.Dir(path.Clean(file))):
		return file, "it is not in libvirt's own directory, and so it is yours", nil
	}
	if own.template != "" && path.Clean(own.template) == path.Clean(file) {
		return file, "it is its own template", nil
	}
	domains, err := k.host().Domains(ctx)
	if err != nil {
		return "", "", err
	}
	for _, d := range domains {
		if d.UUID() == s.dom.UUID() {
			continue
		}
		for _, flags := range []virt.XMLFlags{0, virt.XMLInactive} {
			document, err := d.XML(ctx, flags)
			if virt.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", "", err
			}
			other, err := needsOf(document)
			if err != nil {
				return "", "", err
			}
			if other.names(file) {
				return file, fmt.Sprintf("domain %q names it too", d.Name()), nil
			}
		}
	}
	return file, "", nil
}

// isOwnDirectory says whether it is where libvirt keeps the variables that it
// makes: below /var/lib/libvirt, or in a session below the user's configuration.
func isOwnDirectory(dir string) bool { return strings.HasSuffix(dir, "/libvirt/qemu/nvram") }

// names says whether a definition names a file of the firmware, by its path or,
// where libvirt chooses the directory, by its name.
func (n needs) names(file string) bool {
	all := []string{n.nvram, n.template}
	for _, f := range n.files {
		all = append(all, f.path)
	}
	return slices.ContainsFunc(all, func(named string) bool {
		if path.IsAbs(file) {
			return named != "" && path.Clean(named) == path.Clean(file)
		}
		return strings.HasPrefix(path.Base(named), file+".") && isOwnDirectory(path.Dir(named))
	})
}
