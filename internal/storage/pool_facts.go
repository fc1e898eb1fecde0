package storage

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// poolSight is what one look at a pool shows.
type poolSight struct {
	pool       *virt.Pool
	name       string
	xml        string     // of the definition
	raw        tree.Value // decoded from xml, without what is measured
	definition tree.Value // raw with id, autostart, active and the figures; the permissions are the directory's
	active     bool
	persistent bool
	pending    []string // paths that wait for the next start
}

// Read asks the host about the pool of a state.
func (k *Pool) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	s, err := k.look(ctx, k.Identity(state))
	if err != nil {
		return kind.Facts{}, err
	}
	return s.facts(state.Attr("status")), nil
}

func (k *Pool) look(ctx context.Context, identity string) (*poolSight, error) {
	pool, err := k.find(ctx, identity)
	var s *poolSight
	if err == nil {
		s, err = k.see(ctx, pool)
	}
	if virt.IsNotFound(err) {
		return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: err}
	}
	return s, err
}

func (k *Pool) see(ctx context.Context, pool *virt.Pool) (*poolSight, error) {
	s := &poolSight{pool: pool}
	var err error
	if s.xml, s.raw, err = k.document(ctx, pool, true); err != nil {
		return nil, err
	}
	if s.active, err = pool.IsActive(ctx); err != nil {
		return nil, err
	}
	if s.persistent, err = pool.IsPersistent(ctx); err != nil {
		return nil, err
	}
	autostart := false
	if s.persistent {
		if autostart, err = pool.Autostart(ctx); err != nil {
			return nil, err
		}
	}
	info, err := pool.Info(ctx)
	if err != nil {
		return nil, err
	}
	s.name = s.raw.Attr("name").Str()
	s.definition = s.raw.With("id", s.raw.Attr("uuid")).
		With("autostart", tree.BoolValue(autostart)).With("active", tree.BoolValue(s.active)).
		With("capacity", tree.UintValue(info.Capacity)).With("allocation", tree.UintValue(info.Allocation)).With("available", tree.UintValue(info.Available))
	if !s.active {
		return s, nil
	}
	_, now, err := k.document(ctx, pool, false)
	if err != nil {
		return nil, err
	}
	s.definition = s.definition.SetAt(permissions, now.At(permissions))
	for _, p := range k.rules.Differences(k.typ, now.SetAt(permissions, tree.NullValue), s.raw.SetAt(permissions, tree.NullValue)) {
		s.pending = append(s.pending, p.String())
	}
	return s, nil
}

const permissions = "target.permissions"

// document reads the XML of the definition, or of the pool as it is now.
func (k *Pool) document(ctx context.Context, pool *virt.Pool, definition bool) (string, tree.Value, error) {
	xml, err := pool.XML(ctx, definition)
	if err != nil {
		return "", tree.NullValue, err
	}
	decoded, err := spec.Pool().Decode(xml)
	return xml, withoutFigures(decoded), err
}

// withoutFigures drops what libvirt measures from a decoded pool.
func withoutFigures(v tree.Value) tree.Value {
	for name := range poolMeasured {
		v = v.With(name, tree.NullValue).With(name+"_unit", tree.NullValue)
	}
	return v
}

func (s *poolSight) facts(before tree.Value) kind.Facts {
	f := kind.Facts{Name: s.name, Definition: s.definition, Active: s.active}
	state := "settled"
	if len(s.pending) > 0 {
		state = "pending"
	}
	if !s.persistent {
		state = "degraded"
		f.Warnings = append(f.Warnings, kind.Problem{
			Summary: fmt.Sprintf("Pool %q has no definition", s.name),
			Detail:  fmt.Sprintf("It is transient: it will be gone when it stops, its files stay. Any change that is applied defines it again; by hand: virsh pool-dumpxml %s > f; virsh pool-define f.", s.name),
		})
	}
	f.Status = tree.ObjectValue(map[string]tree.Value{
		"state": tree.StringValue(state), "settled": tree.BoolValue(state == "settled"), "active": tree.BoolValue(s.active),
		"persistent": tree.BoolValue(s.persistent), "pending": texts(s.pending), "last_steps": before.Attr("last_steps"),
	})
	return f
}

// directories are the types of pools whose volumes are the files of one
// directory.
var directories = map[string]bool{"dir": true, "fs": true, "netfs": true}

// holds says whether a file is a volume of the pool. What a directory holds
// further down is not; of other pools the devices are known by name while the
// pool is started, else by the volume group's directory. same says whether two
// paths are those of one directory.
func (s *poolSight) holds(file string, volumes map[string]bool, same func(a, b string) bool) bool {
	if volumes[file] {
		return true
	}
	target := path.Clean(s.raw.At("target.path").Str())
	switch typ := s.raw.Attr("type").Str(); {
	case !path.IsAbs(target):
		return false
	case directories[typ]:
		return same(path.Dir(file), target)
	case typ == "logical":
		return strings.HasPrefix(file, target+"/")
	}
	return false
}
