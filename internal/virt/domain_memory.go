package virt

import (
	"context"
	"fmt"

	"libvirt.org/go/libvirt"
)

// SetMemory sets the balloon, in KiB: what the guest may use of its memory. On
// the live side libvirt asks the guest and does not wait, and a guest without
// the balloon's driver never follows. What it has is MemoryStats.Balloon;
// currentMemory of the live XML is up to a second behind that. More than the
// maximum is ErrInvalidArg; a live call is ErrOperationInvalid where the domain
// has no balloon or is off.
func (d *Domain) SetMemory(ctx context.Context, kib int64, side Affect) error {
	return d.call(ctx, "set the balloon of domain", true, func(dom *libvirt.Domain) error {
		if kib < 0 { // libvirt would take it for 16 EiB
			return fmt.Errorf("a negative amount: %d KiB", kib)
		}
		return dom.SetMemoryFlags(uint64(kib), libvirt.DomainMemoryModFlags(side))
	})
}

// MemoryStats is what is known of a guest's memory, in KiB. What the guest has
// not told is nil; that of the balloon's driver comes after SetMemoryStatsPeriod.
type MemoryStats struct {
	Balloon     *uint64 // what the guest has now, asked of QEMU
	RSS         *uint64 // what QEMU takes of the host's memory
	Available   *uint64 // what the guest's system manages
	Unused      *uint64 // what it has free
	Usable      *uint64 // what it could give back without swapping
	DiskCaches  *uint64
	LastUpdate  *uint64 // when the guest told, in seconds since 1970; 0: never
	SwapIn      *uint64
	SwapOut     *uint64
	MajorFaults *uint64 // a count
	MinorFaults *uint64 // a count
}

// MemoryStats asks for them. A guest that is off is ErrOperationInvalid.
func (d *Domain) MemoryStats(ctx context.Context) (m MemoryStats, err error) {
	err = d.call(ctx, "read the memory statistics of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.MemoryStats(uint32(libvirt.DOMAIN_MEMORY_STAT_NR), 0)
		m = MemoryStats{}
		for _, s := range all {
			if field := m.field(libvirt.DomainMemoryStatTags(s.Tag)); field != nil {
				*field = &s.Val
			}
		}
		return err
	})
	return m, err
}

func (m *MemoryStats) field(tag libvirt.DomainMemoryStatTags) **uint64 {
	return map[libvirt.DomainMemoryStatTags]**uint64{
		libvirt.DOMAIN_MEMORY_STAT_ACTUAL_BALLOON: &m.Balloon, libvirt.DOMAIN_MEMORY_STAT_RSS: &m.RSS,
		libvirt.DOMAIN_MEMORY_STAT_AVAILABLE: &m.Available, libvirt.DOMAIN_MEMORY_STAT_UNUSED: &m.Unused,
		libvirt.DOMAIN_MEMORY_STAT_USABLE: &m.Usable, libvirt.DOMAIN_MEMORY_STAT_DISK_CACHES: &m.DiskCaches,
		libvirt.DOMAIN_MEMORY_STAT_LAST_UPDATE: &m.LastUpdate,
		libvirt.DOMAIN_MEMORY_STAT_SWAP_IN:     &m.SwapIn, libvirt.DOMAIN_MEMORY_STAT_SWAP_OUT: &m.SwapOut,
		libvirt.DOMAIN_MEMORY_STAT_MAJOR_FAULT: &m.MajorFaults, libvirt.DOMAIN_MEMORY_STAT_MINOR_FAULT: &m.MinorFaults,
	}[tag]
}

// SetMemoryStatsPeriod sets how often the guest tells of its memory, in
// seconds; 0 is never. Without a balloon the live side is ErrInternal.
func (d *Domain) SetMemoryStatsPeriod(ctx context.Context, seconds int, side Affect) error {
	return d.call(ctx, "set the period of memory statistics of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetMemoryStatsPeriod(seconds, libvirt.DomainMemoryModFlags(side))
	})
}
