package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// UndefineFlags say what goes with the definition. Where a domain has the thing
// and neither its flag nor the one that keeps it is set, libvirt refuses; a TPM's
// state goes.
type UndefineFlags struct {
	ManagedSave         bool // remove the saved guest too
	SnapshotsMetadata   bool // forget the snapshots; their files and the data in the disks stay
	CheckpointsMetadata bool
	NVRAM, KeepNVRAM    bool // remove the variables file, or keep it
	TPM, KeepTPM        bool // likewise the state of the TPM
}

// bits are the flags that a libvirt of that version takes.
func (f UndefineFlags) bits(daemon Version) (bits libvirt.DomainUndefineFlagsValues, err error) {
	for _, flag := range []struct {
		on    bool
		bit   libvirt.DomainUndefineFlagsValues
		since Version
		what  string // "" for what an older libvirt does without being told
	}{
		{f.ManagedSave, libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE, 0, ""},
		{f.SnapshotsMetadata, libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA, 0, ""},
		{f.CheckpointsMetadata, libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA, 5006000, ""}, // before, there were none
		{f.NVRAM, libvirt.DOMAIN_UNDEFINE_NVRAM, 1002009, "removing the NVRAM file"},
		{f.KeepNVRAM, libvirt.DOMAIN_UNDEFINE_KEEP_NVRAM, 2003000, "keeping the NVRAM file"},
		{f.TPM, libvirt.DOMAIN_UNDEFINE_TPM, 8009000, ""},
		{f.KeepTPM, libvirt.DOMAIN_UNDEFINE_KEEP_TPM, 8009000, "keeping the state of the TPM"},
	} {
		switch {
		case !flag.on:
		case daemon >= flag.since:
			bits |= flag.bit
		case flag.what != "":
			return 0, tooOld(daemon, flag.since, flag.what)
		}
	}
	return bits, nil
}

// Undefine removes the definition. A running guest goes on and has none then: it
// is transient, and gone when it stops. Disks are not touched.
func (d *Domain) Undefine(ctx context.Context, flags UndefineFlags) error {
	return d.host.call(ctx, Call{"undefine domain", d.name, true}, func(s *session) error {
		version, err := s.version()
		if err != nil {
			return err
		}
		bits, err := flags.bits(version)
		if err != nil {
			return err
		}
		return d.on(func(dom *libvirt.Domain) error { return dom.UndefineFlags(bits) })(s)
	})
}
