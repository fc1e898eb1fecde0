package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Delete stops and undefines the pool. Its storage stays, unless
// destroy.delete asks for it to go too, and it is empty.
func (k *Pool) Delete(ctx context.Context, state tree.Value) (warnings []kind.Problem, err error) {
	s, err := k.look(ctx, k.Identity(state))
	if err == nil {
		err = kind.RefuseStranger(k.Noun(), state, s.name, s.pool.UUID())
	}
	if err != nil {
		return nil, kind.UnlessGone(err)
	}
	if err := k.refuseUsed(ctx, s, "destroy", false); err != nil {
		return nil, err
	}
	if state.At("destroy.delete").Bool() {
		return nil, k.deleteStorage(ctx, s)
	}
	if s.active {
		if err := s.pool.Stop(ctx); err != nil {
			return nil, err
		}
	}
	if !s.persistent {
		return nil, nil // it went with its end
	}
	if err := s.pool.Undefine(ctx); err != nil {
		return nil, k.restart(ctx, s, err)
	}
	return nil, nil
}

// deleteStorage deletes the storage of the pool, then the pool.
func (k *Pool) deleteStorage(ctx context.Context, s *poolSight) error {
	if err := k.refuseUnseen(s); err != nil {
		return err
	}
	if err := k.refuseFull(ctx, s); err != nil {
		return err
	}
	if !s.persistent { // it would be gone before its storage is
		if _, err := k.host().DefinePool(ctx, s.xml); err != nil {
			return err
		}
	}
	if s.active {
		if err := s.pool.Stop(ctx); err != nil {
			return err
		}
	}
	if err := s.pool.Delete(ctx); err != nil {
		return k.restart(ctx, s, fmt.Errorf("%w (destroy.delete = true asks for that; a directory must be empty)", err))
	}
	return s.pool.Undefine(ctx)
}

// restart starts a pool again that could not be removed.
func (k *Pool) restart(ctx context.Context, s *poolSight, failed error) error {
	if !s.active {
		return failed
	}
	return startAgain(ctx, s.pool, failed)
}

// startAgain starts a pool again that was stopped for nothing.
func startAgain(ctx context.Context, pool *virt.Pool, failed error) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := pool.Start(ctx); err != nil {
		return also(failed, fmt.Sprintf("The pool was stopped, and could not be started again: %v.", err))
	}
	return also(failed, "The pool was started again.")
}

// removedEmpty are the types of pools of which libvirt deletes a directory, and
// only an empty one: there nothing is lost, whatever is known of what it holds.
// Of every other type it deletes all that there is.
var removedEmpty = map[string]bool{"dir": true, "fs": true, "netfs": true}

// refuseUnseen refuses to delete storage that cannot be seen to be empty.
func (k *Pool) refuseUnseen(s *poolSight) error {
	typ := s.raw.Attr("type").Str()
	switch {
	case removedEmpty[typ]:
		return nil
	case typ == "zfs":
		return kind.Refuse(kind.Problem{
			Path:    tree.ParsePath("destroy.delete"),
			Summary: fmt.Sprintf("Refusing to delete the storage of pool %q: it is a ZFS pool", s.name),
			Detail:  "libvirt would destroy the whole ZFS pool, and lists no file systems and no snapshots in it: it cannot be seen to be empty. Nothing was changed. Set destroy.delete = false, apply, and repeat: then the pool goes and its storage stays. If nobody needs that any more: zpool destroy.",
		})
	case !s.active:
		return kind.Refuse(kind.Problem{
			Path:    tree.ParsePath("destroy.delete"),
			Summary: fmt.Sprintf("Refusing to delete the storage of pool %q: it is not started", s.name),
			Detail:  fmt.Sprintf("A pool that is not started does not say what it holds, and for type %s libvirt would delete that too. Nothing was changed. Start it, so that it can be seen to be empty: virsh pool-start %s; or set destroy.delete = false, apply, and repeat: then the pool goes and its storage stays.", typ, s.name),
		})
	}
	return nil
}

// refuseFull refuses to delete storage that somebody has volumes in. libvirt
// itself refuses that for directories, and not for volume groups.
func (k *Pool) refuseFull(ctx context.Context, s *poolSight) error {
	if !s.active {
		return nil
	}
	if err := refresh(ctx, s.pool); err != nil { // its list may be older than the disk
		return err
	}
	volumes, err := s.pool.Volumes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for i, v := range volumes {
		if i == 10 {
			names = append(names, fmt.Sprintf("and %d more", len(volumes)-i))
			break
		}
		names = append(names, v.Name())
	}
	if len(names) == 0 && s.raw.Attr("type").Str() == "logical" {
		// libvirt lists no thin pools and no logical volumes that are switched off.
		info, err := s.pool.Info(ctx)
		if err != nil {
			return err
		}
		if info.Allocation > 0 {
			names = append(names, fmt.Sprintf("%d bytes in logical volumes that libvirt does not list (lvs -a shows them)", info.Allocation))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to delete the storage of pool %q: it is not empty", s.name),
		Detail:  fmt.Sprintf("It holds %s. Nothing was changed. Remove these first; or set destroy.delete = false, apply, and repeat: then the pool goes and its files stay.", strings.Join(names, ", ")),
	})
}

// refresh lets libvirt look again what volumes a started pool has. If that fails,
// libvirt stops the pool: then it is started again.
func refresh(ctx context.Context, pool *virt.Pool) error {
	failed := pool.Refresh(ctx)
	if failed == nil {
		return nil
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if active, err := pool.IsActive(ctx); err != nil || active {
		return failed
	}
	return startAgain(ctx, pool, failed)
}

// refuseUsed refuses to take a pool away from domains that name its volumes.
// With runningOnly, definitions do not count.
func (k *Pool) refuseUsed(ctx context.Context, s *poolSight, verb string, runningOnly bool) error {
	files, names := map[string]bool{}, map[string]bool{}
	var known []*identity
	if s.active {
		volumes, err := s.pool.Volumes(ctx)
		if err != nil && !virt.HasCode(err, virt.ErrOperationInvalid) { // stopped in the meantime
			return err
		}
		for _, v := range volumes {
			files[v.Path()], names[v.Name()] = true, true
			known = append(known, identityOf(k.host(), v))
		}
	}
	ask := everyUser
	if runningOnly {
		ask = users
	}
	all, err := ask(ctx, k.host())
	if err == nil && runningOnly {
		err = locate(ctx, k.host(), all)
	}
	if err != nil {
		return err
	}
	same := func(a, b string) bool { return k.host().View().Same(ctx, a, b) }
	var found []user
	for _, u := range all {
		inside := u.pool == s.name || u.adrift && names[u.volume] || slices.ContainsFunc(known, func(i *identity) bool {
			return slices.ContainsFunc(u.remotes, i.isRemote)
		})
		for _, f := range append([]string{u.source}, u.below...) {
			inside = inside || f != "" && s.holds(f, files, same)
		}
		if inside && (u.running || !runningOnly) {
			found = append(found, u)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to %s pool %q: its volumes are in use", verb, s.name),
		Detail:  fmt.Sprintf("They are used by %s. Nothing was changed. Remove or move these first.", strings.Join(list(found), "; ")),
	})
}
