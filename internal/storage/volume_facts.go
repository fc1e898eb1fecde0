package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// volumeSight is what one look at a volume shows.
type volumeSight struct {
	vol        *virt.Volume
	name       string
	definition tree.Value
}

// Read asks the host about the volume of a state. A pool that is not started
// is an error: it says nothing about its volumes.
func (k *Volume) Read(ctx context.Context, state tree.Value) (kind.Facts, error) {
	s, err := k.look(ctx, state)
	if err != nil {
		return kind.Facts{}, err
	}
	return k.facts(ctx, s, state.Attr("status"))
}

// look finds the volume by pool and name, which says whether it is the pool or
// the volume that is missing, else by key.
func (k *Volume) look(ctx context.Context, state tree.Value) (*volumeSight, error) {
	identity := k.Identity(state)
	pool, name := state.Attr("pool").Str(), state.Attr("name").Str()
	var vol *virt.Volume
	var err error
	if pool != "" && name != "" {
		vol, err = k.inPool(ctx, pool, name)
	} else {
		vol, err = k.host().LookupVolume(ctx, identity)
	}
	var s *volumeSight
	if err == nil {
		s, err = see(ctx, vol)
	}
	if virt.IsNotFound(err) {
		return nil, &kind.GoneError{Noun: k.Noun(), Name: identity, Err: err}
	}
	return s, err
}

// inPool looks a volume up. What libvirt does not know is looked for again on
// the disk: its list is as old as the pool's last refresh.
func (k *Volume) inPool(ctx context.Context, pool, name string) (*virt.Volume, error) {
	p, err := k.host().LookupPoolByName(ctx, pool)
	if virt.IsNotFound(err) {
		return nil, kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Pool %q of volume %q is gone", pool, name),
			Detail:  "That says nothing about its volumes: their files may well be there. So nothing was concluded and nothing was changed. Define the pool again, or apply it by itself first: apply -target=ADDRESS-OF-THE-POOL; its volumes are found again then. If the files are gone too: `state rm ADDRESS` for the volume.",
		})
	}
	if err != nil {
		return nil, err
	}
	if err := k.refuseStopped(ctx, p, name); err != nil {
		return nil, err
	}
	vol, err := p.LookupVolume(ctx, name)
	if err == nil {
		_, err = vol.XML(ctx)
	}
	if err != nil {
		if err := p.Refresh(ctx); err != nil {
			return nil, err
		}
		return p.LookupVolume(ctx, name)
	}
	return vol, nil
}

func (k *Volume) refuseStopped(ctx context.Context, p *virt.Pool, volume string) error {
	active, err := p.IsActive(ctx)
	if err != nil || active {
		return err
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Pool %q of volume %q is not started", p.Name(), volume),
		Detail:  fmt.Sprintf("A pool that is not started says nothing about its volumes, so nothing was concluded and nothing was changed. Start it: virsh pool-start %s; or apply the pool by itself first: apply -target=ADDRESS-OF-THE-POOL.", p.Name()),
	})
}

func see(ctx context.Context, vol *virt.Volume) (*volumeSight, error) {
	xml, err := vol.XML(ctx)
	if err != nil {
		return nil, err
	}
	def, err := spec.Volume().Decode(xml)
	if err != nil {
		return nil, err
	}
	s := &volumeSight{vol: vol, name: vol.Name()}
	s.definition = def.With("pool", tree.StringValue(vol.PoolName())).With("id", tree.StringValue(vol.Key())).
		With("path", tree.StringValue(vol.Path())).With("allocation_unit", tree.NullValue).With("physical_unit", tree.NullValue)
	return s, nil
}

func (k *Volume) facts(ctx context.Context, s *volumeSight, before tree.Value) (kind.Facts, error) {
	f := kind.Facts{Name: s.name, Definition: s.definition}
	all, err := k.census.users(ctx, k.host())
	if err != nil {
		return f, err
	}
	found := s.among(all)
	names := []tree.Value{}
	seen := map[string]bool{}
	for _, u := range found {
		f.Active = f.Active || u.running
		if text := u.String(); !seen[text] {
			seen[text] = true
			names = append(names, tree.StringValue(text))
		}
	}
	f.Status = tree.ObjectValue(map[string]tree.Value{
		"users": tree.ListValue(names), "running": tree.BoolValue(f.Active), "last_steps": before.Attr("last_steps"),
	})
	return f, nil
}

// usersOf lists the disks that use the volume, as of now.
func (k *Volume) usersOf(ctx context.Context, s *volumeSight) ([]user, error) {
	all, err := users(ctx, k.host())
	return s.among(all), err
}

// among picks the disks that use the volume.
func (s *volumeSight) among(all []user) []user {
	var found []user
	for _, u := range all {
		if u.uses(s.vol.PoolName(), s.name, s.vol.Path()) {
			found = append(found, u)
		}
	}
	return found
}

// backedBy lists the volumes of all started pools that have this one as their
// backing file.
func (k *Volume) backedBy(ctx context.Context, file string) ([]string, error) {
	pools, err := k.host().Pools(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range pools {
		if active, err := p.IsActive(ctx); err != nil || !active {
			if err != nil && !virt.IsNotFound(err) {
				return nil, err
			}
			continue
		}
		volumes, err := p.Volumes(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range volumes {
			xml, err := v.XML(ctx)
			if err != nil {
				continue // a file that went away backs onto nothing
			}
			def, err := spec.Volume().Decode(xml)
			if err != nil {
				return nil, err
			}
			if backing := def.At("backing_store.path").Str(); backing != "" && backing == file {
				found = append(found, fmt.Sprintf("volume %s of pool %s", v.Name(), p.Name()))
			}
		}
	}
	return found, nil
}

// refuseInUse refuses to take a volume away from those who need it.
func (k *Volume) refuseInUse(ctx context.Context, s *volumeSight) error {
	found, err := k.usersOf(ctx, s)
	if err != nil {
		return err
	}
	var needs []string
	if len(found) > 0 {
		needs = append(needs, list(found))
	}
	backed, err := k.backedBy(ctx, s.vol.Path())
	if err != nil {
		return err
	}
	needs = append(needs, backed...)
	if len(needs) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy volume %q: it is in use", s.name),
		Detail:  fmt.Sprintf("It is needed by %s. libvirt itself would delete it all the same. Nothing was changed. Detach or destroy these first.", strings.Join(needs, "; ")),
	})
}
