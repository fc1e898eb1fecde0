package virt

import (
	"context"
	"fmt"
	"time"

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

var addressSourceNames = map[AddressSource]string{AddressLease: "lease", AddressAgent: "agent", AddressARP: "arp"}

func (s AddressSource) String() string { return named(addressSourceNames, s) }

// InterfaceAddresses is what one interface has.
type InterfaceAddresses struct {
	Name      string // the agent's is the guest's own, that of the others the host's
	MAC       string
	Addresses []Address
}

// Address is one address with the length of its prefix.
type Address struct {
	Address string
	Prefix  uint
}

// InterfaceAddresses asks for the addresses of all interfaces. The end of the
// context ends the waiting in any case: an agent may take its time, or never
// answer. A call that is given up keeps its connection, and the agent from all
// others, until libvirt gives up too: see SetAgentTimeout. An agent that is not
// connected is ErrAgentUnresponsive, a domain that has none ErrArgumentUnsupported,
// a guest that is off ErrOperationInvalid.
func (d *Domain) InterfaceAddresses(ctx context.Context, source AddressSource) ([]InterfaceAddresses, error) {
	c := Call{"read addresses of domain", d.name, false}
	return bounded(ctx, c, func() (out []InterfaceAddresses, err error) {
		err = d.call(ctx, c.Op, c.Write, func(dom *libvirt.Domain) error {
			out = nil // a read may be made twice
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
	})
}

// bounded makes a call that may last, and waits for it no longer than the
// context does.
func bounded[T any](ctx context.Context, c Call, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: no answer: %w", c, ctx.Err())
	}
}

// SetAgentTimeout sets how long libvirt waits for an answer of the guest's agent,
// in whole seconds, rounded up. 0 is libvirt's standard: for ever, once the agent
// has shown that it is there. It holds for all that is asked of this agent from
// then on, whoever asks, over restarts of the guest and of the daemon, and nobody
// can read it: whoever sets it puts it back. It needs libvirt 5.10.
func (d *Domain) SetAgentTimeout(ctx context.Context, limit time.Duration) error {
	seconds := int((limit + time.Second - 1) / time.Second)
	if limit <= 0 {
		seconds = int(libvirt.DOMAIN_AGENT_RESPONSE_TIMEOUT_BLOCK)
	}
	c := Call{"limit the waiting for the agent of domain", d.name, true}
	_, err := bounded(ctx, c, func() (struct{}, error) {
		return struct{}{}, d.since(ctx, c.Op, c.Write, 5010000, "limiting the waiting for an agent", func(dom *libvirt.Domain) error {
			return dom.AgentSetResponseTimeout(seconds, 0)
		})
	})
	return err
}
