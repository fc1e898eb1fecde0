package virt

import (
	"context"

	"libvirt.org/go/libvirt"
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
