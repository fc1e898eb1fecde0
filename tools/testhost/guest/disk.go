package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bootPackages hold the boot loaders, and the programs that write their file
// system without mounting anything. For UEFI they are Debian's signed ones:
// where libvirt chooses the firmware, it is one that enforces Secure Boot.
var bootPackages = []string{"syslinux", "syslinux-common", "shim-signed", "grub-efi-amd64-signed", "mtools"}

// bootConfig configures the loader for BIOS and grubConfig that for UEFI; %s is
// the command line.
const bootConfig = `DEFAULT guest
PROMPT 0
TIMEOUT 0
LABEL guest
  LINUX /vmlinuz
  INITRD /initrd.gz
  APPEND %s
`

const grubConfig = `linux /vmlinuz %s
initrd /initrd.gz
boot
`

const (
	sector         = 512
	partitionStart = 2048 // sectors: where partitions begin today
	diskSectors    = 64 << 20 / sector
)

// writeDisk writes a disk of 64 MiB with one FAT partition, which BIOS starts
// through syslinux and UEFI through \EFI\BOOT\BOOTX64.EFI (the signed shim, which
// starts GRUB beside it), as a compressed qcow2.
func (b *builder) writeDisk(ctx context.Context, image Image) error {
	part := filepath.Join(b.work, "part.img")
	if err := sparseFile(part, (diskSectors-partitionStart)*sector); err != nil {
		return err
	}
	mtool := func(name string, args ...string) error {
		_, err := b.tool(ctx, nil, "usr/bin/mtools", append([]string{"-c", name, "-i", part}, args...)...)
		return err
	}
	// The partition's offset on the disk must be in its boot sector (-H).
	err := mtool("mformat", "-h", "255", "-s", "63", "-H", fmt.Sprint(partitionStart),
		"-T", fmt.Sprint(diskSectors-partitionStart), "-v", "GUEST", "-N", "64746673", "::")
	if err != nil {
		return err
	}
	bios, efi := filepath.Join(b.work, "syslinux.cfg"), filepath.Join(b.work, "grub.cfg")
	for path, config := range map[string]string{bios: bootConfig, efi: grubConfig} {
		if err := os.WriteFile(path, fmt.Appendf(nil, config, image.Cmdline), 0o644); err != nil {
			return err
		}
	}
	if err := mtool("mmd", "::/EFI", "::/EFI/BOOT", "::/EFI/debian"); err != nil {
		return err
	}
	for _, f := range [][2]string{
		{image.BzImage, "::/vmlinuz"},
		{filepath.Join(b.work, "initrd.gz"), "::/initrd.gz"},
		{bios, "::/syslinux.cfg"},
		{filepath.Join(b.work, "usr/lib/shim/shimx64.efi.signed"), "::/EFI/BOOT/BOOTX64.EFI"},
		{filepath.Join(b.work, "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"), "::/EFI/BOOT/grubx64.efi"},
		{efi, "::/EFI/debian/grub.cfg"}, // where Debian's GRUB looks
	} {
		if err := mtool("mcopy", f[0], f[1]); err != nil {
			return err
		}
	}
	// syslinux writes its boot sector and its own file through mtools.
	if _, err := b.tool(ctx, nil, "usr/bin/syslinux", "--install", part); err != nil {
		return err
	}
	disk := filepath.Join(b.work, "disk.img")
	if err := b.joinDisk(disk, part); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "qemu-img", "convert", "-c", "-f", "raw", "-O", "qcow2", disk, image.Disk).CombinedOutput()
	if err != nil {
		return fmt.Errorf("qemu-img convert: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// joinDisk puts a master boot record in front of the partition.
func (b *builder) joinDisk(disk, part string) error {
	code, err := os.ReadFile(filepath.Join(b.work, "usr/lib/syslinux/mbr/mbr.bin"))
	if err != nil {
		return err
	}
	mbr, err := masterBootRecord(code, partitionStart, diskSectors-partitionStart)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(part)
	if err != nil {
		return err
	}
	f, err := os.Create(disk)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(mbr, 0); err != nil {
		return err
	}
	if _, err := f.WriteAt(data, partitionStart*sector); err != nil {
		return err
	}
	return f.Close()
}

// masterBootRecord makes a sector with one active partition; sizes in sectors.
// Its type, 0xef, is the EFI system partition: BIOS doesn't care, UEFI does.
func masterBootRecord(code []byte, start, size uint32) ([]byte, error) {
	if len(code) > 440 {
		return nil, fmt.Errorf("boot code of %d bytes is larger than 440", len(code))
	}
	mbr := make([]byte, sector)
	copy(mbr, code)
	entry := mbr[446:462]
	entry[0] = 0x80
	copy(entry[1:4], []byte{0xfe, 0xff, 0xff}) // beyond what CHS can say
	entry[4] = 0xef
	copy(entry[5:8], []byte{0xfe, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], start)
	binary.LittleEndian.PutUint32(entry[12:], size)
	mbr[510], mbr[511] = 0x55, 0xaa
	return mbr, nil
}

func sparseFile(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// writeSparse writes a file without its runs of zeros: a kernel has megabytes
// of them.
func writeSparse(path string, data []byte) error {
	if err := sparseFile(path, int64(len(data))); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	const block = 64 << 10
	zeros := make([]byte, block)
	for at := 0; at < len(data); at += block {
		part := data[at:min(at+block, len(data))]
		if bytes.Equal(part, zeros[:len(part)]) {
			continue
		}
		if _, err := f.WriteAt(part, int64(at)); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
