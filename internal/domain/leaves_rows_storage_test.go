package domain_test

import "strconv"

// storageLeaves are disks, what they are attached to, and shared directories.
func storageLeaves(files leafFiles) []leafMachine {
	return append(append(diskLeaves(files), limitLeaves(files)...), attachmentLeaves(files)...)
}

// imageDisk are the settings of a disk with an image.
func imageDisk(key, dev, bus, image, format string) []setting {
	at := "devices.disks[" + key + "]."
	return []setting{
		{at + "source.file.file", strconv.Quote(image)}, {at + "driver.name", `"qemu"`}, {at + "driver.type", strconv.Quote(format)},
		{at + "target.dev", strconv.Quote(dev)}, {at + "target.bus", strconv.Quote(bus)},
	}
}

func settings(all ...[]setting) (out []setting) {
	for _, s := range all {
		out = append(out, s...)
	}
	return out
}

func diskLeaves(files leafFiles) []leafMachine {
	return []leafMachine{
		{
			name: "disks",
			base: settings(
				imageDisk("a", "vda", "virtio", files.image("a.raw", "raw"), "raw"),
				imageDisk("b", "vdb", "virtio", files.image("b.raw", "raw"), "raw"),
				imageDisk("c", "vdc", "virtio", files.image("c.qcow2", "qcow2"), "qcow2"),
				imageDisk("d", "sda", "scsi", files.image("d.raw", "raw"), "raw"),
				imageDisk("e", "sdb", "sata", files.image("e.raw", "raw"), "raw"),
				imageDisk("f", "sdc", "usb", files.image("f.raw", "raw"), "raw"),
				[]setting{
					{"io_threads", "1"},
					{"devices.controllers[a].type", `"scsi"`}, {"devices.controllers[a].index", "0"}, {"devices.controllers[a].model", `"virtio-scsi"`},
				},
			),
			groups: []leafGroup{
				below("devices.disks[a]", "devices/disk{target/@dev=vda}",
					leaf{attr: "driver.cache", value: `"none"`, at: "driver/@cache"},
					leaf{attr: "driver.io", value: `"threads"`, at: "driver/@io"},
					leaf{attr: "driver.discard", value: `"unmap"`, at: "driver/@discard"},
					leaf{attr: "driver.detect_zeros", value: `"unmap"`, at: "driver/@detect_zeroes"},
					leaf{attr: "driver.error_policy", value: `"enospace"`, at: "driver/@error_policy"},
					leaf{attr: "driver.rerror_policy", value: `"ignore"`, at: "driver/@rerror_policy"},
					leaf{attr: "driver.io_event_fd", value: `"on"`, at: "driver/@ioeventfd"},
					leaf{attr: "driver.event_idx", value: `"off"`, at: "driver/@event_idx"},
					leaf{attr: "driver.queues", value: "2", at: "driver/@queues"},
					leaf{attr: "driver.queue_size", value: "256", at: "driver/@queue_size"},
					leaf{attr: "driver.io_thread", value: "1", at: "driver/@iothread"},
					leaf{attr: "driver.packed", value: `"on"`, at: "driver/@packed"},
					leaf{attr: "driver.iommu", value: `"on"`, at: "driver/@iommu"},
					leaf{attr: "driver.ats", value: `"on"`, at: "driver/@ats"},
					leaf{attr: "driver.page_per_vq", value: `"on"`, at: "driver/@page_per_vq"},
					leaf{attr: "serial", value: `"LEAF-A"`, at: "serial", kept: true},
					leaf{attr: "boot.order", value: "2", at: "boot/@order"},
					leaf{attr: "block_io.logical_block_size", value: "512", at: "blockio/@logical_block_size"},
					leaf{attr: "block_io.physical_block_size", value: "4096", at: "blockio/@physical_block_size"},
				),
				below("devices.disks[b]", "devices/disk{target/@dev=vdb}",
					leaf{attr: "read_only", value: "true", at: "readonly"},
					leaf{attr: "driver.copy_on_read", value: `"off"`, at: "driver/@copy_on_read"},
					leaf{attr: "alias.name", value: `"ua-leaf-b"`, at: "alias/@name", kept: true},
					leaf{attr: "source.startup_policy", value: `"mandatory"`, at: "source/@startupPolicy"},
				),
				below("devices.disks[c]", "devices/disk{target/@dev=vdc}",
					leaf{attr: "snapshot", value: `"no"`, at: "@snapshot"},
					leaf{attr: "driver.metadata_cache.max_size.value", value: "262144", at: "driver/metadata_cache/max_size"},
					leaf{attr: "driver.metadata_cache.max_size.unit", value: `"bytes"`, at: "driver/metadata_cache/max_size/@unit"},
				),
				below("devices.disks[d]", "devices/disk{target/@dev=sda}",
					leaf{attr: "vendor", value: `"LEAFS"`, at: "vendor"},
					leaf{attr: "product", value: `"LEAFDISK"`, at: "product"},
					leaf{attr: "wwn", value: `"5000c50015ea71aa"`, at: "wwn", kept: true},
					leaf{attr: "target.rotation_rate", value: "7200", at: "target/@rotation_rate"},
					leaf{attr: "shareable", value: "true", at: "shareable"},
					leaf{attr: "driver.cache", value: `"none"`, at: "driver/@cache"},
				),
				below("devices.disks[e]", "devices/disk{target/@dev=sdb}",
					leaf{attr: "target.rotation_rate", value: "1", at: "target/@rotation_rate"},
				),
				below("devices.disks[f]", "devices/disk{target/@dev=sdc}",
					leaf{attr: "target.removable", value: `"on"`, at: "target/@removable"},
				),
				below("devices.disks[g]", "devices/disk{target/@dev=sdd}",
					leaf{attr: "device", value: `"cdrom"`, at: "@device"},
					leaf{attr: "target.dev", value: `"sdd"`, at: "target/@dev"},
					leaf{attr: "target.bus", value: `"sata"`, at: "target/@bus"},
					leaf{attr: "target.tray", value: `"open"`, at: "target/@tray"},
					leaf{attr: "source.file.file", value: strconv.Quote(files.file("g.iso", "medium")), at: "source/@file"},
					leaf{attr: "source.startup_policy", value: `"optional"`, at: "source/@startupPolicy"},
				),
				below("devices.controllers[a].driver", "devices/controller{@type=scsi}/driver",
					leaf{attr: "queues", value: "2", at: "@queues"},
					leaf{attr: "cmd_per_lun", value: "50", at: "@cmd_per_lun"},
					leaf{attr: "max_sectors", value: "512", at: "@max_sectors"},
					leaf{attr: "io_event_fd", value: `"on"`, at: "@ioeventfd"},
					leaf{attr: "io_thread", value: "1", at: "@iothread"},
				),
			},
		},
		{
			name: "transient",
			base: imageDisk("a", "vda", "virtio", files.image("t.qcow2", "qcow2"), "qcow2"),
			groups: []leafGroup{
				below("devices.disks[a]", "devices/disk",
					leaf{attr: "transient.share_backing", value: `"yes"`, at: "transient/@shareBacking"},
				),
			},
		},
		{
			name: "old",
			base: settings(
				[]setting{{"os.type_machine", `"pc"`}},
				imageDisk("a", "hda", "ide", files.image("h.raw", "raw"), "raw"),
				imageDisk("b", "vda", "virtio", files.image("v.raw", "raw"), "raw"),
			),
			groups: []leafGroup{
				below("devices.disks[a].geometry", "devices/disk/geometry",
					leaf{attr: "cylinders", value: "2", at: "@cyls"},
					leaf{attr: "headers", value: "16", at: "@heads"},
					leaf{attr: "sectors", value: "63", at: "@secs"},
					leaf{attr: "trans", value: `"lba"`, at: "@trans"},
				),
				below("devices.disks[b]", "devices/disk{target/@dev=vda}",
					leaf{attr: "model", value: `"virtio-transitional"`, at: "@model"},
					leaf{attr: "acpi.index", value: "7", at: "acpi/@index"},
				),
				below("devices.disks[c]", "devices/disk{target/@dev=fda}",
					leaf{attr: "device", value: `"floppy"`, at: "@device"},
					leaf{attr: "target.dev", value: `"fda"`, at: "target/@dev"},
					leaf{attr: "target.bus", value: `"fdc"`, at: "target/@bus"},
					leaf{attr: "source.file.file", value: strconv.Quote(files.image("floppy", "raw")), at: "source/@file"},
					leaf{attr: "driver.type", value: `"raw"`, at: "driver/@type"},
					leaf{attr: "driver.name", value: `"qemu"`, at: "driver/@name"},
				),
			},
		},
		{
			name: "sources",
			groups: []leafGroup{
				below("devices.disks[a]", "devices/disk{target/@dev=vda}",
					leaf{attr: "source.volume.pool", value: `"default"`, at: "source/@pool"},
					leaf{attr: "source.volume.volume", value: strconv.Quote(files.volume("leaf")), at: "source/@volume"},
					leaf{attr: "target.dev", value: `"vda"`, at: "target/@dev"},
				),
			},
		},
		{
			name: "remote",
			groups: []leafGroup{
				below("devices.disks[b]", "devices/disk{target/@dev=vdb}",
					leaf{attr: "source.network.protocol", value: `"nbd"`, at: "source/@protocol", only: "no server of the host exports a disk"},
					leaf{attr: "source.network.hosts[a].name", value: `"192.0.2.1"`, at: "source/host/@name"},
					leaf{attr: "source.network.hosts[a].port", value: `"10809"`, at: "source/host/@port"},
					leaf{attr: "source.network.name", value: `"export"`, at: "source/@name"},
					leaf{attr: "target.dev", value: `"vdb"`, at: "target/@dev"},
				),
			},
		},
	}
}

