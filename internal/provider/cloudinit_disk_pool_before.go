package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/storage"
)

// What a seed had before, and what becomes of it and of the seed's own volume: it
// is deleted where a plan has shown that, and only while nobody needs it.

// readBefore finds out which of the volumes before are still there, and which of
// those nobody needs. What cannot be asked now stays as it is.
func (r *cloudinitDisk) readBefore(ctx context.Context, volumes *storage.Volume, state *cloudinitDiskModel, rec *seedRecord, diags *diag.Diagnostics) {
	var left []storage.SeedVolume
	shared := map[string]string{}
	rec.Unneeded = nil
	for _, at := range rec.placed(state.before()) {
		need, err := volumes.SeedNeeds(ctx, at)
		if err == nil && !need.Found {
			continue
		}
		if need.Path != "" && at.Path == "" {
			at.Path = need.Path
		}
		left = append(left, at)
		switch {
		case err != nil:
			warnOfBefore(diags, state, at, sentence(err.Error()))
		case len(need.By) > 0:
			warnOfBefore(diags, state, at, fmt.Sprintf("It is needed by %s. Once nobody needs it any more, the next plan shows that an apply deletes it.", strings.Join(need.By, "; ")))
		case need.Other != nil:
			warnOfBefore(diags, state, at, sentence(need.Other.Error()))
		default:
			rec.Unneeded = append(rec.Unneeded, at.String())
			if need.Shared != "" {
				shared[at.String()] = need.Shared
			}
		}
	}
	rec.left(left)
	rec.Shared = shared
	if !slices.EqualFunc(left, state.before(), func(a, b storage.SeedVolume) bool { return a.String() == b.String() }) || state.Superseded.IsNull() {
		state.setBefore(left)
	}
}

func warnOfBefore(diags *diag.Diagnostics, m *cloudinitDiskModel, at storage.SeedVolume, why string) {
	diags.AddWarning(fmt.Sprintf("An old volume of seed %q is still on the host: %s", m.Name.ValueString(), at), why)
}

// onlyThisHost says of a pool of such a type who could not be asked.
func onlyThisHost(shared string) string {
	return fmt.Sprintf("The pool is of the type %s, which other hosts use at the same time, and only this host was asked who needs it.", shared)
}

// warnOfEnd says which volumes the planned apply deletes.
func (rec seedRecord) warnOfEnd(diags *diag.Diagnostics, m *cloudinitDiskModel) {
	for _, at := range rec.Unneeded {
		if at == m.volume().String() { // an earlier content is to come back
			continue
		}
		text := "Nobody needs it any more."
		if shared := rec.Shared[at]; shared != "" {
			text = "No machine of this host needs it any more. " + onlyThisHost(shared) + " Look there before you agree."
		}
		diags.AddWarning(fmt.Sprintf("The apply deletes an old volume of seed %q: %s", m.Name.ValueString(), at), text)
	}
}

// warnOfDestruction says in the plan of a destroy who could not be asked.
func (r *cloudinitDisk) warnOfDestruction(ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) {
	state := r.seed(ctx, req.State, diags)
	if diags.HasError() || !state.pooled() {
		return
	}
	rec, d := loadSeedRecord(ctx, req.Private)
	diags.Append(d...)
	if rec.SharedPool != "" {
		diags.AddWarning(fmt.Sprintf("Other hosts may need the volume of seed %q: %s", state.Name.ValueString(), state.volume()),
			onlyThisHost(rec.SharedPool)+" The apply deletes it if no machine of this host needs it; look there before you agree.")
	}
}

// clear deletes what the seed had before and nobody needs, if the plan has shown
// that it may. The rest stays in the state, and a domain of this run that takes it
// out of its drive may delete it. Where other hosts use the pool, too, the volume
// that this update supersedes stays: their machines cannot be asked, and change
// after it; so its end is to be seen in a plan first.
func (r *cloudinitDisk) clear(ctx context.Context, volumes *storage.Volume, rec *seedRecord, plan, state *cloudinitDiskModel, diags *diag.Diagnostics) {
	if !plan.Superseded.IsUnknown() {
		return
	}
	now := plan.volume()
	old := rec.placed(state.before())
	if was := state.volume(); was.Name != "" {
		old = append(old, was)
	}
	drifted := !state.ContentDigest.Equal(state.Digest) // which the plan has shown
	var left []storage.SeedVolume
	for _, at := range old {
		if at.String() == now.String() { // an earlier content is back
			continue
		}
		keep, why := r.clearOne(ctx, volumes, at, now, slices.Contains(rec.Unneeded, at.String()), drifted && at.String() == state.volume().String())
		if why != "" {
			warnOfBefore(diags, plan, at, why)
		}
		if keep {
			left = append(left, at)
		}
	}
	rec.left(left)
	rec.Unneeded, rec.Shared = nil, nil
	plan.setBefore(left)
}

