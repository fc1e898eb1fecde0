package virt

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"libvirt.org/go/libvirt"
)

// NodeInfo is the hardware of a host, as far as one call tells it.
type NodeInfo struct {
	CPUModel                                 string // architecture of the processors: x86_64
	Memory                                   uint64 // KiB
	CPUs                                     uint   // that are on line
	NUMANodes, Sockets, CoresPer, ThreadsPer uint32 // sockets for each node, cores for each socket, threads for each core
}

// NodeInfo asks for the hardware.
func (h *Host) NodeInfo(ctx context.Context) (out NodeInfo, err error) {
	err = h.call(ctx, Call{"read the hardware of", h.Display(), false}, func(s *session) error {
		i, err := s.conn.GetNodeInfo()
		if err == nil {
			out = NodeInfo{i.Model, i.Memory, i.Cpus, i.Nodes, i.Sockets, i.Cores, i.Threads}
		}
		return err
	})
	return out, err
}

// nodeCapabilities are libvirt's names of what a device of the host can be.
var nodeCapabilities = map[string]libvirt.ConnectListAllNodeDeviceFlags{
	"system":          libvirt.CONNECT_LIST_NODE_DEVICES_CAP_SYSTEM,
	"pci":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV,
	"usb_device":      libvirt.CONNECT_LIST_NODE_DEVICES_CAP_USB_DEV,
	"usb":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_USB_INTERFACE,
	"net":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_NET,
	"scsi_host":       libvirt.CONNECT_LIST_NODE_DEVICES_CAP_SCSI_HOST,
	"scsi_target":     libvirt.CONNECT_LIST_NODE_DEVICES_CAP_SCSI_TARGET,
	"scsi":            libvirt.CONNECT_LIST_NODE_DEVICES_CAP_SCSI,
	"storage":         libvirt.CONNECT_LIST_NODE_DEVICES_CAP_STORAGE,
	"fc_host":         libvirt.CONNECT_LIST_NODE_DEVICES_CAP_FC_HOST,
	"vports":          libvirt.CONNECT_LIST_NODE_DEVICES_CAP_VPORTS,
	"scsi_generic":    libvirt.CONNECT_LIST_NODE_DEVICES_CAP_SCSI_GENERIC,
	"drm":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_DRM,
	"mdev":            libvirt.CONNECT_LIST_NODE_DEVICES_CAP_MDEV,
	"mdev_types":      libvirt.CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES,
	"ccw":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_CCW_DEV,
	"css":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_CSS_DEV,
	"vdpa":            libvirt.CONNECT_LIST_NODE_DEVICES_CAP_VDPA,
	"ap_card":         libvirt.CONNECT_LIST_NODE_DEVICES_CAP_AP_CARD,
	"ap_queue":        libvirt.CONNECT_LIST_NODE_DEVICES_CAP_AP_QUEUE,
	"ap_matrix":       libvirt.CONNECT_LIST_NODE_DEVICES_CAP_AP_MATRIX,
	"vpd":             libvirt.CONNECT_LIST_NODE_DEVICES_CAP_VPD,
	"ccwgroup":        libvirt.CONNECT_LIST_NODE_DEVICES_CAP_CCWGROUP_DEV,
	"ccwgroup_member": libvirt.CONNECT_LIST_NODE_DEVICES_CAP_CCWGROUP_MEMBER,
}

// NodeCapabilities lists the names that NodeDevices takes, sorted.
func NodeCapabilities() []string { return slices.Sorted(maps.Keys(nodeCapabilities)) }

// NodeDevices lists the names of the host's devices that have a capability, ""
// for all, sorted.
func (h *Host) NodeDevices(ctx context.Context, capability string) (out []string, err error) {
	flags, known := nodeCapabilities[capability]
	if !known && capability != "" {
		return nil, fmt.Errorf("list node devices: libvirt knows no capability %q", capability)
	}
	err = h.call(ctx, Call{"list node devices", capability, false}, func(s *session) error {
		out = []string{}
		all, err := s.conn.ListAllNodeDevices(flags)
		for i := range all {
			name, nameErr := all[i].GetName()
			_ = all[i].Free()
			if nameErr != nil {
				return nameErr
			}
			out = append(out, name)
		}
		return err
	})
	slices.Sort(out)
	return out, err
}

// NodeDeviceXML reads the document of a device of the host. One that is not there
// is ErrNoNodeDevice.
func (h *Host) NodeDeviceXML(ctx context.Context, name string) (document string, err error) {
	err = h.call(ctx, Call{"read the XML of node device", name, false}, func(s *session) error {
		dev, err := s.conn.LookupDeviceByName(name)
		if err != nil {
			return err
		}
		defer func() { _ = dev.Free() }()
		document, err = dev.GetXMLDesc(0)
		return err
	})
	return document, err
}
