package virt

import (
	"context"

	"libvirt.org/go/libvirt"
)

// XMLFlags choose what an XML document shows.
type XMLFlags uint32

// The flags of XML.
const (
	XMLInactive   = XMLFlags(libvirt.DOMAIN_XML_INACTIVE)   // the definition, not the guest
	XMLSecure     = XMLFlags(libvirt.DOMAIN_XML_SECURE)     // with passwords
	XMLMigratable = XMLFlags(libvirt.DOMAIN_XML_MIGRATABLE) // without what a start adds
)

// Affect says which side of a domain a call changes or asks.
type Affect uint32

// The sides.
const (
	AffectLive   = Affect(libvirt.DOMAIN_AFFECT_LIVE)
	AffectConfig = Affect(libvirt.DOMAIN_AFFECT_CONFIG)
)

// MetadataKind is a kind of metadata.
type MetadataKind int

// The kinds.
const (
	MetadataDescription = MetadataKind(libvirt.DOMAIN_METADATA_DESCRIPTION)
	MetadataTitle       = MetadataKind(libvirt.DOMAIN_METADATA_TITLE)
	MetadataElement     = MetadataKind(libvirt.DOMAIN_METADATA_ELEMENT)
)

// State is libvirt's state of a guest.
type State int

// The states.
const (
	StateNone        = State(libvirt.DOMAIN_NOSTATE)
	StateRunning     = State(libvirt.DOMAIN_RUNNING)
	StateBlocked     = State(libvirt.DOMAIN_BLOCKED)
	StatePaused      = State(libvirt.DOMAIN_PAUSED)
	StateShutdown    = State(libvirt.DOMAIN_SHUTDOWN)
	StateShutoff     = State(libvirt.DOMAIN_SHUTOFF)
	StateCrashed     = State(libvirt.DOMAIN_CRASHED)
	StatePMSuspended = State(libvirt.DOMAIN_PMSUSPENDED)
)

var stateNames = map[State]string{
	StateNone: "unknown", StateRunning: "running", StateBlocked: "blocked", StatePaused: "paused", StateShutdown: "shutdown",
	StateShutoff: "shutoff", StateCrashed: "crashed", StatePMSuspended: "pmsuspended",
}

func (s State) String() string { return named(stateNames, s) }

// Active says whether there is a guest process: paused and suspended guests
// have one.
func (s State) Active() bool { return s != StateShutoff && s != StateCrashed && s != StateNone }

// Domain is a handle on one domain, by UUID.
type Domain struct {
	host   *Host
	uuid   string
	name   string
	handle handle[libvirt.Domain]
}

// UUID returns the identity.
func (d *Domain) UUID() string { return d.uuid }

// Name returns the name as of the look-up.
func (d *Domain) Name() string { return d.name }

func (h *Host) newDomain(s *session, dom *libvirt.Domain) (*Domain, error) {
	d := &Domain{host: h}
	d.handle.keep(s, dom, freeDomain)
	var err error
	if d.uuid, err = dom.GetUUIDString(); err != nil {
		return nil, err
	}
	d.name, err = dom.GetName()
	return d, err
}

func freeDomain(d libvirt.Domain) { _ = d.Free() }

