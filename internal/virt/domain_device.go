package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// AttachDevice adds a device, given as its element. With both sides in one call
// the device is the same on both: two calls would each choose a PCI address and,
// without one, a MAC. A call that fails on one side changes neither.
//
// A kind of device that cannot be added live is ErrUnsupported where libvirt
// knows it, and ErrInternal where QEMU says so (SATA, ISA). What the device
// needs and the host lacks is refused live, and taken into a definition: a
// missing file or bridge is ErrSystem, a missing network ErrNoNetwork, so that
// IsNotFound here does not speak of the domain.
func (d *Domain) AttachDevice(ctx context.Context, xml string, side Affect) error {
	return d.modify(ctx, "attach a device to domain", xml, side, (*libvirt.Domain).AttachDeviceFlags)
}

// DetachDevice removes the device that is most like the given element: the MAC
// of an interface, the target of a disk; of several that are alike the first.
// Channels and consoles it does not find. None is ErrDeviceMissing.
//
// A guest has to let go of a device. libvirt waits some seconds for it and then
// returns without an error, so only the live XML tells whether the device has
// gone, which can be later or never (memory that the guest uses). The definition
// has lost it at once.
func (d *Domain) DetachDevice(ctx context.Context, xml string, side Affect) error {
	return d.modify(ctx, "detach a device from domain", xml, side, (*libvirt.Domain).DetachDeviceFlags)
}

// DetachDeviceAlias removes the device of that alias, like DetachDevice. Aliases
// of a definition begin with "ua-" and are the user's; the guest's other devices
// have aliases of libvirt's, which the definition does not know. An alias that
// one of the sides does not have is ErrInternal, and nothing is changed.
//
// The guest's side is exact. In the definition libvirt then looks for the first
// device that is like the one of the alias; that is the same one if it has an
// address (PCI, USB, virtio-serial), another one perhaps if it has none (PS/2).
// It needs libvirt 4.4.
func (d *Domain) DetachDeviceAlias(ctx context.Context, alias string, side Affect) error {
	return d.since(ctx, "detach a device from domain", true, 4004000, "detaching a device by its alias", func(dom *libvirt.Domain) error {
		return dom.DetachDeviceAlias(alias, libvirt.DomainDeviceModifyFlags(side))
	})
}

// UpdateFlags are those of UpdateDevice.
type UpdateFlags struct {
	Force bool // eject a medium although the guest has locked the tray
}

// UpdateDevice changes a disk, an interface, a graphics device or a memory
// module to what the element says. It has to be whole: what it leaves out is
// taken away, or refused. The device is found by the target of a disk, and by
// MAC, address and alias of an interface (else ErrDeviceMissing). The element of
// the definition does for both sides in one call, except for graphics: what
// libvirt filled in for the guest (the address to listen on) must be in the
// element for the guest, and would stay in the definition.
//
// What cannot change while the guest runs, and any other kind of device, is
// ErrUnsupported or ErrConfigUnsupported, and nothing is changed then, on either
// side; a network that does not exist is ErrNoNetwork. A tray that the guest has
// locked is ErrOperationFailed after five seconds.
//
// OK is not proof: libvirt accepts some changes and does not make them
// (trustGuestRxFilters of an interface, the sharing policy of VNC), so the
// caller reads back.
func (d *Domain) UpdateDevice(ctx context.Context, xml string, side Affect, flags UpdateFlags) error {
	if flags.Force {
		side |= Affect(libvirt.DOMAIN_DEVICE_MODIFY_FORCE)
	}
	return d.modify(ctx, "update a device of domain", xml, side, (*libvirt.Domain).UpdateDeviceFlags)
}

func (d *Domain) modify(ctx context.Context, op, xml string, side Affect, f func(*libvirt.Domain, string, libvirt.DomainDeviceModifyFlags) error) error {
	return d.call(ctx, op, true, func(dom *libvirt.Domain) error { return f(dom, xml, libvirt.DomainDeviceModifyFlags(side)) })
}
