package spec

// poolMeanings are those of storage pools.
// https://libvirt.org/formatstorage.html
var poolMeanings = map[string]string{
	"name":       "Name, unique on the host. It cannot be changed.",
	"type":       "`dir`, `fs`, `netfs`, `logical` (LVM), `disk`, `iscsi`, `iscsi-direct`, `scsi`, `mpath`, `rbd`, `gluster`, `zfs`, `vstorage`. It cannot be changed.",
	"capacity":   "Bytes, as libvirt measures them.",
	"allocation": "Bytes in use, as libvirt measures them.",
	"available":  "Bytes free, as libvirt measures them.",

	"source":                    "What the pool is made of; not for `dir`.",
	"source.device":             "Devices of the host: the partition of `fs`, the physical volumes of `logical`, the portal of `iscsi`.",
	"source.device[].path":      "Path of the device, or IQN of the target.",
	"source.dir.path":           "Directory that the server exports, with `netfs`.",
	"source.host":               "Servers.",
	"source.host[].name":        "Name or address of the server.",
	"source.host[].port":        "Its port.",
	"source.name":               "Name of what is used: the volume group, the pool of `rbd` or `zfs`.",
	"source.format.type":        "Format: of `netfs` `nfs`, `cifs`, …; of `fs` `ext4`, `xfs`, …; of `logical` `lvm2`; of `disk` the partition table, `gpt`, `dos`, …",
	"source.initiator.iqn.name": "IQN of the initiator, with `iscsi-direct`.",
	"source.auth":               "Credentials, in a secret of libvirt.",
	"source.auth.type":          "`chap` or `ceph`.",
	"source.protocol.version":   "Version of NFS.",
	"source.adapter":            "The host adapter of `scsi`.",
	"source.adapter.name":       "Its name: `scsi_host2`.",
	"source.adapter.type":       "`scsi_host` or `fc_host`.",

	"target":             "Where the pool is on the host.",
	"target.path":        "Directory of the volumes. It cannot be changed.",
	"target.permissions": "Owner and rights of the directory, when the pool makes it.",

	"features.cow.state":        "Copy on write on Btrfs: `yes` or `no`.",
	"refresh.volume.allocation": "How the allocation of `rbd` volumes is found: `default` or `capacity`, which is faster.",
}

// volumeMeanings are those of storage volumes.
// https://libvirt.org/formatstorage.html#storage-volume-xml
var volumeMeanings = map[string]string{
	"name":          "Name, unique in its pool; often that of the file.",
	"key":           "What identifies the volume on the host; often its path.",
	"type":          "`file`, `block`, `dir`, `network`, `netdir`, `ploop`; it follows from the pool.",
	"capacity":      "Size that the guest sees, in `capacity_unit`. It grows in place, also while a guest runs, and never shrinks. Unset: that of the content or of the backing store.",
	"capacity_unit": "Unit of `capacity`: `bytes` (the standard), `KiB`, `MiB`, `GiB`, …; `KB`, `MB`, … are powers of 1000.",

	"target":              "What the volume is on the host.",
	"target.path":         "Its path; it follows from the pool.",
	"target.format.type":  "Format: `raw` (the standard), `qcow2`, …",
	"target.permissions":  "Owner and rights of the file.",
	"target.compat":       "Version of qcow2: `1.1` or `0.10`.",
	"target.cluster_size": "Size of a cluster of qcow2, in `cluster_size_unit`.",
	"target.features":     "Features of qcow2.",
	"*.lazy_refcounts":    "Reference counts of qcow2 that are written late.",
	"*.extended_l2":       "Subclusters of qcow2.",
	"target.no_cow":       "Switch copy on write off, on Btrfs.",
	"target.encryption":   "Encryption of the volume.",
	"backing_store":       "An image that this volume lies over: only what differs is kept here.",
	"backing_store.path":  "Its path on the host: `libvirt_volume.base.path`.",
	"*.format.type":       "Its format: `qcow2`, `raw`. It must be said, and be right.",
}

// storageMeanings are those that pools and volumes have alike.
var storageMeanings = map[string]string{
	"*.encryption.cipher.name": "Cipher: `aes`, …",
	"*.encryption.cipher.size": "Length of the key, in bits.",
	"*.encryption.cipher.mode": "`cbc`, `xts`, …",
	"*.encryption.cipher.hash": "`sha256`, …",
	"*.timestamps.atime":       "Last access, in seconds since 1970.",
	"*.timestamps.mtime":       "Last change of the content, in seconds since 1970.",
	"*.timestamps.ctime":       "Last change of the inode, in seconds since 1970.",
}
