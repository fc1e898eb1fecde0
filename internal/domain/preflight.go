package domain

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// preflight checks what a new definition needs on the host, as far as it is
// new: libvirt itself accepts networks that do not exist, and takes a disk
// without a format for raw, whatever is in it. It returns the definition with
// the formats filled in. Nothing was touched when it refuses.
func (k *Kind) preflight(ctx context.Context, wanted, before tree.Value) (tree.Value, error) {
	if err := k.refuseUnoffered(ctx, wanted, before); err != nil {
		return wanted, err
	}
	for i, nic := range wanted.At("devices.interfaces").Elems() {
		if isNew(nic, before.At("devices.interfaces")) {
			if err := k.refuseMissingNetwork(ctx, i, nic); err != nil {
				return wanted, err
			}
		}
	}
	disks := append([]tree.Value(nil), wanted.At("devices.disks").Elems()...)
	for i, disk := range disks {
		if !isNew(disk, before.At("devices.disks")) {
			continue
		}
		var err error
		if disks[i], err = k.withFormat(ctx, i, disk); err != nil {
			return wanted, err
		}
	}
	if len(disks) > 0 {
		wanted = wanted.SetAt("devices.disks", tree.ListValue(disks))
	}
	return wanted, nil
}

// isNew says whether an element is not on the host as it is.
func isNew(elem, before tree.Value) bool {
	for _, b := range before.Elems() {
		if tree.Equal(elem, b) {
			return false
		}
	}
	return true
}

func (k *Kind) refuseMissingNetwork(ctx context.Context, i int, nic tree.Value) error {
	name := nic.At("source.network.network").Str()
	if name == "" {
		return nil
	}
	_, err := k.host().LookupNetworkByName(ctx, name)
	if !virt.IsNotFound(err) {
		return err
	}
	return kind.Refuse(kind.Problem{
		Path:    tree.ParsePath(fmt.Sprintf("devices.interfaces[%d].source.network.network", i)),
		Summary: fmt.Sprintf("There is no network %q", name),
		Detail:  "The domain could not start with it. Nothing was changed. `virsh net-list --all` shows the networks of the host; create it first, as a reference (network = libvirt_network.x.name) so that the core knows the order.",
	})
}

// withFormat gives a disk the format of the volume that it names, where the
// configuration gives none, and refuses one that is not the volume's.
func (k *Kind) withFormat(ctx context.Context, i int, disk tree.Value) (tree.Value, error) {
	format, err := k.formatOf(ctx, disk)
	if err != nil || format == "" {
		return disk, err
	}
	given := disk.At("driver.type").Str()
	switch {
	case given == "":
		disk = disk.SetAt("driver.type", tree.StringValue(format))
		if disk.At("driver.name").IsNull() {
			disk = disk.SetAt("driver.name", tree.StringValue("qemu"))
		}
	case given != format && (given == "raw" || given == "qcow2"):
		return disk, kind.Refuse(kind.Problem{
			Path:    tree.ParsePath(fmt.Sprintf("devices.disks[%d].driver.type", i)),
			Summary: fmt.Sprintf("Disk %s is %s, not %s", disk.At("target.dev").Str(), format, given),
			Detail:  fmt.Sprintf("The guest would see the container instead of the disk in it, and could destroy it. Nothing was changed. Set driver.type to %q, or leave it out.", format),
		})
	}
	return disk, nil
}

// formatOf asks for the format of the volume behind a disk, "" if it is in no
// pool or says nothing.
func (k *Kind) formatOf(ctx context.Context, disk tree.Value) (string, error) {
	var vol *virt.Volume
	var err error
	switch pool, file := disk.At("source.volume.pool").Str(), disk.At("source.file.file").Str(); {
	case pool != "":
		var p *virt.Pool
		if p, err = k.host().LookupPoolByName(ctx, pool); err == nil {
			vol, err = p.LookupVolume(ctx, disk.At("source.volume.volume").Str())
		}
	case file != "":
		vol, err = k.host().LookupVolumeByPath(ctx, file)
	default:
		return "", nil
	}
	if err != nil {
		// What is not there, or in a pool that is stopped, says nothing here; the
		// start tells.
		if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) {
			return "", nil
		}
		return "", err
	}
	xml, err := vol.XML(ctx)
	if err != nil {
		return "", err
	}
	def, err := spec.Volume().Decode(xml)
	if err != nil {
		return "", err
	}
	format := strings.Replace(def.At("target.format.type").Str(), "iso", "raw", 1)
	if format != "raw" && format != "qcow2" {
		return "", nil
	}
	return format, nil
}