// clearOne deletes one volume, or says that it stays, and why if that is to be
// told. shown says that a plan has shown its end, drifted that it is known to hold
// something else than the seed left there.
func (r *cloudinitDisk) clearOne(ctx context.Context, volumes *storage.Volume, at, now storage.SeedVolume, shown, drifted bool) (stays bool, why string) {
	const still = " It stays in superseded."
	shared, err := volumes.SharedPool(ctx, at.Pool)
	if err != nil {
		return true, sentence(err.Error()) + still
	}
	if shared != "" && !shown {
		return true, onlyThisHost(shared) + " So it was not deleted. Once no machine of this host has it, a plan shows its end, for you to agree to."
	}
	needs, err := volumes.RemoveSeed(ctx, at, now, drifted)
	if err != nil {
		return true, sentence(err.Error()) + still
	}
	if len(needs) > 0 && shared == "" {
		volumes.SupersedeSeed(at)
	}
	return len(needs) > 0, ""
}

// removeFiles removes the images that the seed had in the store before its last
// one, as it lies in a pool now. The last one stays until the next update in the
// pool, or the end of the seed: a machine whose own change fails comes back to it.
func (r *cloudinitDisk) removeFiles(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse, state *cloudinitDiskModel) {
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	last := ""
	if !state.pooled() {
		last = state.Path.ValueString()
	}
	for _, file := range paths {
		if file == last {
			continue
		}
		if err := r.settings.files().remove(file); err != nil {
			resp.Diagnostics.AddWarning(fmt.Sprintf("An old image of seed %q was not removed", state.Name.ValueString()),
				sentence(err.Error())+" Nothing uses it any more: remove it by hand.")
		}
	}
	if last == "" {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, supersededKey, nil)...)
		return
	}
	resp.Diagnostics.Append(setSuperseded(ctx, resp.Private, last)...)
}

// deleteFromPools deletes the volumes of the seed. One that somebody needs stops
// it, before anything is deleted; what the seed had before is left to whoever has
// it. The current one goes last, so that whatever fails leaves the state as it was.
func (r *cloudinitDisk) deleteFromPools(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, state *cloudinitDiskModel) {
	volumes := r.volumes(&resp.Diagnostics, "destroy", state)
	if volumes == nil {
		return
	}
	rec, diags := loadSeedRecord(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	now := state.volume()
	err := r.refuseNeeded(ctx, volumes, rec, state)
	for _, at := range rec.placed(state.before()) {
		if err != nil {
			break
		}
		var needs []string
		if needs, err = volumes.RemoveSeed(ctx, at, now, false); len(needs) > 0 {
			warnOfBefore(&resp.Diagnostics, state, at, fmt.Sprintf("It is needed by %s, so it was left there. The seed is destroyed, and nothing deletes this volume any more: virsh vol-delete %s %s.", strings.Join(needs, "; "), at.Name, at.Pool))
		}
	}
	if err == nil && now.Name != "" {
		var needs []string
		if needs, err = volumes.RemoveSeed(ctx, now, storage.SeedVolume{}, !state.ContentDigest.Equal(state.Digest)); len(needs) > 0 {
			err = needed(now, needs)
		}
	}
	if err != nil {
		r.addPoolFailure(&resp.Diagnostics, "destroy", state, err)
	}
}

// refuseNeeded refuses to destroy a seed whose volume somebody needs, or that lies
// on another host.
func (r *cloudinitDisk) refuseNeeded(ctx context.Context, volumes *storage.Volume, rec seedRecord, state *cloudinitDiskModel) error {
	at := state.volume()
	sight, err := r.lookHere(ctx, volumes, rec, state)
	if err != nil || !sight.Found || volumes.KeepsSeed(at) {
		return err
	}
	need, err := volumes.SeedNeeds(ctx, at)
	if err != nil {
		return err
	}
	return needed(at, need.By)
}

// needed says that a volume is not deleted because somebody needs it, nil if nobody
// does.
func needed(at storage.SeedVolume, needs []string) error {
	if len(needs) == 0 {
		return nil
	}
	return kind.Refuse(kind.Problem{
		Summary: fmt.Sprintf("Volume %s is in use", at),
		Detail: fmt.Sprintf("It is needed by %s. libvirt itself would delete it all the same. Nothing was changed. Take it out of these first, or destroy them. "+
			"If the configuration has done so in this very run: the core destroys a seed whose block is gone before it changes the machines. Put the block back for one apply, which changes these; or give the block lifecycle { create_before_destroy = true } before it goes.", strings.Join(needs, "; ")),
	})
}

// deleteFiles removes what a seed that lies in a pool has in the store still.
func (r *cloudinitDisk) deleteFiles(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, state *cloudinitDiskModel) {
	paths, diags := superseded(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	for _, file := range paths {
		if err := r.settings.files().remove(file); err != nil {
			r.addFailure(&resp.Diagnostics, "remove", state, err)
		}
	}
}
