package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// drive is a CD drive of a running guest with the volume in it.
type drive struct {
	user   user
	dev    string // its target: sda
	id     int    // of the guest's run: another run has what its definition says
	full   string // the element with the medium
	empty  string // and without
	insist string // for messages: how to have the medium taken out though the guest has locked it
	out    bool   // the medium was taken out, or may have been, and is not known to be in again
	force  bool   // it was taken from a guest that had locked its tray, or may have; the lock can outlive the medium
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
		closed := disk.SetAt("target.tray", tree.NullValue)
		if document, err = spec.Domain().Edit(document, def, def.Set(at, closed)); err != nil {
			return nil, err
		}
		def = def.Set(at, closed)
		if d.full, err = spec.Domain().Element(document, at); err != nil {
			return nil, err
		}
		out := closed.With("source", tree.NullValue).With("backing_store", tree.NullValue)
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

// medium is what is in a drive.
type medium int

const (
	noMedium   medium = iota
	openMedium        // one on an open tray, which the guest does not see
	inMedium
	overMedium // the run has ended: the next one reads the volume anew
)

// look says what is in the drive now.
func (d *drive) look(ctx context.Context) (medium, error) {
	id, err := d.user.domain.ID(ctx)
	if virt.IsNotFound(err) || err == nil && id != d.id {
		return overMedium, nil
	}
	if err != nil {
		return noMedium, err
	}
	_, def, err := guestDisks(ctx, d.user.domain)
	if err != nil {
		return noMedium, err
	}
	for _, disk := range def.Get(disksPath).Elems() {
		switch {
		case disk.At("target.dev").Str() != d.dev:
		case !isMedium(disk.Attr("source")):
			return noMedium, nil
		case disk.At("target.tray").Str() == "open":
			return openMedium, nil
		default:
			return inMedium, nil
		}
	}
	return noMedium, fmt.Errorf("look at drive %s: %w", d, errNoDrive)
}

// eject takes the medium out of the running guest. Its definition keeps it.
func (d *drive) eject(ctx context.Context, force bool) error {
	is, err := d.look(ctx)
	if err != nil || is == overMedium || is == noMedium {
		return err
	}
	d.out, d.force = true, force
	if err := d.user.domain.UpdateDevice(ctx, d.empty, virt.AffectLive, virt.UpdateFlags{Force: force}); err != nil {
		return d.locked(err)
	}
	is, err = d.look(ctx)
	if err == nil && (is == openMedium || is == inMedium) {
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
		Detail: fmt.Sprintf("It has locked the tray, as a guest does while it has the CD mounted (%v). Unmount it in the guest and apply again; %s", err, d.insist),
	})
}

// trayTime is how long a tray may take to close.
const trayTime = 5 * time.Second

// insert puts the medium into the running guest as it was in. A medium that is
// in, or a run that is over, is left alone.
func (d *drive) insert(ctx context.Context) error {
	is, err := d.look(ctx)
	switch {
	case errors.Is(err, errNoDrive), err == nil && (is == overMedium || is == inMedium):
		d.out = false
		return nil
	case err != nil:
		return err
	case is == openMedium:
		// An eject that libvirt gave up waiting for, and the guest followed late. To
		// insert what is there already does nothing, so it is taken out whole.
		if err := d.user.domain.UpdateDevice(ctx, d.empty, virt.AffectLive, virt.UpdateFlags{}); err != nil {
			return fmt.Errorf("take the medium from the open tray of drive %s: %w", d, err)
		}
	}
	if err := d.user.domain.UpdateDevice(ctx, d.full, virt.AffectLive, virt.UpdateFlags{Force: d.force}); err != nil {
		return fmt.Errorf("insert the medium into drive %s: %w", d, err)
	}
	for until := time.Now().Add(trayTime); ; {
		switch is, err = d.look(ctx); {
		case err != nil:
			return err
		case is == inMedium, is == overMedium:
			d.out = false
			return nil
		case is == noMedium, time.Now().After(until):
			return fmt.Errorf("insert the medium into drive %s: libvirt accepted it, and it is not in", d)
		}
		// libvirt tells a closed tray when QEMU has told it.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