func limitLeaves(files leafFiles) []leafMachine {
	return []leafMachine{{
		name: "limits",
		base: settings(
			imageDisk("a", "vda", "virtio", files.image("la.raw", "raw"), "raw"),
			imageDisk("b", "vdb", "virtio", files.image("lb.raw", "raw"), "raw"),
		),
		groups: []leafGroup{
			below("devices.disks[a].io_tune", "devices/disk{target/@dev=vda}/iotune",
				leaf{attr: "total_bytes_sec", value: "1048576", at: "total_bytes_sec"},
				leaf{attr: "total_bytes_sec_max", value: "2097152", at: "total_bytes_sec_max"},
				leaf{attr: "total_bytes_sec_max_length", value: "3", at: "total_bytes_sec_max_length"},
				leaf{attr: "total_iops_sec", value: "500", at: "total_iops_sec"},
				leaf{attr: "total_iops_sec_max", value: "900", at: "total_iops_sec_max"},
				leaf{attr: "total_iops_sec_max_length", value: "4", at: "total_iops_sec_max_length"},
				leaf{attr: "size_iops_sec", value: "4096", at: "size_iops_sec"},
				leaf{attr: "group_name", value: `"leaves"`, at: "group_name"},
			),
			below("devices.disks[b].io_tune", "devices/disk{target/@dev=vdb}/iotune",
				leaf{attr: "read_bytes_sec", value: "1048576", at: "read_bytes_sec"},
				leaf{attr: "read_bytes_sec_max", value: "2097152", at: "read_bytes_sec_max"},
				leaf{attr: "read_bytes_sec_max_length", value: "3", at: "read_bytes_sec_max_length"},
				leaf{attr: "write_bytes_sec", value: "1048577", at: "write_bytes_sec"},
				leaf{attr: "write_bytes_sec_max", value: "2097153", at: "write_bytes_sec_max"},
				leaf{attr: "write_bytes_sec_max_length", value: "5", at: "write_bytes_sec_max_length"},
				leaf{attr: "read_iops_sec", value: "400", at: "read_iops_sec"},
				leaf{attr: "read_iops_sec_max", value: "800", at: "read_iops_sec_max"},
				leaf{attr: "read_iops_sec_max_length", value: "6", at: "read_iops_sec_max_length"},
				leaf{attr: "write_iops_sec", value: "401", at: "write_iops_sec"},
				leaf{attr: "write_iops_sec_max", value: "801", at: "write_iops_sec_max"},
				leaf{attr: "write_iops_sec_max_length", value: "7", at: "write_iops_sec_max_length"},
			),
		},
	}}
}

