package spec

import (
	"fmt"
	"reflect"
	"sync"

	"libvirt.org/go/libvirtxml"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Root is one kind of document that libvirt keeps: a domain, a network, a
// storage pool or a volume.
type Root struct {
	Name   string            // element name: domain, network, pool, volume
	Fields map[string]*Field // by pattern
	obj    *object
	make   func() libvirtxml.Document

	scales  map[string]scale  // by the pattern of a number with a unit
	amounts map[string]string // by the pattern of a unit: the number beside it
}

// The four roots, compiled at first use.
var (
	Domain = sync.OnceValue(func() *Root {
		return newRoot("domain", domainOverrides, func() libvirtxml.Document { return &libvirtxml.Domain{} })
	})
	Network = sync.OnceValue(func() *Root {
		return newRoot("network", networkOverrides, func() libvirtxml.Document { return &libvirtxml.Network{} })
	})
	Pool = sync.OnceValue(func() *Root {
		return newRoot("pool", poolOverrides, func() libvirtxml.Document { return &libvirtxml.StoragePool{} })
	})
	Volume = sync.OnceValue(func() *Root {
		return newRoot("volume", volumeOverrides, func() libvirtxml.Document { return &libvirtxml.StorageVolume{} })
	})
)

func newRoot(name string, table *overrides, empty func() libvirtxml.Document) *Root {
	c := &compiler{root: name, table: table, info: map[string]*Field{}}
	r := &Root{
		Name:   name,
		Fields: c.info,
		obj:    c.compile(reflect.TypeOf(empty()).Elem(), "", "/"+name, nil),
		make:   empty,
	}
	r.findScales()
	return r
}

// Type returns the object type of the document. It is shared: callers that
// add attributes of their own copy it with Extend.
func (r *Root) Type() *tree.Type { return r.obj.typ }

// Decode reads an XML document of this root into a tree. Elements and
// attributes that libvirtxml does not know are not in the tree; Edit keeps
// them.
func (r *Root) Decode(xml string) (tree.Value, error) {
	doc := r.make()
	if err := doc.Unmarshal(xml); err != nil {
		doc = r.make()
		if readable, changed := withoutUnreadable(xml); !changed || doc.Unmarshal(readable) != nil {
			return tree.NullValue, fmt.Errorf("read the XML of a %s: %w", r.Name, err)
		}
	}
	return r.obj.decode(reflect.ValueOf(doc).Elem()), nil
}

// Encode writes a tree as an XML document of this root. Attributes that the
// root does not have are ignored, unknown values count as absent. A value
// that does not fit its place, or that no document holds, is a *ValueError.
func (r *Root) Encode(t tree.Value) (string, error) {
	for _, find := range []func(tree.Value) *ValueError{r.findLost, r.findTwo} {
		if err := find(t); err != nil {
			return "", err
		}
	}
	return r.write(t)
}

// write is Encode for what a host may hold already.
func (r *Root) write(t tree.Value) (string, error) {
	doc := r.make()
	if err := r.obj.encode(r.withoutIdleUnits(t), reflect.ValueOf(doc).Elem(), nil); err != nil {
		return "", err
	}
	xml, err := doc.Marshal()
	if err != nil {
		return "", fmt.Errorf("write the XML of a %s: %w", r.Name, err)
	}
	return xml, nil
}

// withoutUnreadable leaves out what makes libvirtxml give up on a whole
// document: a backing store of type nvme, of which it knows no source. Like all
// that the tree cannot hold, it stays in the definition when that is edited.
func withoutUnreadable(xml string) (readable string, changed bool) {
	doc, err := parse(xml)
	if err != nil {
		return xml, false
	}
	for _, e := range doc.FindElements("//backingStore[@type='nvme']") {
		e.Parent().RemoveChild(e)
		changed = true
	}
	readable, err = doc.WriteToString()
	return readable, changed && err == nil
}
