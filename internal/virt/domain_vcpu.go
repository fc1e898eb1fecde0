package virt

import (
	"context"
	"time"

	"libvirt.org/go/libvirt"
)

// SetVcpus sets how many virtual CPUs are plugged in, up to the maximum; more is
// ErrInvalidArg. CPUs that the guest was started with cannot be taken out.
//
// Those that are taken out go one after the other. libvirt waits five seconds
// for the guest to let go of one, and says ErrOperationTimeout then, with
// nothing further done on either side. The guest may let go later all the same,
// and a call for the same CPU in the meantime is ErrInternal without a cause.
//
// Never take one out of an emulated guest (type "qemu"), measured with QEMU 7.2:
// the guest lets go at once, but QEMU does not tell libvirt, which goes on to
// count that CPU until its daemon restarts, and the next CPU that is plugged in
// is the end of the QEMU process.
func (d *Domain) SetVcpus(ctx context.Context, n uint, side Affect) error {
	return d.call(ctx, "set the vCPUs of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetVcpusFlags(n, libvirt.DomainVcpuFlags(side))
	})
}

// VcpuCount returns how many virtual CPUs are plugged in on one side.
func (d *Domain) VcpuCount(ctx context.Context, side Affect) (int, error) {
	return d.countVcpus(ctx, libvirt.DomainVcpuFlags(side))
}

// MaxVcpuCount returns the maximum of one side.
func (d *Domain) MaxVcpuCount(ctx context.Context, side Affect) (int, error) {
	return d.countVcpus(ctx, libvirt.DomainVcpuFlags(side)|libvirt.DOMAIN_VCPU_MAXIMUM)
}

// OnlineVcpuCount asks the agent how many CPUs the guest's system uses.
func (d *Domain) OnlineVcpuCount(ctx context.Context) (int, error) {
	return d.countVcpus(ctx, libvirt.DOMAIN_VCPU_LIVE|libvirt.DOMAIN_VCPU_GUEST)
}

func (d *Domain) countVcpus(ctx context.Context, flags libvirt.DomainVcpuFlags) (n int, err error) {
	err = d.call(ctx, "count the vCPUs of domain", false, func(dom *libvirt.Domain) error {
		count, err := dom.GetVcpusFlags(flags)
		n = int(count)
		return err
	})
	return n, err
}

// Vcpu is one virtual CPU that runs.
type Vcpu struct {
	Number  uint32
	Running bool          // neither offline nor waiting
	Time    time.Duration // of CPU used
	On      int           // the host's CPU that it runs on
	CPUs    CPUSet        // those that it may run on
}

// Vcpus returns the virtual CPUs of the running guest; of one that is off
// ErrOperationInvalid.
func (d *Domain) Vcpus(ctx context.Context) (out []Vcpu, err error) {
	err = d.call(ctx, "read the vCPUs of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.GetVcpus()
		out = nil
		for _, v := range all {
			out = append(out, Vcpu{v.Number, libvirt.VcpuState(v.State) == libvirt.VCPU_RUNNING, time.Duration(v.CpuTime), int(v.Cpu), cpuSet(v.CpuMap)})
		}
		return err
	})
	return out, err
}

// SetVcpu plugs in, or takes out, virtual CPUs by number, live only one at a
// time. One that the guest was started with is ErrUnsupported.
func (d *Domain) SetVcpu(ctx context.Context, vcpus CPUSet, in bool, side Affect) error {
	return d.call(ctx, "set single vCPUs of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetVcpu(vcpus.bits(), in, libvirt.DomainSetVcpuFlags(side))
	})
}

// CPUSet is a set of numbers of CPUs, the host's or virtual ones, in ascending
// order.
type CPUSet []uint

func cpuSet(bits []bool) (s CPUSet) {
	for i, on := range bits {
		if on {
			s = append(s, uint(i))
		}
	}
	return s
}

func (s CPUSet) bits() (bits []bool) {
	for _, cpu := range s {
		for uint(len(bits)) <= cpu {
			bits = append(bits, false)
		}
		bits[cpu] = true
	}
	return bits
}
