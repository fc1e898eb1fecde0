package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// drive is a CD drive of a running guest with the volume in it.
type drive struct {
	user  user
	dev   string // its target: sda
	id    int    // of the guest's run: another run has what its definition says
	full  string // the element with the medium
	empty string // and without
}

var errNoDrive = errors.New("the guest has no such drive any more")

func (d *drive) String() string { return fmt.Sprintf("%s of guest %s", d.dev, d.user.name) }

var disksPath = tree.ParsePath("devices.disks")

// guestDisks are the disks of a running guest.
func guestDisks(ctx context.Context, dom *virt.Domain) (document string, def tree.Value, err error) {
	if document, err = dom.XML(ctx, virt.XMLSecure); err != nil {
		return "", def, err
	}
	def, err = spec.Domain().Decode(document)
	return document, def, err
}

// findDrive finds the drive of a user. nil: the guest has it no more.
func findDrive(ctx context.Context, u user) (*drive, error) {
	id, err := u.domain.ID(ctx)
	if err != nil {
		return nil, err
	}
	document, def, err := guestDisks(ctx, u.domain)
	if err != nil {
		return nil, err
	}
	for i, disk := range def.Get(disksPath).Elems() {
		d := &drive{user: u, dev: disk.At("target.dev").Str(), id: id}
		if u.place != "disk "+d.dev || disk.Attr("device").Str() != "cdrom" || !isMedium(disk.Attr("source")) {
			continue
		}
		at := disksPath.Elem(i, "")
		if d.full, err = spec.Domain().Element(document, at); err != nil {
			return nil, err
		}
		out := disk.With("source", tree.NullValue).With("backing_store", tree.NullValue)
		edited, err := spec.Domain().Edit(document, def, def.Set(at, out))
		if err != nil {
			return nil, err
		}
		d.empty, err = spec.Domain().Element(edited, at)
		return d, err
	}
	return nil, nil
}

// isMedium says whether the source of a drive is one. An empty drive may have
// one that says nothing but its number.
func isMedium(source tree.Value) (found bool) {
	source.Walk(func(at tree.Path, v tree.Value) bool {
		found = found || len(at) > 1 && v.Str() != ""
		return !found
	})
	return found
}

// look says whether there is a medium in the drive now. over is true if the run
// has ended: the next one reads the volume anew.
func (d *drive) look(ctx context.Context) (in, over bool, err error) {
	id, err := d.user.domain.ID(ctx)
	if virt.IsNotFound(err) || err == nil && id != d.id {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	_, def, err := guestDisks(ctx, d.user.domain)
	if err != nil {
		return false, false, err
	}
	for _, disk := range def.Get(disksPath).Elems() {
		if disk.At("target.dev").Str() == d.dev {
			return isMedium(disk.Attr("source")), false, nil
		}
	}
	return false, false, fmt.Errorf("look at drive %s: %w", d, errNoDrive)
}

// eject takes the medium out of the running guest. Its definition keeps it.
func (d *drive) eject(ctx context.Context, force bool) error {
	in, over, err := d.look(ctx)
	if err != nil || over || !in {
		return err
	}
	if err := d.user.domain.UpdateDevice(ctx, d.empty, virt.AffectLive, virt.UpdateFlags{Force: force}); err != nil {
		return d.locked(err)
	}
	in, over, err = d.look(ctx)
	if err == nil && !over && in {
		err = fmt.Errorf("eject the medium from drive %s: libvirt accepted it, and it is still in", d)
	}
	return err
}

// locked says what it means that a medium does not come out.
func (d *drive) locked(err error) error {
	if !virt.HasCode(err, virt.ErrOperationFailed) {
		return fmt.Errorf("eject the medium from drive %s: %w", d, err)
	}
	return kind.Refuse(kind.Problem{
		Path: tree.ParsePath("update.force_media"), Summary: fmt.Sprintf("Guest %q does not let go of the CD in drive %s", d.user.name, d.dev),
		Detail: fmt.Sprintf("It has locked the tray, as a guest does while it has the CD mounted (%v). Unmount it in the guest and apply again; or insist, with update = { force_media = true } in the volume: the guest then loses what it has open on the CD.", err),
	})
}

// insert puts the medium into the running guest as it was in. A medium that is
// in, or a run that is over, is left alone.
func (d *drive) insert(ctx context.Context) error {
	in, over, err := d.look(ctx)
	switch {
	case errors.Is(err, errNoDrive), err == nil && (over || in):
		return nil
	case err != nil:
		return err
	}
	if err := d.user.domain.UpdateDevice(ctx, d.full, virt.AffectLive, virt.UpdateFlags{}); err != nil {
		return fmt.Errorf("insert the medium into drive %s: %w", d, err)
	}
	in, over, err = d.look(ctx)
	if err == nil && !over && !in {
		err = fmt.Errorf("insert the medium into drive %s: libvirt accepted it, and it is not in", d)
	}
	return err
}