func (h *Host) domain(ctx context.Context, c Call, f func(*libvirt.Connect) (*libvirt.Domain, error)) (d *Domain, err error) {
	err = h.call(ctx, c, func(s *session) error {
		dom, err := f(s.conn)
		if err != nil {
			return err
		}
		d, err = h.newDomain(s, dom)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// LookupDomain finds a domain by UUID.
func (h *Host) LookupDomain(ctx context.Context, uuid string) (*Domain, error) {
	return h.domain(ctx, Call{"look up domain", uuid, false}, func(c *libvirt.Connect) (*libvirt.Domain, error) { return c.LookupDomainByUUIDString(uuid) })
}

// LookupDomainByName finds a domain by name.
func (h *Host) LookupDomainByName(ctx context.Context, name string) (*Domain, error) {
	return h.domain(ctx, Call{"look up domain", name, false}, func(c *libvirt.Connect) (*libvirt.Domain, error) { return c.LookupDomainByName(name) })
}

// DefineFlags are those of DefineDomain.
type DefineFlags struct{ Validate bool }

// DefineDomain writes a definition.
func (h *Host) DefineDomain(ctx context.Context, xml string, flags DefineFlags) (*Domain, error) {
	return h.domain(ctx, Call{"define domain", nameIn(xml), true}, func(c *libvirt.Connect) (*libvirt.Domain, error) {
		var f libvirt.DomainDefineFlags
		if flags.Validate {
			f |= libvirt.DOMAIN_DEFINE_VALIDATE
		}
		return c.DomainDefineXMLFlags(xml, f)
	})
}

func (d *Domain) call(ctx context.Context, op string, write bool, f func(*libvirt.Domain) error) error {
	return d.host.call(ctx, Call{op, d.name, write}, func(s *session) error {
		return d.handle.use(s, f, func() (*libvirt.Domain, error) { return s.conn.LookupDomainByUUIDString(d.uuid) }, freeDomain)
	})
}

// XML returns the document.
func (d *Domain) XML(ctx context.Context, flags XMLFlags) (xml string, err error) {
	err = d.call(ctx, "read the XML of domain", false, func(dom *libvirt.Domain) (err error) {
		xml, err = dom.GetXMLDesc(libvirt.DomainXMLFlags(flags))
		return err
	})
	return xml, err
}

// Autostart says whether the host starts it at boot.
func (d *Domain) Autostart(ctx context.Context) (on bool, err error) {
	err = d.call(ctx, "read autostart of domain", false, func(dom *libvirt.Domain) (err error) { on, err = dom.GetAutostart(); return err })
	return on, err
}

// SetAutostart sets that.
func (d *Domain) SetAutostart(ctx context.Context, on bool) error {
	return d.call(ctx, "set autostart of domain", true, func(dom *libvirt.Domain) error { return dom.SetAutostart(on) })
}

// State returns the state of the guest and libvirt's reason.
func (d *Domain) State(ctx context.Context) (state State, reason int, err error) {
	err = d.call(ctx, "read the state of domain", false, func(dom *libvirt.Domain) error {
		s, r, err := dom.GetState()
		state, reason = State(s), r
		return err
	})
	return state, reason, err
}

// IsPersistent says whether there is a definition.
func (d *Domain) IsPersistent(ctx context.Context) (yes bool, err error) {
	err = d.call(ctx, "read persistence of domain", false, func(dom *libvirt.Domain) (err error) { yes, err = dom.IsPersistent(); return err })
	return yes, err
}

// HasManagedSave says whether there is a saved image.
func (d *Domain) HasManagedSave(ctx context.Context) (yes bool, err error) {
	err = d.call(ctx, "look for a managed save of domain", false, func(dom *libvirt.Domain) (err error) { yes, err = dom.HasManagedSaveImage(0); return err })
	return yes, err
}

// ID returns the number of the running guest, -1 if there is none. It is looked
// up each time, since libvirt's own objects keep the one of their look-up.
func (d *Domain) ID(ctx context.Context) (id int, err error) {
	err = d.host.call(ctx, Call{"read the id of domain", d.name, false}, func(s *session) error {
		dom, err := s.conn.LookupDomainByUUIDString(d.uuid)
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		n, err := dom.GetID()
		id = int(int32(n))
		return err
	})
	return id, err
}

// StartFlags are those of Start.
type StartFlags struct{ Paused, AutoDestroy, BypassCache, ForceBoot, Validate, ResetNVRAM bool }

// Start starts the guest.
func (d *Domain) Start(ctx context.Context, flags StartFlags) error {
	var f libvirt.DomainCreateFlags
	for flag, on := range map[libvirt.DomainCreateFlags]bool{
		libvirt.DOMAIN_START_PAUSED: flags.Paused, libvirt.DOMAIN_START_AUTODESTROY: flags.AutoDestroy,
		libvirt.DOMAIN_START_BYPASS_CACHE: flags.BypassCache, libvirt.DOMAIN_START_FORCE_BOOT: flags.ForceBoot,
		libvirt.DOMAIN_START_VALIDATE: flags.Validate, libvirt.DOMAIN_START_RESET_NVRAM: flags.ResetNVRAM,
	} {
		if on {
			f |= flag
		}
	}
	return d.call(ctx, "start domain", true, func(dom *libvirt.Domain) error { return dom.CreateWithFlags(f) })
}

// Shutdown asks the guest to power off.
func (d *Domain) Shutdown(ctx context.Context) error {
	return d.call(ctx, "shut down domain", true, func(dom *libvirt.Domain) error { return dom.ShutdownFlags(libvirt.DOMAIN_SHUTDOWN_DEFAULT) })
}

// Destroy stops the guest hard; graceful asks QEMU to end, and never kills it.
func (d *Domain) Destroy(ctx context.Context, graceful bool) error {
	f := libvirt.DOMAIN_DESTROY_DEFAULT
	if graceful {
		f = libvirt.DOMAIN_DESTROY_GRACEFUL
	}
	return d.call(ctx, "stop domain", true, func(dom *libvirt.Domain) error { return dom.DestroyFlags(f) })
}

// Resume lets a paused guest go on.
func (d *Domain) Resume(ctx context.Context) error {
	return d.call(ctx, "resume domain", true, func(dom *libvirt.Domain) error { return dom.Resume() })
}

// UndefineFlags are those of Undefine.
type UndefineFlags struct{ ManagedSave, SnapshotsMetadata, CheckpointsMetadata, NVRAM, KeepNVRAM, TPM, KeepTPM bool }

// Undefine removes the definition.
func (d *Domain) Undefine(ctx context.Context, flags UndefineFlags) error {
	var f libvirt.DomainUndefineFlagsValues
	for flag, on := range map[libvirt.DomainUndefineFlagsValues]bool{
		libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE: flags.ManagedSave, libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA: flags.SnapshotsMetadata,
		libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA: flags.CheckpointsMetadata, libvirt.DOMAIN_UNDEFINE_NVRAM: flags.NVRAM,
		libvirt.DOMAIN_UNDEFINE_KEEP_NVRAM: flags.KeepNVRAM, libvirt.DOMAIN_UNDEFINE_TPM: flags.TPM, libvirt.DOMAIN_UNDEFINE_KEEP_TPM: flags.KeepTPM,
	} {
		if on {
			f |= flag
		}
	}
	return d.call(ctx, "undefine domain", true, func(dom *libvirt.Domain) error { return dom.UndefineFlags(f) })
}

// Rename renames the domain, which must be off.
func (d *Domain) Rename(ctx context.Context, name string) error {
	return d.call(ctx, "rename domain", true, func(dom *libvirt.Domain) error { return dom.Rename(name, 0) })
}

// Metadata returns one piece of metadata.
func (d *Domain) Metadata(ctx context.Context, kind MetadataKind, uri string, side Affect) (text string, err error) {
	err = d.call(ctx, "read metadata of domain", false, func(dom *libvirt.Domain) (err error) {
		text, err = dom.GetMetadata(libvirt.DomainMetadataType(kind), uri, libvirt.DomainModificationImpact(side))
		return err
	})
	return text, err
}

// SetMetadata sets one piece of metadata; an empty text removes it.
func (d *Domain) SetMetadata(ctx context.Context, kind MetadataKind, text, key, uri string, side Affect) error {
	return d.call(ctx, "set metadata of domain", true, func(dom *libvirt.Domain) error {
		return dom.SetMetadata(libvirt.DomainMetadataType(kind), text, key, uri, libvirt.DomainModificationImpact(side))
	})
}

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

// Snapshots returns the names of all snapshots.
func (d *Domain) Snapshots(ctx context.Context) (names []string, err error) {
	err = d.call(ctx, "list snapshots of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.ListAllSnapshots(0)
		for i := range all {
			if name, err := all[i].GetName(); err == nil {
				names = append(names, name)
			}
			_ = all[i].Free()
		}
		return err
	})
	return names, err
}

// Checkpoints returns the names of all checkpoints.
func (d *Domain) Checkpoints(ctx context.Context) (names []string, err error) {
	err = d.call(ctx, "list checkpoints of domain", false, func(dom *libvirt.Domain) error {
		all, err := dom.ListAllCheckpoints(0)
		for i := range all {
			if name, err := all[i].GetName(); err == nil {
				names = append(names, name)
			}
			_ = all[i].Free()
		}
		return err
	})
	return names, err
}
