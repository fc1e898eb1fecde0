// Package guest builds the tiny machine that runs on a throwaway host: Debian's
// kernel, a static busybox and the QEMU guest agent in an initramfs of a few
// megabytes, and a small disk image that boots the same from disk. It lives in
// RAM, is ready within seconds under emulation, and is there to be asked one
// question: was it touched?
//
// So it answers all the time. Every second it prints one line on its first
// serial port, GUEST followed by a JSON object: uptime and boot id (a restart
// changes both), hostname, CPUs, memory, disks with their sizes, network cards
// with their addresses and links, and the digests of the files on its CDs and of
// what it has by fw_cfg.
// It powers off on the power button, brings hot-plugged CPUs, memory and
// network cards up by itself, asks for an address by DHCP on every card, takes
// its hostname from a NoCloud seed (a CD with the label cidata), and runs the
// guest agent when the machine has its channel.
//
// Words on the kernel's command line change how it behaves: guest.nopower=1
// ignores the power button and the agent's shutdown, guest.mountcd=1 keeps the
// CDs mounted and their trays locked, guest.interval=N reports every N seconds.
//
// Everything comes from Debian packages that are downloaded and unpacked, not
// installed. The result is cached for the user and built once for all.
package guest

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
)

// Image is the guest, ready to boot. All are absolute paths of files that every
// run of this version shares: read them, never write them.
type Image struct {
	// Kernel is for <kernel>: it needs no unpacking, which takes two to three
	// seconds when emulated. It boots from BIOS only.
	Kernel string
	// BzImage is the same kernel as Debian ships it; it boots under UEFI too.
	BzImage string
	// Initrd is for <initrd>, with either kernel. It is not compressed, which
	// saves another half second.
	Initrd string
	// Disk is a qcow2 image that boots by itself, from BIOS and from UEFI with
	// or without Secure Boot. UEFI machines need 384 MiB of memory for it; BIOS
	// machines, like those that boot Kernel, 128.
	Disk string
	// Cmdline is for <cmdline>, with either kernel.
	Cmdline string
}

// cmdline sends the console to the serial port and keeps the kernel from
// talking in between: a report must stay one line.
// Mitigations and relocation cost an emulated processor a fifth of the boot. A
// machine that can grow would set 64 MiB aside for devices that can't reach all
// memory, which none of ours is. Disks are there once their driver is.
const cmdline = "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off nokaslr no_timer_check swiotlb=noforce scsi_mod.scan=sync"

//go:embed rootfs
var rootfs embed.FS

// recipe changes whenever the same sources would give another image.
const recipe = "2"

// version is a digest of all that the image is made from, except Debian's
// packages: a newer kernel is no reason to build again.
func version() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n%s\n", recipe, cmdline, kernelPackage, bootConfig, grubConfig)
	fmt.Fprintf(h, "%s %s\n", modules, bootPackages)
	err := fs.WalkDir(rootfs, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := rootfs.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// CacheDir is where the image of this version is, or will be, kept.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	v, err := version()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(base, "terraform-provider-libvirt", "testhost-"+v), nil
}

// imageIn names the files of an image that is kept in dir.
func imageIn(dir string) Image {
	return Image{
		Kernel:  filepath.Join(dir, "kernel"),
		BzImage: filepath.Join(dir, "vmlinuz"),
		Initrd:  filepath.Join(dir, "initrd"),
		Disk:    filepath.Join(dir, "guest.qcow2"),
		Cmdline: cmdline,
	}
}

// Ensure returns the image, and builds it if it is not cached. The directory
// appears complete or not at all; runs that want it at the same time wait for
// the one that builds.
func Ensure(ctx context.Context, log io.Writer) (Image, error) {
	dir, err := CacheDir()
	if err != nil {
		return Image{}, err
	}
	if use(dir) {
		return imageIn(dir), nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	defer unlock()
	if use(dir) {
		return imageIn(dir), nil
	}
	// Nobody else uses this directory: we have the lock. What an interrupted
	// build left in it goes.
	tmp := dir + ".building"
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	defer os.RemoveAll(tmp)
	b := &builder{work: filepath.Join(tmp, "work"), out: filepath.Join(tmp, "out"),
		archive: &debian.Archive{Log: log}, log: log}
	if err := b.build(ctx); err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	if err := os.Rename(b.out, dir); err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	forgetOld(filepath.Dir(dir), time.Now().Add(-keep))
	return imageIn(dir), nil
}

// keep is how long an image of another version is kept after its last use.
const keep = 30 * 24 * time.Hour

// use marks an image as used now; false if there is none.
func use(dir string) bool {
	now := time.Now()
	if os.Chtimes(dir, now, now) == nil {
		return true
	}
	_, err := os.Stat(dir) // somebody else's, perhaps
	return err == nil
}

// forgetOld removes images that were last used before a time.
func forgetOld(cache string, before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(cache, "testhost-*"))
	for _, dir := range dirs {
		if st, err := os.Stat(dir); err == nil && st.IsDir() && st.ModTime().Before(before) {
			os.RemoveAll(dir)
		}
	}
}

// lock takes an exclusive lock that dies with this process. The file is removed
// by whoever held it, so a lock only counts on the file that is still there.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && isStill(f, path) {
			return func() { os.Remove(path); f.Close() }, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		}
	}
}

// isStill tells whether path names the open file.
func isStill(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(ours, now)
}

// Cached returns the image that is kept in dir, or nothing if there is none.
func Cached(dir string) Image {
	if _, err := os.Stat(dir); err != nil {
		return Image{}
	}
	return imageIn(dir)
}
