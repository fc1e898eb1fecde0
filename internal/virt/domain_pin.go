package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// PinVcpu says on which of the host's CPUs a virtual CPU may run. A pin can be
// wide, but only a new definition takes its element away. A vCPU that is not
// plugged in can have one too. No CPU at all, or a vCPU beyond the maximum, is
// ErrInvalidArg. A CPU that the host does not have is ErrSystem live; a definition
// takes it, and the next start refuses.
func (d *Domain) PinVcpu(ctx context.Context, vcpu uint, cpus CPUSet, side Affect) error {
	return d.call(ctx, "pin a vCPU of domain", true, func(dom *libvirt.Domain) error {
		return dom.PinVcpuFlags(vcpu, cpus.bits(), libvirt.DomainModificationImpact(side))
	})
}

// VcpuPins returns, for each virtual CPU in order, where it may run, pinned or
// not.
func (d *Domain) VcpuPins(ctx context.Context, side Affect) (pins []CPUSet, err error) {
	err = d.call(ctx, "read the pins of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.GetVcpuPinInfo(libvirt.DomainModificationImpact(side))
		pins = nil
		for _, bits := range all {
			pins = append(pins, cpuSet(bits))
		}
		return err
	})
	return pins, err
}

// PinEmulator is the same for QEMU's own threads.
func (d *Domain) PinEmulator(ctx context.Context, cpus CPUSet, side Affect) error {
	return d.call(ctx, "pin the emulator of domain", true, func(dom *libvirt.Domain) error {
		return dom.PinEmulator(cpus.bits(), libvirt.DomainModificationImpact(side))
	})
}

// EmulatorPin returns where QEMU's own threads may run.
func (d *Domain) EmulatorPin(ctx context.Context, side Affect) (cpus CPUSet, err error) {
	err = d.call(ctx, "read the pins of domain", false, func(dom *libvirt.Domain) error {
		bits, err := dom.GetEmulatorPinInfo(libvirt.DomainModificationImpact(side))
		cpus = cpuSet(bits)
		return err
	})
	return cpus, err
}

// PinIOThread is the same for an I/O thread.
func (d *Domain) PinIOThread(ctx context.Context, id uint, cpus CPUSet, side Affect) error {
	return d.call(ctx, "pin an I/O thread of domain", true, func(dom *libvirt.Domain) error {
		return dom.PinIOThread(id, cpus.bits(), libvirt.DomainModificationImpact(side))
	})
}
