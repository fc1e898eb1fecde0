package domain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// diskPlug are the disks and drives. Those on virtio, SCSI and USB come and go;
// the medium of a drive is changed, and a disk is throttled, at any time. What
// else a disk is was told to QEMU when it was plugged in.
var diskPlug = &plug{
	noun: "disk",
	list: "devices.disks",
	in: func(disk tree.Value, now situation) string {
		switch bus := diskBus(disk); {
		case isOn(disk, "floppy"):
			return "A floppy drive is part of the machine that QEMU builds when the guest starts."
		case bus == "usb" && !hasController(now.guest, "usb"):
			return "The running guest has no USB controller."
		case bus == "scsi":
			return scsiRoom(disk, now)
		case bus == "virtio" && isOn(disk, "cdrom"):
			return "A drive on the virtio bus is no drive."
		case bus != "virtio" && bus != "scsi" && bus != "usb":
			return fmt.Sprintf("QEMU cannot plug a disk in on the bus %s while the guest runs; it can on virtio, scsi and usb.", bus)
		}
		return ""
	},
	seat: func(disk tree.Value, _ situation) seat {
		if diskBus(disk) == "virtio" {
			return express
		}
		return noSeat
	},
	field:  diskField,
	change: throttle,
	fit:    withMedium,
	collides: func(disk, other tree.Value) string {
		for _, at := range []string{"source.file.file", "source.block.dev"} {
			if image := disk.At(at); image.IsKnown() && tree.Equal(image, other.At(at)) && !disk.Attr("shareable").Bool() {
				return fmt.Sprintf("The running guest has %s open as disk %s.", image, other.At("target.dev").Str())
			}
		}
		return ""
	},
}

var diskAspect = diskPlug.aspect()

func isOn(disk tree.Value, devices ...string) bool {
	return slices.Contains(devices, disk.Attr("device").Str())
}

// diskBus is the bus of a disk. libvirt tells it from the name of the target
// where none is given.
func diskBus(disk tree.Value) string {
	if bus := disk.At("target.bus").Str(); bus != "" {
		return bus
	}
	for prefix, bus := range map[string]string{"vd": "virtio", "sd": "scsi", "hd": "ide", "fd": "fdc", "xvd": "xen", "ubd": "uml"} {
		if strings.HasPrefix(disk.At("target.dev").Str(), prefix) {
			return bus
		}
	}
	return "unknown"
}

func diskField(path string, disk tree.Value, c change.Change) string {
	switch {
	case within(path, "io_tune"):
		return ""
	case within(path, "source.startup_policy"):
		return ""
	case within(path, "source") && isOn(disk, "cdrom", "floppy"):
		if at := strings.SplitN(path, ".", 3); len(at) > 1 && mediumOf[at[1]] {
			return ""
		}
		return "It is told to QEMU when the medium is opened; eject it and insert it again, or wait for the next start."
	case within(path, "source"):
		return "The guest has the disk open. What it reads and writes changes with its next start."
	}
	return "It is told to QEMU when the disk is plugged in."
}

// mediumOf are the ways to say what lies in a drive.
var mediumOf = map[string]bool{"file": true, "block": true, "volume": true, "network": true, "dir": true}

// scsiRoom says why a SCSI disk cannot be plugged in: libvirt would add a
// controller to the guest by itself, and not always the definition's.
func scsiRoom(disk tree.Value, now situation) string {
	index := whole(disk.At("address.drive.controller"))
	model := func(definition tree.Value) (string, bool) {
		for _, c := range definition.At("devices.controllers").Elems() {
			if c.Attr("type").Str() == "scsi" && whole(c.Attr("index")) == index {
				return c.Attr("model").Str(), true
			}
		}
		return "", false
	}
	have, found := model(now.guest)
	if !found {
		return fmt.Sprintf("The running guest has no SCSI controller with the index %d.", index)
	}
	if want, defined := model(now.definition); defined && want != have {
		return fmt.Sprintf("The running guest has a SCSI controller of the model %s; the one of the model %s comes with its next start.", have, want)
	}
	return ""
}

// withMedium takes the medium of a drive whole from the definition, if it
// changes: what the guest knows of it belongs to the one that is in it now.
func withMedium(d *device, disk tree.Value) tree.Value {
	if !isOn(d.guest, "cdrom", "floppy") || !slices.ContainsFunc(d.changes, func(c change.Change) bool {
		return len(c.Path) > 4 && c.Path[3].Attr == "source" && mediumOf[c.Path[4].Attr]
	}) {
		return disk
	}
	return disk.With("source", d.wanted.Attr("source")).With("backing_store", tree.NullValue)
}

// throttle sets the limits of a disk; updating the disk does not.
func throttle(ctx context.Context, a *apply, d *device) (rest []change.Change, err error) {
	limits := false
	for _, c := range d.changes {
		if within(c.Path.Pattern(), "devices.disks[].io_tune") {
			limits = true
		} else {
			rest = append(rest, c)
		}
	}
	if !limits {
		return rest, nil
	}
	target := d.guest.At("target.dev").Str()
	tuned := d.guest // what somebody else limits in the guest stays
	for _, c := range d.changes {
		if within(c.Path.Pattern(), "devices.disks[].io_tune") {
			tuned = tuned.Set(c.Path[3:], d.wanted.Get(c.Path[3:]))
		}
	}
	set := func(disk tree.Value) func(context.Context) error {
		return func(ctx context.Context) error {
			if group := d.guest.At("io_tune.group_name"); !group.IsNull() && !tree.Equal(group, disk.At("io_tune.group_name")) {
				// A disk leaves its group with its last limit.
				if err := a.before.dom.SetBlockIoTune(ctx, target, ioTuneOf(tree.NullValue), virt.AffectLive); err != nil {
					return err
				}
			}
			return a.before.dom.SetBlockIoTune(ctx, target, ioTuneOf(disk.Attr("io_tune")), virt.AffectLive)
		}
	}
	if err := a.try(ctx, set(tuned), set(d.guest)); err != nil {
		return nil, fmt.Errorf("throttle disk %s: %w", target, err)
	}
	return rest, nil
}

// ioTuneOf is the whole of a disk's limits: what it does not say is no limit.
func ioTuneOf(limits tree.Value) virt.IoTune {
	tune := virt.IoTune{Limits: virt.Parameters{}, Group: limits.Attr("group_name").Str()}
	for name := range spec.Domain().Type().Attrs["devices"].Type.Attrs["disks"].Type.Elem.Attrs["io_tune"].Type.Attrs {
		n, given := limits.Attr(name).Int()
		switch {
		case name == "group_name":
		case given:
			tune.Limits[name] = n
		case !strings.HasSuffix(name, "_length"): // the length of no burst
			tune.Limits[name] = 0
		}
	}
	return tune
}