// numbered are the settings of a controller.
func numbered(key, kind, index, model string) []setting {
	at := "devices.controllers[" + key + "]."
	return []setting{{at + "type", strconv.Quote(kind)}, {at + "index", index}, {at + "model", strconv.Quote(model)}}
}

func attachmentLeaves(files leafFiles) []leafMachine {
	shared := files.dir("shared")
	return []leafMachine{
		{
			name: "controllers",
			base: settings(
				numbered("a", "usb", "0", "qemu-xhci"), numbered("b", "pci", "1", "pcie-root-port"), numbered("c", "pci", "0", "pcie-root"),
				[]setting{{"devices.controllers[d].type", `"virtio-serial"`}, {"devices.controllers[d].index", "0"}},
			),
			groups: []leafGroup{
				below("devices.controllers[a]", "devices/controller{@type=usb}", leaf{attr: "usb.port", value: "8", at: "@ports"}),
				below("devices.controllers[b].pci", "devices/controller{@model=pcie-root-port}",
					leaf{attr: "target.chassis", value: "9", at: "target/@chassis"},
					leaf{attr: "target.port", value: "24", at: "target/@port", want: "0x18"},
					leaf{attr: "target.hotplug", value: `"off"`, at: "target/@hotplug"},
				),
				below("devices.controllers[c].pci", "devices/controller{@model=pcie-root}",
					leaf{attr: "hole64", value: "2097152", at: "pcihole64"},
				),
				below("devices.controllers[d].virt_io_serial", "devices/controller{@type=virtio-serial}",
					leaf{attr: "ports", value: "16", at: "@ports"},
					leaf{attr: "vectors", value: "4", at: "@vectors"},
				),
				below("devices.controllers[e]", "devices/controller{@index=7}",
					leaf{attr: "type", value: `"pci"`, at: "@type"},
					leaf{attr: "index", value: "7", at: "@index"},
					leaf{attr: "model", value: `"pcie-expander-bus"`, at: "@model"},
					leaf{attr: "pci.model.name", value: `"pxb-pcie"`, at: "model/@name"},
					leaf{attr: "pci.target.bus_nr", value: "200", at: "target/@busNr"},
				),
			},
		},
		{
			name: "directory",
			base: []setting{
				{"devices.filesystems[a].source.mount.dir", strconv.Quote(shared)}, {"devices.filesystems[a].target.dir", `"leaf"`},
				{"devices.filesystems[a].driver.type", `"path"`},
			},
			groups: []leafGroup{
				below("devices.filesystems[a]", "devices/filesystem{target/@dir=leaf}",
					leaf{attr: "access_mode", value: `"mapped"`, at: "@accessmode"},
					leaf{attr: "fmode", value: `"0640"`, at: "@fmode"},
					leaf{attr: "dmode", value: `"0750"`, at: "@dmode"},
					leaf{attr: "multi_devs", value: `"remap"`, at: "@multidevs"},
					leaf{attr: "read_only", value: "true", at: "readonly"},
					leaf{attr: "driver.wr_policy", value: `"immediate"`, at: "driver/@wrpolicy"},
					leaf{attr: "driver.packed", value: `"on"`, at: "driver/@packed"},
				),
				below("devices.filesystems[b]", "devices/filesystem{target/@dir=other}",
					leaf{attr: "source.mount.dir", value: strconv.Quote(files.dir("other")), at: "source/@dir"},
					leaf{attr: "target.dir", value: `"other"`, at: "target/@dir"},
				),
			},
		},
		{
			name: "virtiofs",
			base: []setting{
				{"memory_backing.memory_source.type", `"memfd"`}, {"memory_backing.memory_access.mode", `"shared"`},
				{"devices.filesystems[a].source.mount.dir", strconv.Quote(shared)}, {"devices.filesystems[a].target.dir", `"leaf"`},
				{"devices.filesystems[a].driver.type", `"virtiofs"`},
			},
			groups: []leafGroup{
				below("devices.filesystems[a]", "devices/filesystem",
					leaf{attr: "driver.queue", value: "512", at: "driver/@queue"},
					leaf{attr: "binary.path", value: `"/usr/lib/qemu/virtiofsd"`, at: "binary/@path"},
					leaf{attr: "binary.xattr", value: `"on"`, at: "binary/@xattr"},
					leaf{attr: "binary.cache.mode", value: `"always"`, at: "binary/cache/@mode"},
					leaf{attr: "binary.lock.posix", value: `"on"`, at: "binary/lock/@posix"},
					leaf{attr: "binary.lock.flock", value: `"on"`, at: "binary/lock/@flock"},
					leaf{attr: "binary.sandbox.mode", value: `"chroot"`, at: "binary/sandbox/@mode"},
					leaf{attr: "binary.thread_pool.size", value: "4", at: "binary/thread_pool/@size"},
				),
			},
		},
	}
}
