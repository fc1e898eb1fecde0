package guest

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/tools/testhost/debian"
)

// kernelPackage is the metapackage whose kernel boots. Debian's cloud kernel
// would be smaller, but it cannot see what people's machines have: SATA drives,
// USB, Intel cards.
const kernelPackage = "linux-image-amd64"

// builder makes one image in out, from packages unpacked in work.
type builder struct {
	work, out string
	archive   *debian.Archive
	log       io.Writer
}

func (b *builder) logf(format string, args ...any) {
	if b.log != nil {
		fmt.Fprintf(b.log, format+"\n", args...)
	}
}

func (b *builder) build(ctx context.Context) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("only amd64 is supported, this is %s", runtime.GOARCH)
	}
	began := time.Now()
	b.logf("building the guest from Debian packages (once)")
	for _, dir := range []string{b.work, b.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	kernel, err := b.archive.Resolve(ctx, kernelPackage, "linux-image-")
	if err != nil {
		return err
	}
	err = b.archive.Unpack(ctx, b.work, append([]string{kernel, "busybox-static", "qemu-guest-agent", "xz-utils"}, bootPackages...)...)
	if err != nil {
		return err
	}
	if err := b.writeKernels(ctx); err != nil {
		return err
	}
	initrd, err := b.initramfs(ctx, strings.TrimPrefix(kernel, "linux-image-"))
	if err != nil {
		return err
	}
	image := imageIn(b.out)
	if err := os.WriteFile(image.Initrd, initrd, 0o644); err != nil {
		return err
	}
	// Reading takes longer than unpacking when a BIOS does it.
	packed, err := compress(initrd)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.work, "initrd.gz"), packed, 0o644); err != nil {
		return err
	}
	if err := b.writeDisk(ctx, image); err != nil {
		return fmt.Errorf("write the disk image: %w", err)
	}
	b.logf("built the guest in %.1f s", time.Since(began).Seconds())
	return nil
}

// writeKernels writes Debian's kernel as it is, and unpacked.
func (b *builder) writeKernels(ctx context.Context) error {
	found, _ := filepath.Glob(filepath.Join(b.work, "boot/vmlinuz-*"))
	if len(found) != 1 {
		return fmt.Errorf("find the kernel: %d files match boot/vmlinuz-*", len(found))
	}
	bz, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	payload, err := bzImagePayload(bz)
	if err != nil {
		return fmt.Errorf("unpack the kernel: %w", err)
	}
	vmlinux := payload
	if !bytes.HasPrefix(payload, []byte(elf.ELFMAG)) {
		if vmlinux, err = b.unxz(ctx, payload); err != nil {
			return fmt.Errorf("unpack the kernel: %w", err)
		}
	}
	flat, err := flatKernel(bz, vmlinux)
	if err != nil {
		return fmt.Errorf("unpack the kernel: %w", err)
	}
	image := imageIn(b.out)
	if err := writeSparse(image.Kernel, flat); err != nil {
		return err
	}
	return os.WriteFile(image.BzImage, bz, 0o644)
}

// bzImagePayload cuts the compressed kernel out of a bzImage, by the fields of
// the x86 boot protocol (2.08 and later).
func bzImagePayload(bz []byte) ([]byte, error) {
	if len(bz) < 0x250 || string(bz[0x202:0x206]) != "HdrS" {
		return nil, fmt.Errorf("not a bzImage")
	}
	if v := binary.LittleEndian.Uint16(bz[0x206:]); v < 0x208 {
		return nil, fmt.Errorf("boot protocol %#x is too old", v)
	}
	setup := (int64(bz[0x1f1]) + 1) * 512
	start := setup + int64(binary.LittleEndian.Uint32(bz[0x248:]))
	end := start + int64(binary.LittleEndian.Uint32(bz[0x24c:]))
	if end > int64(len(bz)) || end-start < 8 {
		return nil, fmt.Errorf("payload %d..%d lies outside the file of %d bytes", start, end, len(bz))
	}
	return bz[start:end], nil
}

