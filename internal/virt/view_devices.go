package virt

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"libvirt.org/go/libvirt"
)

// Filters returns the names of the network filters.
func (v *View) Filters(ctx context.Context) (map[string]bool, error) {
	return v.filters.get(v.writes.Load(), func() (out map[string]bool, err error) {
		err = v.host.call(ctx, Call{"list network filters", "", false}, func(s *session) error {
			out = map[string]bool{}
			all, err := s.conn.ListAllNWFilters(0)
			for i := range all {
				name, nameErr := all[i].GetName()
				_ = all[i].Free()
				if nameErr != nil {
					return nameErr
				}
				out[name] = true
			}
			return err
		})
		return out, err
	})
}

// NodeDevices returns the names that libvirt has for the devices of the host:
// pci_0000_00_1f_2, mdev_…, net_eth0_52_54_00_….
func (v *View) NodeDevices(ctx context.Context) (map[string]bool, error) {
	return v.devices.get(v.writes.Load(), func() (out map[string]bool, err error) {
		err = v.host.call(ctx, Call{"list node devices", "", false}, func(s *session) error {
			out = map[string]bool{}
			all, err := s.conn.ListAllNodeDevices(0)
			for i := range all {
				name, nameErr := all[i].GetName()
				_ = all[i].Free()
				if nameErr != nil {
					return nameErr
				}
				out[name] = true
			}
			return err
		})
		return out, err
	})
}

// USBDevice is a device at one of the host's USB ports.
type USBDevice struct {
	Bus, Device     int
	Vendor, Product string // 0x and four digits
}

// USBDevices returns what is plugged in.
func (v *View) USBDevices(ctx context.Context) ([]USBDevice, error) {
	return v.usb.get(v.writes.Load(), func() (out []USBDevice, err error) {
		err = v.host.call(ctx, Call{"list node devices", "", false}, func(s *session) error {
			out = nil
			all, err := s.conn.ListAllNodeDevices(libvirt.CONNECT_LIST_NODE_DEVICES_CAP_USB_DEV)
			for i := range all {
				document, xmlErr := all[i].GetXMLDesc(0)
				_ = all[i].Free()
				if answered(xmlErr, libvirt.ERR_NO_NODE_DEVICE) {
					continue // unplugged since the list was made
				}
				if xmlErr != nil {
					return xmlErr
				}
				device, xmlErr := usbIn(document)
				if xmlErr != nil {
					return xmlErr
				}
				out = append(out, device)
			}
			return err
		})
		return out, err
	})
}

func usbIn(document string) (USBDevice, error) {
	type id struct {
		ID string `xml:"id,attr"`
	}
	var dev struct {
		Capability struct {
			Bus     int `xml:"bus"`
			Device  int `xml:"device"`
			Vendor  id  `xml:"vendor"`
			Product id  `xml:"product"`
		} `xml:"capability"`
	}
	if err := xml.Unmarshal([]byte(document), &dev); err != nil {
		return USBDevice{}, fmt.Errorf("read a device's XML: %w", err)
	}
	c := dev.Capability
	return USBDevice{c.Bus, c.Device, c.Vendor.ID, c.Product.ID}, nil
}

// LacksLink says that the host has no network interface, bridge or other, of
// that name. It takes two witnesses, as each is blind in one eye: libvirt's
// interface driver of old distributions (netcf) knows only what their
// configuration files name, and the node devices do not grow where no udev runs.
func (v *View) LacksLink(ctx context.Context, name string) (bool, error) {
	there, err := v.links.get(name, v.writes.Load(), func() (there bool, err error) {
		err = v.host.call(ctx, Call{"look up interface", name, false}, func(s *session) error {
			found, err := s.conn.LookupInterfaceByName(name)
			if answered(err, libvirt.ERR_NO_INTERFACE) {
				there = false
				return nil
			}
			if err != nil {
				return err
			}
			there = true
			return found.Free()
		})
		return there, err
	})
	if err != nil || there {
		return false, err
	}
	devices, err := v.NodeDevices(ctx)
	if err != nil {
		return false, err
	}
	seesLinks := false
	for device := range devices {
		link, ok := strings.CutPrefix(device, "net_")
		seesLinks = seesLinks || ok
		if ok && strings.HasPrefix(link, nodeName(name)+"_") {
			return false, nil
		}
	}
	return seesLinks, nil
}

// nodeName is how a name appears within that of a node device.
func nodeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
