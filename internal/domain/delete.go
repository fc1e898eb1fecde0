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

// Delete shuts the guest down and undefines the domain. It refuses to touch
// another domain than the state's, and one with snapshots, checkpoints or a
// managed save. UEFI variables and the TPM's state go with the domain; disks
// and firmware never do.
func (k *Kind) Delete(ctx context.Context, state tree.Value) error {
	s, err := k.look(ctx, k.Identity(state))
	var gone *kind.GoneError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := k.refuseStranger(state, s); err != nil {
		return err
	}
	if err := refuseLoss(ctx, s); err != nil {
		return err
	}
	destroy := state.Attr("destroy")
	wait := seconds(destroy.At("shutdown.timeout"), standardShutdown)
	if s.active() {
		err := stop(ctx, s.dom, s.name, wait, destroy.Attr("graceful").Bool())
		var still *stillRunning
		switch {
		case errors.As(err, &still) && still.crashed:
			return fmt.Errorf("%w, and destroy.graceful forbids a hard stop; stop it by hand (virsh destroy %s), or set destroy.graceful = false and apply that first", err, s.name)
		case errors.As(err, &still):
			return fmt.Errorf("%w, and destroy.graceful forbids a hard stop; shut it down by hand, or allow more time with destroy.shutdown.timeout", err)
		case err != nil:
			return err
		}
	}
	err = s.dom.Undefine(ctx, virt.UndefineFlags{NVRAM: true, TPM: true})
	if virt.IsNotFound(err) {
		// A transient domain is gone when it stops.
		return nil
	}
	return err
}

// refuseStranger refuses a domain that is not the one the state speaks of.
func (k *Kind) refuseStranger(state tree.Value, s *sight) error {
	uuid, name := state.Attr("uuid").Str(), state.Attr("name").Str()
	if !strings.EqualFold(uuid, s.definition.Attr("uuid").Str()) && uuid != "" || name != s.name {
		return kind.Refuse(kind.Problem{
			Summary: fmt.Sprintf("Refusing to destroy domain %q: it is not the one in the state", s.name),
			Detail: fmt.Sprintf("The state has the name %q and UUID %s, the host the name %q and UUID %s. Nothing was changed. If it was renamed on purpose, refresh the state (apply -refresh-only) and repeat.",
				name, uuid, s.name, s.definition.Attr("uuid").Str()),
		})
	}
	return nil
}

// refuseLoss refuses what would silently be lost with the definition.
func refuseLoss(ctx context.Context, s *sight) error {
	var lost []string
	snapshots, err := s.dom.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, name := range snapshots {
		lost = append(lost, fmt.Sprintf("snapshot %q (virsh snapshot-delete %s %s)", name, s.name, name))
	}
	checkpoints, err := s.dom.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, name := range checkpoints {
		lost = append(lost, fmt.Sprintf("checkpoint %q (virsh checkpoint-delete %s %s)", name, s.name, name))
	}
	if s.managedSave {
		lost = append(lost, fmt.Sprintf("the managed save image (virsh managedsave-remove %s)", s.name))
	}
	if len(lost) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Refusing to destroy domain %q: something would be lost with it", s.name),
		Detail:  "It has " + strings.Join(lost, ", ") + ". Nothing was changed. Remove them by hand, then repeat.",
	})
}
