package storage

import (
	"context"
	"fmt"
	"math"

	"github.com/driftsafe/terraform-provider-libvirt/internal/change"
	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// Update exchanges the seed, and grows the volume: through the running guests
// that use it, so that they see it, else by itself.
func (k *Volume) Update(ctx context.Context, u kind.Update) (done kind.Done, err error) {
	s, err := k.find(ctx, u.Prior)
	if err != nil {
		return done, err
	}
	if err := s.refuseOther("change", u.Prior); err != nil {
		return done, err
	}
	if err := s.lookForSeed(ctx, u.Prior, tree.NullValue); err != nil {
		return done, err
	}
	status := u.Prior.Attr("status")
	// Nothing but size and seed is done here; of all else the plan says what is agreed.
	agreed := u.Planned.Known().With("capacity", u.Prior.Attr("capacity")).With("capacity_unit", u.Prior.Attr("capacity_unit"))
	if done.Facts, err = k.facts(ctx, s, agreed, status.Attr("capacity"), status); err != nil {
		return kind.Done{}, err // the state stays as it is
	}
	done.Exists = true
	failed := k.renew(ctx, s, u, &done)
	if failed == nil {
		failed = k.fit(ctx, s, u, &done)
	}
	if len(done.Steps) == 0 && failed == nil {
		return done, nil
	}
	if err := k.afterwards(ctx, u, status, failed != nil, &done); err != nil {
		if failed != nil {
			err = also(failed, fmt.Sprintf("What is true now could not be read (%v); the next refresh tells.", err))
		}
		return done, err
	}
	if failed != nil {
		return done, failed
	}
	return done, kind.Unmet(k, s.name, u.Prior, u.Planned, done.Facts.Definition)
}

// afterwards reads what is true after an update.
func (k *Volume) afterwards(ctx context.Context, u kind.Update, status tree.Value, failed bool, done *kind.Done) error {
	if failed {
		var cancel context.CancelFunc
		ctx, cancel = cleanup(ctx)
		defer cancel()
	}
	after, err := k.look(ctx, u.Prior)
	if err != nil {
		return err
	}
	agreed, seen, other := u.Planned, after.size(), u.Prior
	if failed {
		agreed, seen, other = u.Prior, status.Attr("capacity"), u.Planned
	}
	// A text is a seed only for who expects one: and what failed may have come to
	// its end all the same, or not have been taken back.
	if err := after.lookForSeed(ctx, agreed, tree.NullValue); err != nil {
		return err
	}
	if !after.seed.found && !tree.Equal(agreed.At(seedURL), other.At(seedURL)) {
		if err := after.lookForSeed(ctx, other, tree.NullValue); err != nil {
			return err
		}
	}
	facts, err := k.facts(ctx, after, agreed, seen, status)
	if err == nil {
		done.Facts = facts
	}
	return err
}

// fit makes the volume as large as is planned.
func (k *Volume) fit(ctx context.Context, s *volumeSight, u kind.Update, done *kind.Done) error {
	want, told := sizeIn(u.Planned.Known()), sizeIn(done.Facts.Definition)
	if want.IsNull() || tree.Equal(want, told) {
		return nil
	}
	step := kind.Step{Name: "capacity", Outcome: kind.AlreadyConfigured}
	switch want.Num().Cmp(s.size().Num()) {
	case -1:
		return kind.Refuse(kind.Problem{
			Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("Refusing to shrink volume %q", s.name),
			Detail: fmt.Sprintf("It has %s bytes now, the plan asks for %s. Nothing was changed.", s.size(), want),
		})
	case 1:
		if err := k.grow(ctx, s, want, u.Effect); err != nil {
			return err
		}
		step.Outcome = kind.Updated
	}
	done.Steps = append(done.Steps, step)
	return nil
}

func (k *Volume) grow(ctx context.Context, s *volumeSight, want tree.Value, announced change.Effect) error {
	bytes, ok := want.Uint()
	if !ok || bytes > math.MaxInt64 {
		return fmt.Errorf("grow volume %s: %s is not a number of bytes", s.name, want)
	}
	found, this, err := k.usersOf(ctx, s)
	if err != nil {
		return err
	}
	if err := refuseStarted(found, announced, s.name, "capacity"); err != nil {
		return err
	}
	var disks []user
	for _, u := range found {
		switch {
		case !u.running:
		case this.liesUnder(ctx, u):
			return kind.Refuse(kind.Problem{
				Path: tree.Root.Attr("capacity"), Summary: fmt.Sprintf("Refusing to grow volume %q under a running guest", s.name),
				Detail: fmt.Sprintf("It is the backing file of %s, and must not change under its overlay. Nothing was changed. Grow the overlay, which is what the guest sees; or do this while the guest is off.", u),
			})
		case u.target != "" && this.has(ctx, u):
			disks = append(disks, u)
		}
	}
	if len(disks) == 0 {
		return s.vol.Resize(ctx, bytes, virt.ResizeFlags{})
	}
	// The first makes the file longer; a guest that shares it is told as well.
	for _, u := range disks {
		if err := u.domain.BlockResize(ctx, u.target, bytes); err != nil {
			return err
		}
	}
	return nil
}
