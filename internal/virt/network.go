package virt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"time"

	"libvirt.org/go/libvirt"
)

// Network is a handle on one network, by UUID.
type Network struct {
	host   *Host
	uuid   string
	name   string
	handle handle[libvirt.Network]
}

// UUID returns the identity.
func (n *Network) UUID() string { return n.uuid }

// Name returns the name as of the look-up.
func (n *Network) Name() string { return n.name }

func (h *Host) newNetwork(s *session, net *libvirt.Network) (*Network, error) {
	n := &Network{host: h}
	n.handle.keep(s, net, freeNetwork)
	var err error
	if n.uuid, err = net.GetUUIDString(); err != nil {
		return nil, err
	}
	n.name, err = net.GetName()
	return n, err
}

func freeNetwork(n libvirt.Network) { _ = n.Free() }

func (h *Host) network(ctx context.Context, c Call, f func(*libvirt.Connect) (*libvirt.Network, error)) (n *Network, err error) {
	err = h.call(ctx, c, func(s *session) error {
		net, err := f(s.conn)
		if err != nil {
			return err
		}
		n, err = h.newNetwork(s, net)
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// LookupNetwork finds a network by UUID.
func (h *Host) LookupNetwork(ctx context.Context, uuid string) (*Network, error) {
	return h.network(ctx, Call{"look up network", uuid, false}, func(c *libvirt.Connect) (*libvirt.Network, error) { return c.LookupNetworkByUUIDString(uuid) })
}

// LookupNetworkByName finds a network by name.
func (h *Host) LookupNetworkByName(ctx context.Context, name string) (*Network, error) {
	return h.network(ctx, Call{"look up network", name, false}, func(c *libvirt.Connect) (*libvirt.Network, error) { return c.LookupNetworkByName(name) })
}

// DefineNetwork writes a definition.
func (h *Host) DefineNetwork(ctx context.Context, xml string) (*Network, error) {
	return h.network(ctx, Call{"define network", nameIn(xml), true}, func(c *libvirt.Connect) (*libvirt.Network, error) { return c.NetworkDefineXML(xml) })
}

func (n *Network) call(ctx context.Context, op string, write bool, f func(*libvirt.Network) error) error {
	return n.host.call(ctx, Call{op, n.name, write}, func(s *session) error {
		return n.handle.use(s, f, func() (*libvirt.Network, error) { return s.conn.LookupNetworkByUUIDString(n.uuid) }, freeNetwork)
	})
}

// Networks lists all networks of the host, active or not.
func (h *Host) Networks(ctx context.Context) (out []*Network, err error) {
	err = h.call(ctx, Call{"list networks", "", false}, func(s *session) error {
		out = nil
		all, err := s.conn.ListAllNetworks(0)
		for i := range all {
			net := all[i]
			n, err := h.newNetwork(s, &net)
			if err != nil {
				return err
			}
			out = append(out, n)
		}
		return err
	})
	return out, err
}

// XML returns the document: of the definition if inactive, else of the network
// as it is now.
func (n *Network) XML(ctx context.Context, inactive bool) (xml string, err error) {
	var flags libvirt.NetworkXMLFlags
	if inactive {
		flags = libvirt.NETWORK_XML_INACTIVE
	}
	err = n.call(ctx, "read the XML of network", false, func(net *libvirt.Network) (err error) { xml, err = net.GetXMLDesc(flags); return err })
	return xml, err
}

// Autostart says whether the host starts it at boot.
func (n *Network) Autostart(ctx context.Context) (on bool, err error) {
	err = n.call(ctx, "read autostart of network", false, func(net *libvirt.Network) (err error) { on, err = net.GetAutostart(); return err })
	return on, err
}

// SetAutostart sets that.
func (n *Network) SetAutostart(ctx context.Context, on bool) error {
	return n.call(ctx, "set autostart of network", true, func(net *libvirt.Network) error { return net.SetAutostart(on) })
}

// IsActive says whether it is started.
func (n *Network) IsActive(ctx context.Context) (yes bool, err error) {
	err = n.call(ctx, "read the state of network", false, func(net *libvirt.Network) (err error) { yes, err = net.IsActive(); return err })
	return yes, err
}

// IsPersistent says whether there is a definition.
func (n *Network) IsPersistent(ctx context.Context) (yes bool, err error) {
	err = n.call(ctx, "read persistence of network", false, func(net *libvirt.Network) (err error) { yes, err = net.IsPersistent(); return err })
	return yes, err
}

// Start starts the network.
func (n *Network) Start(ctx context.Context) error {
	return n.call(ctx, "start network", true, func(net *libvirt.Network) error { return net.Create() })
}

// Stop stops it, which cuts off the guests that are attached.
func (n *Network) Stop(ctx context.Context) error {
	return n.call(ctx, "stop network", true, func(net *libvirt.Network) error { return net.Destroy() })
}

// Undefine removes the definition.
func (n *Network) Undefine(ctx context.Context) error {
	return n.call(ctx, "undefine network", true, func(net *libvirt.Network) error { return net.Undefine() })
}

// NetworkCommand is what Update does with an element.
type NetworkCommand int

// The commands.
const (
	NetworkModify  = NetworkCommand(libvirt.NETWORK_UPDATE_COMMAND_MODIFY)
	NetworkDelete  = NetworkCommand(libvirt.NETWORK_UPDATE_COMMAND_DELETE)
	NetworkAddLast = NetworkCommand(libvirt.NETWORK_UPDATE_COMMAND_ADD_LAST)
)

// NetworkSection is a part of a network that can change while it is active.
type NetworkSection int

// The sections.
const (
	SectionDHCPHost  = NetworkSection(libvirt.NETWORK_SECTION_IP_DHCP_HOST)
	SectionDHCPRange = NetworkSection(libvirt.NETWORK_SECTION_IP_DHCP_RANGE)
	SectionPortGroup = NetworkSection(libvirt.NETWORK_SECTION_PORTGROUP)
	SectionDNSHost   = NetworkSection(libvirt.NETWORK_SECTION_DNS_HOST)
	SectionDNSTXT    = NetworkSection(libvirt.NETWORK_SECTION_DNS_TXT)
	SectionDNSSRV    = NetworkSection(libvirt.NETWORK_SECTION_DNS_SRV)
)

// Update changes one element of an active network and of its definition, in
// one call; sides chooses one of the two. parent is the index of the <ip>
// element for its sections, else -1.
func (n *Network) Update(ctx context.Context, command NetworkCommand, section NetworkSection, parent int, xml string, sides ...Affect) error {
	flags := libvirt.NETWORK_UPDATE_AFFECT_LIVE | libvirt.NETWORK_UPDATE_AFFECT_CONFIG
	if len(sides) > 0 {
		flags = 0
	}
	for _, side := range sides {
		flags |= libvirt.NetworkUpdateFlags(side) // the bits are those of a domain
	}
	return n.call(ctx, "update network", true, func(net *libvirt.Network) error {
		return net.Update(libvirt.NetworkUpdateCommand(command), libvirt.NetworkUpdateSection(section), parent, xml, flags)
	})
}

// Lease is an address that the network's DHCP server gave out.
type Lease struct {
	MAC, IP, Hostname string
	Expires           time.Time // it moves whenever the lease is renewed; zero if it never ends
}

// Leases lists what the DHCP server gave out and has not expired.
func (n *Network) Leases(ctx context.Context) (out []Lease, err error) {
	err = n.call(ctx, "list leases of network", false, func(net *libvirt.Network) error {
		out = nil
		all, err := net.GetDHCPLeases()
		for _, l := range all {
			one := Lease{MAC: l.Mac, IP: l.IPaddr, Hostname: l.Hostname}
			if l.ExpiryTime.Unix() > 0 {
				one.Expires = l.ExpiryTime
			}
			out = append(out, one)
		}
		return err
	})
	return out, err
}

// BridgeName returns the name of the network's bridge on the host.
func (n *Network) BridgeName(ctx context.Context) (name string, err error) {
	err = n.call(ctx, "read the bridge of network", false, func(net *libvirt.Network) (err error) { name, err = net.GetBridgeName(); return err })
	return name, err
}

// BridgePorts lists the interfaces of the host that are plugged into a bridge:
// one for each guest, container or cable. known is false where libvirt cannot
// tell: it has no driver for that, or does not see the bridge.
func (h *Host) BridgePorts(ctx context.Context, bridge string) (ports []string, known bool, err error) {
	document := ""
	err = h.call(ctx, Call{"read the XML of interface", bridge, false}, func(s *session) error {
		i, err := s.conn.LookupInterfaceByName(bridge)
		if err != nil {
			return err
		}
		defer func() { _ = i.Free() }()
		document, err = i.GetXMLDesc(0)
		return err
	})
	var answer *Error
	if errors.As(err, &answer) && !IsLost(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var doc struct {
		Ports []struct {
			Name string `xml:"name,attr"`
		} `xml:"bridge>interface"`
	}
	if err := xml.Unmarshal([]byte(document), &doc); err != nil {
		return nil, false, fmt.Errorf("read the ports of bridge %s: %w", bridge, err)
	}
	for _, p := range doc.Ports {
		ports = append(ports, p.Name)
	}
	return ports, true, nil
}
