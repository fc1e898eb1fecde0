package storage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Delete deletes the volume if nobody needs it. libvirt itself would delete it in
// any case, also under a running guest.
func (k *Volume) Delete(ctx context.Context, state tree.Value) (warnings []kind.Problem, err error) {
	s, err := k.find(ctx, state)
	if err == nil {
		err = s.refuseOther("destroy", state)
	}
	if err != nil {
		return nil, kind.UnlessGone(err)
	}
	this := identityOf(k.host(), s.vol)
	if warnings, err = k.refuseInUse(ctx, s, this); err != nil {
		return nil, err
	}
	if err = k.deleteReleased(ctx, s); err != nil {
		return nil, err
	}
	return warnings, nil
}

// beat is how long a deletion waits before it looks again whether the volume was
// released.
var beat = func(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}

// deleteReleased deletes the volume once no update under way holds it. While one
// does, the XML of its domain may name another medium already, and go back to this
// one: so the XML is asked again afterwards. No update waits for a deletion, so
// this comes to an end.
func (k *Volume) deleteReleased(ctx context.Context, s *volumeSight) error {
	defer telling(ctx, "waiting for the update of a domain, which may go back to the medium that it had", func() map[string]any {
		return map[string]any{"volume": s.name}
	})()
	for {
		held, err := k.deleteUnlessHeld(ctx, s)
		if !held || err != nil {
			return err
		}
		if err := beat(ctx); err != nil {
			return fmt.Errorf("destroy volume %s: a domain whose update is under way may go back to it, so it was not deleted: %w", s.name, err)
		}
	}
}

// deleteUnlessHeld deletes the volume if nobody holds it, and no XML names it. Nobody
// begins to hold it meanwhile: who does so later names it in XML until then.
func (k *Volume) deleteUnlessHeld(ctx context.Context, s *volumeSight) (held bool, err error) {
	k.holds.mu.Lock()
	defer k.holds.mu.Unlock()
	if k.holds.held[s.name] > 0 {
		return true, nil
	}
	all, err := users(ctx, k.host())
	if err != nil {
		return false, err
	}
	if needs := list(identityOf(k.host(), s.vol).among(ctx, all)); len(needs) > 0 {
		return false, refuseNeeded(s, needs)
	}
	err = s.vol.Delete(ctx, virt.DeleteFlags{})
	if virt.IsNotFound(err) {
		return false, nil // somebody was faster
	}
	return false, err
}

func refuseNeeded(s *volumeSight, needs []string) error {
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy volume %q: it is in use", s.name),
		Detail:  fmt.Sprintf("It is needed by %s. libvirt itself would delete it all the same. Nothing was changed. Detach or destroy these first.", strings.Join(needs, "; ")),
	})
}

// refuseInUse refuses to take a volume away from those who need it. It warns of
// images that could not be read, and so may need it.
func (k *Volume) refuseInUse(ctx context.Context, s *volumeSight, this *identity) (warnings []kind.Problem, err error) {
	all, err := everyUser(ctx, k.host())
	if err != nil {
		return nil, err
	}
	needs := list(this.among(ctx, all))
	if len(needs) == 0 {
		if err := refuseClosed(s, all); err != nil {
			return nil, err
		}
		// An overlay that somebody made lately is not yet on libvirt's list. A refresh
		// that fails makes libvirt stop the pool, so it comes after all else.
		if err := k.refresh(ctx, s.vol.PoolName()); err != nil {
			return nil, err
		}
	}
	backed, err := k.backedBy(ctx, this)
	if err != nil {
		return nil, err
	}
	if needs = append(needs, backed...); len(needs) == 0 {
		return warnOfUnread(s, all, this), nil
	}
	return nil, refuseNeeded(s, needs)
}

// refuseClosed refuses while an image of a domain cannot be read because its pool
// is not started: the volume may be its backing file.
func refuseClosed(s *volumeSight, all []user) error {
	var closed, pools []string
	for _, u := range all {
		if u.closed == "" {
			continue
		}
		if text := fmt.Sprintf("%s (%s)", u.unread, u); !slices.Contains(closed, text) {
			closed = append(closed, text)
		}
		if !slices.Contains(pools, u.closed) {
			pools = append(pools, u.closed)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	slices.Sort(pools)
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy volume %q: it may be a backing file", s.name),
		Detail: fmt.Sprintf("Images of pools that are not started cannot be read, and may lie over it: %s. Nothing was changed. Start these pools and repeat: %s. If nobody needs them, undefine the domains, or take the disks out of them.",
			strings.Join(closed, "; "), "virsh pool-start "+strings.Join(pools, ", virsh pool-start ")),
	})
}

// warnOfUnread names the images of which nobody could say what they lie over.
func warnOfUnread(s *volumeSight, all []user, this *identity) []kind.Problem {
	unread := slices.Clone(this.unread)
	for _, u := range all {
		if text := fmt.Sprintf("%s (%s)", u.unread, u); u.unread != "" && !slices.Contains(unread, text) {
			unread = append(unread, text)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	return []kind.Problem{{
		Summary: fmt.Sprintf("Volume %q was destroyed, and may have been a backing file", s.name),
		Detail: fmt.Sprintf("Of these images it could not be read what they lie over: %s. If one of them lay over %s, it is damaged now; `qemu-img info --backing-chain IMAGE` shows that on the host.",
			strings.Join(unread, "; "), s.vol.Path()),
	}}
}

// refresh lets libvirt look again what volumes the pool of a name has, and starts
// it again if that stops it.
func (k *Volume) refresh(ctx context.Context, name string) error {
	p, err := k.host().LookupPoolByName(ctx, name)
	if err != nil {
		return err
	}
	return refresh(ctx, p)
}

// backedBy lists the volumes of all started pools that have this one below them.
// What could not be read of them it adds to the identity.
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
			over, err := k.liesOver(ctx, v, this)
			if err != nil {
				return nil, err
			}
			if over {
				found = append(found, fmt.Sprintf("volume %s of pool %s", v.Name(), p.Name()))
			}
		}
	}
	return found, nil
}

// liesOver says whether a volume has another one below it, also with images in
// between that are in no pool.
func (k *Volume) liesOver(ctx context.Context, v *virt.Volume, this *identity) (bool, error) {
	lost := func(image string) {
		this.unread = append(this.unread, fmt.Sprintf("%s (volume %s of pool %s)", image, v.Name(), v.PoolName()))
	}
	xml, err := v.XML(ctx)
	var answer *virt.Error
	switch {
	case virt.IsNotFound(err):
		return false, nil // a file that went away backs onto nothing
	case errors.As(err, &answer) && !virt.IsLost(err):
		lost(v.Path())
		return false, nil
	case err != nil:
		return false, err
	}
	def, err := spec.Volume().Decode(xml)
	if err != nil {
		return false, err
	}
	below := def.At("backing_store.path").Str()
	if below == "" || this.is(ctx, below) || !path.IsAbs(below) {
		return below != "" && this.is(ctx, below), nil
	}
	further, unread := k.host().View().Below(ctx, below, def.At("backing_store.format.type").Str())
	if slices.ContainsFunc(further, func(f string) bool { return this.is(ctx, f) }) {
		return true, nil
	}
	if unread != "" {
		lost(unread)
	}
	return false, nil
}
