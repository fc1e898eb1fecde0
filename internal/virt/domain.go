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

// DomainFilter chooses domains of a list.
type DomainFilter uint

// The filters. Two of a pair choose both kinds; different pairs must all agree.
const (
	OnlyActive      = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_ACTIVE)
	OnlyInactive    = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_INACTIVE)
	OnlyPersistent  = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_PERSISTENT)
	OnlyTransient   = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_TRANSIENT)
	OnlyAutostart   = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_AUTOSTART)
	OnlyManagedSave = DomainFilter(libvirt.CONNECT_LIST_DOMAINS_MANAGEDSAVE)
)

// Domains lists the domains of the host, running and defined, with one call.
func (h *Host) Domains(ctx context.Context, only ...DomainFilter) (out []*Domain, err error) {
	var flags libvirt.ConnectListAllDomainsFlags
	for _, f := range only {
		flags |= libvirt.ConnectListAllDomainsFlags(f)
	}
	err = h.call(ctx, Call{"list domains", "", false}, func(s *session) error {
		out = nil
		all, err := s.conn.ListAllDomains(flags)
		for i := range all {
			dom := all[i]
			d, err := h.newDomain(s, &dom)
			if err != nil {
				return err
			}
			out = append(out, d)
		}
		return err
	})
	return out, err
}

func (d *Domain) call(ctx context.Context, op string, write bool, f func(*libvirt.Domain) error) error {
	return d.host.call(ctx, Call{op, d.name, write}, d.on(f))
}

func (d *Domain) on(f func(*libvirt.Domain) error) func(*session) error {
	return func(s *session) error {
		return d.handle.use(s, f, func() (*libvirt.Domain, error) { return s.conn.LookupDomainByUUIDString(d.uuid) }, freeDomain)
	}
}

// since is call for what libvirt has only since a version. One that lacks a
// function answers as if it had met an internal error, so it is not asked.
func (d *Domain) since(ctx context.Context, op string, write bool, version Version, what string, f func(*libvirt.Domain) error) error {
	return d.host.call(ctx, Call{op, d.name, write}, func(s *session) error {
		if err := s.needs(version, what); err != nil {
			return err
		}
		return d.on(f)(s)
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

// ManagedSaveXML returns the document that the saved image holds: the guest as
// it was, in the form of a definition, with what a start adds by itself.
func (d *Domain) ManagedSaveXML(ctx context.Context) (xml string, err error) {
	err = d.call(ctx, "read the managed save of domain", false, func(dom *libvirt.Domain) (err error) {
		xml, err = dom.ManagedSaveGetXMLDesc(libvirt.DOMAIN_SAVE_IMAGE_XML_SECURE)
		return err
	})
	return xml, err
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
		if answered(err, libvirt.ERR_OK) { // not an error: there is no number to return
			id = -1
			return nil
		}
		id = int(n)
		return err
	})
	return id, err
}

// Rename renames the domain, which must be off.
func (d *Domain) Rename(ctx context.Context, name string) error {
	return d.call(ctx, "rename domain", true, func(dom *libvirt.Domain) error { return dom.Rename(name, 0) })
}
