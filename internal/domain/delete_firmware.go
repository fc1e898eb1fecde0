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

// leaves decides what goes with the domain, and says what stays.
func (k *Kind) leaves(ctx context.Context, s *sight, flags *virt.UndefineFlags) (warnings []kind.Problem, err error) {
	if hasVariables(s.raw) {
		file, why, err := k.keepsVariables(ctx, s)
		if err != nil {
			return nil, err
		}
		flags.NVRAM, flags.KeepNVRAM = why == "", why != ""
		if why != "" {
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
		default:
			flags.TPM = true
		}
	}
	return warnings, nil
}

// hasVariables says whether a definition has UEFI variables, also where libvirt
// chooses their file.
func hasVariables(definition tree.Value) bool {
	os := definition.Attr("os")
	return !os.Attr("nv_ram").IsNull() || !os.Attr("loader").IsNull() || os.Attr("firmware").Str() == "efi"
}

// untouched are the flags that end a definition which has never been started: a
// file of variables that it names was there before.
func untouched(definition tree.Value) virt.UndefineFlags {
	return virt.UndefineFlags{KeepNVRAM: hasVariables(definition)}
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
