package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
	"github.com/driftsafe/terraform-provider-libvirt/internal/virt"
)

// How an update is carried out so that it can be taken back. Every step is told
// how before it is made. What cannot be taken back comes last: CPUs of an emulated
// guest after the devices that come, and devices that go after all else.

// lookTime is how long reading back may take, also after the user gave up.
const lookTime = time.Minute

// carryOut makes the update, reads back what came of it, and takes everything
// back if that is not what was asked for. after is what is true in the end, nil
// if nobody can tell.
func (a *apply) carryOut(ctx context.Context) (after *sight, err error) {
	look := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
		defer cancel()
		var err error
		if after, err = a.k.look(ctx, a.k.Identity(a.before.definition), a.before.extra...); err != nil {
			return fmt.Errorf("read %s back: %w", a.before.name, err)
		}
		return nil
	}
	release := a.holdMedia()
	defer release()
	if err = a.run(ctx); err == nil {
		if err = look(); err == nil {
			err = errors.Join(kind.Unmet(a.k, a.before.name, a.update.Prior, a.update.Planned, after.definition), a.verifyGuest(after))
		}
	}
	if err == nil {
		a.warnAboutReturned(after)
		a.observe(ctx, after)
		release()
		a.retireMedia(ctx, after)
		return after, nil
	}
	err = a.RollBack(ctx, err, "virsh dumpxml --inactive "+a.before.name)
	if lookErr := look(); lookErr != nil {
		return after, errors.Join(err, lookErr)
	}
	if fate := a.fate(after); fate != "" {
		err = fmt.Errorf("%w. %s", err, fate)
	}
	return after, err
}

// startAsItRan is for a guest that cannot be started with its definition, as
// refused says: of a definition that had waited for a restart nobody knows
// whether it works. What ran did, and becomes the definition. how are the flags of
// a start.
func (a *apply) startAsItRan(ctx context.Context, how tree.Value, refused error) error {
	if refused == nil || virt.IsUnreachable(refused) || a.before.guest.IsNull() {
		return refused
	}
	if active, err := a.before.dom.IsActive(ctx); err != nil || active {
		return errors.Join(refused, err)
	}
	// The resource is what libvirt gives every guest.
	ran, err := a.writeMarked(a.before.running().With("resource", a.before.definition.Attr("resource")), a.before.guestMarker)
	if err == nil {
		_, err = a.k.host().DefineDomain(ctx, ran, virt.DefineFlags{})
	}
	if err != nil {
		return errors.Join(refused, err)
	}
	if err := start(ctx, a.before.dom, how); err != nil {
		_, backErr := a.k.host().DefineDomain(ctx, a.before.xml, virt.DefineFlags{})
		return errors.Join(refused, err, backErr)
	}
	a.asItRan = true
	return nil
}

// fate says what became of the guest while an update was under way that does not
// stop it, "" if it is the one that ran before.
func (a *apply) fate(after *sight) string {
	switch {
	case a.asItRan:
		return "What had waited for a restart cannot be started: the guest runs again with the definition that it ran before, which is in force now. The next plan lists what that lacks"
	case !a.before.active(), a.ended:
	case !after.active():
		return "The guest does not run any more: somebody stopped it while the update was under way, or it stopped by itself; the update did not"
	case !a.takesDown() && !(tree.Equal(a.before.definition.Attr("id"), after.definition.Attr("id")) && a.before.guestMarker.Generation == after.guestMarker.Generation):
		return "The guest was started anew meanwhile, not by the update; status.pending lists what it has of the definition that was to come, until its next start"
	}
	return ""
}

// try makes a step, and remembers how it is taken back unless it certainly did
// not happen: a call whose answer was lost may have been carried out.
func (a *apply) try(ctx context.Context, do, undo func(context.Context) error) error {
	err := do(ctx)
	if err == nil || virt.IsLost(err) || ctx.Err() != nil {
		a.Add(undo)
	}
	return err
}

// tryParts makes a step that libvirt may leave half done when it refuses the
// rest: it is taken back in any case.
func (a *apply) tryParts(ctx context.Context, do, undo func(context.Context) error) error {
	a.Add(undo)
	return do(ctx)
}

// Add remembers how a step is taken back. What the running guest was told has
// gone with it if it does not run any more.
func (a *apply) Add(undo func(context.Context) error) {
	a.Undo.Add(func(ctx context.Context) error {
		err := undo(ctx)
		if !virt.HasCode(err, virt.ErrOperationInvalid) || !a.before.active() {
			return err
		}
		if active, stateErr := a.before.dom.IsActive(ctx); stateErr == nil && !active {
			return nil
		}
		return err
	})
}

// sameRun refuses to go on with a guest that somebody started anew: what was
// read of its devices is of no use any more. libvirt gives a run a number, which
// a daemon that was restarted uses again. But whoever starts the guest during an
// update starts it from its new definition, whose marker it takes: the one that
// ran before has an older one, until all is done. An update of the guest alone
// writes no definition, and another run of that has nothing to be corrected.
func (a *apply) sameRun(ctx context.Context) error {
	id, err := a.before.dom.ID(ctx)
	if err != nil {
		return err
	}
	if was := whole(a.before.definition.Attr("id")); int64(id) != was {
		return fmt.Errorf("the guest was started anew meanwhile (it was number %d and is %d)", was, id)
	}
	text, err := a.before.dom.Metadata(ctx, virt.MetadataElement, Namespace, virt.AffectLive)
	if err != nil && !virt.HasCode(err, virt.ErrNoDomainMetadata) {
		return err
	}
	if was, now := a.before.guestMarker.Generation, parseMarker(text).Generation; now != was {
		return fmt.Errorf("the guest was started anew meanwhile (it was of generation %d and is of %d)", was, now)
	}
	return nil
}

// observe marks the guest with the generation of its definition once it is as
// the definition says. That it is was read back: a mark that cannot be written is
// no reason to take anything back, and neither is a user who gives up now.
func (a *apply) observe(ctx context.Context, after *sight) {
	if !after.active() || after.guestMarker == after.marker || len(a.k.rules.Waiting(a.k.typ, after.definition, after.guest, a.update.Config)) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	mark := a.markGuest(after.marker)
	err := mark(ctx)
	if virt.IsUnreachable(err) {
		err = mark(ctx) // on another connection
	}
	if err != nil {
		a.warnings = append(a.warnings, kind.Problem{
			Summary: fmt.Sprintf("The running guest of domain %q is as its definition, and is not marked so", a.before.name),
			Detail:  fmt.Sprintf("%s. All changes were made. status.observed_generation stays behind until the next change, or the guest's next start.", err),
		})
		return
	}
	after.guestMarker = after.marker
}