// unxz decompresses one stream and ignores what follows it: a bzImage appends
// the size. The program comes from the unpacked package, busybox's can't do it.
func (b *builder) unxz(ctx context.Context, data []byte) ([]byte, error) {
	return b.tool(ctx, data, "usr/bin/xz", "--decompress", "--stdout", "--single-stream")
}

// tool runs a program out of the unpacked packages.
func (b *builder) tool(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.work, name), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(b.work, "usr/bin")+":"+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// initramfs packs the guest's root file system.
func (b *builder) initramfs(ctx context.Context, release string) ([]byte, error) {
	files := map[string][]byte{}
	execs := map[string]bool{}
	err := fs.WalkDir(rootfs, "rootfs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := rootfs.ReadFile(name)
		name = strings.TrimPrefix(name, "rootfs/")
		files[name], execs[name] = data, bytes.HasPrefix(data, []byte("#!"))
		return err
	})
	if err != nil {
		return nil, err
	}
	agent := filepath.Join(b.work, "usr/sbin/qemu-ga")
	libs, err := libraries(agent, b.work, "/")
	if err != nil {
		return nil, err
	}
	copies := map[string]string{"bin/busybox": filepath.Join(b.work, "bin/busybox"), "usr/sbin/qemu-ga": agent}
	if _, err := os.Stat(copies["bin/busybox"]); err != nil { // merged /usr
		copies["bin/busybox"] = filepath.Join(b.work, "usr/bin/busybox")
	}
	for _, lib := range libs {
		copies[path.Join("lib64", filepath.Base(lib))] = lib
	}
	for name, from := range copies {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[name], execs[name] = data, true
	}
	if err := b.addModules(ctx, files, release); err != nil {
		return nil, err
	}
	return pack(files, execs)
}

// addModules adds the drivers, flat in one directory, and the tables with which
// modprobe finds them.
func (b *builder) addModules(ctx context.Context, files map[string][]byte, release string) error {
	found, _ := filepath.Glob(filepath.Join(b.work, "*/modules/"+release))
	if usr, _ := filepath.Glob(filepath.Join(b.work, "usr/*/modules/"+release)); len(found) == 0 {
		found = usr
	}
	if len(found) == 0 {
		return fmt.Errorf("find the kernel's modules: no directory modules/%s", release)
	}
	index, err := moduleIndex(found[0])
	if err != nil {
		return err
	}
	contents := map[string][]byte{}
	mods, err := closure(modules, index, func(file string) (module, error) {
		data, err := os.ReadFile(file)
		if err == nil && strings.HasSuffix(file, ".xz") {
			data, err = b.unxz(ctx, data)
		}
		if err != nil {
			return module{}, err
		}
		contents[file] = data
		return parseModinfo(data)
	})
	if err != nil {
		return err
	}
	dir := path.Join("lib/modules", release)
	for _, m := range mods {
		files[path.Join(dir, m.name+".ko")] = contents[m.path]
	}
	files[path.Join(dir, "modules.dep")] = depFile(mods)
	files[path.Join(dir, "modules.alias")] = aliasFile(mods)
	return nil
}

// pack writes the files, with their directories first, in a fixed order.
func pack(files map[string][]byte, execs map[string]bool) ([]byte, error) {
	dirs := map[string]bool{}
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "mnt", "root", "bin"} {
		dirs[d] = true
	}
	var names []string
	for name := range files {
		names = append(names, name)
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	var sorted []string
	for d := range dirs {
		sorted = append(sorted, d)
	}
	slices.Sort(sorted)
	slices.Sort(names)

	var out bytes.Buffer
	c := &cpioWriter{w: &out}
	for _, d := range sorted {
		c.add(d, modeDir|0o755, nil)
	}
	c.add("lib/x86_64-linux-gnu", modeLink|0o777, []byte("/lib64"))
	for _, name := range names {
		mode := uint32(modeFile | 0o644)
		if execs[name] {
			mode = modeFile | 0o755
		}
		c.add(name, mode, files[name])
	}
	if err := c.close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
