package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// What somebody else writes into a definition while an update is under way is not
// overwritten unseen: libvirt replaces a definition as a whole, whoever had edited
// it a second before. Between the last look and the writing is still a moment, as
// libvirt has no way to do both at once.

// definitionNow reads the definition as a look does.
func (a *apply) definitionNow(ctx context.Context) (string, error) {
	return a.before.dom.XML(ctx, virt.XMLInactive|virt.XMLSecure)
}

// unedited refuses to go on if the definition is not the one that the update
// looked at. A guest without a definition has what runs for one, which moves.
func (a *apply) unedited(ctx context.Context) error {
	if !a.before.persistent {
		return nil
	}
	now, err := a.definitionNow(ctx)
	if err != nil || alike(now, a.before.xml) {
		return err
	}
	return errors.New("somebody changed the definition after the update had looked at it: plan again, and decide with the new one before you")
}

// restore writes the definition that was before, unless somebody changed the one
// that the update wrote.
func (a *apply) restore(ctx context.Context) error {
	if a.written != "" {
		now, err := a.definitionNow(ctx)
		switch {
		case virt.IsNotFound(err): // it is defined again
		case err != nil:
			return err
		case !alike(now, a.written) && !alike(now, a.before.xml):
			return fmt.Errorf("somebody changed the definition of %s while the update was under way, so that it was left alone: it has what the update wrote, and that change", a.before.name)
		}
	}
	_, err := a.k.host().DefineDomain(ctx, a.before.xml, virt.DefineFlags{})
	return err
}

// startMakes is what a start may write into a definition: it chooses a firmware,
// and the file for its variables.
var startMakes = []string{"os.loader", "os.loader_readonly", "os.loader_secure", "os.loader_type", "os.loader_format", "os.nv_ram", "os.firmware_info"}

// alike says whether two documents are the same definition, but for the name and
// for what a start makes.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	var sides [2]tree.Value
	for i, document := range []string{a, b} {
		v, err := spec.Domain().Decode(document)
		if err != nil {
			return false
		}
		for _, path := range startMakes {
			if !v.At(path).IsNull() {
				v = v.SetAt(path, tree.NullValue)
			}
		}
		sides[i] = v.With("name", tree.NullValue).With("id", tree.NullValue)
	}
	return tree.Equal(sides[0], sides[1])
}
