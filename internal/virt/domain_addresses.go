package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// AddressSource says who is asked for addresses.
type AddressSource int

// The sources.
const (
	AddressLease = AddressSource(libvirt.DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE)
	AddressAgent = AddressSource(libvirt.DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT)
	AddressARP   = AddressSource(libvirt.DOMAIN_INTERFACE_ADDRESSES_SRC_ARP)
)

// InterfaceAddresses is what one interface has.
type InterfaceAddresses struct {
	Name, MAC string
	Addresses []Address
}

// Address is one address with the length of its prefix.
type Address struct {
	Address string
	Prefix  uint
}

// InterfaceAddresses asks for the addresses of all interfaces.
func (d *Domain) InterfaceAddresses(ctx context.Context, source AddressSource) (out []InterfaceAddresses, err error) {
	err = d.call(ctx, "read addresses of domain", false, func(dom *libvirt.Domain) error {
		nics, err := dom.ListAllInterfaceAddresses(libvirt.DomainInterfaceAddressesSource(source))
		for _, n := range nics {
			one := InterfaceAddresses{Name: n.Name, MAC: n.Hwaddr}
			for _, a := range n.Addrs {
				one.Addresses = append(one.Addresses, Address{a.Addr, a.Prefix})
			}
			out = append(out, one)
		}
		return err
	})
	return out, err
}
