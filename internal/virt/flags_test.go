package virt

import (
	"strings"
	"testing"

	"libvirt.org/go/libvirt"
)

func TestUndefineFlagsByVersion(t *testing.T) {
	everything := UndefineFlags{ManagedSave: true, SnapshotsMetadata: true, CheckpointsMetadata: true, NVRAM: true, TPM: true}
	const old = libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA | libvirt.DOMAIN_UNDEFINE_NVRAM
	for name, c := range map[string]struct {
		flags  UndefineFlags
		daemon Version
		want   libvirt.DomainUndefineFlagsValues
		err    string
	}{
		"none":                          {UndefineFlags{}, 9000000, 0, ""},
		"all, new":                      {everything, 8009000, old | libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.DOMAIN_UNDEFINE_TPM, ""},
		"an old one removes a TPM":      {everything, 8008000, old | libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA, ""},
		"an old one has no checkpoints": {everything, 5005000, old, ""},
		"keep, new":                     {UndefineFlags{KeepNVRAM: true, KeepTPM: true}, 8009000, libvirt.DOMAIN_UNDEFINE_KEEP_NVRAM | libvirt.DOMAIN_UNDEFINE_KEEP_TPM, ""},
		"an old one cannot keep a TPM":  {UndefineFlags{KeepTPM: true}, 8008000, 0, "keeping the state of the TPM needs libvirt 8.9.0 on the host, which has 8.8.0"},
		"an old one cannot keep NVRAM":  {UndefineFlags{KeepNVRAM: true}, 2002000, 0, "needs libvirt 2.3.0"},
	} {
		got, err := c.flags.bits(c.daemon)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %b, %v; want %b, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestStartFlagsByVersion(t *testing.T) {
	got, err := StartFlags{Paused: true, ForceBoot: true}.bits(1000000)
	if err != nil || got != libvirt.DOMAIN_START_PAUSED|libvirt.DOMAIN_START_FORCE_BOOT {
		t.Errorf("%b, %v", got, err)
	}
	if _, err := (StartFlags{ResetNVRAM: true}).bits(8000000); err == nil || !strings.Contains(err.Error(), "8.1.0") {
		t.Errorf("got %v", err)
	}
	if got, err := (StartFlags{ResetNVRAM: true}).bits(8001000); err != nil || got != libvirt.DOMAIN_START_RESET_NVRAM {
		t.Errorf("%b, %v", got, err)
	}
}
