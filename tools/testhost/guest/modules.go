package guest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// modules are the drivers that the guest carries, less their dependencies,
// which are found. It loads those whose hardware it has, and the file systems
// when something is mounted.
var modules = []string{
	"button", "evdev", // the power button
	"virtio_pci", "virtio_blk", "virtio_scsi", "virtio_net", "virtio_console",
	"virtio_balloon", "virtio_rng", "virtio_mem", "virtio_input", "virtio_pmem",
	"vmw_vsock_virtio_transport",
	"ata_piix", "ahci", "nvme", "sd_mod", "sr_mod", "floppy",
	"e1000", "e1000e", "8139cp", "igb",
	"xhci_pci", "ehci_pci", "uhci_hcd", "usb_storage", "uas", "usbhid", "hid_generic",
	"i6300esb", "iTCO_wdt", "pvpanic_pci", "qemu_fw_cfg",
	"isofs", "nls_utf8", "nls_iso8859_1", "vfat", "nls_cp437", "nls_ascii",
	"ext4", "crc32c_generic", "virtiofs", "9p", "9pnet_virtio", "overlay",
}

// module is one driver file, as its own .modinfo section describes it.
type module struct {
	name, path string
	depends    []string
	softdeps   []string
	aliases    []string
}

// moduleIndex maps every driver below dir, by name with underscores, to its
// file.
func moduleIndex(dir string) (map[string]string, error) {
	index := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		base, _, isModule := strings.Cut(d.Name(), ".ko")
		if isModule {
			index[moduleName(base)] = path
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list kernel modules: %w", err)
	}
	if len(index) == 0 {
		return nil, fmt.Errorf("list kernel modules: none below %s", dir)
	}
	return index, nil
}

func moduleName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// closure returns the wanted modules and all they depend on, dependencies
// first. A wanted module that this kernel has built in, or lacks, is left out;
// a dependency that is missing is an error.
func closure(wanted []string, index map[string]string, load func(path string) (module, error)) ([]module, error) {
	var out []module
	done := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		path, ok := index[name]
		if !ok {
			return fmt.Errorf("kernel module %s: not in the package", name)
		}
		m, err := load(path)
		if err != nil {
			return fmt.Errorf("kernel module %s: %w", name, err)
		}
		m.name, m.path = name, path
		for _, dep := range m.depends {
			if err := visit(dep); err != nil {
				return fmt.Errorf("%s depends on it: %w", name, err)
			}
		}
		for _, dep := range m.softdeps {
			if _, ok := index[dep]; ok {
				if err := visit(dep); err != nil {
					return err
				}
			}
		}
		out = append(out, m)
		return nil
	}
	for _, name := range wanted {
		if _, ok := index[name]; !ok {
			continue
		}
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseModinfo reads dependencies and aliases out of a driver.
func parseModinfo(data []byte) (module, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return module{}, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return module{}, fmt.Errorf("no .modinfo section")
	}
	info, err := section.Data()
	if err != nil {
		return module{}, err
	}
	var m module
	for _, entry := range strings.Split(string(info), "\x00") {
		key, value, _ := strings.Cut(entry, "=")
		switch key {
		case "depends":
			for _, d := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
				m.depends = append(m.depends, moduleName(d))
			}
		case "softdep": // "pre: crc32c" and the like
			for _, d := range strings.Fields(value) {
				if !strings.HasSuffix(d, ":") {
					m.softdeps = append(m.softdeps, moduleName(d))
				}
			}
		case "alias":
			m.aliases = append(m.aliases, value)
		}
	}
	slices.Sort(m.aliases)
	return m, nil
}

// depFile and aliasFile are what depmod would write for these modules alone.
func depFile(mods []module) []byte {
	byName := map[string]module{}
	for _, m := range mods {
		byName[m.name] = m
	}
	var b bytes.Buffer
	for _, m := range mods {
		fmt.Fprintf(&b, "%s.ko:", m.name)
		for _, d := range allDependencies(m, byName) {
			fmt.Fprintf(&b, " %s.ko", d)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// allDependencies lists direct ones first: modprobe loads from the end.
func allDependencies(m module, byName map[string]module) []string {
	var out []string
	for queue := slices.Clone(m.depends); len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		out = slices.DeleteFunc(out, func(s string) bool { return s == d })
		out = append(out, d)
		queue = append(queue, byName[d].depends...)
	}
	return out
}

func aliasFile(mods []module) []byte {
	var b bytes.Buffer
	for _, m := range mods {
		for _, a := range m.aliases {
			fmt.Fprintf(&b, "alias %s %s\n", a, m.name)
		}
	}
	return b.Bytes()
}
