package domain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Delete shuts the guest down and undefines the domain. Whatever speaks against
// it is looked for before the guest is touched: another domain than the state's,
// another owner, snapshots, checkpoints or a managed save that nobody gave up
// (delete_loss.go). What goes with a domain, and what never does, is in
// delete_firmware.go; disks never do.
func (k *Kind) Delete(ctx context.Context, state tree.Value) (warnings []kind.Problem, err error) {
	s, err := k.look(ctx, k.Identity(state))
	if err == nil {
		err = kind.RefuseStranger(k.Noun(), state, s.name, s.dom.UUID())
	}
	if err != nil {
		return nil, kind.UnlessGone(err)
	}
	destroy := state.Attr("destroy")
	flags := virt.UndefineFlags{
		SnapshotsMetadata:   destroy.Attr("delete_snapshots").Bool(),
		CheckpointsMetadata: destroy.Attr("delete_checkpoints").Bool(),
		ManagedSave:         destroy.Attr("delete_managed_save").Bool(),
	}
	if err := k.refuseOwned(state, s); err != nil {
		return nil, err
	}
	if err := refuseLoss(ctx, s, flags); err != nil {
		return nil, err
	}
	if warnings, err = k.leaves(ctx, s, k.NeverUsed(state) && !s.active(), &flags); err != nil {
		return nil, err
	}
	if s.active() {
		wait := seconds(destroy.At("shutdown.timeout"), standardShutdown)
		err := stop(ctx, s.dom, s.name, wait, destroy.Attr("graceful").Bool())
		var still *stillRunning
		switch {
		case errors.As(err, &still) && still.crashed:
			return nil, fmt.Errorf("%w, and destroy.graceful forbids a hard stop; stop it by hand (virsh destroy %s), or set destroy.graceful = false and apply that first", err, s.name)
		case errors.As(err, &still) && still.deaf != nil:
			return nil, fmt.Errorf("%w, and destroy.graceful forbids a hard stop; shut it down or stop it by hand (virsh destroy %s), or set destroy.graceful = false and apply that first", err, s.name)
		case errors.As(err, &still):
			return nil, fmt.Errorf("%w, and destroy.graceful forbids a hard stop; shut it down by hand, or allow more time with destroy.shutdown.timeout", err)
		case err != nil:
			return nil, err
		}
	}
	if err := s.dom.Undefine(ctx, flags); err != nil && !virt.IsNotFound(err) { // a transient domain is gone when it stops
		if s.active() {
			err = fmt.Errorf("the guest is down now, and its definition is still there: %w", err)
		}
		return nil, err
	}
	if err := k.confirmGone(ctx, s); err != nil {
		return nil, err
	}
	for _, nic := range s.running().At("devices.interfaces").Elems() {
		k.departed.Store(strings.ToLower(nic.At("mac.address").Str()), true)
	}
	return warnings, nil
}

// Departed says whether a MAC was that of a domain which this process destroyed.
func (k *Kind) Departed(mac string) bool {
	_, yes := k.departed.Load(strings.ToLower(mac))
	return yes
}

// confirmGone looks whether the domain is gone. A guest that was started again
// between its stop and the end of its definition goes on without one.
func (k *Kind) confirmGone(ctx context.Context, s *sight) error {
	_, err := k.find(ctx, s.dom.UUID())
	if virt.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("see whether %s is gone: %w", s.name, err)
	}
	return fmt.Errorf("domain %s is still there: somebody started it again while it was destroyed, and it has no definition now. To destroy it, repeat; to keep it, put its block back and apply, which defines it again under the running guest", s.name)
}

// refuseOwned refuses a domain that another configuration has marked as its own,
// if this one says who it is. adopt says that it knows.
func (k *Kind) refuseOwned(state tree.Value, s *sight) error {
	mine, theirs := k.owner(), s.marker.Owner
	if mine == "" || theirs == "" || theirs == mine || state.Attr("adopt").Bool() {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy domain %q: it is marked as %q's", s.name, theirs),
		Detail: fmt.Sprintf("The provider's owner is %q: another configuration manages the same machine. Nothing was changed. To leave it to them: `state rm ADDRESS`. To destroy it all the same: set adopt = true in its block, apply (this touches nothing of the guest), then repeat.",
			mine),
	})
}
