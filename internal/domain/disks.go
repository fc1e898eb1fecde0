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

// withMedium takes the medium of a drive whole from the definition: what the
// guest knows of it belongs to the one that is in it now.
func withMedium(was, disk, wanted tree.Value) tree.Value {
	if !isOn(was, "cdrom", "floppy") || tree.Equal(was.Attr("source"), disk.Attr("source")) {
		return disk
	}
	return disk.With("source", wanted.Attr("source")).With("backing_store", tree.NullValue)
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
	set := func(disk tree.Value) func(context.Context) error {
		return func(ctx context.Context) error {
			return a.before.dom.SetBlockIoTune(ctx, target, ioTuneOf(disk.Attr("io_tune")), virt.AffectLive)
		}
	}
	if err := a.try(ctx, set(d.wanted), set(d.guest)); err != nil {
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
