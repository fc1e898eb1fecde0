package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Delete deletes the volume if nobody needs it. libvirt itself would delete it in
// any case, also under a running guest.
func (k *Volume) Delete(ctx context.Context, state tree.Value) (warnings []kind.Problem, err error) {
	s, err := k.look(ctx, state)
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.refuseOther("destroy", state); err != nil {
		return nil, err
	}
	// An overlay that somebody made lately is not yet on libvirt's list.
	pool, err := k.host().LookupPoolByName(ctx, s.vol.PoolName())
	if err != nil {
		return nil, err
	}
	if err := pool.Refresh(ctx); err != nil {
		return nil, err
	}
	if err := k.refuseInUse(ctx, s); err != nil {
		return nil, err
	}
	err = s.vol.Delete(ctx, virt.DeleteFlags{})
	if virt.IsNotFound(err) {
		return nil, nil // somebody was faster
	}
	return nil, err
}

// refuseInUse refuses to take a volume away from those who need it.
func (k *Volume) refuseInUse(ctx context.Context, s *volumeSight) error {
	all, err := everyUser(ctx, k.host())
	if err != nil {
		return err
	}
	this := identityOf(k.host(), s.vol)
	needs := list(this.among(ctx, all))
	backed, err := k.backedBy(ctx, this)
	if err != nil {
		return err
	}
	if needs = append(needs, backed...); len(needs) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy volume %q: it is in use", s.name),
		Detail:  fmt.Sprintf("It is needed by %s. libvirt itself would delete it all the same. Nothing was changed. Detach or destroy these first.", strings.Join(needs, "; ")),
	})
}

// backedBy lists the volumes of all started pools that have this one as their
// backing file.
func (k *Volume) backedBy(ctx context.Context, this *identity) ([]string, error) {
	pools, err := k.host().Pools(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range pools {
		volumes, err := p.Volumes(ctx)
		if virt.IsNotFound(err) || virt.HasCode(err, virt.ErrOperationInvalid) {
			continue // it is not started, and says nothing
		}
		if err != nil {
			return nil, err
		}
		for _, v := range volumes {
			xml, err := v.XML(ctx)
			var answer *virt.Error
			if errors.As(err, &answer) && !virt.IsLost(err) {
				continue // a file that went away backs onto nothing
			}
			if err != nil {
				return nil, err
			}
			def, err := spec.Volume().Decode(xml)
			if err != nil {
				return nil, err
			}
			if this.is(ctx, def.At("backing_store.path").Str()) {
				found = append(found, fmt.Sprintf("volume %s of pool %s", v.Name(), p.Name()))
			}
		}
	}
	return found, nil
}
