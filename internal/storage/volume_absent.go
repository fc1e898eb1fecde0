package storage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// A started pool that does not list a volume says less than that the volume is
// gone: the pool may be another one of the same name, and its list is as old as
// its last refresh. A refresh could tell, but it is a write, and one that fails
// makes libvirt stop the pool; so a plan asks about the file itself.

// lookElsewhere concludes what has become of a volume that its pool does not list;
// absent is libvirt's answer.
func (k *Volume) lookElsewhere(ctx context.Context, p *virt.Pool, state tree.Value, absent error) (*volumeSight, error) {
	name, identity := state.Attr("name").Str(), k.Identity(state)
	document, err := p.XML(ctx, false)
	if err != nil {
		return nil, err
	}
	def, err := spec.Pool().Decode(document)
	if err != nil {
		return nil, err
	}
	same := func(a, b string) bool { return k.host().View().Same(ctx, a, b) }
	if now := strayed(def, state, same); now != "" {
		s, err := k.byKey(ctx, identity) // the volume's own pool may have another name now
		var gone *kind.GoneError
		if !errors.As(err, &gone) {
			return s, err
		}
		return nil, kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Pool %q of volume %q is another one now", p.Name(), name),
			Detail: fmt.Sprintf("The state has the volume as %s; the pool of that name is %s now, and says nothing about it. So nothing was concluded and nothing was changed. "+
				"Put the pool back where it was, and the volume is found again. If it is gone too: `state rm ADDRESS` for the volume.", pathOf(state), now),
		})
	}
	file := pathOf(state)
	if path.IsAbs(file) && k.host().View().Suspect(ctx, file) == virt.Present {
		return nil, &unlistedError{pool: p, name: name, file: file}
	}
	return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: absent}
}

// pathOf is where the state has the volume.
func pathOf(state tree.Value) string { return firstOf(state, "path", "key", "id") }

// strayed says what the pool is now, if it is not the one that the state's volume
// was in; "" if it is, or if that cannot be told. same compares directories.
func strayed(pool, state tree.Value, same func(a, b string) bool) string {
	typ, target, source := pool.Attr("type").Str(), pool.At("target.path").Str(), pool.At("source.name").Str()
	file, key := pathOf(state), firstOf(state, "key", "id")
	switch {
	case placed[typ] && path.IsAbs(target) && path.IsAbs(file):
		if !same(path.Dir(file), target) {
			return target
		}
	case directories[typ] && file != "" && !path.IsAbs(file), typ == "rbd" && path.IsAbs(file):
		return "of the type " + typ
	case typ == "rbd" && source != "" && key != "":
		if !strings.HasPrefix(key, source+"/") {
			return source
		}
	}
	return ""
}

// unlistedError says that the file of a volume is there, and that its pool does
// not list it.
type unlistedError struct {
	pool       *virt.Pool
	name, file string
}

func (e *unlistedError) Error() string {
	return fmt.Sprintf("pool %s does not list volume %s, though %s is there: virsh pool-refresh %s", e.pool.Name(), e.name, e.file, e.pool.Name())
}

// facts are those of the last time that libvirt listed the volume: last, or as much
// of it as the state has.
func (e *unlistedError) facts(state, last tree.Value) kind.Facts {
	if last.IsNull() {
		last = state
		for name := range volumeSettings {
			last = last.With(name, tree.NullValue)
		}
	}
	return kind.Facts{
		Name: e.name, Definition: last, Status: state.Attr("status"), Active: state.At("status.running").Bool(), Within: e.pool.UUID(), Repeated: true,
		Warnings: []kind.Problem{{
			Summary: fmt.Sprintf("Pool %q does not list volume %q", e.pool.Name(), e.name),
			Detail:  fmt.Sprintf("%s is there, but came after the pool's last refresh, so libvirt says nothing about it. A plan does not refresh pools; the volume stays in the state as it was. Let libvirt look: virsh pool-refresh %s.", e.file, e.pool.Name()),
		}},
	}
}

// find is look for what is about to be changed: then the pool is refreshed if that
// is needed to find the volume.
func (k *Volume) find(ctx context.Context, state tree.Value) (*volumeSight, error) {
	s, err := k.look(ctx, state)
	var unlisted *unlistedError
	if !errors.As(err, &unlisted) {
		return s, err
	}
	if err := refresh(ctx, unlisted.pool); err != nil {
		return nil, err
	}
	return k.look(ctx, state)
}
