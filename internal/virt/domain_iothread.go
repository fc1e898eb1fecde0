package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// AddIOThread adds an I/O thread. A number that is taken is ErrInvalidArg.
func (d *Domain) AddIOThread(ctx context.Context, id uint, side Affect) error {
	return d.call(ctx, "add an I/O thread to domain", true, func(dom *libvirt.Domain) error {
		return dom.AddIOThread(id, libvirt.DomainModificationImpact(side))
	})
}

// DelIOThread removes one, with its pin. One that a disk uses, or that is not
// there, is ErrInvalidArg.
func (d *Domain) DelIOThread(ctx context.Context, id uint, side Affect) error {
	return d.call(ctx, "remove an I/O thread from domain", true, func(dom *libvirt.Domain) error {
		return dom.DelIOThread(id, libvirt.DomainModificationImpact(side))
	})
}

// IOThreads returns where each I/O thread may run, by number.
func (d *Domain) IOThreads(ctx context.Context, side Affect) (threads map[uint]CPUSet, err error) {
	err = d.call(ctx, "read the I/O threads of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.GetIOThreadInfo(libvirt.DomainModificationImpact(side))
		threads = map[uint]CPUSet{}
		for _, one := range all {
			threads[one.IOThreadID] = cpuSet(one.CpuMap)
		}
		return err
	})
	return threads, err
}

var ioThreadFields = fields{
	"poll_max_ns": "PollMaxNs", "poll_grow": "PollGrow", "poll_shrink": "PollShrink",
	"thread_pool_min": "ThreadPoolMin", "thread_pool_max": "ThreadPoolMax",
}

// SetIOThreadParams sets parameters of an I/O thread: the polling
// (poll_max_ns, poll_grow, poll_shrink), and how many threads QEMU may add to it
// (thread_pool_min, thread_pool_max; libvirt 8.5). Polling is not kept: it is
// ErrUnsupported with a definition, and the guest's XML may not show it. It
// needs libvirt 4.10.
func (d *Domain) SetIOThreadParams(ctx context.Context, id uint, p Parameters, side Affect) error {
	since, what := Version(4010000), "changing an I/O thread"
	for name := range p {
		if name == "thread_pool_min" || name == "thread_pool_max" {
			since, what = 8005000, "changing the thread pool of an I/O thread"
		}
	}
	return d.since(ctx, "set parameters of an I/O thread of domain", true, since, what, func(dom *libvirt.Domain) error {
		var into libvirt.DomainSetIOThreadParams
		if err := ioThreadFields.pack(p, &into); err != nil {
			return err
		}
		return dom.SetIOThreadParams(id, &into, libvirt.DomainModificationImpact(side))
	})
}
